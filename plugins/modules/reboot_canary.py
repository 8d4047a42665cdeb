#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_canary
short_description: Wait until the canaries of an operation have passed their soak time
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Canaries are nodes of an operation that go first. The module watches the Nodes until each canary was rebooted or
    skipped, and has stayed healthy for O(soak) seconds after the last one.
  - The module reads the Nodes' annotation C(holdfast.dev/operation). So any run may reboot the canaries, and a later
    run, or a run after a crash, does not repeat a soak that has ended.
  - The task fails immediately with RV(error=canary_failed) if a canary fails, its Node is gone, or a finished canary is
    not Ready or has booted again. If a canary has a problem and recovers while no run waits, only a changed boot ID
    shows it.
options:
  nodes:
    description:
      - Names of the Nodes that are canaries, at least one. One that does not exist, or is labelled
        C(holdfast.dev/exclude), is refused, because the wait would never end.
    type: list
    elements: str
    required: true
  operation:
    description:
      - Id of the operation. The result of a canary in another operation does not count.
    type: str
    required: true
  soak:
    description:
      - Seconds that must pass after the last canary is done, by the API server's clock.
    type: int
    default: 0
  wait_timeout:
    description:
      - Seconds to wait for the canaries to be done. The soak does not count against it.
      - In check mode, the task does not wait.
    type: int
    default: 14400
seealso:
  - module: holdfast.kubernetes.node_operation
  - module: holdfast.kubernetes.reboot_operation
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.waiting_run
  - holdfast.kubernetes.shared.holder
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: Let the canaries go first, and let them soak for an hour
  holdfast.kubernetes.reboot_canary:
    nodes: [node-1, node-7]
    operation: kernel-2026-11
    soak: 3600
    run: "4711"
"""

RETURN = r"""
canaries:
  description: The canaries, in the order of O(nodes).
  type: list
  elements: dict
  returned: success, and failure because of a timeout
  contains:
    name:
      description: Name of the Node.
      type: str
      sample: node-1
    result:
      description: V(rebooted), V(skipped) or V(failed) in this operation; empty while it is in progress or has not
        begun.
      type: str
      sample: rebooted
    done:
      description: When it was rebooted or skipped; null while it is not.
      type: str
      sample: "2026-11-21T09:00:00.000000Z"
    ready:
      description: Whether the Node is Ready.
      type: bool
soaked_until:
  description: When the soak was over; null in check mode while a canary is not done.
  type: str
  returned: success
  sample: "2026-11-21T10:00:00.000000Z"
waited:
  description: Seconds waited.
  type: float
  returned: success
canary:
  description: The canary that failed, as in RV(canaries).
  type: dict
  returned: failure because of a canary, unless its Node is gone
node:
  description: Name of the canary that failed, does not exist or is excluded.
  type: str
  returned: failure because of a canary
  sample: node-1
waiting_for:
  description: Names of the canaries that are not done.
  type: list
  elements: str
  returned: failure because of a timeout
  sample: [node-7]
error:
  description: What kind of failure it was, for example V(canary_failed), V(refused), V(not_found), V(timed_out),
    V(invalid_input), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: canary_failed
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import HOLDER, WAITING_RUN
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.canary import reboot_canary

OPERATION = reboot_canary
SPEC: dict[str, Any] = {
    "argument_spec": {
        "nodes": {"type": "list", "elements": "str", "required": True},
        "operation": {"type": "str", "required": True},
        "soak": {"type": "int", "default": 0},
        "wait_timeout": {"type": "int", "default": 14400},
        **WAITING_RUN,
        **HOLDER,
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

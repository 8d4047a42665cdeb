#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_finish
short_description: End the reboot of a node, whatever became of it
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Gives a node back that has rebooted and is healthy. Its cordon and its opt-outs are undone, the pods that the shutdown left
    are removed, and slot and claim are given back.
  - With O(held), puts a node back that was held at the last moment.
  - With O(failed), sees what the failure left. A healthy node is given back; one that is not stays cordoned and keeps its slot
    as failed. A node that was not touched is reported as stopped, and does not count as a failure. One that another run works
    on is left to that.
options:
  operation:
    description:
      - Id of the rolling reboot.
    type: str
    required: true
  group:
    description:
      - Group whose ledger has the node's slot.
    type: str
    default: default
  operation_group:
    description:
      - Group in whose ledger the failures of the operation are counted.
    type: str
    default: default
  steps:
    description:
      - The steps that were left for the node, from M(holdfast.kubernetes.reboot_turn).
    type: list
    elements: str
    default: []
  attempts:
    description:
      - How often the node's turn had come before, from M(holdfast.kubernetes.reboot_turn).
    type: int
    default: 0
  needed:
    description:
      - Why the reboot was needed.
    type: str
  overridden_holds:
    description:
      - Holds that did not count, as the reboot returned them.
    type: list
    elements: raw
    default: []
  held:
    description:
      - Why a hold refused the reboot.
    type: str
  failed:
    description:
      - The result of the task that failed.
    type: dict
  where:
    description:
      - Name of the task that failed.
    type: str
  stage:
    description:
      - How far the run had come, from M(holdfast.kubernetes.reboot_turn).
    type: str
  done:
    description:
      - The node was done already; one of the user's tasks after it failed.
    type: bool
    default: false
  dropped:
    description:
      - The host dropped out of the plays, and its failure was counted then.
    type: bool
    default: false
  switched_off:
    description:
      - The node may be off, whatever the API still says of it.
    type: bool
    default: false
  sweep:
    description:
      - Whether pods that the shutdown left are removed, or only named.
    type: bool
    default: true
  opt_outs:
    description:
      - The autoscaler and health checks were told to leave the node alone.
    type: bool
    default: true
seealso:
  - module: holdfast.kubernetes.reboot_turn
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.shared.run
  - holdfast.kubernetes.shared.holder
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Give the node back
  holdfast.kubernetes.reboot_finish:
    name: node-1
    operation: kernel
    run: bastion/20261121T030000Z
    needed: a new kernel
"""

RETURN = r"""
step:
  description: What became of the node. V(done), V(failed), or V(put_back), after which its turn comes again.
  type: str
  returned: success
  sample: done
why:
  description: Why, in words.
  type: str
  returned: success
steps:
  description: The steps of the role that are left.
  type: list
  elements: str
  returned: success
  sample: [again]
stage:
  description: How far this run has come with the node. While it is V(waiting), nothing of the node is touched.
  type: str
  returned: always
  sample: waiting
claimed:
  description: Whether this run has the claim.
  type: bool
  returned: always
node:
  description: Name of the Node.
  type: str
  returned: always
operation:
  description: Id of the operation.
  type: str
  returned: always
run:
  description: Id of the run.
  type: str
  returned: always
group:
  description: The group whose ledger has the node's slot.
  type: str
  returned: always
attempts:
  description: How often the node's turn had come, and nothing could be begun.
  type: int
  returned: always
left:
  description: Why the last attempt ended.
  type: str
  returned: where a hold refused the reboot
result:
  description: The node's entry in the report, where its journey ends here.
  type: dict
  returned: success
uncounted:
  description: Failures that could not be counted, for M(holdfast.kubernetes.reboot_turn) to try again.
  type: list
  elements: dict
  returned: success
error:
  description: What kind of failure it was, for example V(refused), V(held), V(timed_out), V(not_found), V(invalid_input),
    V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: refused
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import HOLDER, NODE, RUN
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.finish import reboot_finish

OPERATION = reboot_finish
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        **RUN,
        **HOLDER,
        "operation": {"type": "str", "required": True},
        "group": {"type": "str", "default": "default"},
        "operation_group": {"type": "str", "default": "default"},
        "steps": {"type": "list", "elements": "str", "default": []},
        "attempts": {"type": "int", "default": 0},
        "needed": {"type": "str"},
        "overridden_holds": {"type": "list", "elements": "raw", "default": []},
        "held": {"type": "str"},
        "failed": {"type": "dict"},
        "where": {"type": "str"},
        "stage": {"type": "str"},
        "done": {"type": "bool", "default": False},
        "dropped": {"type": "bool", "default": False},
        "switched_off": {"type": "bool", "default": False},
        "sweep": {"type": "bool", "default": True},
        "opt_outs": {"type": "bool", "default": True},
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

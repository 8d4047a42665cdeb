#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_finish
short_description: End the reboot of a node, after success or failure
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Ends the reboot of a healthy node. The module undoes the cordon and the opt-outs, removes the pods that the shutdown left,
    and returns slot and claim.
  - If O(rebooted) says that a hold refused the reboot, undoes cordon and opt-outs, and returns slot and claim. The node is
    tried again later. The task fails if an earlier run may have sent the reboot, because the node may still go down.
  - With O(failed), cleans up after a failure. A healthy node is uncordoned. An unhealthy node stays cordoned and keeps its
    slot as failed; a node whose reboot this run or an earlier one may have requested counts as unhealthy. A node that
    an earlier operation left cordoned stays cordoned. A node on which the run had not started is reported as stopped, and
    does not count as a failure. A node on which another run works stays as it is.
options:
  settings:
    description:
      - The variables of the role, as M(holdfast.kubernetes.role_settings) returns them.
    type: dict
    required: true
  operation:
    description:
      - Id of the rolling reboot.
    type: str
    required: true
  turn:
    description:
      - What M(holdfast.kubernetes.reboot_turn) returned for the node, also if it failed.
    type: dict
    required: true
  rebooted:
    description:
      - The result of the reboot. It counts if C(turn.steps) has C(reboot). Its C(step) is V(held) if a hold refused it.
    type: dict
    default: {}
  failed:
    description:
      - The result of the task that failed.
    type: dict
  where:
    description:
      - Name of the task that failed.
    type: str
  dropped:
    description:
      - The host dropped out of the plays, and its failure was counted then.
    type: bool
    default: false
seealso:
  - module: holdfast.kubernetes.reboot_turn
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.shared.run
  - holdfast.kubernetes.shared.holder
  - holdfast.kubernetes.shared.alertmanager
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Uncordon the node and return its slot
  holdfast.kubernetes.reboot_finish:
    name: node-1
    operation: kernel
    run: bastion/20261121T030000Z
    settings: "{{ read.settings }}"
    turn: "{{ turn }}"
"""

RETURN = r"""
step:
  description: The outcome for the node. V(done), V(failed), or V(put_back), after which the node gets another turn.
  type: str
  returned: success
  sample: done
why:
  description: The reason, as text.
  type: str
  returned: success
steps:
  description: The remaining steps of the role.
  type: list
  elements: str
  returned: success
  sample: [again]
stage:
  description: This run's progress with the node. While it is V(waiting), the run does not change the node.
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
  description: Number of turns of the node that ended before work on it started.
  type: int
  returned: always
left:
  description: Why the last attempt ended.
  type: str
  returned: if a hold refused the reboot
needed:
  description: Why the reboot was needed.
  type: str
  returned: success
files:
  description: The files of notifications and of the user's tasks, for each of the user's steps among O(ignore:steps).
  type: dict
  returned: success
result:
  description: The node's entry in the report, if its journey ends here.
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
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import (
    ALERTMANAGER,
    HOLDER,
    NODE,
    RUN,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.finish import reboot_finish

OPERATION = reboot_finish
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        **RUN,
        **HOLDER,
        "settings": {"type": "dict", "required": True},
        "operation": {"type": "str", "required": True},
        "turn": {"type": "dict", "required": True},
        "rebooted": {"type": "dict", "default": {}},
        "failed": {"type": "dict"},
        "where": {"type": "str"},
        "dropped": {"type": "bool", "default": False},
        **ALERTMANAGER,
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

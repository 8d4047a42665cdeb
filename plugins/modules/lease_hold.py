#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: lease_hold
short_description: Hold a node so that it stays on, or release it
version_added: 0.1.0
description:
  - Takes or releases a Lease that forbids everyone to power off or reboot one node.
  - The Lease does not stop a drain, neither that of M(holdfast.kubernetes.drain) nor that of another tool. A rolling reboot of
    this collection waits for the release before it drains the node.
  - The Lease has the name of the node and is in the namespace O(namespace). C(holderIdentity) and C(acquireTime) are
    set together.
  - The module never takes or releases a Lease of another holder. If several callers try at the same time, exactly one
    of them gets the Lease.
  - A hold never expires. The renew time and the duration of the Lease have no meaning for it. The hold ends when its holder
    releases it.
  - If the holder has the Lease already, the module only updates its renew time, which does not count as a change. So another
    task of the same holder, which took the Lease and still waits, does not release it.
options:
  node:
    description:
      - Name of the Node to hold.
    type: str
    required: true
  namespace:
    description:
      - Namespace of the Lease. It must exist.
      - V(kube-node-lease) and V(holdfast) are reserved.
    type: str
    required: true
  holder:
    description:
      - Who holds the node. A comma is not allowed.
    type: str
    required: true
  reason:
    description:
      - The reason, for people who wait. It is in the annotation C(holdfast.dev/reason) of the Lease.
    type: str
  labels:
    description:
      - Labels to set on the Lease. Other labels stay unchanged. Numbers and booleans become texts.
    type: dict
  state:
    description:
      - V(present) takes the hold, V(absent) releases it.
      - On release, the module deletes a Lease that it created, and empties and keeps a Lease that someone else created.
    type: str
    choices: [present, absent]
    default: present
  wait:
    description:
      - With O(state=present), whether to wait until the Node's condition C(ShutdownInhibited) is V(True) and names this
        holder. Needs the node agent on the node. Without the agent, only tools that read Leases honor the hold.
      - With O(state=absent), whether to wait until the condition no longer names this holder, so that the old condition
        does not confirm a new hold that follows immediately.
    type: bool
    default: true
  wait_timeout:
    description:
      - Seconds to wait. After that, the module releases a Lease that it has just taken and that nobody has written since, and
        the task fails. If the node does not confirm a release, the task warns, and RV(inhibited) is V(true).
    type: int
    default: 60
seealso:
  - module: holdfast.kubernetes.lease_hold_info
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Hold the node while its firmware is updated
  holdfast.kubernetes.lease_hold:
    node: node-1
    namespace: firmware
    holder: firmware-update
    reason: flashing the storage controller

- name: Release it
  holdfast.kubernetes.lease_hold:
    node: node-1
    namespace: firmware
    holder: firmware-update
    state: absent
"""

RETURN = r"""
lease:
  description: The Lease as it is now; null if there is none.
  type: dict
  returned: success
inhibited:
  description: Whether the Node's condition C(ShutdownInhibited) names this holder. If the Node can't be read after the hold was
    taken, it is V(false), and the task warns.
  type: bool
  returned: success
waited:
  description: Seconds waited for the condition.
  type: float
  returned: success
  sample: 0.04
holder:
  description: Who has the Lease, if it is someone else.
  type: str
  returned: failure, when another holder has the Lease
acquired:
  description: When the other holder took the Lease.
  type: str
  returned: failure, when another holder has the Lease
taken_back:
  description: Whether the Lease was deleted or freed again, because the wait failed. If not, it still holds the node, or it
    held it before the task.
  type: bool
  returned: failure of the wait
error:
  description: What kind of failure it was, for example V(refused), V(held), V(timed_out), V(not_found), V(invalid_input),
    V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: timed_out
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._holds.leases import lease_hold

OPERATION = lease_hold
SPEC: dict[str, Any] = {
    "argument_spec": {
        "node": {"type": "str", "required": True},
        "namespace": {"type": "str", "required": True},
        "holder": {"type": "str", "required": True},
        "reason": {"type": "str"},
        "labels": {"type": "dict"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "wait": {"type": "bool", "default": True},
        "wait_timeout": {"type": "int", "default": 60},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

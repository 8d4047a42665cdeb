#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_ready
short_description: "Wait until a node is back: new boot ID, Ready, DaemonSet pods Ready"
version_added: 0.1.0
description:
  - Waits, by a watch, until a node is Ready, has a new boot ID, and its DaemonSet pods are Ready.
  - With O(operation), it waits only for the DaemonSets that had a Ready pod on the node when the operation began to drain
    it. A warning names the pods of others that are not Ready. So a DaemonSet that is broken anyway stops no reboot.
  - Without O(operation), it waits at most 60 seconds for a DaemonSet that has pods on several nodes and is Ready on none. A
    warning names its pod.
  - With O(operation), a pod whose container is still the one from before the reboot is not Ready. After a short reboot, the
    API server shows the old status of a pod until the kubelet writes a new one.
options:
  boot_id_before:
    description:
      - The boot ID before the reboot. If set, the node is back only if its boot ID differs.
    type: str
  daemonset_pods:
    description:
      - Whether to wait for the node's DaemonSet pods too.
    type: bool
    default: true
  sign_of_life:
    description:
      - Whether to wait also until the node's kubelet renews its Lease, which it does every 10 s. After a node dies, its
        Node stays Ready until the kubelet has given no sign of life for a while (50 s by default).
      - The module does not wait for this if the node has no Lease.
    type: bool
    default: false
  timeout:
    description:
      - Seconds to wait; then the task fails and says what is missing.
    type: int
    default: 900
  run:
    description:
      - Id of the run that works on the node. With O(operation) it needs the claim, and the task fails where that passed to
        another run.
    type: str
attributes:
  check_mode:
    support: full
    details:
      - Does not wait. With O(operation), the record of the phase is sent as a server-side dry run.
  diff_mode:
    support: none
    details:
      - With O(operation), the task records its phase on the Node, and does not show that as a change.
  idempotent:
    support: full
    details:
      - With O(operation), the task records its phase on the Node.
seealso:
  - module: holdfast.kubernetes.reboot
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.shared.phase
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: Wait until the node was rebooted and is healthy
  holdfast.kubernetes.node_ready:
    name: node-1
    boot_id_before: "{{ before.nodes[0].boot_id }}"
"""

RETURN = r"""
ready:
  description: Whether the node is back. In check mode the module does not wait, so this may be false. On failure,
    whether the node is Ready.
  type: bool
  returned: success, and failure because the node is not back
boot_id:
  description: The node's boot ID.
  type: str
  returned: success, and failure because the node is not back
  sample: 0b4dbb52-9b58-4d60-8d43-3f6d4d2f6c53
waited:
  description: Seconds waited.
  type: float
  returned: success
pods:
  description: DaemonSet pods that are not Ready.
  type: list
  elements: str
  returned: failure because of them
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
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import NODE, PHASE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.ready import node_ready

OPERATION = node_ready
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "boot_id_before": {"type": "str"},
        "daemonset_pods": {"type": "bool", "default": True},
        "sign_of_life": {"type": "bool", "default": False},
        "timeout": {"type": "int", "default": 900},
        "run": {"type": "str"},
        **PHASE,
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_quorum
short_description: Check whether etcd keeps its quorum without a node, and wait for it
version_added: 0.1.0
description:
  - Counts the members of etcd by their pods, one for each node that has such a pod, and says whether enough members
    remain without the node O(name). A member counts if its pod and its Node are Ready. If members are on Nodes with the
    label C(node-role.kubernetes.io/control-plane) or C(node-role.kubernetes.io/etcd), a member on another Node is missing.
  - With O(wait_timeout), waits by a watch until enough members remain.
  - The module can't check an etcd that runs without pods, outside the cluster; RV(kept) is then null.
options:
  name:
    description:
      - Name of the Node that will go down.
    type: str
    required: true
  namespace:
    description:
      - Namespace of etcd's pods.
    type: str
    default: kube-system
  selector:
    description:
      - Label selector of etcd's pods. The default selects kubeadm's static pods.
    type: str
    default: component=etcd
  wait_timeout:
    description:
      - Seconds to wait until etcd keeps its quorum without the node; then the task fails and names the missing members.
      - With V(0), and in check mode, the module only reports the quorum and never fails because of it.
    type: int
    default: 0
seealso:
  - module: holdfast.kubernetes.reboot_slot
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
- name: May this control-plane node be rebooted?
  holdfast.kubernetes.etcd_quorum:
    name: control-1
  register: etcd

- name: Wait until the other members are back
  holdfast.kubernetes.etcd_quorum:
    name: control-1
    wait_timeout: 600
  when: etcd.control_plane
"""

RETURN = r"""
control_plane:
  description: Whether the Node has the label C(node-role.kubernetes.io/control-plane), or the older C(.../master).
  type: bool
  returned: success
single_node:
  description: Whether the node is the only Node of the cluster.
  type: bool
  returned: success
only_control_plane:
  description: Whether the node is the only control-plane node.
  type: bool
  returned: success
member:
  description: Whether the node has a pod of etcd.
  type: bool
  returned: success
members:
  description: The nodes that have a pod of etcd. A pod that has no node yet is listed by its own name.
  type: list
  elements: str
  returned: success, and failure because of the quorum
  sample: [control-1, control-2, control-3]
ready_others:
  description: Other nodes whose pod of etcd is Ready, and which are Ready themselves.
  type: list
  elements: str
  returned: success, and failure because of the quorum
  sample: [control-2, control-3]
missing:
  description: The other members that don't count, and why.
  type: list
  elements: dict
  returned: success, and failure because of the quorum
  contains:
    node:
      description: The node.
      type: str
      sample: control-3
    reason:
      description: Why it does not count.
      type: str
      sample: its Node is not Ready
needed:
  description: How many members make a quorum; 0 if there are no members.
  type: int
  returned: success, and failure because of the quorum
  sample: 2
kept:
  description: Whether the number of RV(ready_others) is at least RV(needed); null if no pod of etcd was found.
  type: bool
  returned: success, and failure because of the quorum
waited:
  description: Seconds waited.
  type: float
  returned: success, and failure because of the quorum
error:
  description: What kind of failure it was, for example V(timed_out), V(not_found), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: timed_out
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import HOLDER, WAITING_RUN
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.quorum import etcd_quorum

OPERATION = etcd_quorum
SPEC: dict[str, Any] = {
    "argument_spec": {
        "name": {"type": "str", "required": True},
        "namespace": {"type": "str", "default": "kube-system"},
        "selector": {"type": "str", "default": "component=etcd"},
        "wait_timeout": {"type": "int", "default": 0},
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

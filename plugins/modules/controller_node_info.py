#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: controller_node_info
short_description: Find the node on which the controller itself runs
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Finds the Node of this cluster on which this task runs, if there is one, so that this Node can be rebooted last.
  - Runs on the controller. If the task is delegated to another host, it finds the Node of that host.
  - A pod of the same name in another cluster is not taken for the controller's pod. RV(evidence) says what identifies
    the Node. The possible values, the most certain first, are as follows.
  - B(uid) - a pod of this cluster has the UID that the service account token names, or, without a token, the UID in the
    path of the directory from which the kubelet mounted C(/etc/hosts) and C(/dev/termination-log). UIDs are unique. The
    directory also exists in a pod without a token, such as a pod of AWX. If a UID is known, names and addresses do not
    count.
  - B(address) - if there is no UID, for example in a sandbox with its own kernel, a pod has the name and one of the IP
    addresses. A pod with the same name, namespace and address in another cluster could be mistaken for it.
  - B(boot_id) - exactly one Node reports the boot ID of the kernel that the task runs on. This also works in containers
    within the pod, and for a controller that runs directly on the node without a pod. The boot ID is not unique if
    nodes are containers that share a kernel, as in kind. With several such nodes, the result is null. With one such
    node, a controller outside the node is taken for a controller on it.
options:
  pod:
    description:
      - Name of the controller's pod. By default the name in its token, or else the host name.
      - The name only says which pod to examine; the evidence is still needed.
    type: str
  namespace:
    description:
      - Namespace of the controller's pod. By default the namespace of its service account, otherwise all namespaces.
    type: str
notes:
  - Needs the rights to list pods and nodes.
seealso:
  - module: holdfast.kubernetes.node_info
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: Find the node that this job runs on
  holdfast.kubernetes.controller_node_info:
  register: own

- name: Show it
  ansible.builtin.debug:
    msg: "This job runs in pod {{ own.pod }} on node {{ own.node }}."
  when: own.node is not none
"""

RETURN = r"""
node:
  description: Name of the Node; null if the controller does not run on a Node of this cluster, or if that is unknown.
  type: str
  returned: success
  sample: node-1
pod:
  description: Name of the controller's pod; null if none was found.
  type: str
  returned: success
  sample: automation-job-4711-x7k2p
namespace:
  description: Its namespace; null if none was found.
  type: str
  returned: success
  sample: awx
evidence:
  description: What identifies the Node, V(uid), V(address) or V(boot_id); null if RV(node) is null.
  type: str
  returned: success
  sample: uid
error:
  description: What kind of failure it was, for example V(invalid_input), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: api_unreachable
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.controller import controller_node_info

OPERATION = controller_node_info
SPEC: dict[str, Any] = {
    "argument_spec": {
        "pod": {"type": "str"},
        "namespace": {"type": "str"},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

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
  - Finds the Node on which this task itself runs, if it runs on one of this cluster, so that it can be rebooted last.
  - Runs where the controller does. Where the task is delegated to another host, it is that one which is looked for.
  - A pod of the same name in another cluster is not believed to be the controller's. What is believed, the surest first, is
    told by RV(evidence).
  - B(uid) - a pod of this cluster has the UID that the token of the service account names, or else that of the directory
    from which the kubelet mounted C(/etc/hosts) and C(/dev/termination-log). UIDs are unique. A pod has the latter
    without a token too, as those of AWX are. Where a UID is known, no name or address counts.
  - B(address) - where there is no UID to be had, as in a sandbox with a kernel of its own, a pod has the name and one of
    the IP addresses. It could be mistaken for one of the same name, namespace and address in another cluster.
  - B(boot_id) - exactly one Node reports the boot ID of the kernel that the task runs on. It sees through containers within
    the pod, and tells of a controller that runs on the node itself and in no pod. It is not unique where nodes are
    containers that share a kernel, as those of kind do. With several such nodes none is named. With a single one, a
    controller beside it is taken for one on it.
options:
  pod:
    description:
      - Name of the controller's pod. By default that of its token, else the host name.
      - It is where to look; the evidence has to be there all the same.
    type: str
  namespace:
    description:
      - Namespace of the controller's pod. By default that of its service account, else all are searched.
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
- name: Find out whether this job would reboot the ground under its feet
  holdfast.kubernetes.controller_node_info:
  register: own

- name: Say so
  ansible.builtin.debug:
    msg: "This job runs in pod {{ own.pod }} on node {{ own.node }}."
  when: own.node is not none
"""

RETURN = r"""
node:
  description: Name of the Node; null where the controller runs on none of this cluster, or that can't be told.
  type: str
  returned: success
  sample: node-1
pod:
  description: Name of the controller's pod; null where none was found.
  type: str
  returned: success
  sample: automation-job-4711-x7k2p
namespace:
  description: Its namespace; null where none was found.
  type: str
  returned: success
  sample: awx
evidence:
  description: Why that is believed, V(uid), V(address) or V(boot_id); null where RV(node) is.
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

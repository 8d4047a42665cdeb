#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: graceful_shutdown_fit
short_description: Name the pods whose grace period a graceful shutdown would cut short
version_added: 0.1.0
description:
  - When a node is shut down, the kubelet divides its time among groups of pods. A pod whose
    C(terminationGracePeriodSeconds) is longer than the time of its group gets only the time of the group, and is then
    killed.
  - This module takes the values that you plan to configure. It says which running pods would be cut short, and by how
    much. It changes nothing.
  - Without O(total) and O(by_priority), graceful shutdown is off, and the kubelet gives pods no time. The result then
    lists all pods with a grace period.
notes:
  - A preStop hook runs within the grace period of its pod, so it needs no time of its own here.
  - A static pod counts with the priority of its mirror pod. The kubelet itself uses the C(priority) in the manifest.
    For a manifest that has only a C(priorityClassName), it uses priority 0. Manifests that kubeadm writes have both.
options:
  name:
    description:
      - Name of one Node, instead of O(selector). By default all Nodes that O(selector) selects.
    type: str
  selector:
    description:
      - Label selector of the Nodes. By default all.
    type: str
  total:
    description:
      - Seconds for all pods together, the kubelet's C(shutdownGracePeriod).
    type: int
  critical:
    description:
      - Seconds of O(total) that are reserved for critical pods, which have a priority of 2000000000 or more; the
        kubelet's C(shutdownGracePeriodCriticalPods). Without it, no time is reserved for them.
    type: int
  by_priority:
    description:
      - Groups of pods by priority, the kubelet's C(shutdownGracePeriodByPodPriority). Instead of O(total) and
        O(critical). A pod belongs to the group with the largest priority that is not above its own, or else to the
        lowest group.
    type: list
    elements: dict
    suboptions:
      priority:
        description:
          - The lowest priority of the group.
        type: int
        required: true
      seconds:
        description:
          - Seconds of the group.
        type: int
        required: true
seealso:
  - module: holdfast.kubernetes.graceful_shutdown_info
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
- name: Check whether 60 s, with 20 s of them for critical pods, are enough
  holdfast.kubernetes.graceful_shutdown_fit:
    selector: node-role.kubernetes.io/worker
    total: 60
    critical: 20
  register: result

- name: Name the pods that need more
  ansible.builtin.debug:
    msg: "{{ item.namespace }}/{{ item.name }} wants {{ item.wants }} s and gets {{ item.gets }} s"
  loop: "{{ result.nodes | map(attribute='cut_short') | flatten }}"

- name: Check three groups
  holdfast.kubernetes.graceful_shutdown_fit:
    name: node-1
    by_priority:
      - {priority: 0, seconds: 30}
      - {priority: 10000, seconds: 180}
      - {priority: 2000000000, seconds: 20}
"""

RETURN = r"""
enabled:
  description: Whether these values switch graceful shutdown on.
  type: bool
  returned: success
groups:
  description: The groups that the kubelet forms from these values, from the lowest priority up.
  type: list
  elements: dict
  returned: success
  sample: [{priority: 0, seconds: 40}, {priority: 2000000000, seconds: 20}]
needed:
  description: Seconds that a shutdown may take, the sum of all groups. logind's InhibitDelayMaxSec must not be less.
  type: int
  returned: success
  sample: 60
nodes:
  description: The nodes, by name.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: Name of the Node.
      type: str
      sample: node-1
    fits:
      description: Whether no pod is cut short.
      type: bool
    pods:
      description: How many pods a shutdown would end; finished pods do not count.
      type: int
      sample: 12
    longest:
      description: For each group, the longest grace period of its pods that run here.
      type: list
      elements: dict
      sample: [{priority: 0, seconds: 120}, {priority: 2000000000, seconds: 10}]
    cut_short:
      description: Pods that get less than they want, the worst first.
      type: list
      elements: dict
      contains:
        namespace:
          description: Namespace of the pod.
          type: str
          sample: shop
        name:
          description: Name of the pod.
          type: str
          sample: web-0
        priority:
          description: Its priority.
          type: int
          sample: 0
        wants:
          description: Seconds of its grace period.
          type: int
          sample: 120
        gets:
          description: Seconds that its group gives it.
          type: int
          sample: 40
        short_by:
          description: By how many seconds it is cut short.
          type: int
          sample: 80
error:
  description: What kind of failure it was, for example V(not_found), V(invalid_input), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: invalid_input
options:
  description: With RV(error=invalid_input), the invalid options.
  type: list
  elements: str
  returned: failure
  sample: [critical, total]
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.fit import graceful_shutdown_fit

OPERATION = graceful_shutdown_fit
SPEC: dict[str, Any] = {
    "argument_spec": {
        "name": {"type": "str"},
        "selector": {"type": "str"},
        "total": {"type": "int"},
        "critical": {"type": "int"},
        "by_priority": {
            "type": "list",
            "elements": "dict",
            "options": {
                "priority": {"type": "int", "required": True},
                "seconds": {"type": "int", "required": True},
            },
        },
        **auth_options(),
    },
    "mutually_exclusive": [["name", "selector"]],
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drain
short_description: Drain a node as its PodDisruptionBudgets allow
version_added: 0.1.0
description:
  - Cordons a node and evicts its pods, all at the same time if their budgets allow it. It repeats a refused eviction as soon
    as the budget allows it. It watches budgets and pods and does not poll them.
  - It identifies pods by UID. A new pod with the same name, on this node or another one, does not count.
  - A warning immediately names each pod whose budget can never allow an eviction. When only such pods are left, the
    task fails without waiting for O(timeout).
  - After O(timeout), the task fails, and names every pod that is left and the reason.
  - DaemonSet pods and mirror pods stay.
  - In check mode, the task fails if a pod can never leave, and does not wait for a pod that can leave later; RV(blocked)
    has both.
options:
  timeout:
    description:
      - Seconds for the whole drain, volumes included.
    type: int
    default: 600
  grace_period:
    description:
      - Seconds that each pod gets to end. By default the pod's own grace period. V(0) kills the pod immediately.
    type: int
  delete_emptydir:
    description:
      - Whether pods with C(emptyDir) volumes may be evicted. Their data is lost.
    type: bool
    default: false
  force:
    description:
      - Whether pods without an owner that recreates them may be evicted. They are lost.
    type: bool
    default: false
  disable_eviction:
    description:
      - Deletes the pods instead of evicting them, which ignores every PodDisruptionBudget.
    type: bool
    default: false
  delete_after:
    description:
      - Seconds after the start of the drain. A pod whose eviction a PodDisruptionBudget still refuses is then B(deleted),
        despite its budget, with its own grace period, even if O(grace_period) is set. By default never.
      - A warning names each of these pods, and the annotation C(holdfast.dev/operation) records them if O(operation) is set.
      - It must be less than O(timeout). If a node is drained again, the time starts again.
    type: int
  delete_selector:
    description:
      - Label selector of the pods that O(delete_after) may delete. By default all that O(pod_selector) selects.
    type: str
  pod_selector:
    description:
      - Label selector of the pods to evict. By default all.
    type: str
  wait_for_volumes:
    description:
      - Whether to wait until the VolumeAttachments of the moved pods are gone.
    type: bool
    default: true
  uncordon_on_failure:
    description:
      - Whether the module undoes its own cordon if the drain fails. By default the node stays cordoned. It also stays
        cordoned if O(owner) had cordoned it before, for another O(reason).
    type: bool
    default: false
  lifecycle_conditions:
    description:
      - Whether to show the drain in Kubernetes' own conditions of the Node, C(DrainInProgress) and then C(Drained), with the
        reason C(AdminRequested), as KEP-5683 defines them. A condition that another writer has set stays as it is.
      - A failed drain removes C(DrainInProgress). C(Drained) stays until M(holdfast.kubernetes.cordon) uncordons the node;
        with O(run), until the run returns its claim. By default the module does not set them, because it can't know
        whether a later task removes them.
      - Needs the right to patch C(nodes/status). Without it, the module warns and drains the node.
    type: bool
    default: false
  owner:
    description:
      - Owner of the cordon. By default V(holdfast).
    type: str
  reason:
    description:
      - Why the node is drained, for people who read the annotation.
    type: str
  run:
    description:
      - Id of the run that works on the node. If set, the task fails if the run's claim has passed to another run; see
        M(holdfast.kubernetes.node_claim).
    type: str
seealso:
  - module: holdfast.kubernetes.cordon
  - module: holdfast.kubernetes.node_info
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.shared.phase
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Drain
  holdfast.kubernetes.drain:
    name: node-1
    timeout: 900
    delete_emptydir: true

- name: See what a drain would do
  holdfast.kubernetes.drain:
    name: node-1
  check_mode: true
  register: plan

- name: Drain, and put the node back into service if that fails
  holdfast.kubernetes.drain:
    name: node-1
    uncordon_on_failure: true
"""

RETURN = r"""
evicted:
  description: Pods that were evicted and are gone; in check mode, the pods that would be evicted.
  type: list
  elements: dict
  returned: success, and failure of a drain that had begun
  contains:
    namespace:
      description: Namespace of the pod.
      type: str
      sample: shop
    name:
      description: Name of the pod.
      type: str
      sample: web-0
    uid:
      description: UID of the pod.
      type: str
      sample: 4f1c2d1e-8d0a-4c0e-9d5b-6d0f3b5e7a11
    seconds:
      description: Seconds from the accepted eviction until the pod was gone.
      type: float
      sample: 1.2
deleted:
  description: Pods that were deleted despite their budgets, because of O(delete_after). Those that are gone are in
    RV(evicted), too.
  type: list
  elements: dict
  returned: success, and failure of a drain that had begun
  sample: [{namespace: shop, name: web-0, uid: 4f1c2d1e-8d0a-4c0e-9d5b-6d0f3b5e7a11, pdb: web, reason: allows no eviction now}]
left:
  description: Pods that stay on the node on purpose. The name is not C(skipped), because Ansible would then treat the
    whole task as skipped.
  type: list
  elements: dict
  returned: success, and failure of a drain that had begun
  contains:
    namespace:
      description: Namespace of the pod.
      type: str
      sample: shop
    name:
      description: Name of the pod.
      type: str
      sample: web-0
    uid:
      description: UID of the pod.
      type: str
      sample: 4f1c2d1e-8d0a-4c0e-9d5b-6d0f3b5e7a11
    reason:
      description: Why the pod stays.
      type: str
      sample: DaemonSet pod
requests:
  description: Number of requests that the drain sent to the API server.
  type: int
  returned: success, and failure of a drain that had begun
  sample: 9
duration:
  description: Duration of the drain in seconds.
  type: float
  returned: success, and failure of a drain that had begun
  sample: 2.4
blocked:
  description: Pods and VolumeAttachments that are left, and why.
  type: list
  elements: dict
  returned: failure, and in check mode
  contains:
    namespace:
      description: Namespace of the pod; null for a VolumeAttachment.
      type: str
      sample: shop
    name:
      description: Name of the pod or VolumeAttachment.
      type: str
      sample: web-0
    reason:
      description: Why it is left.
      type: str
      sample: PodDisruptionBudget web allows no eviction now (2 pods healthy, 2 wanted)
    pdb:
      description: The PodDisruptionBudget that blocks the eviction.
      type: str
      sample: web
    verdict:
      description: V(later) if waiting may help, V(never) if it can't.
      type: str
      sample: later
unschedulable:
  description: Whether the node stays unschedulable.
  type: bool
  returned: failure of a drain that had begun
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
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.drain import drain

OPERATION = drain
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "timeout": {"type": "int", "default": 600},
        "grace_period": {"type": "int"},
        "delete_emptydir": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
        "disable_eviction": {"type": "bool", "default": False},
        "delete_after": {"type": "int"},
        "delete_selector": {"type": "str"},
        "pod_selector": {"type": "str"},
        "wait_for_volumes": {"type": "bool", "default": True},
        "uncordon_on_failure": {"type": "bool", "default": False},
        "lifecycle_conditions": {"type": "bool", "default": False},
        "owner": {"type": "str"},
        "reason": {"type": "str"},
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

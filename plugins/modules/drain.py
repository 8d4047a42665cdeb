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
  - Cordons a node and evicts its pods, all at once as far as their budgets allow. A refused eviction goes out again as soon
    as the budget allows it; budgets and pods are watched, not polled.
  - Pods are told apart by UID. A pod of the same name that comes back elsewhere or here does not count.
  - A pod whose budget can never allow an eviction is named at once in a warning. When only such pods are left, the task
    fails without waiting for O(timeout).
  - When the deadline passes the task fails and names every pod that is left, and why.
  - Pods of DaemonSets and mirror pods are left.
options:
  timeout:
    description:
      - Seconds for the whole drain, volumes included.
    type: int
    default: 600
  grace_period:
    description:
      - Seconds that each pod gets to end. By default what the pod itself asks for. V(0) means 0, which kills at once.
    type: int
  delete_emptydir:
    description:
      - Whether pods with C(emptyDir) volumes may be evicted. Their data is lost.
    type: bool
    default: false
  force:
    description:
      - Whether pods without an owner that would make them again may be evicted. They are lost.
    type: bool
    default: false
  disable_eviction:
    description:
      - Deletes the pods instead of evicting them, which passes over every PodDisruptionBudget.
    type: bool
    default: false
  pod_selector:
    description:
      - Label selector of the pods to evict. By default all.
    type: str
  wait_for_volumes:
    description:
      - Whether to wait until the VolumeAttachments of the moved pods are absent.
    type: bool
    default: true
  uncordon_on_failure:
    description:
      - Whether our own cordon is undone where the drain fails. By default the node stays cordoned.
    type: bool
    default: false
  owner:
    description:
      - In whose name the node is cordoned. By default V(holdfast).
    type: str
  reason:
    description:
      - Why, for people who look.
    type: str
  run:
    description:
      - Id of the run that works on the node. With it the task fails where the run's claim passed to another one; see
        M(holdfast.kubernetes.node_claim).
    type: str
seealso:
  - module: holdfast.kubernetes.cordon
  - module: holdfast.kubernetes.node_info
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
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

- name: Drain, and put the node back into service where that fails
  holdfast.kubernetes.drain:
    name: node-1
    uncordon_on_failure: true
"""

RETURN = r"""
evicted:
  description: Pods that were evicted and are gone; in check mode those that would be.
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
left:
  description: Pods that were left on the node on purpose. (A result named C(skipped) would make Ansible take the whole task
    for a skipped one.)
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
      description: Why.
      type: str
      sample: DaemonSet pod
requests:
  description: Number of requests to the API server that the drain took.
  type: int
  returned: success, and failure of a drain that had begun
  sample: 9
duration:
  description: Seconds that it took.
  type: float
  returned: success, and failure of a drain that had begun
  sample: 2.4
blocked:
  description: What is left and why.
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
      description: The PodDisruptionBudget that says so.
      type: str
      sample: web
    verdict:
      description: V(later) where waiting may help, V(never) where it can't.
      type: str
      sample: later
unschedulable:
  description: Whether the node is left unschedulable.
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
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import NODE
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
        "pod_selector": {"type": "str"},
        "wait_for_volumes": {"type": "bool", "default": True},
        "uncordon_on_failure": {"type": "bool", "default": False},
        "owner": {"type": "str"},
        "reason": {"type": "str"},
        "run": {"type": "str"},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_opt_outs
short_description: Make the cluster autoscaler and health checks leave a node alone, and undo that
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - While a node is worked on, the cluster autoscaler must not remove it for being empty, and a MachineHealthCheck of Cluster
    API must not replace its Machine for being down. Both have an annotation that tells them so. A NodeHealthCheck of medik8s
    must not fence it, and has a label for that.
  - What was there before is recorded on the Node, in the annotation C(holdfast.dev/opt-outs), in the same write and before the
    Machine is touched, so that whoever comes after a killed run can put it back.
  - O(state=absent) puts back exactly what was before, on the Machine first. A value that someone changed meanwhile stays.
options:
  state:
    description:
      - Whether they are told to leave the node, or what was before is put back. The latter puts back whatever is on record.
      - V(present) again changes nothing that is on record.
    type: str
    choices: [present, absent]
    default: present
  autoscaler:
    description:
      - Whether the cluster autoscaler is told, with C(cluster-autoscaler.kubernetes.io/scale-down-disabled) on the Node.
    type: bool
    default: true
  machine_health_check:
    description:
      - Whether MachineHealthChecks are told, with C(cluster.x-k8s.io/skip-remediation) on the Machine in the management
        cluster. It is the one that the Node's annotations C(cluster.x-k8s.io/machine) and
        C(cluster.x-k8s.io/cluster-namespace) name.
      - Where there is no such Machine there is nothing to do, and RV(why_not) says so.
    type: bool
    default: true
  node_health_check:
    description:
      - Whether NodeHealthChecks and remediators of medik8s are told, with the label
        C(remediation.medik8s.io/exclude-from-remediation) on the Node.
    type: bool
    default: true
  run:
    description:
      - Id of the run that does it; it must have claimed the node with M(holdfast.kubernetes.node_claim).
    type: str
seealso:
  - module: holdfast.kubernetes.cordon
  - module: holdfast.kubernetes.doctor
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Have them leave the node alone
  holdfast.kubernetes.node_opt_outs:
    name: node-1
    management:
      kubeconfig: ~/.kube/management

- name: Put back what was before
  holdfast.kubernetes.node_opt_outs:
    name: node-1
    management:
      kubeconfig: ~/.kube/management
    state: absent
"""

RETURN = r"""
opt_outs:
  description: Who leaves the node alone now because of what is on record.
  type: dict
  returned: success
  contains:
    autoscaler:
      description: Whether the cluster autoscaler does.
      type: bool
    node_health_check:
      description: Whether NodeHealthChecks of medik8s do.
      type: bool
    machine:
      description: The Machine that MachineHealthChecks leave, as C(namespace/name); null if there is none.
      type: str
      sample: metal/worker-1
why_not:
  description: Why there is no Machine to tell about, or to put anything back on; empty if there is one.
  type: str
  returned: success
  sample: the API cluster.x-k8s.io is not installed in the management cluster
error:
  description: What kind of failure it was, for example V(claim_lost), V(not_found), V(api) or V(api_unreachable). The record
    stays then.
  type: str
  returned: failure
  sample: api_unreachable
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import NODE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.opt_outs import node_opt_outs

OPERATION = node_opt_outs
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "autoscaler": {"type": "bool", "default": True},
        "machine_health_check": {"type": "bool", "default": True},
        "node_health_check": {"type": "bool", "default": True},
        "run": {"type": "str"},
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

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
  - While a node is worked on, the cluster autoscaler must not remove it for being empty, and a MachineHealthCheck of
    Cluster API must not replace its Machine for being down. Each has an annotation for that. A NodeHealthCheck of
    medik8s must not fence the node, and has a label for that.
  - The same write records the earlier values in the Node's annotation C(holdfast.dev/opt-outs), before the module
    changes the Machine, so that they can be restored after a killed run.
  - O(state=absent) restores exactly the earlier values, on the Machine first. A value that someone has changed in the
    meantime stays.
options:
  state:
    description:
      - V(present) sets the opt-outs. V(absent) restores all recorded values.
      - A second V(present) does not change the record.
    type: str
    choices: [present, absent]
    default: present
  autoscaler:
    description:
      - Whether to opt out of the cluster autoscaler, with C(cluster-autoscaler.kubernetes.io/scale-down-disabled) on
        the Node.
    type: bool
    default: true
  machine_health_check:
    description:
      - Whether to opt out of MachineHealthChecks, with C(cluster.x-k8s.io/skip-remediation) on the Machine in the
        management cluster. This is the Machine that the Node's annotations C(cluster.x-k8s.io/machine) and
        C(cluster.x-k8s.io/cluster-namespace) name.
      - If there is no such Machine, there is nothing to do, and RV(why_not) says so.
    type: bool
    default: true
  node_health_check:
    description:
      - Whether to opt out of NodeHealthChecks and remediators of medik8s, with the label
        C(remediation.medik8s.io/exclude-from-remediation) on the Node.
    type: bool
    default: true
  labels:
    description:
      - Labels of the Node during the work, for example for the operator of a database. Each is recorded with its earlier value,
        and restored if nobody else has changed it.
    type: dict
    default: {}
  annotations:
    description:
      - Annotations of the Node during the work, like O(labels).
    type: dict
    default: {}
  run:
    description:
      - Id of the run. It must have claimed the node with M(holdfast.kubernetes.node_claim).
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
- name: Set the opt-outs
  holdfast.kubernetes.node_opt_outs:
    name: node-1
    management:
      kubeconfig: ~/.kube/management

- name: Restore the earlier values
  holdfast.kubernetes.node_opt_outs:
    name: node-1
    management:
      kubeconfig: ~/.kube/management
    state: absent
"""

RETURN = r"""
opt_outs:
  description: Which components leave the node alone because of the record.
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
      description: The Machine that MachineHealthChecks leave alone, as C(namespace/name); null if there is none.
      type: str
      sample: metal/worker-1
why_not:
  description: Why there is no Machine to change or restore; empty if there is one.
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
        "labels": {"type": "dict", "default": {}},
        "annotations": {"type": "dict", "default": {}},
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

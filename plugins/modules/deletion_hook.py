#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: deletion_hook
short_description: Make Cluster API wait for you before it deletes a Machine
version_added: 0.1.0
description:
  - A deletion hook is an annotation on a Machine of Cluster API. While the Machine is being deleted, the controller waits at
    the hook's point until the annotation is gone. It waits for ever.
  - This module sets and removes one hook, and waits until the deletion waits for it. Hooks of others are never touched, nor is
    C(kcp-cleanup), which is that of the kubeadm control plane.
  - On the template of a MachineDeployment, a MachineSet or a KubeadmControlPlane, the Machines that are made of it have the hook
    from birth. Cluster API puts it on those that are there already, too, and takes it off when it leaves the template, but not
    from Machines that are being deleted. From those it is removed with O(kind=Machine).
  - A pre-drain hook alone is no safe gate. Cluster API skips it where the Machine has no Node, where the Cluster or its control
    plane is being deleted, and where no other control-plane Machine stays. Pre-terminate hooks always hold.
  - Where the hook can't hold any more, because the deletion went past its point or skips it for good, the task fails with
    RV(error=cannot_hold) and nothing is written. Where that may still change, the hook is written with a warning; with
    O(wait_for=deletion) the task fails then, too, rather than wait in vain.
options:
  kind:
    description:
      - What has the hook. With another kind than V(Machine), its template for Machines has it.
    type: str
    choices: [Machine, MachineDeployment, MachineSet, KubeadmControlPlane]
    default: Machine
  machine:
    description:
      - Name of the Machine, or of the object of O(kind).
      - Exactly one of O(machine) and O(node) is needed.
    type: str
    aliases: [name]
  node:
    description:
      - Name of the Node whose Machine it is. The Node's annotations C(cluster.x-k8s.io/machine) and
        C(cluster.x-k8s.io/cluster-namespace) say which one that is; where it has none or is gone, the one Machine whose
        C(status.nodeRef) names it.
    type: str
  namespace:
    description:
      - Namespace of O(machine), needed with it. With O(node) it is found.
    type: str
  point:
    description:
      - Where the deletion waits. V(pre-drain) is before Cluster API drains the node, V(pre-terminate) after the drain and the wait
        for volumes, and before the machine is ended.
    type: str
    choices: [pre-drain, pre-terminate]
    default: pre-drain
  hook:
    description:
      - Name of the hook, at most 63 characters. Letters, digits, C(-), C(_) and C(.) are allowed.
    type: str
    required: true
  owner:
    description:
      - Who has set the hook and removes it. It is the annotation's value; a hook of the same name with another owner is refused.
    type: str
    required: true
  state:
    description:
      - Whether the hook is there.
      - V(absent) on a Machine that is gone changes nothing.
    type: str
    choices: [present, absent]
    default: present
  unless_deleting:
    description:
      - With O(state=absent), leaves the hook of a Machine alone that is being deleted, with a warning. It is decided together with
        the write, so that a deletion that begins meanwhile counts, too.
    type: bool
    default: false
  wait_for:
    description:
      - V(deletion) waits until the Machine is being deleted and its deletion waits at O(point) for this very hook.
    type: str
    choices: [none, deletion]
    default: none
  wait_timeout:
    description:
      - Seconds to wait with O(wait_for=deletion); then the task fails, and the hook stays. V(0) looks once.
    type: int
    default: 3600
seealso:
  - module: holdfast.kubernetes.deletion_hook_info
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Be asked before the Machine of this node is drained, and wait until it is deleted
  holdfast.kubernetes.deletion_hook:
    node: node-1
    point: pre-drain
    hook: backup
    owner: backup-team
    wait_for: deletion
    wait_timeout: 86400
    management:
      kubeconfig: ~/.kube/management

- name: Let the deletion go on
  holdfast.kubernetes.deletion_hook:
    machine: workers-7c9-x2x8k
    namespace: clusters
    point: pre-drain
    hook: backup
    owner: backup-team
    state: absent

- name: Every Machine that is made from now on is to wait before it is ended
  holdfast.kubernetes.deletion_hook:
    kind: MachineDeployment
    name: workers
    namespace: clusters
    point: pre-terminate
    hook: volumes-are-gone
    owner: storage-team
"""

RETURN = r"""
hooks:
  description: All hooks of the Machine, or of the template, as they are now.
  type: list
  elements: dict
  returned: success, and RV(error=cannot_hold) or RV(error=timed_out)
  contains:
    point:
      description: Where the deletion waits, V(pre-drain) or V(pre-terminate).
      type: str
      sample: pre-drain
    hook:
      description: Its name; empty for an annotation that is the bare prefix.
      type: str
      sample: backup
    owner:
      description: The annotation's value. Hooks of this collection name their owner there.
      type: str
      sample: backup-team
    annotation:
      description: The whole annotation.
      type: str
      sample: pre-drain.delete.hook.machine.cluster.x-k8s.io/backup
phase:
  description: How far the deletion is, in Cluster API's own words. V(Deleted) where the Machine is gone; null for a template. Else
    one of V(NotDeleting), V(Deleting), V(WaitingForPreDrainHook), V(DrainingNode), V(WaitingForVolumeDetach),
    V(WaitingForPreTerminateHook), V(WaitingForInfrastructureDeletion), V(WaitingForBootstrapDeletion), V(DeletingNode),
    V(DeletionCompleted).
  type: str
  returned: success, and RV(error=cannot_hold) or RV(error=timed_out)
  sample: WaitingForPreDrainHook
waiting_since:
  description: Since when the deletion waits for hooks where it is now, as Cluster API wrote it; null where it does not.
  type: str
  returned: success, and RV(error=cannot_hold) or RV(error=timed_out)
  sample: "2026-11-21T09:00:00Z"
machine:
  description: Name of the Machine; null for a template, and where it is gone.
  type: str
  returned: success
  sample: workers-7c9-x2x8k
namespace:
  description: Its namespace.
  type: str
  returned: success
  sample: clusters
node:
  description: Name of its Node; null where it has none.
  type: str
  returned: success
  sample: node-1
kept:
  description: Whether the hook was left where it is because of O(unless_deleting).
  type: bool
  returned: success
waited:
  description: Seconds waited.
  type: float
  returned: success
  sample: 12.5
why:
  description: Why the hook can't hold. V(past) where the deletion is past its point, V(no_node), V(cluster_deleting),
    V(control_plane_deleting) or V(no_control_plane) where Cluster API skips it, V(gone) or V(removed) where that happened to the
    Machine or the hook during the wait.
  type: str
  returned: RV(error=cannot_hold)
  sample: past
owner:
  description: Who has the hook, where it is somebody else.
  type: str
  returned: RV(error=refused) because of it
  sample: storage-team
error:
  description: What kind of failure it was, for example V(cannot_hold), V(refused), V(timed_out), V(not_found), V(invalid_input),
    V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: cannot_hold
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.find import KINDS, MACHINE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.hooks import deletion_hook
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.rules import POINTS, PRE_DRAIN

OPERATION = deletion_hook
SPEC: dict[str, Any] = {
    "argument_spec": {
        "kind": {"type": "str", "choices": list(KINDS), "default": MACHINE},
        "machine": {"type": "str", "aliases": ["name"]},
        "node": {"type": "str"},
        "namespace": {"type": "str"},
        "point": {"type": "str", "choices": list(POINTS), "default": PRE_DRAIN},
        "hook": {"type": "str", "required": True},
        "owner": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "unless_deleting": {"type": "bool", "default": False},
        "wait_for": {"type": "str", "choices": ["none", "deletion"], "default": "none"},
        "wait_timeout": {"type": "int", "default": 3600},
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

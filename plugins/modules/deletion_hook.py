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
  - A deletion hook is an annotation on a Machine of Cluster API. While the Machine is being deleted, the controller
    waits at the hook's point until the annotation is gone, without a time limit.
  - This module sets and removes one hook, and can wait until the deletion waits for it. It never touches hooks of
    others, including C(kcp-cleanup), the hook of the kubeadm control plane.
  - On the template of a MachineDeployment, a MachineSet or a KubeadmControlPlane, new Machines have the hook from the
    start. Cluster API also adds the hook to existing Machines, and removes it from them when it is removed from the
    template, except from Machines that are being deleted. Remove it from those with O(kind=Machine).
  - A pre-drain hook alone is not reliable. Cluster API skips it if the Machine has no Node, if the Cluster or its
    control plane is being deleted, and if no other control-plane Machine remains. Pre-terminate hooks always hold.
  - If the hook can no longer hold, because the deletion has passed its point or always skips it, the task fails with
    RV(error=cannot_hold) and writes nothing. If that may still change, the task writes the hook with a warning; with
    O(wait_for=deletion), it also fails in this case, because the wait would never end.
options:
  kind:
    description:
      - Kind of the object. For a kind other than V(Machine), the hook is set on its Machine template.
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
        C(cluster.x-k8s.io/cluster-namespace) name the Machine. If the Node does not have them or is gone, it is the
        only Machine whose C(status.nodeRef) names the Node.
    type: str
  namespace:
    description:
      - Namespace of O(machine), required with it. With O(node), the module finds it.
    type: str
  point:
    description:
      - Where the deletion waits. V(pre-drain) is before Cluster API drains the node, V(pre-terminate) is after the
        drain and the wait for volumes, and before the machine is terminated.
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
      - Who sets and removes the hook. It is the annotation's value. The task refuses a hook of the same name with
        another owner.
    type: str
    required: true
  state:
    description:
      - Whether the hook exists.
      - V(absent) changes nothing if the Machine is gone.
    type: str
    choices: [present, absent]
    default: present
  unless_deleting:
    description:
      - With O(state=absent), keeps the hook of a Machine that is being deleted, with a warning. The write itself checks
        this, so that a deletion that begins in the meantime also counts.
    type: bool
    default: false
  wait_for:
    description:
      - V(deletion) waits until the Machine is being deleted and its deletion waits at O(point) for this hook.
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
- name: Stop the deletion before the Machine of this node is drained, and wait until it is deleted
  holdfast.kubernetes.deletion_hook:
    node: node-1
    point: pre-drain
    hook: backup
    owner: backup-team
    wait_for: deletion
    wait_timeout: 86400
    management:
      kubeconfig: ~/.kube/management

- name: Let the deletion continue
  holdfast.kubernetes.deletion_hook:
    machine: workers-7c9-x2x8k
    namespace: clusters
    point: pre-drain
    hook: backup
    owner: backup-team
    state: absent

- name: Make every new Machine wait before it is terminated
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
      description: Its name; empty for an annotation that is only the prefix.
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
  description: Progress of the deletion, as Cluster API reports it. V(Deleted) if the Machine is gone; null for a
    template. Otherwise one of V(NotDeleting), V(Deleting), V(WaitingForPreDrainHook), V(DrainingNode),
    V(WaitingForVolumeDetach), V(WaitingForPreTerminateHook), V(WaitingForInfrastructureDeletion),
    V(WaitingForBootstrapDeletion), V(DeletingNode), V(DeletionCompleted).
  type: str
  returned: success, and RV(error=cannot_hold) or RV(error=timed_out)
  sample: WaitingForPreDrainHook
waiting_since:
  description: When the deletion began to wait for hooks at this point, as Cluster API recorded it; null if it does not
    wait.
  type: str
  returned: success, and RV(error=cannot_hold) or RV(error=timed_out)
  sample: "2026-11-21T09:00:00Z"
machine:
  description: Name of the Machine; null for a template, and if the Machine is gone.
  type: str
  returned: success
  sample: workers-7c9-x2x8k
namespace:
  description: Its namespace.
  type: str
  returned: success
  sample: clusters
node:
  description: Name of its Node; null if it has none.
  type: str
  returned: success
  sample: node-1
kept:
  description: Whether the hook was kept because of O(unless_deleting).
  type: bool
  returned: success
waited:
  description: Seconds waited.
  type: float
  returned: success
  sample: 12.5
why:
  description: Why the hook can't hold. V(past) if the deletion is past its point, V(no_node), V(cluster_deleting),
    V(control_plane_deleting) or V(no_control_plane) if Cluster API skips it, V(gone) if the Machine disappeared during
    the wait, V(removed) if the hook was removed during the wait.
  type: str
  returned: RV(error=cannot_hold)
  sample: past
owner:
  description: Owner of the hook, if it is someone else.
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

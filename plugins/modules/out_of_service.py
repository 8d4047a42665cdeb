#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: out_of_service
short_description: Declare a node out of service after proof that it is off, and wait until its workloads have moved
version_added: 0.1.0
description:
  - Puts the taint C(node.kubernetes.io/out-of-service) on a Node. Kubernetes then deletes its pods immediately, without
    waiting for the kubelet, and detaches its volumes without an unmount. On a running node, this destroys data.
  - So the module requires evidence that the node is off. The evidence must be recent, of this node, of its current boot
    ID, and still true when the module checks it again directly before the act. The module records it on the Node, in
    C(holdfast.dev/evidence).
  - The task refuses a node that is Ready, shutting down, held, in a slot of a live run, or claimed by another run, and
    a node whose kubelet still renews its Lease. Except with the kind V(Attestation), it refuses a node if another Node
    has the same provider ID or C(systemUUID).
  - O(state=absent) removes the taint from a node that is Ready with a new boot ID, and whose old pods and
    VolumeAttachments are gone.
options:
  state:
    description:
      - Whether the taint exists.
    type: str
    choices: [present, absent]
    default: present
  value:
    description:
      - The taint's value, for people and for pods that tolerate only one of them.
    type: str
    choices: [nodeshutdown, hardwarefailure]
    default: nodeshutdown
  evidence:
    description:
      - Why the node is believed to be off. Needed for O(state=present), unless the taint was set with evidence before
        and the node has not been on since.
    type: dict
    suboptions:
      kind:
        description:
          - Kind of the evidence. V(BareMetalHost) is a host that metal3 keeps off by a key of this collection, as
            M(holdfast.kubernetes.reboot_annotation) returns it. The module checks it again in the management cluster.
          - V(Redfish) is the power state that a BMC reports. The module asks the BMC again.
          - V(FenceAgent) is the power state that a fence agent of ClusterLabs reports. The module runs it again.
          - V(Command) is a command that says whether the node is off. It runs where this task runs, also in check mode.
          - V(Attestation) is the statement of a person.
        type: str
        required: true
        choices: [BareMetalHost, Redfish, FenceAgent, Command, Attestation]
      at:
        description:
          - When it was seen that the node is off, as V(2026-11-21T09:00:00Z), at most 300 s ago by the API server's clock.
          - Needed for V(BareMetalHost) and V(Attestation). The module itself dates the others when it checks them.
          - The time of V(Attestation) must not be before the kubelet's last sign of life, which is the last renewal of
            its Lease. 5 s are allowed for clocks that differ.
        type: str
      node:
        description:
          - Name of the Node that the evidence is about. The task refuses any other name than O(name).
        type: str
      boot_id:
        description:
          - Boot ID of the Node when it was switched off. If it has changed since, the node came back, and the task
            refuses the evidence.
        type: str
      host:
        description:
          - Name of the BareMetalHost.
        type: str
      namespace:
        description:
          - Namespace of the BareMetalHost.
        type: str
      uid:
        description:
          - UID of the BareMetalHost.
        type: str
      key:
        description:
          - The key that keeps the host off.
        type: str
      since:
        description:
          - When the key was set. The module uses the value that is recorded on the host.
        type: str
      seen:
        description:
          - What showed that the host is off. The module looks again, and uses what it sees now.
        type: str
      uri:
        description:
          - URL of the system, as V(https://BMC/redfish/v1/Systems/ID). It is recorded and shown, so the task refuses a
            URL with a user or a password.
        type: str
      uuid:
        description:
          - UUID that the system must have, so that no other system is taken for it.
          - By default it must be the C(systemUUID) that the Node has in its C(status.nodeInfo), in any case and byte
            order. If one of the two is unknown, or they differ although you have verified that it is the right machine,
            set the UUID that its BMC reports.
          - The task refuses a UUID that is the C(systemUUID) of another Node.
        type: str
      username:
        description:
          - User at the BMC. It is not recorded.
        type: str
      password:
        description:
          - Password at the BMC. It is not recorded.
        type: str
      validate_certs:
        description:
          - Whether the BMC's certificate is verified.
        type: bool
        default: true
      ca_cert:
        description:
          - Path of the CA certificate that the BMC is verified with.
        type: path
      insecure_http:
        description:
          - Allows a C(uri) that is not https. User and password then cross the network as plain text, and anyone on the
            path can answer in place of the BMC.
        type: bool
        default: false
      agent:
        description:
          - The fence agent as JSON text with C(name), for example V(fence_ipmilan), with C(plug), which names the machine
            at its device, and with C(options), a dictionary. It is a text so that it is secret as a whole.
          - >-
            The agent runs where this task runs, also in check mode, and gets its options on its standard input. Its action
            C(status) must end with 2 and print C(Status: OFF). C(name) and C(plug) are recorded, the options are not.
        type: str
      command:
        description:
          - Command that says whether the node is off, split into words as a shell does, but run without a shell. The
            environment variable C(HOLDFAST_NODE) is the name of the Node. Variables and C(~) in the words are expanded.
          - It means off only if the command exits with 0 B(and) the last line of its output is V(off), or a subject
            before C(is off), C(:off) or C(=off), in any case, with spaces or without. The exit status alone is not
            enough, because fence agents also exit with 0 if a machine is on.
          - A subject is a few plain words, such as C(Chassis Power). A subject that negates the state, doubts it or
            names something else, with words such as V(not), V(whether), V(unknown) or V(fan), does not count.
          - Its output is recorded on the Node. The command is neither recorded nor shown, except for its first word.
        type: str
      argv:
        description:
          - The same as a list of words.
        type: list
        elements: str
      timeout:
        description:
          - Seconds that the command or the agent may take.
        type: int
        default: 60
      by:
        description:
          - Who attests that the node is off.
        type: str
      statement:
        description:
          - What this person has seen or done.
        type: str
  proof_timeout:
    description:
      - Maximum number of seconds to repeat the check, every 5 s, while the evidence does not show the node off or a BMC
        does not answer. No check begins later. V(0) checks once, as check mode does. All other refusals are immediate.
    type: int
    default: 0
  wait:
    description:
      - Whether to wait until every pod that does not tolerate the taint is gone, and every VolumeAttachment of the node is
        absent, unless a pod that stays needs it. It does not wait for a pod that has ended and that only its finalizers
        keep.
      - With O(state=absent), whether to wait until the node's old pods and VolumeAttachments are gone. Its kubelet ends
        the old pods when it is back. Without O(wait), or if O(force) is needed, the module checks once what is left.
    type: bool
    default: true
  wait_timeout:
    description:
      - Maximum number of seconds to wait. After that, the task fails and names what is left, and the taint stays, with
        either O(state).
    type: int
    default: 600
  force:
    description:
      - With O(state=absent), removes the taint from a Ready node that still has its old boot ID, because the evidence
        was wrong, or that has no evidence of this collection. The module records this on the Node and warns.
      - For a node with a new boot ID, it only allows VolumeAttachments to stay that the CSI driver was asked to detach
        and did not detach within O(wait_timeout). Its pods must still go.
    type: bool
    default: false
  override_holds:
    description:
      - Declares a node out of service although someone holds it. The holds are recorded.
    type: bool
    default: false
seealso:
  - module: holdfast.kubernetes.reboot_annotation
  - name: Non-graceful node shutdown
    description: What Kubernetes does because of the taint.
    link: https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.shared.claimant
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
attributes:
  check_mode:
    support: full
    details:
      - The module checks the evidence again, fails as a real run would, and sends the write as a server-side dry run.
        It does not wait. RV(blockers) lists what would have to go.
  diff_mode:
    support: full
  idempotent:
    support: full
"""

EXAMPLES = r"""
---
- name: Declare a node out of service that metal3 keeps off
  holdfast.kubernetes.out_of_service:
    name: worker-1
    evidence: "{{ fenced.evidence }}"

- name: Ask the BMC
  holdfast.kubernetes.out_of_service:
    name: worker-1
    evidence:
      kind: Redfish
      uri: https://bmc-7.example.com/redfish/v1/Systems/1
      username: reader
      password: "{{ bmc_password }}"

- name: Ask a fence agent
  holdfast.kubernetes.out_of_service:
    name: worker-1
    evidence:
      kind: FenceAgent
      agent: "{{ {'name': 'fence_ipmilan', 'options': {'ip': 'bmc-7', 'username': 'reader', 'password': bmc_password}} | to_json }}"

- name: Ask with a command, which prints "Chassis Power is off"
  holdfast.kubernetes.out_of_service:
    name: worker-1
    evidence:
      kind: Command
      command: ipmitool -I lanplus -H bmc-7 -U reader -f /etc/ipmi/password chassis power status

- name: Accept the statement of a person
  holdfast.kubernetes.out_of_service:
    name: worker-1
    value: hardwarefailure
    evidence:
      kind: Attestation
      by: Ada
      statement: I have pulled both power cords.
      at: "{{ now(utc=true).strftime('%Y-%m-%dT%H:%M:%SZ') }}"

- name: Put it back into service
  holdfast.kubernetes.out_of_service:
    name: worker-1
    state: absent
"""

RETURN = r"""
taint:
  description: The taint as it is now; null if it is not there.
  type: dict
  returned: success, or if something is left
  contains:
    key:
      description: Its key.
      type: str
      sample: node.kubernetes.io/out-of-service
    value:
      description: Its value.
      type: str
      sample: nodeshutdown
    effect:
      description: Its effect.
      type: str
      sample: NoExecute
evidence:
  description: The Node's annotation C(holdfast.dev/evidence) as it is now; null if there is none. Further fields depend
    on its kind.
  type: dict
  returned: success, or if something is left
  contains:
    kind:
      description: What it is.
      type: str
      sample: BareMetalHost
    node:
      description: Name of the Node.
      type: str
      sample: worker-1
    boot_id:
      description: The Node's boot ID at that time.
      type: str
      sample: 0b4dbb52-9b58-4d60-8d43-3f6d4d2f6c53
    at:
      description: When it was seen first.
      type: str
      sample: "2026-11-21T09:00:04.000000Z"
    looked_at:
      description: When it was checked again, directly before the taint was set.
      type: str
      sample: "2026-11-21T09:00:06.000000Z"
    run:
      description: Id of the run; empty if there was none.
      type: str
      sample: "4711"
    taint:
      description: V(found) if someone else had set the taint before.
      type: str
      sample: found
    removed:
      description: When and by which run the taint was removed by force.
      type: dict
      sample: {at: "2026-11-21T09:12:00.000000Z", forced: true, run: ""}
pods:
  description: The pods that are, or were, on the node.
  type: list
  elements: dict
  returned: success, or if something is left
  contains:
    namespace:
      description: Namespace of the pod.
      type: str
      sample: shop
    name:
      description: Name of the pod.
      type: str
      sample: database-0
    uid:
      description: UID of the pod.
      type: str
      sample: 5b1f2a90-2f4d-4a58-9f6e-0f5c4f1f0a77
    state:
      description: V(gone), V(stays) for a pod that the taint does not remove, or V(left) for a pod that still has to go.
      type: str
      sample: gone
    reason:
      description: Why it stays.
      type: str
      sample: it tolerates the taint node.kubernetes.io/out-of-service
volume_attachments:
  description: The VolumeAttachments that are, or were, on the node.
  type: list
  elements: dict
  returned: success, or if something is left
  contains:
    name:
      description: Name of the VolumeAttachment.
      type: str
      sample: csi-6a1b
    volume:
      description: Name of the PersistentVolume.
      type: str
      sample: pvc-7d0e
    attacher:
      description: Name of the CSI driver.
      type: str
      sample: csi.example.com
    state:
      description: V(gone), V(stays) if a pod that stays needs it, or V(left) if it still has to go.
      type: str
      sample: gone
    reason:
      description: Progress of its detachment, as last seen.
      type: str
      sample: its detach was not requested yet
blockers:
  description: What has to go but still exists.
  type: list
  elements: dict
  returned: success, or if something is left
  contains:
    kind:
      description: V(Pod) or V(VolumeAttachment).
      type: str
      sample: VolumeAttachment
    namespace:
      description: Namespace of the pod; null for a VolumeAttachment.
      type: str
      sample: shop
    name:
      description: Its name.
      type: str
      sample: csi-6a1b
    uid:
      description: UID of the pod; null for a VolumeAttachment.
      type: str
      sample: 5b1f2a90-2f4d-4a58-9f6e-0f5c4f1f0a77
    reason:
      description: Why it still exists.
      type: str
      sample: csi.example.com was asked at 2026-11-21T09:00:07Z to detach it, and has not done so
    detaching:
      description: Whether the CSI driver was asked to detach it. Only for a VolumeAttachment.
      type: bool
      sample: true
back:
  description:
    - Whether the node came back while it had the taint. On success, it came back while the module waited for its
      workloads.
    - On a refusal, the node already had the taint and is Ready, shuts down, or has booted since. Run the playbook
      C(holdfast.kubernetes.recover).
  type: bool
  returned: O(state=present), on success, if something is left, or if the task refuses because of the node or without evidence
  sample: false
waited:
  description: Seconds that it took.
  type: float
  returned: success, or if something is left
  sample: 21.7
why:
  description: Why the task refused, as one word. For setting the taint, V(no_evidence), V(ready), V(shutting_down),
    V(in_slot), V(new_boot), V(old), V(other_host), V(other_node), V(not_off), V(not_datable) or V(alive). For removing
    it, V(not_ready), V(not_ours), V(same_boot) or V(left).
  type: str
  returned: refused
  sample: new_boot
slot:
  description: The slot of the live run.
  type: dict
  returned: refused because of it
holds:
  description: The holds of the node.
  type: list
  elements: dict
  returned: refused because of them
error:
  description: What kind of failure it was, for example V(refused), V(held), V(claimed), V(claim_lost), V(timed_out), V(bmc),
    V(not_found), V(invalid_input), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: refused
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import CLAIMANT, NODE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.taint import out_of_service
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.evidence_rules import KINDS

OPERATION = out_of_service
_EVIDENCE: dict[str, dict[str, Any]] = {
    "kind": {"type": "str", "required": True, "choices": list(KINDS)},
    "at": {"type": "str"},
    "node": {"type": "str"},
    "boot_id": {"type": "str"},
    "host": {"type": "str"},
    "namespace": {"type": "str"},
    "uid": {"type": "str"},
    "key": {"type": "str", "no_log": False},
    "since": {"type": "str"},
    "seen": {"type": "str"},
    "uri": {"type": "str"},
    "uuid": {"type": "str"},
    "username": {"type": "str"},
    "password": {"type": "str", "no_log": True},
    "validate_certs": {"type": "bool", "default": True},
    "ca_cert": {"type": "path"},
    "insecure_http": {"type": "bool", "default": False},
    "agent": {"type": "str", "no_log": True},
    "command": {"type": "str"},
    "argv": {"type": "list", "elements": "str"},
    "timeout": {"type": "int", "default": 60},
    "by": {"type": "str"},
    "statement": {"type": "str"},
}
# They may contain a password.
UNSHOWN = {"evidence": ("command", "argv")}
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "value": {"type": "str", "choices": ["nodeshutdown", "hardwarefailure"], "default": "nodeshutdown"},
        "proof_timeout": {"type": "int", "default": 0},
        "evidence": {"type": "dict", "options": _EVIDENCE},
        "wait": {"type": "bool", "default": True},
        "wait_timeout": {"type": "int", "default": 600},
        "force": {"type": "bool", "default": False},
        "override_holds": {"type": "bool", "default": False},
        **CLAIMANT,
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC, UNSHOWN)


if __name__ == "__main__":
    main()

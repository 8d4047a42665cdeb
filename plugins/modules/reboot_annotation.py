#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_annotation
short_description: Keep a metal3 host off, or reboot it once, and verify it
version_added: 0.1.0
description:
  - Sets or removes a reboot annotation on a BareMetalHost of the management cluster. With O(key), metal3 keeps the host
    off as long as the annotation C(reboot.metal3.io/KEY) exists. Without it, C(reboot.metal3.io) asks for one reboot.
  - The host counts as off only after C(poweredOn) was seen true and then false since the annotation was written. A
    status that is newer than the annotation proves nothing, because metal3 can save a status without reading the power.
    The module records the host's earlier state in C(holdfast.dev/reboot-keys), so that the next run can continue after
    a killed one.
  - A reboot is complete when C(poweredOn) was seen false and then true, or when the Node has a new boot ID. A removed
    annotation does not prove it, because metal3 removes the annotation when the host is off.
  - The module checks claim, holds and boot ID in the same operation, directly before it writes the annotation. If the
    run pauses in between for more than 10 seconds, it checks again.
  - If the Node confirms a hold while the host is still on, the module removes its annotation without O(key) and fails
    with the error V(held), unless O(override_holds) is set. metal3 may already have asked the BMC, so the module waits for
    up to 75 s whether the host goes off.
  - Where several Clusters share a management cluster, the Machine must be proven to be the Node's. The Node's
    annotations C(cluster.x-k8s.io/machine), C(cluster.x-k8s.io/cluster-namespace) and C(cluster.x-k8s.io/cluster-name)
    prove it. The UID in C(status.nodeRef) or a provider ID also proves it. Otherwise, name the host in
    O(bare_metal_host).
  - The task refuses a host that several Nodes name in their provider IDs, and a Node that is not Ready if another Node
    has the same provider ID or C(systemUUID), because the name of the machine may have changed.
  - The task refuses, with the reason, hosts on which the annotation has no effect or the wrong effect. These hosts are
    paused, detached, not provisioned, being deleted, or have C(online) false or C(disablePowerOff) true.
  - Annotations of others stay unchanged, byte for byte. As long as one of them has a key, the host stays off.
options:
  bare_metal_host:
    description:
      - Name of the BareMetalHost. This or O(node) is needed. If O(node) is also set, the module does not search for the
        host; it checks that both belong together, as far as the objects show it.
    type: str
  node:
    description:
      - Name of the Node. Its host is found by its Machine and Metal3Machine, or by its provider ID.
      - If only O(bare_metal_host) is set, the module searches for the Node in the same way, because its holds and its
        claim matter.
    type: str
  host:
    description:
      - The URL of the API server, as in all modules. A value that is not a URL counts as O(bare_metal_host).
      - Falls back on the environment variable E(K8S_AUTH_HOST).
    type: str
  namespace:
    description:
      - Namespace of the BareMetalHost; any by default.
    type: str
  key:
    description:
      - Keeps the host off under this name, until it is removed with O(state=absent).
      - Everyone who keeps a host off uses a separate key. At most 63 characters.
      - Without it, the host is rebooted once.
    type: str
  mode:
    description:
      - How the host is switched off. V(soft) lets the operating system shut down, and metal3 uses a hard power-off if
        that fails. One hard annotation, from any writer, makes the power-off hard.
      - It can be changed while the annotation exists.
    type: str
    choices: [soft, hard]
    default: soft
  state:
    description:
      - Whether the annotation exists. V(absent) removes only annotations of this collection.
      - The task refuses an existing annotation of O(key) that C(holdfast.dev/reboot-keys) does not list as an
        annotation of this collection. V(absent) with this O(key) still removes it, but not with O(run), and not with
        both O(bare_metal_host) and O(node).
      - With V(absent), the task does not fail if a BareMetalHost that is given by name is gone. If O(node) is also set,
        the host may no longer belong to that Node; the module then removes a key only if it was written for O(node).
        The task warns in both cases.
      - With O(run), V(absent) fails if the host is a Node of the same name in another Cluster.
      - Without O(run), and with both O(bare_metal_host) and O(node), V(absent) fails if the Node has booted since the key was
        written, because other hardware may run as this Node.
      - V(expired) removes annotations of this collection, with any key, from hosts that are no longer provisioned, or
        that a Metal3Machine with another name now uses. With O(node), it waits for and removes only annotations that were written
        for this Node; without it, it removes all that exist now. Run this if a Machine may be deleted after it was
        fenced, because the key would keep the host off in its next use. An annotation stays while metal3 registers the
        host, as after a restore. It also stays, and the task warns, if the Metal3Machine has the same name and only another
        UID, as after C(clusterctl move).
    type: str
    choices: [present, absent, expired]
    default: present
  wait:
    description:
      - Whether to wait until the host is proven off or has rebooted. With O(state=absent), whether to wait until it is on
        again, unless another key keeps it off.
    type: bool
    default: true
  wait_timeout:
    description:
      - Maximum number of seconds to wait. After that, the task fails. An annotation with O(key) stays. An annotation
        without a key is removed if this collection wrote it and the host is still on; otherwise it stays. The host may
        still reboot, because metal3 may already act on it.
      - For a host that was already off, the module waits 75 s at most. If metal3 sees the host on within that time, the
        module can still see it go off.
    type: int
    default: 600
  override_holds:
    description:
      - Switches a node off although it is held, which interrupts the holder. The holds are recorded, and are in the result.
    type: bool
    default: false
  boot_id:
    description:
      - The boot ID that the Node must still have, directly before the annotation is written. The task
        fails for a Node with another boot ID.
    type: str
  not_ready:
    description:
      - Refuses a Node that is Ready, directly before the annotation is written, and one whose boot ID is not O(boot_id).
    type: bool
    default: false
  etcd_selector:
    description:
      - Label selector of etcd's pods in the namespace C(kube-system). With it, the module checks directly before the annotation
        is written that etcd keeps its quorum without the node, and fails if it does not.
    type: str
seealso:
  - module: holdfast.kubernetes.bare_metal_host_info
  - module: holdfast.kubernetes.out_of_service
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.claimant
  - holdfast.kubernetes.shared.phase
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
attributes:
  check_mode:
    support: full
    details:
      - The module checks host, holds and claim, and sends the write as a server-side dry run. It does not wait.
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - With O(key), a second run changes nothing. Without it, each run asks for a reboot, unless one is under way.
"""

EXAMPLES = r"""
---
- name: Keep the host of a node off, and verify it
  holdfast.kubernetes.reboot_annotation:
    node: worker-1
    key: holdfast
    mode: hard
    management:
      kubeconfig: ~/.kube/management
  register: fenced

- name: Declare it out of service
  holdfast.kubernetes.out_of_service:
    name: worker-1
    evidence: "{{ fenced.evidence }}"
    management:
      kubeconfig: ~/.kube/management

- name: Let it come back
  holdfast.kubernetes.reboot_annotation:
    node: worker-1
    key: holdfast
    state: absent
    management:
      kubeconfig: ~/.kube/management

- name: Reboot a host once
  holdfast.kubernetes.reboot_annotation:
    node: worker-1
    wait_timeout: 1200
"""

RETURN = r"""
step:
  description: V(rebooted), or V(held) if a hold refuses the reboot. With O(operation), the task does not fail then.
  type: str
  returned: with O(operation)
host:
  description: Name of the BareMetalHost.
  type: str
  returned: success, and most failures
  sample: rack-3-unit-7
namespace:
  description: Its namespace.
  type: str
  returned: success, and most failures
  sample: metal
node:
  description: Name of the host's Node; null if it is not known.
  type: str
  returned: success, and most failures
  sample: worker-1
resource_version:
  description: C(metadata.resourceVersion) of the host as it was seen last; null if it is gone.
  type: str
  returned: success, and most failures
  sample: "48213"
powered_on:
  description: The power state that metal3 saw last; null if it never read one.
  type: bool
  returned: success, and most failures
  sample: false
keys:
  description: The reboot annotations on the host now, from any writer.
  type: list
  elements: dict
  returned: success, and most failures
  contains:
    annotation:
      description: Name of the annotation.
      type: str
      sample: reboot.metal3.io/holdfast
    key:
      description: The part after the slash; empty for the annotation without one.
      type: str
      sample: holdfast
    value:
      description: Its value, byte for byte.
      type: str
      sample: '{"mode": "hard"}'
    mode:
      description: The mode that metal3 reads from the value. metal3 reads an invalid value as V(soft).
      type: str
      sample: hard
    force:
      description: Whether it also applies to a host that is not provisioned.
      type: bool
      sample: false
    valid:
      description: Whether metal3's webhook accepts it.
      type: bool
      sample: true
effective_mode:
  description: The mode that results from all annotations together. One V(hard), or an earlier error, makes it hard.
    Null if there is none.
  type: str
  returned: success, and most failures
  sample: hard
evidence:
  description: Proof that the host is off, for O(holdfast.kubernetes.out_of_service#module:evidence).
    Null if the host is not
    proven off, and without O(key).
  type: dict
  returned: success
  contains:
    kind:
      description: Always V(BareMetalHost).
      type: str
      sample: BareMetalHost
    at:
      description: When it was seen, by the clock of the API server that has the Nodes.
      type: str
      sample: "2026-11-21T09:00:04.000000Z"
    node:
      description: Name of the Node; empty if that is not known.
      type: str
      sample: worker-1
    boot_id:
      description: The Node's boot ID when the annotation was written.
      type: str
      sample: 0b4dbb52-9b58-4d60-8d43-3f6d4d2f6c53
    host:
      description: Name of the BareMetalHost.
      type: str
      sample: rack-3-unit-7
    namespace:
      description: Its namespace.
      type: str
      sample: metal
    uid:
      description: Its UID.
      type: str
      sample: 2c9a7f5e-93b1-4d6c-8a53-0d7c0f3a4a51
    key:
      description: The key that keeps it off.
      type: str
      sample: holdfast
    since:
      description: When the key was set, by the clock of the API server that has the host.
      type: str
      sample: "2026-11-21T08:59:31.000000Z"
    seen:
      description: What shows that the host is off.
      type: str
      sample: poweredOn went from true to false after the key was written
removed:
  description: What was removed, and why.
  type: list
  elements: dict
  returned: O(state=expired)
  sample: [{host: metal/rack-3-unit-7, annotation: reboot.metal3.io/holdfast-failover, node: worker-1,
      why: its state is "available"}]
kept:
  description: Annotations of this collection that stay; with C(why) if a person must decide whether they are still needed.
  type: list
  elements: dict
  returned: O(state=expired)
overridden_holds:
  description: The holds, as V(namespace/holder), that existed when the annotation was written and were overridden.
  type: list
  elements: str
  returned: success
  sample: []
waited:
  description: Duration in seconds.
  type: float
  returned: success
  sample: 12.4
why:
  description: Why the task failed, as one word, for example V(inert) for a host that metal3 does not act on,
    V(no_reboot), V(foreign), V(node_unknown), V(not_datable), V(new_boot) or V(timed_out). If a hold refuses the
    reboot, a text that names the holds.
  type: str
  returned: failure because of the host, or a reboot that a hold refuses
  sample: inert
error:
  description: What kind of failure it was, for example V(refused), V(held), V(claimed), V(claim_lost), V(came_back),
    V(not_off), V(not_datable), V(timed_out), V(not_found), V(invalid_input), V(api) or V(api_unreachable). With V(not_datable) the host is
    off, but it was already off before, and it is unknown since when.
  type: str
  returned: failure
  sample: timed_out
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import CLAIMANT, PHASE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.permit import annotate

OPERATION = annotate
SPEC: dict[str, Any] = {
    "argument_spec": {
        "bare_metal_host": {"type": "str"},
        "node": {"type": "str"},
        "namespace": {"type": "str"},
        "key": {"type": "str", "no_log": False},
        "mode": {"type": "str", "choices": ["soft", "hard"], "default": "soft"},
        "state": {"type": "str", "choices": ["present", "absent", "expired"], "default": "present"},
        "wait": {"type": "bool", "default": True},
        "wait_timeout": {"type": "int", "default": 600},
        "override_holds": {"type": "bool", "default": False},
        "boot_id": {"type": "str"},
        "not_ready": {"type": "bool", "default": False},
        "etcd_selector": {"type": "str"},
        **CLAIMANT,
        **PHASE,
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

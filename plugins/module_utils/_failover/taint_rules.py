# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the out-of-service taint: which node may get it, when it may go, and what has to move meanwhile.

Sources: pkg/controller/podgc, pkg/controller/tainteviction and pkg/controller/volume/attachdetach of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .._api import node_rules
from .._api.errors import Refused
from .._api.names import EVIDENCE, OUT_OF_SERVICE
from .._api.objects import Object
from .._budget.ledger_rules import ACTIVE, Slot
from .._drain.rules import Pod, read_pod
from .._shared.bounds import cut, moment

EFFECT = "NoExecute"
GONE, LEFT, STAYS = "gone", "left", "stays"
# Seconds. A kubelet can write any duration to its Lease, and its silence is waited for.
_LONGEST_LEASE = 1200.0


@dataclass(frozen=True)
class Occupant:
    """A pod on the node, and why it stays whether or not the node has the taint; empty if the taint removes it."""

    pod: Pod
    stays: str = ""

    def reason(self) -> str:
        """Why a pod that should go is still there."""
        if not self.pod.terminating:
            return "its deletion has not started"
        kept = f", and {_kept_by(self.pod)}" if self.pod.finalizers else ""
        return f"its deletion started at {self.pod.terminating}{kept}"

    def to_data(self, state: str) -> dict[str, Any]:
        return self.pod.ref(uid=self.pod.uid, state=state, reason=self.stays if state == STAYS else "")


@dataclass(frozen=True)
class Attachment:
    """A VolumeAttachment of the node."""

    name: str
    volume: str
    attacher: str
    reason: str = ""
    detaching: bool = False

    def to_data(self, state: str) -> dict[str, Any]:
        found = {key: value for key, value in vars(self).items() if key != "detaching"}
        return {**found, "state": state}


# -- the taint --------------------------------------------------------------------------------------------------------


def taint_of(node: Object) -> dict[str, Any] | None:
    """Return the present taint; ``None`` if the node is in service.

    A taint with another effect evicts nothing. We never set it, and never remove it.
    """
    return next((taint for taint in node_rules.taints(node) if _is_out_of_service(taint)), None)


def shown(taint: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {key: taint.get(key) for key in ("key", "value", "effect")} if taint else None


def with_taint(node: Object, value: str, now: datetime) -> list[dict[str, Any]]:
    added = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return [*without_taint(node), {"key": OUT_OF_SERVICE, "value": value, "effect": EFFECT, "timeAdded": added}]


def without_taint(node: Object) -> list[dict[str, Any]]:
    return [taint for taint in node_rules.taints(node) if not _is_out_of_service(taint)]


def _is_out_of_service(taint: Mapping[str, Any]) -> bool:
    return taint.get("key") == OUT_OF_SERVICE and taint.get("effect") == EFFECT


# -- may it be put there? ---------------------------------------------------------------------------------------------


def shutting_down(node: Object) -> bool:
    """Return whether the kubelet reports that it shuts down and ends its pods, each in its own time."""
    found = node_rules.condition(node, "Ready") or {}
    return found.get("status") == "False" and "node is shutting down" in str(found.get("message") or "")


def live_slot(slots: Iterable[tuple[str, Slot]], live: Collection[str], run: str) -> tuple[str, Slot] | None:
    """Return group and slot under which another run works on the node right now.

    A slot without a run counts: it is unknown whether its holder is gone.
    """
    for group, slot in slots:
        if slot.state == ACTIVE and (not run or slot.run != run) and (not slot.run or slot.run in live):
            return group, slot
    return None


def check_down(node: Object, slot: tuple[str, Slot] | None) -> None:
    """Refuse a node that may be alive, or that a rolling reboot works on.

    Raises:
        Refused: It is Ready, shutting down, or in a live slot of another run.
    """
    name, ours = node_rules.name(node), taint_of(node) is not None and evidence_of(node) is not None
    if ours and (node_rules.ready(node) or shutting_down(node)):
        raise Refused(
            f"Node {name} {back(node)}: it is on, but still has the out-of-service taint that this collection set, so "
            "its pods are deleted and its volumes detached. The taint stays, and nothing else was changed. Run the "
            "playbook holdfast.kubernetes.recover; if the node was never off and has the same boot ID as before, with "
            "failover_force.",
            node=name,
            why="ready" if node_rules.ready(node) else "shutting_down",
            back=True,
        )
    if node_rules.ready(node):
        raise Refused(
            f"Node {name} is Ready: its pods run there, and the taint would detach their volumes while they use them. "
            "Nothing was changed. Check why the node was reported down.",
            node=name,
            why="ready",
            back=False,
        )
    if shutting_down(node):
        raise Refused(
            f"Node {name} is shutting down: its kubelet gives its pods their grace periods, and the taint would cut "
            "these short. Nothing was changed. Wait until it is up again, or until its condition Ready is Unknown.",
            node=name,
            why="shutting_down",
            back=False,
        )
    if slot is not None:
        group, taken = slot
        raise Refused(
            f"Node {name} is in a slot of group {group}: run {taken.run or '-'} (operation {taken.operation}) has been "
            f"working on it since {taken.since}. Nothing was changed. Wait until it is done, or stop that run and run "
            "holdfast.kubernetes.doctor.",
            node=name,
            why="in_slot",
            slot={"group": group, **vars(taken)},
        )


def back(node: Object, boot_id: str = "") -> str:
    """Return what shows that a node came back under our taint, as in "the node ..."; empty if nothing does.

    Args:
        boot_id: The boot ID that it had when it got the taint; by default, the one in the evidence.
    """
    record = evidence_of(node)
    if taint_of(node) is None or record is None:
        return ""
    before = boot_id or str(record.get("boot_id") or "")
    if node_rules.ready(node):
        return "is Ready again"
    if shutting_down(node):
        return "was on again, and is shutting down"
    return (
        f"has booted again (boot ID {node_rules.boot_id(node)})"
        if before and node_rules.boot_id(node) != before
        else ""
    )


def quiet_seconds(lease: Object) -> float:
    """Return the seconds without renewal after which a kubelet's Lease is silent: a little more than its interval."""
    duration = (lease.get("spec") or {}).get("leaseDurationSeconds") or 40
    return min(float(duration), _LONGEST_LEASE) / 4 + 5


def last_sign(lease: Object) -> datetime | None:
    """Return when a kubelet's Lease was last renewed, by the API server's clock, not the node's."""
    times = (moment(entry.get("time")) for entry in lease["metadata"].get("managedFields") or [])
    return max((time for time in times if time), default=None)


# -- may it go? -------------------------------------------------------------------------------------------------------


def evidence_of(node: Object) -> dict[str, Any] | None:
    """Return the evidence that led to the taint; ``None`` if it is not ours, or was proven wrong."""
    record = node_rules.record(node, EVIDENCE)
    return None if record and record.get("removed") else record


def needs_force(node: Object) -> bool:
    """Return whether nothing shows that the node was off since it got the taint.

    Then it does not have our evidence, or still has the same boot ID. Only then does ``force`` have an effect.
    """
    record = evidence_of(node)
    return record is None or not record.get("boot_id") or node_rules.boot_id(node) in ("", record["boot_id"])


def check_back(node: Object, left: list[dict[str, Any]], *, force: bool) -> None:
    """Allow the removal of the taint only from a node that came back, and after all that it had left is gone.

    Args:
        left: Pods and VolumeAttachments that had to go and still exist.
        force: Also allow it for a node that was never off. For one that was off, VolumeAttachments may stay if their
            driver was asked to detach them; pods may not.

    Raises:
        Refused: It is not Ready, or has no new boot ID, or something is left.
    """
    name, record = node_rules.name(node), evidence_of(node)
    if not node_rules.ready(node):
        raise Refused(
            f"The taint stays on node {name}: {node_rules.not_ready_why(node)}. Wait until it is Ready with a new "
            "boot ID.",
            node=name,
            why="not_ready",
        )
    if force and needs_force(node):
        return
    if record is None or not record.get("boot_id"):
        raise Refused(
            f"The taint stays on node {name}: it has no evidence of this collection, so someone else added the taint, "
            "and the boot ID of that moment is unknown. Ask who added it. force removes it nevertheless.",
            node=name,
            why="not_ours",
        )
    if node_rules.boot_id(node) in ("", record["boot_id"]):
        raise Refused(
            f"The taint stays on node {name}: it is Ready, but its boot ID is still {record['boot_id']}. It was never "
            "off, so the evidence was wrong and its old pods may still run. Reboot it, or set force to remove the "
            "taint despite that.",
            node=name,
            why="same_boot",
            evidence=record,
        )
    if force:
        left = [item for item in left if not item.get("detaching")]
    if left:
        raise Refused(
            f"The taint stays on node {name}: {sentence(left)}. Wait until they are gone: without the taint, nothing "
            f"removes them.{attachments_advice(left)}",
            node=name,
            why="left",
            blockers=left,
        )


# -- what has to move -------------------------------------------------------------------------------------------------


def occupant(item: Object, value: str) -> Occupant:
    """Return a pod on the node from a Pod object, and whether a taint with this value removes it."""
    pod = read_pod(item)
    if pod.mirror:
        return Occupant(pod, "mirror pod of a static pod")
    if pod.terminating and pod.finished and pod.finalizers:
        # It has no containers, and the pod garbage collector has done its part.
        return Occupant(pod, f"it has ended, and {_kept_by(pod)}")
    if not pod.terminating and tolerates((item.get("spec") or {}).get("tolerations") or [], value):
        return Occupant(pod, f"it tolerates the taint {OUT_OF_SERVICE}")
    return Occupant(pod)


def _kept_by(pod: Pod) -> str:
    return f"its finalizers keep it: {cut(', '.join(pod.finalizers))}"


def tolerates(tolerations: Iterable[Mapping[str, Any]], value: str) -> bool:
    """Return whether a pod stays for good; one that tolerates the taint for some seconds goes after them.

    As in the taint eviction controller, the first toleration that matches counts.
    """
    for toleration in tolerations:
        if toleration.get("effect") not in (None, "", EFFECT):
            continue
        key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
        if key not in ("", OUT_OF_SERVICE) or (not key and operator != "Exists"):
            continue
        if operator == "Exists" or (operator == "Equal" and (toleration.get("value") or "") == value):
            return toleration.get("tolerationSeconds") is None
    return False


def attachment(item: Object) -> Attachment:
    """Return what matters of a VolumeAttachment object."""
    spec, status = item["spec"], item.get("status") or {}
    error = (status.get("detachError") or {}).get("message") or ""
    deleted = item["metadata"].get("deletionTimestamp")
    if error:
        reason = f"{spec['attacher']} could not detach it: {cut(str(error))}"
    elif deleted:
        reason = f"{spec['attacher']} was asked at {deleted} to detach it, and has not done so"
    else:
        reason = "its detach was not requested yet"
    volume = (spec.get("source") or {}).get("persistentVolumeName") or ""
    return Attachment(item["metadata"]["name"], volume, spec["attacher"], reason, bool(deleted))


def blockers(occupants: Iterable[Occupant], attachments: Iterable[Attachment]) -> list[dict[str, Any]]:
    """Return what is left, as results show it."""
    pods = sorted(occupants, key=lambda item: item.pod.full_name)
    volumes = sorted(attachments, key=lambda item: item.name)
    return [{"kind": "Pod", **item.pod.ref(uid=item.pod.uid, reason=item.reason())} for item in pods] + [
        {
            "kind": "VolumeAttachment",
            "namespace": None,
            "name": item.name,
            "uid": None,
            "reason": item.reason,
            "detaching": item.detaching,
        }
        for item in volumes
    ]


def attachments_advice(left: Iterable[Mapping[str, Any]]) -> str:
    """Return what to do if a driver does not detach a volume as asked; empty if nothing waits for that."""
    if not any(item.get("detaching") for item in left):
        return ""
    return (
        " If the CSI driver's attacher does not come back: once the node is Ready with a new boot ID, state absent "
        "with force (failover_force of the playbook recover) removes the taint although these VolumeAttachments are "
        "left."
    )


def sentence(left: Iterable[Mapping[str, Any]]) -> str:
    """Return a sentence that says what is left."""
    return "; ".join(f"{item['kind']} {_full_name(item)} is left ({item['reason']})" for item in left)


def _full_name(item: Mapping[str, Any]) -> str:
    return f"{item['namespace']}/{item['name']}" if item["namespace"] else str(item["name"])

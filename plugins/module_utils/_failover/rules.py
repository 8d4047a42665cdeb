# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about a failover: which step is next, according to the Node and its record.

The record is an annotation of the Node. It exists from the start of a failover until the node is back in service, so
that another run can resume a run that is killed at any point.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .._api import node_rules
from .._api.errors import Refused
from .._api.names import CORDON, FAILOVER, NAMESPACE
from .._api.objects import Object
from .._api.times import from_text, seconds_between, to_text
from .._budget.ledger_rules import Slot
from .._budget.policy_rules import amount, check_amount
from .._fencing.still_down_rules import came_back, down_since
from .._reboot.quorum_rules import Quorum
from .._shared.bounds import cut, merged, seconds_since, some
from .taint_rules import check_down, evidence_of, shutting_down, taint_of

PURPOSE = "failover"
# The ConfigMap with an entry for each of the last failovers.
AUDIT = "failovers"
FAIL_OVER, RECOVER = "failover", "recover"

# The next step. Fencing includes its proof, and the taint includes the wait for what has to move.
FENCE, TAINT, STOP, POWER_ON, DONE = "fence", "taint", "stop", "power_on", "done"

# Until the first phase that touches the machine, a failover leaves nothing behind.
CLAIM, FENCING, DELETING = "claim", "fence", "delete"
# The way back: from the first of these phases on, the machine may be on, regardless of earlier proof.
GOING_BACK = ("power_on", "ready", "in_service", "uncordon")
# All phases of a record. No version of this collection has written others.
PHASES = (CLAIM, FENCING, "taint", "move", DELETING, *GOING_BACK)
# What comes before the first phase, among the seconds that each takes.
CONFIRM = "confirm"
MOVED, FAILED, STOPPED, RECOVERED = "moved", "failed", "stopped", "recovered"
RESULTS = (MOVED, FAILED, STOPPED, RECOVERED)
# The facts that say how a machine is switched off, which is also how it is switched on again.
WAY = ("fence", "host", "namespace", "key", "mode", "uri", "agent", "plug")


# -- the record -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """What to record.

    Attributes:
        run: The run that writes.
        phase: The phase that begins; empty for none.
        result: How it ended; empty while it continues.
        detail: More about the result.
        facts: What later steps, or another run, need to know.
    """

    run: str
    phase: str = ""
    result: str = ""
    detail: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


# An id is a key of a ConfigMap.
_ID = re.compile(r"[-._a-zA-Z0-9]{1,253}")
# The types of the fields of each record.
_TYPES: Mapping[str, type] = {
    "id": str,
    "run": str,
    "holder": str,
    "reason": str,
    "started": str,
    "since": str,
    "phase": str,
    "phases": dict,
    "boot_id": str,
    "facts": dict,
    "result": str,
    "detail": str,
}
# The lists among the facts, and what each of their items has.
_LISTS: Mapping[str, frozenset[str]] = {
    "pods": frozenset({"uid"}),
    "volume_attachments": frozenset({"name"}),
    "attempts": frozenset({"method", "why"}),
}


def record_of(node: Object) -> dict[str, Any] | None:
    """Return the record on a Node; ``None`` if there is none.

    Raises:
        Refused: The record is invalid, so that the progress of the failover is unknown.
    """
    if FAILOVER not in node_rules.annotations_of(node):
        return None
    found = node_rules.record(node, FAILOVER) or {}
    why = _broken(found)
    if why:
        name = node_rules.name(node)
        raise Refused(
            f"The annotation {FAILOVER} of Node {name} is invalid: {why}. Nothing was changed. Restore its content; "
            f"the ConfigMap {NAMESPACE}/{AUDIT} says what was done. Or remove it (kubectl annotate node {name} "
            f"{FAILOVER}-), and run the playbook holdfast.kubernetes.recover.",
            node=name,
            why="broken_record",
        )
    return found


def open_record(node: Object) -> dict[str, Any] | None:
    """Return the record on a Node for a failover; ``None`` also if that failover is over.

    Raises:
        Refused: The record is invalid.
    """
    record = record_of(node)
    return None if record and is_over(node, record) else record


def _broken(record: Mapping[str, Any]) -> str:
    if not record:
        return "it is not a JSON object, or it is empty"
    wrong = [name for name, kind in _TYPES.items() if not isinstance(record.get(name), kind)]
    if wrong:
        return f"{', '.join(wrong)} missing or of a wrong type"
    if not _ID.fullmatch(record["id"]) or record["result"] not in ("", *RESULTS):
        return "id or result has no valid value"
    if record["phase"] not in PHASES:
        # A later version of this collection may have written it.
        phase = cut(record["phase"])
        return f"the phase {phase} is not known to this version of holdfast.kubernetes" if phase else "it has no phase"
    if not all(type(seconds) in (int, float) for seconds in record["phases"].values()):
        return "phases has a value that is not a number of seconds"
    if broken := broken_facts(record["facts"]):
        return f"of its facts, {some(broken)} can't be used"
    try:
        from_text(record["started"])
        from_text(record["since"])
    except ValueError:
        return "started or since is not a time"
    return ""


def broken_facts(facts: Mapping[str, Any]) -> list[str]:
    """Return the names of the facts that can't be used. A node can write its own record."""
    lists = [
        name
        for name, keys in _LISTS.items()
        if not isinstance(facts.get(name) or [], list)
        or not all(isinstance(item, dict) and _has_texts(item, keys) for item in facts.get(name) or [])
    ]
    counts = facts.get("left_out") or {}
    counted = isinstance(counts, dict) and all(isinstance(count, int) for count in counts.values())
    evidence = isinstance(facts.get("evidence") or {}, dict)
    way = [name for name in WAY if not isinstance(facts.get(name) or "", str)]
    place = _has_texts(facts, ("host", "namespace")) and facts["host"] and facts["namespace"]
    key = [] if place or not facts.get("key") else ["key (without a host)"]
    return [*lists, *(() if counted else ("left_out",)), *(() if evidence else ("evidence",)), *way, *key]


def _has_texts(found: Mapping[str, Any], names: Iterable[str]) -> bool:
    return all(isinstance(found.get(name), str) for name in names)


def operation_of(name: str, now: datetime) -> str:
    """Return the id of a new failover. It is a key of a ConfigMap, which has at most 253 characters."""
    return f"{name[:230]}.{now.strftime('%Y%m%dT%H%M%SZ')}"


def begin(
    node: Object, operation: str, *, run: str, holder: str, reason: str, fence: str, now: datetime
) -> dict[str, Any]:
    """Return the first record of a failover."""
    moment = to_text(now)
    return {
        "id": operation,
        "run": run,
        "holder": cut(holder),
        "reason": cut(reason),
        "started": moment,
        "since": moment,
        "phase": CLAIM,
        "phases": {},
        "boot_id": node_rules.boot_id(node),
        "facts": {"fence": fence} if fence else {},
        "result": "",
        "detail": "",
    }


def advance(record: Mapping[str, Any], change: Change, now: datetime) -> dict[str, Any]:
    """Return the record after a change; the same content if everything is recorded already."""
    phase = change.phase or record["phase"]
    changed = {
        **record,
        "run": change.run,
        # The annotations of a Node have at most 256 KiB together.
        "facts": merged(record.get("facts", {}), change.facts),
        "result": change.result,
        "detail": cut(change.detail, 1000),
    }
    if (phase, change.result) == (record["phase"], record["result"]):
        return changed
    if not record["result"]:
        spent = max(0.0, seconds_between(from_text(record["since"]), now))
        known = record["phases"].get(record["phase"], 0)
        changed["phases"] = {**record["phases"], record["phase"]: round(known + spent, 1)}
    changed.update(phase=phase, since=to_text(now))
    return changed


def restarted(node: Object, record: Mapping[str, Any], *, run: str, now: datetime) -> dict[str, Any]:
    """Return the record of a node that is down again: its proof, and what moved, belong to an earlier boot.

    It keeps how the machine was switched off, for the way back.
    """
    over = ("evidence", "pods", "volume_attachments")
    found = advance(record, Change(run), now)
    facts = {name: value for name, value in found["facts"].items() if name not in over}
    return {**found, "boot_id": node_rules.boot_id(node), "facts": facts}


def stays(node: Object, record: Mapping[str, Any]) -> bool:
    """Return whether the record is still needed: not if nothing was done yet, or all is undone."""
    if record["result"] == FAILED:
        # A cordon that could not be undone is undone by the next run, which the record leads to it.
        return bool(record["phase"] != CLAIM or cordoned(node))
    return record["result"] not in (STOPPED, RECOVERED)


def cordoned(node: Object) -> bool:
    """Return whether a failover has cordoned the node."""
    return bool((node_rules.record(node, CORDON) or {}).get("owner") == PURPOSE)


# -- the next step ----------------------------------------------------------------------------------------------------


def down_again(node: Object, record: Mapping[str, Any]) -> bool:
    """Return whether the node has booted since a failed failover or recovery, and now gives no sign of life.

    Under the taint, nothing more has to move: no pod has started there since.
    """
    return record["result"] == FAILED and _is_down_again(node, record)


def is_over(node: Object, record: Mapping[str, Any]) -> bool:
    """Return whether a person brought the node back after its failover, and it now gives no sign of life.

    The person may remove taint and cordon by hand. The next failover is a new one.
    """
    return record["result"] == MOVED and _is_down_again(node, record)


def _is_down_again(node: Object, record: Mapping[str, Any]) -> bool:
    return came_back(node, record) and not node_rules.ready(node) and taint_of(node) is None


def proven(node: Object) -> bool:
    """Return whether the taint is set on evidence of the present boot."""
    evidence = evidence_of(node)
    return taint_of(node) is not None and evidence is not None and evidence.get("boot_id") == node_rules.boot_id(node)


def known_off(node: Object) -> bool:
    """Return whether the node was proven off, and no recovery has begun since."""
    try:
        record = record_of(node)
    except Refused:
        # It is unknown whether a recovery has begun.
        return False
    return proven(node) and (record is None or record["phase"] not in GOING_BACK)


def next_step(node: Object, record: Mapping[str, Any] | None) -> str:
    """Return the next step of a failover.

    Raises:
        Refused: The node is Ready and was never failed over, or it is back from a failover, or on its way back.
    """
    if record is None:
        if node_rules.ready(node):
            check_down(node, None)
        return TAINT if proven(node) else FENCE
    if down_again(node, record):
        return FENCE
    if came_back(node, record):
        if taint_of(node) is None:
            return STOP
        raise Refused(
            f"Node {node_rules.name(node)} was failed over and has come back since (its boot ID is "
            f"{node_rules.boot_id(node)}, it was {record['boot_id']}). Nothing was changed. Run the playbook "
            "holdfast.kubernetes.recover first.",
            node=node_rules.name(node),
            why="recover_first",
        )
    if not proven(node):
        return FENCE
    if record["phase"] in GOING_BACK:
        raise Refused(
            f"Node {node_rules.name(node)} is being recovered from failover {record['id']} (phase {record['phase']}): "
            "its machine may be on, and the earlier proof that it was off no longer counts. Nothing was changed; the "
            "taint stays, so no pod starts there. Run the playbook holdfast.kubernetes.recover again, which resumes "
            "the recovery.",
            node=node_rules.name(node),
            why="recover_first",
        )
    return DONE if record["result"] == MOVED else TAINT


def next_recovery(node: Object, record: Mapping[str, Any] | None) -> str:
    """Return the next step of the way back: all of it, or nothing if the node was not failed over.

    Raises:
        Refused: It was not failed over, but someone else has declared it out of service.
    """
    if record is not None or evidence_of(node) is not None or cordoned(node):
        return POWER_ON
    if taint_of(node) is None:
        return DONE
    raise Refused(
        f"Node {node_rules.name(node)} has the out-of-service taint, but no record and no evidence of this collection, "
        "so someone else added it. Nothing was changed. Ask who added it; out_of_service with state absent and force "
        "removes it from a node that is Ready.",
        node=node_rules.name(node),
        why="not_ours",
    )


def booted_since(node: Object, boot_id: str, facts: Mapping[str, Any]) -> bool:
    """Return whether the Node has booted since its machine went off. If that machine is still off, it is another one.

    A machine that was never proven off may have booted before it went off. Then only a Node that is Ready counts.

    Args:
        boot_id: The boot ID that is failed over.
        facts: What is recorded of the failover.
    """
    # A run that is killed directly after the taint has recorded the evidence on the Node alone.
    proven_off = bool(facts.get("evidence")) or evidence_of(node) is not None
    return node_rules.boot_id(node) not in ("", boot_id) and (node_rules.ready(node) or proven_off)


def boot_id_before(node: Object, record: Mapping[str, Any] | None) -> str:
    """Return the boot ID that the node must no longer have when it is back; empty if it may never have been off."""
    if taint_of(node) is None:
        return ""
    return str((evidence_of(node) or record or {}).get("boot_id") or "")


# -- may it be done? --------------------------------------------------------------------------------------------------


def check_begin(node: Object, record: Mapping[str, Any] | None, slot: tuple[str, Slot] | None) -> None:
    """Refuse to fence a node that is Ready, that shuts down by itself, or that a rolling reboot works on.

    Raises:
        Refused: One of these is true.
    """
    asked = record is not None and record["phase"] != CLAIM and not came_back(node, record)
    if asked and shutting_down(node) and slot is None:
        # Our own request caused this: a soft power-off lets the kubelet end its pods.
        return
    check_down(node, slot)


def check_storm(name: str, nodes: Mapping[str, bool], limit: str) -> None:
    """Refuse if more nodes are down than one failure explains: then the network or the control plane has failed.

    Args:
        name: The node to fence. It counts, even if it is not among the nodes.
        nodes: The nodes that count, and whether each is Ready.
        limit: How many of them may be down; a number or a share.

    Raises:
        Refused: More are down.
    """
    down = sorted({other for other, ready in nodes.items() if not ready} | {name})
    allowed = amount(check_amount(limit, "max_unhealthy"), len(set(nodes) | {name}))
    if len(down) <= allowed:
        return
    raise Refused(
        f"Node {name} is not fenced: {len(down)} of {len(set(nodes) | {name})} nodes are not Ready ({some(down)}), "
        f"and at most {allowed} ({limit}) may be. Nothing was changed. So many rarely fail at once: check the network "
        "and the control plane first, or raise failover_max_unhealthy if they really are down.",
        node=name,
        why="storm",
        not_ready=down,
        allowed=allowed,
    )


def check_quorum(name: str, quorum: Quorum, *, asked_elsewhere: bool) -> None:
    """Refuse to remove a member from an etcd that would have no quorum without it.

    A Node that is not Ready may still have a member that works.

    Args:
        asked_elsewhere: Whether the user's command has said that a member may go.

    Raises:
        Refused: There would be no quorum, or it is unknown.
    """
    if asked_elsewhere or quorum.kept:
        return
    if quorum.kept is None:
        raise Refused(
            f"Node {name} is not fenced: it is a control-plane node, and no pod of etcd was found, so it is unknown "
            "whether etcd keeps its quorum. Nothing was changed. Set failover_quorum_command, which exits 0 while one "
            "member may go.",
            node=name,
            why="quorum",
        )
    missing = "; ".join(f"{node}: {why}" for node, why in quorum.missing.items()) or "none"
    raise Refused(
        f"Node {name} is not fenced: without it {len(quorum.ready_others)} of etcd's "
        f"{len(quorum.members)} members would be Ready ({', '.join(quorum.ready_others) or 'none'}), and "
        f"{quorum.needed} are needed. Missing: {missing}. Nothing was changed. Bring another member back first.",
        node=name,
        why="quorum",
        members=list(quorum.members),
        ready_others=list(quorum.ready_others),
        needed=quorum.needed,
    )


def seconds_to_confirm(node: Object, confirm: float, now: datetime, confirmed: str = "") -> float:
    """Return for how many more seconds a node must be seen not Ready.

    Only a time that the control plane wrote, with the status Unknown, counts: a kubelet's clock may be minutes off.

    Args:
        confirmed: What ``down_since`` returned when the node was last seen to stay down; empty if it was not.
    """
    if confirmed == down_since(node):
        return 0.0
    ready = node_rules.condition(node, "Ready") or {}
    known = seconds_since(ready.get("lastTransitionTime"), now) if ready.get("status") == "Unknown" else 0.0
    return max(0.0, confirm - known)

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the record of an operation on a Node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from math import inf
from typing import Any

from .._api import node_rules
from .._api.errors import InvalidInput
from .._api.names import CORDON, OPERATION
from .._api.objects import Object
from .._api.times import from_text
from .._shared.bounds import cut, seconds_since
from .claim_rules import PURPOSE, claim_of
from .lifecycle_rules import ENDS, Change, waits

# The phases in which a node waits for its turn.
WAITING = ("hold", "slot")
# In these, no run has told the node to reboot.
_BEFORE_THE_REBOOT = (*WAITING, "cordon", "drain")
_PHASES = (*_BEFORE_THE_REBOOT, "reboot", "ready", "uncordon")

# The volumes that a drain waits for, the pods that it deletes despite their budgets, and the holds that a reboot
# overrides.
VOLUMES, DELETED_PODS, OVERRIDDEN_HOLDS = "volumes", "deleted_pods", "overridden_holds"
# How many names of each kind a record keeps. The annotations of a Node have at most 256 KiB together. A kubelet runs
# 110 pods by default.
NOTED = {VOLUMES: 250, DELETED_PODS: 50, OVERRIDDEN_HOLDS: 50}
_KEPT_DAEMONSETS = 250
# Where a record keeps those of other operations, and how many.
EARLIER, _KEPT_EARLIER = "earlier", 2
# Seconds: longer than any phase. A node can write its own record.
_LONGEST = 1e9


@dataclass(frozen=True)
class Phase:
    """The phase of an operation that an action begins for the run that has the claim."""

    operation: str
    run: str
    name: str


def phase_of(params: Mapping[str, Any], name: str) -> Phase | None:
    """The phase that an action records, from its options ``operation`` and ``run``; ``None`` without an operation.

    Raises:
        InvalidInput: There is an operation, and no run.
    """
    operation, run = str(params.get("operation") or ""), str(params.get("run") or "")
    if operation and not run:
        raise InvalidInput(
            f"operation {operation} needs run, the run that has the claim on the node. Give both, or neither."
        )
    return Phase(operation, run, name) if operation else None


def reboot_began(record: Mapping[str, Any] | None, operation: str) -> bool:
    """Whether a run of the operation recorded that it reboots the node, and no later phase."""
    return record is not None and record.get("id") == operation and record.get("phase") == "reboot"


def is_midway(record: Mapping[str, Any]) -> bool:
    """Whether a run has told the node to reboot, or was about to, and did not finish its work on it."""
    return not record.get("result") and _went(record)


def is_old(record: Mapping[str, Any], now: datetime, old_after: float) -> bool:
    """Whether a record is so old that its result says nothing about the node now.

    Args:
        old_after: Seconds after which a record is old.
    """
    return seconds_since(record.get("since"), now) > old_after


def others_began(node: Object, operation: str, run: str, now: datetime, old_after: float = inf) -> bool:
    """Whether another run works on the node, or has rebooted it in the operation, while this run waits for its turn.

    The claim may be gone in the middle of a reboot. Without its record, the node would be rebooted again.

    Args:
        old_after: Seconds after which a reboot no longer counts.
    """
    claim, record = claim_of(node), record_of(node, operation)
    if claim is not None:
        return claim.run != run
    return is_midway(record) or (record.get("result") == "rebooted" and not is_old(record, now, old_after))


def boot_to_end(node: Object, operation: str) -> str:
    """The boot ID that the node had when a run of the operation began its reboot; empty if no run did."""
    record = record_of(node, operation)
    return str(record.get("boot_id_before") or "") if reboot_began(record, operation) else ""


def daemonsets_before(node: Object, operation: str) -> dict[str, str] | None:
    """The DaemonSets that had a Ready pod on the node when its drain began; ``None`` if that is not recorded.

    Each has the container of that pod, if the node was rebooted since: the container has ended then.
    """
    record = record_of(node, operation)
    known = record.get("daemonsets")
    if not isinstance(known, dict):
        return None
    rebooted = record.get("boot_id_before") != node_rules.boot_id(node)
    return {name: str(container) if rebooted else "" for name, container in known.items()}


def volumes_before(node: Object, operation: str) -> set[str]:
    """The PersistentVolumes that earlier drains of the operation had to wait for, also those that failed."""
    return set(noted(record_of(node, operation), operation, VOLUMES))


def noted(record: Mapping[str, Any] | None, operation: str, what: str) -> list[str]:
    """The names that runs of the operation noted in its record. A node can write its own record.

    Args:
        what: One of :data:`NOTED`.
    """
    known = record.get(what) if record is not None and operation and record.get("id") == operation else None
    return [cut(name) for name in known if isinstance(name, str)] if isinstance(known, list) else []


def unchecked(record: Mapping[str, Any]) -> bool:
    """Whether a run has sent the reboot of a node, and nothing shows that the node has passed its check since."""
    went = record.get("phase") in ("reboot", "ready") and record.get("result") != "rebooted"
    return went or bool(record.get("unchecked"))


def stays_cordoned(node: Object) -> bool:
    """Whether the cordon is that of an earlier operation, after whose reboot the node has not passed its check."""
    record = node_rules.record(node, OPERATION) or {}
    return bool(record.get("unchecked")) and node_rules.unschedulable(node)


def record_of(node: Object, operation: str) -> dict[str, Any]:
    """The record of this operation; empty if there is none. A node can write its own record."""
    return _own_and_others(node_rules.record(node, OPERATION) or {}, operation)[0]


def earlier_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records of other operations that a record keeps, the last one first. A node can write its own record."""
    known = record.get(EARLIER)
    return [item for item in known if isinstance(item, dict)] if isinstance(known, list) else []


def _own_and_others(record: dict[str, Any], operation: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The record of this operation, empty if there is none, and those of other operations that have to be kept.

    Several operations may work on the same nodes. If a run of one resumes it, it must not reboot the node again.
    """
    known = [record, *earlier_of(record)]
    own = next((item for item in known if operation and item.get("id") == operation), {})
    others = [{key: value for key, value in item.items() if key != EARLIER} for item in known if item is not own]
    return own, [item for item in others if _went(item)][:_KEPT_EARLIER]


def _went(record: Mapping[str, Any]) -> bool:
    """Whether a run has told the node to reboot, or was about to."""
    return record.get("result") != "skipped" and record.get("phase") not in (*_BEFORE_THE_REBOOT, "", None)


def phases_of(record: Mapping[str, Any]) -> dict[str, float]:
    """The seconds that each phase took. A node can write its own record."""
    known = record.get("phases")
    found = known.items() if isinstance(known, Mapping) else ()
    return {name: spent for name, spent in found if name in _PHASES and _is_a_time(spent)}


def _is_a_time(seconds: Any) -> bool:
    return type(seconds) in (int, float) and 0 <= seconds < _LONGEST


def change_of(params: Mapping[str, Any]) -> Change | None:
    """The change of the lifecycle conditions that goes with a record; ``None`` for none."""
    if params.get("result"):
        return ENDS
    if params.get("phase") not in WAITING:
        return None
    return waits(conditions=bool(params.get("lifecycle_conditions")), taint=bool(params.get("prefer_no_schedule")))


def _whole(record: dict[str, Any]) -> bool:
    """Whether a record can be resumed. If it is broken, the operation starts again."""
    try:
        from_text(record["since"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return False
    texts, phases = ("phase", "boot_id_before", "result"), record.get("phases")
    if not isinstance(phases, dict) or not all(isinstance(record.get(name), str) for name in texts):
        return False
    return all(map(_is_a_time, phases.values()))


def _new_record(operation: str, node: Object, now: str) -> dict[str, Any]:
    cordon = node_rules.record(node, CORDON)
    before = bool(cordon.get("unschedulable_before")) if cordon else node_rules.unschedulable(node)
    return {
        "id": operation,
        "started": now,
        "since": now,
        "phase": "",
        "phases": {},
        "boot_id_before": node_rules.boot_id(node),
        "versions_before": node_rules.versions(node),
        "unschedulable_before": before,
        "result": "",
        "detail": "",
    }


def advance(record: dict[str, Any] | None, node: Object, params: Mapping[str, Any], now: str) -> dict[str, Any]:
    """The record after this step; the same content if the step is already recorded."""
    result, present = params.get("result") or "", record or {}
    record, others = _own_and_others(present, params["operation"])
    # A node that needs another reboot in the same operation starts again.
    if (record.get("result") in ("rebooted", "skipped") and not result) or not _whole(record):
        record = _new_record(params["operation"], node, now)
    if record is not present:
        cordon = node_rules.record(node, CORDON)
        ours = cordon is not None and cordon.get("owner") == PURPOSE and node_rules.unschedulable(node)
        # The cordon of another operation has to stay, and its record may go.
        stays = {"unchecked": True} if ours and unchecked(present) else {}
        kept = {key: value for key, value in record.items() if key not in ("unchecked", EARLIER)}
        record = {**kept, **stays, **({EARLIER: others} if others else {})}
    phase = params.get("phase") or record["phase"]
    run = params.get("run") or record.get("run", "")
    if phase == "cordon" and record["phase"] in _BEFORE_THE_REBOOT:
        # The reboot begins here. No earlier boot of the node counts, and no hold that an earlier attempt overrode.
        record = {**record, "boot_id_before": node_rules.boot_id(node), "versions_before": node_rules.versions(node)}
        record.pop(OVERRIDDEN_HOLDS, None)
    for what, names in (params.get("noted") or {}).items():
        if names:
            known = dict.fromkeys([*noted(record, record["id"], what), *map(cut, names)])
            record = {**record, what: [*known][: NOTED[what]]}
    again = result and is_old(record, from_text(now), params.get("old_after", inf))
    if (phase, result) == (record["phase"], record["result"]) and not again:
        # The next run resumes the phase: it keeps its start, and only the run changes.
        return record if run == record.get("run", "") else {**record, "run": run}
    changed = {**record, "run": run, "result": result, "detail": cut(params.get("detail") or "", 1000)}
    if record["phase"] and not record["result"]:
        known = record["phases"].get(record["phase"], 0)
        spent = seconds_since(record["since"], from_text(now))
        changed["phases"] = {**record["phases"], record["phase"]: round(known + spent, 1)}
    changed.update(phase=phase, since=now)
    if phase == "cordon" or result:
        changed.pop("daemonsets", None)
    elif params.get("daemonsets") is not None:
        changed["daemonsets"] = dict(islice(params["daemonsets"].items(), _KEPT_DAEMONSETS))
    if result == "rebooted" or phase == "uncordon" or (phase == "cordon" and not node_rules.unschedulable(node)):
        changed.pop("unchecked", None)
    if result in ("rebooted", "skipped"):
        changed.pop(VOLUMES, None)
    if result:
        changed.update(boot_id_after=node_rules.boot_id(node), versions_after=node_rules.versions(node))
    else:
        for name in ("boot_id_after", "versions_after"):
            changed.pop(name, None)
    return changed

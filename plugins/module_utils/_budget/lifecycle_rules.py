# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about Kubernetes' own node lifecycle conditions: which ones a run sets, and which belong to another writer.

Source: KEP-5683, "Node lifecycle conditions". Any authorized writer may set them; the KEP defines no owner. So an
annotation on the Node records what this collection wrote, and a condition is ours only while it is as recorded. The
taint of a node that waits for its turn is recorded with them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .._api import node_rules
from .._api.errors import TimedOut
from .._api.names import LIFECYCLE_CONDITIONS
from .._api.objects import Object
from .._shared.bounds import cut
from .claim_rules import claim_of

PLANNED, IN_PROGRESS = "MaintenancePlanned", "MaintenanceInProgress"
DRAINING, DRAINED = "DrainInProgress", "Drained"
TYPES = (PLANNED, IN_PROGRESS, DRAINING, DRAINED)
REASON = "AdminRequested"
# The scheduler prefers other nodes, so that fewer pods move twice.
TAINT = {"key": "holdfast.dev/reboot-planned", "effect": "PreferNoSchedule"}
# While another writer has set one of these to True, no rolling reboot starts on the node.
_EXCLUSIVE = (IN_PROGRESS, DRAINING)
_FIELDS = ("status", "reason", "message", "lastHeartbeatTime", "lastTransitionTime")
_MESSAGE = 500


@dataclass(frozen=True)
class Change:
    """The conditions that are set to True, and those that are removed. The others stay as they are.

    Attributes:
        taint: Whether the node has our taint; ``None`` if the taint stays as it is.
    """

    add: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()
    taint: bool | None = None


WAITS = Change(frozenset({PLANNED}), frozenset({IN_PROGRESS, DRAINING, DRAINED}), taint=False)
# A node that an earlier run has drained stays drained.
STARTS = Change(frozenset({IN_PROGRESS}), frozenset({PLANNED, DRAINING}), taint=False)
DRAINS = Change(frozenset({DRAINING}), frozenset({DRAINED}))
IS_DRAINED = Change(frozenset({DRAINED}), frozenset({DRAINING}))
DRAIN_FAILED = Change(drop=frozenset({DRAINING}))
ENDS = Change(drop=frozenset(TYPES), taint=False)


def waits(*, conditions: bool, taint: bool) -> Change | None:
    """The change for a node that waits for its turn; ``None`` if the run does not show that."""
    # Without conditions, those of earlier work on the node are removed, as at its end.
    return replace(WAITS if conditions else ENDS, taint=taint) if conditions or taint else None


@dataclass(frozen=True)
class Work:
    """The work that the conditions show.

    Attributes:
        purpose: What is done, as text, for example ``rolling reboot``.
        run: Id of the run; empty for a module that is used alone.
    """

    purpose: str
    operation: str = ""
    run: str = ""

    @property
    def message(self) -> str:
        named = {"operation": self.operation, "run": self.run}
        parts = [self.purpose, *(f"{name} {value}" for name, value in named.items() if value)]
        return cut(f"holdfast.kubernetes: {', '.join(parts)}", _MESSAGE)


@dataclass(frozen=True)
class Patch:
    """What a change writes to a Node; empty if the Node is as wanted.

    Attributes:
        marks: The annotation that records our conditions and our taint; ``None`` as its value removes it.
        conditions: Entries of a strategic merge patch of ``status.conditions``.
        taints: All taints of the Node; ``None`` if they stay as they are.
        taint: Whether our taint is among them.
        marks_alone: The annotation if the conditions can't be written.
    """

    marks: Mapping[str, str | None] = field(default_factory=dict)
    conditions: tuple[dict[str, Any], ...] = ()
    taints: list[dict[str, Any]] | None = None
    taint: bool = False
    marks_alone: Mapping[str, str | None] = field(default_factory=dict)


def run_of(node: Object) -> str | None:
    """The run that set our conditions, empty if a module set them; ``None`` if the Node has none."""
    record = node_rules.record(node, LIFECYCLE_CONDITIONS)
    return None if record is None else str(record.get("run") or "")


def others_work_on_it(node: Object, run: str) -> bool:
    """Whether another run than this one has the claim on a node."""
    claim = claim_of(node)
    return claim is not None and claim.run != run


def ours(node: Object) -> dict[str, dict[str, Any]]:
    """Our conditions of a Node, and what is recorded about each. One that was changed since is no longer ours."""
    found = {}
    for kind, entry in _entries(node).items():
        present = node_rules.condition(node, kind) or {}
        seen = (present.get("status"), present.get("reason"), present.get("message"))
        if isinstance(entry, dict) and seen == ("True", REASON, entry.get("message")):
            found[kind] = entry
    return found


def tainted(node: Object) -> bool:
    """Whether a Node has our taint. One that no record names, or that has a value, is another writer's."""
    return bool((node_rules.record(node, LIFECYCLE_CONDITIONS) or {}).get("taint")) and TAINT in node_rules.taints(node)


def shown(node: Object) -> list[dict[str, Any]]:
    """The lifecycle conditions of a Node that are True, in the format of results."""
    mine = ours(node)
    present = [(kind, node_rules.condition(node, kind) or {}) for kind in TYPES]
    return [
        {
            "type": kind,
            "reason": cut(str(item.get("reason") or "")),
            "message": cut(str(item.get("message") or ""), _MESSAGE),
            "since": str(item.get("lastTransitionTime") or ""),
            "ours": kind in mine,
        }
        for kind, item in present
        if item.get("status") == "True"
    ]


def others_words(node: Object) -> str:
    """Which other writer maintains a node, and since when, as text; empty if none does."""
    found = [item for item in shown(node) if item["type"] in _EXCLUSIVE and not item["ours"]]
    return "; ".join(
        f"another writer maintains it: {item['type']} is True since {item['since'] or 'an unknown time'} "
        f"({item['reason'] or 'no reason'}: {item['message'] or 'no message'})"
        for item in found
    )


def still_maintained(name: str, words: str, seconds: int) -> TimedOut:
    """The error for a node that another writer still maintains after a wait."""
    return TimedOut(
        f"Node {name} was not started within {seconds} s, because {words}. Wait until its writer removes the "
        "condition. If nobody maintains the node, remove the condition with holdfast.kubernetes.node_condition, or set "
        "rolling_reboot_override_maintenance: true.",
        node=name,
    )


def may_change(node: Object, run: str) -> bool:
    """Whether a run may change our conditions of a node: no other run has the claim or, without a claim, set them."""
    claim, setter = claim_of(node), run_of(node)
    return (claim.run if claim else setter or run) == run


def patch_of(node: Object, change: Change, work: Work, now: str) -> Patch:
    """The patch for a change. It never contains a condition that another writer has set to True.

    A condition that another writer left as False is recorded before it is replaced, and restored at the end.
    """
    mine, recorded = ours(node), node_rules.record(node, LIFECYCLE_CONDITIONS) or {}
    same_work = (recorded.get("run"), recorded.get("operation")) == (work.run, work.operation)
    wanted = {kind for kind in {*mine, *change.add} - change.drop if kind in mine or not _is_true(node, kind)}
    entries: dict[str, dict[str, Any]] = {}
    conditions = []
    for kind in TYPES:
        present, known = node_rules.condition(node, kind), mine.get(kind)
        before = known.get("before") if known else present
        if kind in wanted and known and same_work:
            entries[kind] = known
        elif kind in wanted:
            entries[kind] = {"message": work.message, **({"before": before} if before else {})}
            # A condition of an earlier run was True before, so its status does not change.
            since = (present or {}).get("lastTransitionTime") if known else None
            conditions.append(_condition(kind, work.message, now, since or now))
        elif known:
            # ``None`` removes a field that the other writer had not set.
            restored = {**dict.fromkeys(_FIELDS), **before} if isinstance(before, dict) else {"$patch": "delete"}
            conditions.append({**restored, "type": kind})
    had = tainted(node)
    # A Node has at most one taint of a key and an effect. If another writer has set it, we leave it as it is.
    taint = (had if change.taint is None else change.taint) and (
        had or not any(map(_like_ours, node_rules.taints(node)))
    )
    record = _record(work, entries, taint=taint)
    if record == node_rules.record(node, LIFECYCLE_CONDITIONS) and wanted == set(mine) and taint == had:
        return Patch()
    others = [item for item in node_rules.taints(node) if item != TAINT]
    alone = {LIFECYCLE_CONDITIONS: _text(_record(work, _entries(node), taint=taint))} if taint or had else {}
    taints = None if taint == had else [*others, TAINT] if taint else others
    return Patch({LIFECYCLE_CONDITIONS: _text(record)}, tuple(conditions), taints, taint, alone)


def _record(work: Work, entries: Mapping[str, Any], *, taint: bool) -> dict[str, Any] | None:
    found = {"run": work.run, "operation": work.operation, "conditions": dict(entries)}
    # Without a taint, the record has the form of earlier versions.
    return {**found, **({"taint": True} if taint else {})} if entries or taint else None


def _text(record: dict[str, Any] | None) -> str | None:
    return json.dumps(record, sort_keys=True) if record else None


def _like_ours(taint: Mapping[str, Any]) -> bool:
    """Whether a taint has our key and our effect, with any value."""
    return all(taint.get(name) == value for name, value in TAINT.items())


def _entries(node: Object) -> Mapping[str, Any]:
    found = (node_rules.record(node, LIFECYCLE_CONDITIONS) or {}).get("conditions")
    return {kind: found[kind] for kind in TYPES if kind in found} if isinstance(found, dict) else {}


def _is_true(node: Object, kind: str) -> bool:
    return (node_rules.condition(node, kind) or {}).get("status") == "True"


def _condition(kind: str, message: str, now: str, since: str) -> dict[str, Any]:
    times = {"lastHeartbeatTime": now, "lastTransitionTime": since}
    return {"type": kind, "status": "True", "reason": REASON, "message": message, **times}

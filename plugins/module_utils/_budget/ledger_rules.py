# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger of a group: which runs may take a node down. Rules only.

A slot is one unit of the group's budget, given to one node. Every change of a ledger is stored by compare-and-swap, so
no other run can change the ledger between a decision and its write.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from .._api.names import CLAIM, CORDON, VERSION
from .._api.times import from_text, seconds_between
from .._shared.bounds import cut, moment, some
from .policy_rules import Policy, amount

# How many operations a ledger keeps, and how many older ones at most whose runs have not ended.
KEPT_OPERATIONS, KEPT_OPEN = 10, 30
# How many failures an operation names, how many of them with the full reason, and how many it names after its end.
KEPT_FAILURES, KEPT_REASONS, KEPT_AFTERWARDS = 300, 100, 20
ACTIVE, FAILED = "active", "failed"
BEHIND = "other nodes of this run are ahead in the queue"
GRANTED, WAIT, REFUSED = "granted", "wait", "refused"


@dataclass(frozen=True)
class Slot:
    """One unit of a group's budget."""

    node: str
    operation: str
    run: str
    since: str
    domain: str = ""
    state: str = ACTIVE
    reason: str = ""
    boot_id: str = ""
    # How often a run has claimed the node under this slot. A count, so that every claim changes the ledger.
    claims: int = 0


class UnknownFields(ValueError):
    """A ledger has fields that this version does not know.

    The ledger is refused. A field may carry a rule that keeps the budget, as ``claims`` does. A version that keeps the
    value without knowing the rule breaks the rule for the versions that rely on it.
    """


@dataclass(frozen=True)
class Ledger:
    """Policy, slots and the last operations of a group; ``nodes`` is the size of the group at its last grant."""

    policy: Policy | None = None
    slots: Mapping[str, Slot] = field(default_factory=dict)
    operations: tuple[dict[str, Any], ...] = ()
    nodes: int = 0

    def to_data(self) -> dict[str, str]:
        """Data of the ConfigMap, in a readable format."""
        slots = {name: vars(slot) for name, slot in sorted(self.slots.items())}
        return {
            "policy": _text(self.policy.to_data() if self.policy else {}),
            "slots": _text(slots),
            "operations": _text(list(self.operations)),
            "version": _text(VERSION),
            # Earlier versions do not write this field. Then this version reads the Nodes.
            **({"nodes": _text(self.nodes)} if self.nodes else {}),
        }

    @staticmethod
    def from_data(data: Mapping[str, str]) -> Ledger:
        """Read the data of the ConfigMap.

        Raises:
            UnknownFields: A version that knows more fields wrote it.
            ValueError, TypeError, KeyError, AttributeError: The data is not a ledger.
        """
        policy = json.loads(data.get("policy") or "{}")
        slots = json.loads(data.get("slots") or "{}")
        _check_fields(policy, slots, json.loads(data.get("version") or '""'))
        return Ledger(
            policy=Policy.from_data(policy) if policy else None,
            slots={name: Slot(**slot) for name, slot in slots.items()},
            operations=tuple(json.loads(data.get("operations") or "[]")),
            nodes=int(json.loads(data.get("nodes") or "0")),
        )

    def failures(self, operation: str) -> dict[str, str]:
        """Failed nodes of an operation, and the reasons. A long list is cut; :meth:`failed` counts all of them."""
        return dict(operation_entry(self, operation)["failures"])

    def failed(self, operation: str) -> int:
        """How many nodes of an operation have failed, including those whose names were dropped."""
        entry = operation_entry(self, operation)
        return len(entry["failures"]) + int(entry.get("left_out") or 0)


@dataclass(frozen=True)
class Member:
    """A Node of the group as it is now; ``marked`` if it has a claim or cordon annotation of this collection."""

    name: str
    ready: bool
    unschedulable: bool
    boot_id: str = ""
    domain: str = ""
    marked: bool = True


@dataclass(frozen=True)
class Claimant:
    """The run of a rolling reboot that has the claim on a node."""

    run: str
    operation: str


@dataclass(frozen=True)
class Request:
    """A run's request for a slot for a node.

    ``pause`` are the seconds that must pass after the end of a node before the next one of the operation gets a slot.
    ``live`` are the runs that are alive now; with ``None`` every run counts as alive. ``passing`` are runs that died a
    short time ago: another run of the same operation is about to take over their slots. With ``restart``, the run takes
    over the slot of a dead run of any operation.
    """

    node: str
    operation: str
    run: str
    now: str
    max_failed: int = 0
    count_others: bool = True
    live: frozenset[str] | None = None
    passing: frozenset[str] = frozenset()
    pause: float = 0.0
    restart: bool = False


@dataclass(frozen=True)
class Decision:
    """The answer to a request for a slot.

    Attributes:
        outcome: ``granted``, ``wait`` (for a slot that a run works on) or ``refused``.
        fills: If refused, what leaves no room; empty if the reason is another one, which time does not change.
        ledger: What to store; the same object if nothing changes.
        why: The reason as text, with names; empty if granted.
        way_out: What the user can do, as a sentence.
        unavailable: Nodes that fill the budget now.
        budget: How many nodes may be unavailable.
        again_in: After how many seconds the answer may change although the ledger does not; 0 if it does not.
    """

    outcome: str
    ledger: Ledger
    why: str = ""
    way_out: str = "Fix or release the nodes that fill the budget, or change the group's policy, then run this again."
    unavailable: tuple[str, ...] = ()
    budget: int = 0
    fills: tuple[str, ...] = ()
    again_in: float = 0.0


def member(node: Mapping[str, Any], topology_key: str) -> Member:
    """Read a Node object of the API."""
    status, metadata = node.get("status") or {}, node["metadata"]
    conditions = status.get("conditions") or []
    return Member(
        name=metadata["name"],
        ready=any(item["type"] == "Ready" and item["status"] == "True" for item in conditions),
        unschedulable=bool((node.get("spec") or {}).get("unschedulable")),
        boot_id=(status.get("nodeInfo") or {}).get("bootID") or "",
        domain=(metadata.get("labels") or {}).get(topology_key, "") if topology_key else "",
        marked=any(mark in (metadata.get("annotations") or {}) for mark in (CLAIM, CORDON)),
    )


def member_of_row(row: Mapping[str, Any]) -> Member:
    """Read a row of the API server's table of Nodes. It has no labels, annotations and boot ID."""
    status = str(row["Status"]).split(",")
    return Member(str(row["Name"]), ready="Ready" in status, unschedulable="SchedulingDisabled" in status)


def seen_in_rows(
    ledger: Ledger, policy: Policy, rows: Iterable[Mapping[str, Any]], request: Request
) -> tuple[dict[str, Member], set[str]]:
    """The Nodes of the group from the table, and the names of those whose objects have to be read.

    These are the node itself (boot ID, domain) and nodes whose slot may be healed (boot ID, annotations). If the policy
    limits domains and there may be room, these are also unavailable nodes whose domain is in no slot. Nodes that are
    not in the table may have been deleted, or have other labels now.
    """
    group = {item.name: item for item in map(member_of_row, rows)}
    slots = ledger.slots
    whole = {request.node} | {
        name for name, slot in slots.items() if slot.state == FAILED or _left_behind(slot, request.live)
    }
    if policy.topology_key:
        group.update({name: replace(group[name], domain=slots[name].domain) for name in group.keys() & slots.keys()})
        busy = set(_unavailable(ledger, group, request))
        if len(busy - whole) < amount(policy.max_unavailable, len(group)):
            whole |= busy - slots.keys()
    return group, whole


def at_a_glance(ledger: Ledger, policy: Policy, request: Request) -> Decision | None:
    """``wait`` if the slot of a live run is that of the node, or if active slots fill the budget: no Node is read.

    Only for a request that already waits, because this does not check whether the node belongs to the group. A share
    refers to the size of the group at the last grant.
    """
    mine, limit = ledger.slots.get(request.node), size_of(policy, ledger)
    names = tuple(sorted({*ledger.slots} - {request.node}))
    if ledger.policy != policy or ledger.failed(request.operation) > request.max_failed:
        return None
    if mine and mine.state == ACTIVE and _of_another_live_run(mine, request):
        return Decision(WAIT, ledger, why=_words(mine), unavailable=names, budget=limit)
    if mine:
        return None
    active = [slot for slot in ledger.slots.values() if slot.state == ACTIVE]
    if any(_left_behind(slot, request.live) for slot in active):
        # Only the Node shows whether the slot of a dead run is still needed.
        return None
    if not 0 < limit <= len(active) or not any(_worked_on(slot, request) for slot in active):
        return None
    why = f"{len(names)} of {limit} allowed are unavailable: {_all_words(ledger)}"
    return Decision(WAIT, ledger, why=why, unavailable=names, budget=limit)


def _of_another_live_run(slot: Slot, request: Request) -> bool:
    """Whether the slot belongs to another live run of the operation."""
    same = slot.operation == request.operation
    return same and slot.run not in ("", request.run) and slot.run in (request.live or ())


def in_queue(ledger: Ledger, policy: Policy) -> Decision:
    """``wait`` for a node that is not at the front of its run's queue."""
    why = BEHIND
    if ledger.slots:
        why = f"{why}; {_all_words(ledger)}"
    return Decision(WAIT, ledger, why=why, unavailable=tuple(sorted(ledger.slots)), budget=size_of(policy, ledger))


def size_of(policy: Policy, ledger: Ledger) -> int:
    """The number of nodes that may be unavailable; 0 for a share of a group of unknown size."""
    known = policy.max_unavailable.isdigit() or ledger.nodes
    return amount(policy.max_unavailable, ledger.nodes) if known else 0


def decide(
    ledger: Ledger, policy: Policy, members: Iterable[Member], request: Request, deleted: Collection[str] = ()
) -> Decision:
    """Grant a slot, or say what to wait for, or refuse.

    Args:
        ledger: As stored.
        policy: The group's policy as the request states it.
        members: All Nodes of the group.
        request: Which run wants a slot for which node.
        deleted: Names in the ledger that no Node has.
    """
    group = {item.name: item for item in members}
    ledger = heal(ledger, group, request.live, deleted)
    mine = ledger.slots.get(request.node)
    if ledger.policy in (None, policy) or not ledger.slots:
        ledger = replace(ledger, policy=policy)
    elif mine is None or mine.operation != request.operation:
        # A slot that is taken over takes nothing more from the budget. It keeps the policy under which it was granted.
        return _other_policy(ledger, policy)
    limit = amount(policy.max_unavailable, len(group))
    busy = _unavailable(ledger, group, request)
    outcome = Decision(REFUSED, ledger, unavailable=tuple(sorted(busy)), budget=limit)

    if request.node not in group:
        return replace(outcome, why=f"node {request.node} does not match the group's selector")
    if mine and mine.operation != request.operation and not _restarts(mine, request):
        outcome = replace(outcome, way_out="Run holdfast.kubernetes.doctor, or set rolling_reboot_restart: true.")
        return _full(outcome, [_words(mine)], working=_worked_on(mine, request))
    if ledger.failed(request.operation) > request.max_failed:
        return replace(outcome, why=failed_words(ledger, request.operation, request.max_failed))
    if mine and _of_another_live_run(mine, request):
        return replace(outcome, outcome=WAIT, why=_words(mine))
    if mine:
        return _granted(outcome, request, group[request.node], since=mine.since)
    if limit == 0:
        return replace(outcome, why="the group is paused (max_unavailable is 0)")
    blockers, which = _blockers(policy, limit, busy, group[request.node])
    left = _pause_left(ledger, request)
    if not blockers and left > 0:
        why = f"the pause of {request.pause:.0f} s after the last node of the operation ends in {left:.0f} s"
        return replace(outcome, outcome=WAIT, why=why, again_in=left)
    if not blockers:
        outcome = replace(outcome, ledger=replace(ledger, nodes=len(group)))
        return _granted(outcome, request, group[request.node], since=request.now)
    slots = [ledger.slots[name] for name in blockers if name in ledger.slots]
    working = any(_worked_on(slot, request) for slot in slots)
    fills = [_why_unavailable(ledger, group, name) for name in sorted(blockers)]
    return _full(outcome, fills, which=f"{which}: ", working=working)


def _pause_left(ledger: Ledger, request: Request) -> float:
    """Seconds until the pause after the last node of the operation ends."""
    ended = moment(operation_entry(ledger, request.operation).get("ended"))
    if not request.pause or ended is None:
        return 0.0
    since = seconds_between(ended, from_text(request.now))
    # The clocks of two runs differ a little. A time that is further in the future, of a wrong clock, does not count.
    return max(0.0, request.pause - since) if since >= -request.pause else 0.0


def with_end(ledger: Ledger, operation: str, now: str) -> Ledger:
    """The ledger with the time at which the work on a node of an operation ended, from which its pause counts."""
    return with_entry(ledger, {**operation_entry(ledger, operation), "ended": now})


def _full(outcome: Decision, fills: list[str], *, which: str = "", working: bool) -> Decision:
    """The answer if there is no room: wait while a run works on what fills the budget, else refuse."""
    why = f"{which}{some(fills, separator='; ')}"
    return replace(outcome, why=why, outcome=WAIT) if working else replace(outcome, why=why, fills=tuple(fills))


def release(ledger: Ledger, node: str) -> Ledger:
    """The ledger without the node's slot."""
    return replace(ledger, slots={name: slot for name, slot in ledger.slots.items() if name != node})


def give_back(
    ledger: Ledger, node: str, run: str = "", claimant: Claimant | None = None, *, cordoned: bool = False
) -> Ledger:
    """Give the node's slot back; without ``run``, no matter which run has it.

    Args:
        ledger: As stored.
        node: Name of the Node.
        run: The run that gives the slot back. If the slot has passed to another run, it stays.
        claimant: The run that has the claim on the node. A run that was taken for dead keeps working as long as it has
            the claim, and the slot passes back to it.
        cordoned: Whether the node is still cordoned for a reboot by a run that died. The slot then stays until a run
            resumes work on the node, or the doctor restores the node.
    """
    slot = ledger.slots.get(node)
    if not run or slot is None:
        return release(ledger, node)
    if slot.run not in ("", run):
        return ledger
    if claimant and claimant.run != run:
        passed = replace(slot, run=claimant.run, operation=claimant.operation)
        return replace(ledger, slots={**ledger.slots, node: passed})
    return ledger if cordoned else release(ledger, node)


def fail(
    ledger: Ledger, node: Member, operation: str, reason: str, *, run: str = "", claimant: Claimant | None = None
) -> Ledger:
    """Count a failed node against its operation; an unhealthy node keeps its slot as ``failed``.

    Nothing is counted if another run has the claim or, without a claim, the slot: that run works on the node now.
    """
    slot = ledger.slots.get(node.name)
    passed_on = bool(run) and slot is not None and slot.run not in ("", run)
    if run and (claimant.run != run if claimant else passed_on):
        return ledger
    reason = cut(reason)
    ledger = _with_operation(ledger, operation, failure=(node.name, reason))
    # The slot covers the work of the claimant, even if it now names another operation.
    at_work = passed_on and claimant is not None
    if slot is None or (slot.operation != operation and not at_work):
        return ledger
    if node.ready and slot.state == ACTIVE:
        return ledger if passed_on else release(ledger, node.name)
    kept = replace(slot, state=FAILED, reason=reason)
    if kept.operation != operation:
        kept = replace(kept, operation=operation, run=run)
    return heal(replace(ledger, slots={**ledger.slots, node.name: kept}), {node.name: node})


def claim(ledger: Ledger, node: str, run: str, operation: str) -> Ledger:
    """Count the claim of a run on its slot; a slot that the run no longer has stays as it is.

    Each claim changes the ledger, even a second claim under the same slot. Another run may take this one for dead, and
    have read the Node before the claim. It then can't store its decision, and must read the ledger and the Node again.
    """
    slot = ledger.slots.get(node)
    if slot is None or (slot.run, slot.operation, slot.state) != (run, operation, ACTIVE):
        return ledger
    return replace(ledger, slots={**ledger.slots, node: replace(slot, claims=slot.claims + 1)})


def heal(
    ledger: Ledger,
    members: Mapping[str, Member],
    live: Collection[str] | None = None,
    deleted: Collection[str] = (),
) -> Ledger:
    """Drop slots that are no longer needed.

    These are failed slots of nodes that are Ready again with a new boot ID. With ``live``, they are also slots of dead
    runs on ``deleted`` nodes, and on nodes without a claim or cordon annotation: the run had not started on the node,
    or everything but the slot was restored. If a run has claimed the node under the slot, the slot stays until the node
    is Ready.

    Read the Nodes after the ledger, and store the result by compare-and-swap. A run that claims a node after the Node
    was read has then changed the ledger (see :func:`claim`), or finds its slot gone before its first step.
    """
    known = [(slot, members[name]) for name, slot in ledger.slots.items() if name in members]
    for slot, node in known:
        back = node.ready and bool(slot.boot_id) and node.boot_id not in ("", slot.boot_id)
        idle = _left_behind(slot, live) and not node.marked and (node.ready or not slot.claims)
        if back if slot.state == FAILED else idle:
            ledger = release(ledger, slot.node)
    for name in ledger.slots.keys() & set(deleted):
        if ledger.slots[name].state == ACTIVE and _left_behind(ledger.slots[name], live):
            ledger = release(ledger, name)
    return ledger


def _check_fields(policy: Mapping[str, Any], slots: Mapping[str, Any], version: str) -> None:
    known = {item.name for item in fields(Slot)}
    unknown = {f"slots.{name}" for slot in slots.values() for name in set(slot) - known}
    unknown |= {f"policy.{name}" for name in set(policy) - {item.name for item in fields(Policy)}}
    if unknown:
        wanted = f"version {cut(version)} or later" if version not in ("", VERSION) else "the version that wrote it"
        raise UnknownFields(
            f"has the fields {some(sorted(unknown))}, which version {VERSION} of holdfast.kubernetes does not know. "
            f"Nothing was changed. Use {wanted} on every controller of this group."
        )


def _left_behind(slot: Slot, live: Collection[str] | None) -> bool:
    """Whether the run of a slot is dead; false for a slot without a run, because nothing shows it."""
    return live is not None and slot.run != "" and slot.run not in live


def _unavailable(ledger: Ledger, group: Mapping[str, Member], request: Request) -> dict[str, str]:
    """Unavailable nodes other than the one asked for, with their domains."""
    busy = {name: slot.domain for name, slot in ledger.slots.items()}
    if request.count_others:
        busy.update({item.name: item.domain for item in group.values() if not item.ready or item.unschedulable})
    busy.pop(request.node, None)
    return busy


def _blockers(policy: Policy, limit: int, busy: Mapping[str, str], node: Member) -> tuple[list[str], str]:
    """The nodes that leave no room for this one, and which limit they fill; no nodes if there is room."""
    if len(busy) + 1 > limit:
        return list(busy), f"{len(busy)} of {limit} allowed are unavailable"
    if not policy.topology_key:
        return [], ""
    near = [name for name, domain in busy.items() if domain == node.domain]
    per_domain, domains = policy.max_unavailable_per_domain, policy.max_domains
    if per_domain is not None and len(near) + 1 > per_domain:
        return near, f'{len(near)} of {per_domain} allowed in domain "{node.domain}" are unavailable'
    others = set(busy.values()) - {node.domain}
    if domains is not None and len(others) + 1 > domains:
        far = [name for name, domain in busy.items() if domain != node.domain]
        return far, f"{len(others)} of {domains} allowed domains have unavailable nodes"
    return [], ""


def _granted(outcome: Decision, request: Request, node: Member, *, since: str) -> Decision:
    known = outcome.ledger.slots.get(node.name)
    ledger = _with_operation(outcome.ledger, request.operation, again=known is None)
    slot = Slot(
        node=node.name,
        operation=request.operation,
        run=request.run,
        since=since,
        # With another policy, the node may have been read without its domain.
        domain=known.domain if known else node.domain,
        boot_id=known.boot_id if known else node.boot_id,
        claims=known.claims if known else 0,
    )
    changed = replace(ledger, slots={**ledger.slots, node.name: slot})
    return replace(outcome, outcome=GRANTED, ledger=changed)


def _restarts(slot: Slot, request: Request) -> bool:
    """Whether the run takes over a slot of another operation, whose run is dead."""
    return request.restart and slot.state == ACTIVE and _left_behind(slot, request.live)


def _worked_on(slot: Slot, request: Request) -> bool:
    """Whether a run works on a slot, or will soon; true for an active slot without a run, to be safe."""
    if slot.state != ACTIVE:
        return False
    if request.live is None or slot.run == "" or slot.run in request.live:
        return True
    return slot.operation == request.operation and slot.run in request.passing


def operation_entry(ledger: Ledger, operation: str) -> dict[str, Any]:
    """The record of an operation; a new one if there is none."""
    known = next((item for item in ledger.operations if item["id"] == operation), None)
    return dict(known or {"id": operation, "failures": {}})


def with_entry(ledger: Ledger, entry: dict[str, Any]) -> Ledger:
    """The ledger with this record of an operation as the latest one."""
    # An operation with a slot or a run is still open, so its failures count, no matter how many operations are newer.
    taken = {slot.operation for slot in ledger.slots.values()}
    rest = [
        item if item["id"] in taken or item.get("runs") or item.get("unfinished") else _over(item)
        for item in ledger.operations
        if item["id"] != entry["id"]
    ]
    old, last = rest[: -(KEPT_OPERATIONS - 1)], rest[-(KEPT_OPERATIONS - 1) :]
    open_ = [item for item in old if item["id"] not in taken and item.get("runs")][-KEPT_OPEN:]
    return replace(ledger, operations=(*(item for item in old if item["id"] in taken or item in open_), *last, entry))


def _over(entry: dict[str, Any]) -> dict[str, Any]:
    """The record of an operation that has ended: how many have failed, and some of their names."""
    failures = entry["failures"]
    if len(failures) <= KEPT_AFTERWARDS:
        return entry
    kept = dict(list(failures.items())[:KEPT_AFTERWARDS])
    return {**entry, "failures": kept, "left_out": len(failures) - len(kept) + int(entry.get("left_out") or 0)}


def _with_failure(entry: dict[str, Any], node: str, reason: str) -> dict[str, Any]:
    """The record with one more failure. Beyond the limits a failure counts, but has a short reason or no name."""
    failures = entry["failures"]
    if node not in failures and len(failures) >= KEPT_FAILURES:
        return {**entry, "left_out": int(entry.get("left_out") or 0) + 1}
    short = reason if len(failures) < KEPT_REASONS else reason[:40]
    return {**entry, "failures": {**failures, node: short}}


def _with_operation(
    ledger: Ledger, operation: str, failure: tuple[str, str] | None = None, *, again: bool = True
) -> Ledger:
    """The ledger with a record of the operation; ``again`` makes a known operation the latest one."""
    known = any(item["id"] == operation for item in ledger.operations)
    if known and not failure and not again:
        return ledger
    entry = operation_entry(ledger, operation)
    return with_entry(ledger, _with_failure(entry, *failure) if failure else entry)


def _other_policy(ledger: Ledger, policy: Policy) -> Decision:
    names = ", ".join((ledger.policy or policy).differs(policy))
    holders = some([_words(slot) for slot in ledger.slots.values()])
    return Decision(
        REFUSED,
        ledger,
        why=f"the group has another policy ({names} differ) while slots are taken: {holders}",
        way_out="Wait until these slots are returned, use the group's policy, or run holdfast.kubernetes.doctor.",
        unavailable=tuple(sorted(ledger.slots)),
    )


def _why_unavailable(ledger: Ledger, group: Mapping[str, Member], name: str) -> str:
    if name in ledger.slots:
        return _words(ledger.slots[name])
    return f"{name} is {'cordoned' if group[name].ready else 'not Ready'}"


def _all_words(ledger: Ledger) -> str:
    return some([_words(slot) for _name, slot in sorted(ledger.slots.items())], separator="; ")


def _words(slot: Slot) -> str:
    who = f"{slot.node} has a slot of operation {slot.operation}, run {slot.run or '-'}, since {slot.since}"
    return f"{slot.node} failed: {slot.reason}" if slot.state == FAILED else who


def failed_words(ledger: Ledger, operation: str, allowed: int) -> str:
    """Why an operation stops, for messages."""
    failures, count = ledger.failures(operation), ledger.failed(operation)
    words = [f"{name} ({reason})" for name, reason in sorted(failures.items())]
    shown = "; ".join([*words[:10], *([f"and {count - 10} more"] if count > 10 else [])])
    many = "1 node" if count == 1 else f"{count} nodes"
    return f"{many} failed in this operation and max_failed is {allowed}: {shown}"


def _text(data: Any) -> str:
    return json.dumps(data, indent=1, sort_keys=True)

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about claims: a run's exclusive right to work on a node, for any purpose."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .._api import node_rules
from .._api.errors import Refused
from .._api.names import CLAIM
from .._api.objects import Object

# The purpose of a claim under a slot.
PURPOSE = "rolling_reboot"


@dataclass(frozen=True)
class Claim:
    """Which run works on a node, and for what purpose."""

    run: str
    operation: str
    purpose: str
    since: str

    def words(self) -> str:
        return f"run {self.run} ({self.purpose}, operation {self.operation}, since {self.since})"


class ClaimLost(Refused):
    """Another run has the claim, or it is gone: this run stops before its next step."""

    kind = "claim_lost"


class Claimed(Refused):
    """Another run works on the node."""

    kind = "claimed"


def claim_of(node: Object) -> Claim | None:
    record = node_rules.record(node, CLAIM)
    if record is None:
        return None
    return Claim(
        run=str(record.get("run") or ""),
        operation=str(record.get("operation") or ""),
        purpose=str(record.get("purpose") or ""),
        since=str(record.get("since") or ""),
    )


def may_take(present: Claim | None, wanted: Claim, live: Collection[str], *, restart: bool = False) -> bool:
    """Whether a run may take a claim: no run has it, this run has it, or a dead run has it.

    A dead run's claim passes to a run of the same operation; with ``restart`` to any run.
    """
    if present is None or present.run == wanted.run:
        return True
    return present.run not in live and (restart or present.operation == wanted.operation)


def check(node: Object, run: str) -> None:
    """Stop a run that has lost its claim.

    Args:
        run: Id of the run that is about to act; empty for a module used without a run, which may act if no run has a
            claim.

    Raises:
        ClaimLost: Another run has the claim, or no run has it.
        Claimed: ``run`` is empty, and a run has a claim.
    """
    present, name = claim_of(node), node_rules.name(node)
    if run and (present is None or present.run != run):
        owner = f"it now belongs to {present.words()}, which continues" if present else "no run has it now"
        way_out = "" if present else " If the node is not done, start the same command again."
        raise ClaimLost(
            f"Run {run} has lost its claim on node {name}: {owner}. This run does not touch the node again.{way_out}",
            node=name,
            claim=vars(present) if present else None,
        )
    if not run and present is not None:
        raise Claimed(
            f"{present.words()} works on node {name}. Wait until it is done; holdfast.kubernetes.doctor removes claims "
            "of dead runs.",
            node=name,
            claim=vars(present),
        )


def require_claim(node: Object, run: str, *, claimed: bool = True) -> Object:
    """Return the node if ``run`` may act on it; with an empty ``run``, always.

    Args:
        claimed: The run must have the claim. If not, it is enough that no other run has it.

    Raises:
        ClaimLost: The run has lost its claim.
    """
    if run and (claimed or claim_of(node) is not None):
        check(node, run)
    return node


def taken_by_another(name: str, present: Claim | None, live: Collection[str]) -> Claimed:
    words = present.words() if present else "another run"
    dead = present is not None and present.run not in live
    way_out = (
        "That run is dead and belongs to another operation: run holdfast.kubernetes.doctor, or set "
        "rolling_reboot_restart: true."
        if dead
        else "Wait until it is done."
    )
    return Claimed(
        f"Node {name} is claimed by {words}. {way_out}",
        node=name,
        claim=vars(present) if present else None,
        run_alive=not dead,
    )

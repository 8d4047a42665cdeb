# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about canaries: nodes of an operation that are rebooted first, while the others wait for the outcome."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from typing import Any

from .._api import node_rules
from .._api.errors import Refused
from .._api.names import EXCLUDE
from .._api.objects import Object
from .._api.times import from_text
from .._budget.node_operation_rules import is_old, record_of
from .._shared.bounds import cut, moment

_DONE = ("rebooted", "skipped")


class CanaryFailed(Refused):
    """A canary failed or is not healthy after its reboot: no other node may be rebooted."""

    kind = "canary_failed"


@dataclass(frozen=True)
class Canary:
    """What the rules need to know about a canary.

    Attributes:
        phase: The phase of the operation that the node is in; empty if the operation has not started on it.
        result: How the operation ended on the node; empty while it is in progress.
        since: When the phase began or, with a result, when the result was recorded.
        detail: More about the result.
        booted_since: Whether the boot ID has changed since the operation ended on the node.
        not_ready: Why the node is not Ready; empty if it is Ready.
    """

    name: str
    excluded: bool = False
    phase: str = ""
    result: str = ""
    since: str = ""
    detail: str = ""
    booted_since: bool = False
    # Not compared: the text about a node that is down changes without any progress of the node.
    not_ready: str = field(default="", compare=False)
    ready: bool = True

    @property
    def done(self) -> str:
        """When the operation ended well on the node; empty if it has not, or if the record is broken."""
        return self.since if self.result in _DONE and moment(self.since) else ""

    def to_data(self) -> dict[str, Any]:
        return {"name": self.name, "result": self.result, "done": self.done or None, "ready": self.ready}

    def words(self) -> str:
        """The canary's progress as text: the other nodes wait for it."""
        if not self.phase and not self.result:
            return f"{self.name} has not started"
        return f"{self.name} has been in phase {self.phase} since {self.since}"


def read_canary(node: Object, operation: str, *, now: datetime | None = None, old_after: float = inf) -> Canary:
    """Read a canary. If its result is old, it may need another reboot, so it has not started.

    Args:
        now: The time, to tell the age of the record; ``None`` if it does not matter.
        old_after: Seconds after which a result is old.
    """
    record = record_of(node, operation)
    if now is not None and record.get("result") in _DONE and is_old(record, now, old_after):
        record = {}
    ready = node_rules.ready(node)
    result, boot_id = str(record.get("result") or ""), str(record.get("boot_id_after") or "")
    return Canary(
        name=node_rules.name(node),
        excluded=EXCLUDE in node_rules.labels_of(node),
        phase=str(record.get("phase") or ""),
        result=result,
        since=str(record.get("since") or ""),
        detail=str(record.get("detail") or ""),
        booted_since=result == "rebooted" and boot_id not in ("", node_rules.boot_id(node)),
        not_ready="" if ready else node_rules.not_ready_why(node),
        ready=ready,
    )


def check(canary: Canary, operation: str) -> None:
    """Refuse a canary that no wait can help.

    Raises:
        Refused: The canary is excluded, so it will never be done.
        CanaryFailed: The canary failed, or is not healthy after it was done.
    """
    if canary.excluded:
        raise Refused(
            f"Canary {canary.name} has the label {EXCLUDE}, so no run reboots it and the wait would never end. Name "
            "another canary, or remove the label.",
            node=canary.name,
        )
    why = _trouble(canary)
    if why:
        raise CanaryFailed(
            f"Canary {canary.name} of operation {operation} {why}. No other node is rebooted. Find the cause "
            f"(kubectl describe node {canary.name}) and fix it, then begin a new operation (rolling_reboot_restart).",
            node=canary.name,
            canary=canary.to_data(),
        )


def soaked_until(canaries: Collection[Canary], soak: int) -> datetime | None:
    """When the soak time ends; it begins when the last canary is done. ``None`` before that."""
    if not all(canary.done for canary in canaries):
        return None
    return max(from_text(canary.done) for canary in canaries) + timedelta(seconds=soak)


def _trouble(canary: Canary) -> str:
    if canary.result == "failed":
        return f"failed in phase {canary.phase}: {canary.detail or 'no reason recorded'}"
    if canary.result in _DONE and not canary.done:
        return f'has a broken record: "{cut(canary.since)}" is not a valid time'
    if not canary.done:
        return ""
    if not canary.ready:
        return f"is not Ready, although it was done at {canary.done} ({canary.result}): {canary.not_ready}"
    if canary.booted_since:
        return f"has booted again since it was done at {canary.done}"
    return ""

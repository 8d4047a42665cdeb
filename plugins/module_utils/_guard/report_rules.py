# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the end of a guard: the outcome for each Machine, which Machines are left, and whether the run failed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .begin_rules import ABSENT
from .rules import FAILED, GONE, IDLE, RELEASED

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Ended:
    """The outcome of a run.

    Attributes:
        begun: What the start of the run answered.
        results: The outcome for each Machine at each point.
        why: Why its workers ended.
        refused: Machines whose hooks the API server refused.
        gave_up: Why workers could not look for Machines any more.
        waiting: Machines that are being deleted with our hook, and that no run serves; ``why`` says why.
        unseen: Why it is not known which Machines are left; empty if it is.
    """

    begun: Mapping[str, Any]
    results: Sequence[Entry] = ()
    why: Sequence[str] = ()
    refused: Sequence[Entry] = ()
    gave_up: Sequence[str] = ()
    waiting: Sequence[Entry] = ()
    unseen: str = ""

    @property
    def bad(self) -> list[Entry]:
        """The work that failed, without what succeeded at a later try."""
        good = {item["work"] for item in self.results if item["result"] == RELEASED}
        return [item for item in self.results if item["result"] != RELEASED and item["work"] not in good]

    @property
    def looks_for_left(self) -> bool:
        """Whether Machines may be left: a worker that ended as idle or gone has found none."""
        return not self.begun["check_mode"] and not {IDLE, GONE} & set(self.why)

    @property
    def unserved(self) -> str:
        """What to do for Machines that are left."""
        if self.begun["settings"]["state"] == ABSENT:
            return "machine_guard_state is absent. Serve it with machine_guard_state: present."
        ended = ", ".join(self.why) or "its workers dropped out"
        return f"the run ended ({ended}). Start the playbook again, with a longer machine_guard_timeout if necessary."


def ended(begun: Mapping[str, Any], workers: Collection[Mapping[str, Any]], dropped: Iterable[Entry]) -> Ended:
    """Gather what the workers did.

    Args:
        begun: What the start of the run answered.
        workers: What the last task of each worker answered.
        dropped: The work of those that dropped out.
    """
    results = [item for worker in workers for item in worker["results"]] + list(dropped)
    unique = {item["run"]: item for item in results}
    refused = [*begun["refused"], *(item for worker in workers for item in worker["refused"])]
    return Ended(
        begun,
        sorted(unique.values(), key=lambda item: str(item["work"])),
        list(dict.fromkeys(worker["why"] for worker in workers if worker.get("why"))),
        list({item["machine"]: item for item in reversed(refused)}.values())[::-1],
        list(dict.fromkeys(worker["failure"] for worker in workers if worker.get("why") == FAILED)),
    )


def is_reported(machine: Entry, failures: Collection[Entry]) -> bool:
    """Return whether a failure of a Machine is already recorded."""
    return any((item["namespace"], item["name"]) == (machine["namespace"], machine["name"]) for item in failures)


def why_left(machine: Entry, end: Ended) -> str:
    """Return why a Machine is not served that this run did not get.

    Empty if it waits for our hook: then another run works on it, or takes it now.
    """
    if machine["paused"]:
        return "it or its Cluster is paused. End the pause, and start the playbook again."
    hook, waits = end.begun["settings"]["hook"], machine["waiting_for"] or ""
    at_work = any(item["hook"] == hook and item["point"] == waits for item in machine["hooks"])
    return "" if at_work else end.unserved


def summary(end: Ended) -> dict[str, Any]:
    begun = end.begun
    return {
        "run": begun["run"],
        "check_mode": begun["check_mode"],
        "ended": list(end.why),
        "released": _names(item for item in end.results if item["result"] == RELEASED),
        "failed": _names(end.bad),
        "waiting": _names(end.waiting),
        "cannot_hold": _names(begun["hooks"]),
        "unknown": begun["unknown"],
        "refused": list(end.refused),
    }


def stats(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the next job of a workflow gets, from the summary."""
    return {
        "machine_guard_released": len(found["released"]),
        "machine_guard_failed": len(found["failed"]),
        "machine_guard_failed_machines": ",".join(found["failed"]),
        "machine_guard_waiting": len(found["waiting"]),
        "machine_guard_waiting_machines": ",".join(found["waiting"]),
        "machine_guard_cannot_hold": len(found["cannot_hold"]),
    }


def lines(end: Ended) -> list[str]:
    """Return a line about the result of each Machine."""
    return [
        *(f"{item['name']}, {item['point']}: cannot hold ({item['detail']})" for item in end.begun["hooks"]),
        *(
            f"{item['name']}, {item['point']}: {item['result']}" + (f" ({item['detail']})" if item["detail"] else "")
            for item in end.results
        ),
        *(f"{item['name']}: waits, but is not served ({item['phase']})" for item in end.waiting),
    ]


def failures(end: Ended) -> list[str]:
    """Return why the run failed; none if it did not."""
    change = "removed" if end.begun["settings"]["state"] == ABSENT else "set"
    return [
        *(f"Machine {item['name']} at {item['point']} {item['result']}: {item['detail']}" for item in end.bad),
        *(
            f"Machine {item['name']} is being deleted ({item['phase']}), has the hook, and is not served: {item['why']}"
            for item in end.waiting
        ),
        *(f"The hooks of Machine {item['machine']} could not be {change}: {item['detail']}" for item in end.refused),
        *(item["detail"] for item in end.begun["hooks"] if item["error"] == "refused"),
        *end.gave_up,
        *([end.unseen] if end.unseen else []),
    ]


def _names(items: Iterable[Entry]) -> list[str]:
    return list(dict.fromkeys(str(item["name"]) for item in items))

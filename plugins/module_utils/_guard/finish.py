# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""End a guard: say what its workers left, and which Machines wait that no run serves."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from .._api.errors import HoldfastError, Refused
from .._api.runner import Context, Params, Result
from .._capi.rules import NOT_DELETING
from . import report_rules as rules
from .journey import of_run, record_dropped, record_of, selection_of
from .record import machine_guard_record
from .report_rules import Ended
from .rules import DEADLINE, FAILED, NOT_BEGUN
from .steps import take_machine


def machine_guard_finish(context: Context, params: Params) -> Result:
    """Sum up what the workers did; see the module of the same name."""
    begun = params["begun"]
    workers = [kept for kept in of_run(begun, params["workers"]) if kept]
    if begun["serves"] and not workers:
        raise Refused(
            "Hooks are set, but no worker serves the Machines: --limit leaves out the workers that the playbook "
            "creates. Add their group, as in --limit localhost,machine_guard_workers."
        )
    dropped = [record_dropped(context, begun, worker) for worker in workers]
    end = rules.ended(begun, workers, [item for item in dropped if item])
    if end.looks_for_left:
        end = _find_what_is_left(context, end)
    summary, failures = rules.summary(end), rules.failures(end)
    report = begun["settings"]["report"]
    return {
        "changed": False,
        "steps": [*(["report"] if report else []), *(["fail"] if failures else [])],
        "summary": summary,
        "stats": rules.stats(summary),
        "lines": rules.lines(end),
        "why": " ".join(failures),
        "report": {"summary": summary, "hooks": begun["hooks"], "machines": list(end.results)},
    }


def _find_what_is_left(context: Context, end: Ended) -> Ended:
    """Find the Machines that are being deleted with our hook: without a report, they would wait unnoticed."""
    try:
        # In check mode it takes none.
        left = take_machine(replace(context, check_mode=True), _options(end.begun, "left"))["left"]
    except HoldfastError as error:
        # The report comes in any case.
        return replace(end, unseen=error.message)
    machines = [item for item in left if item["phase"] != NOT_DELETING and not rules.is_reported(item, end.bad)]
    waiting: list[dict[str, Any]] = []
    for number, item in enumerate(machines):
        # An API server that does not answer is asked once.
        known = next((each["why"] for each in waiting if each["away"] and item["node"]), "")
        why, away = (known, True) if known else _why_unserved(context, end, item, number)
        if why:
            waiting.append({**item, "why": why, "away": away})
    return replace(end, waiting=waiting)


def _why_unserved(context: Context, end: Ended, machine: Mapping[str, Any], number: int) -> tuple[str, bool]:
    """Return why no run works on a Machine, and record that, which another run then resumes; empty if one does.

    Also return whether it is because the API server of its Cluster does not answer.
    """
    options = _options(end.begun, f"left.{number}")
    options |= {"namespace": machine["namespace"], "machines": [machine["name"]], "selector": "", "cluster": ""}
    try:
        taken = take_machine(context, {**options, "templates": []})
    except HoldfastError:
        return end.unserved, False
    if taken["machine"] is None:
        unanswered = taken["unanswered"]
        return (unanswered, True) if unanswered else ("" if taken["at_work"] else rules.why_left(machine, end), False)
    known = record_of(end.begun, {**taken["machine"], "run": taken["run"]})
    detail = f"the work was not started: {end.unserved}"
    with suppress(HoldfastError):
        machine_guard_record(context, {**known, "phase": NOT_BEGUN, "result": FAILED, "detail": detail})
    return end.unserved, False


def _options(begun: Mapping[str, Any], worker: str) -> dict[str, Any]:
    return {
        **selection_of(begun["settings"]),
        "run": begun["run"],
        "holder": begun["holder"],
        "worker": worker,
        "set_points": [],
        "stop": DEADLINE,
        "retry_seconds": 0,
        "wait_timeout": 0,
    }

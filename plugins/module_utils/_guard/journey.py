# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out the work of a guard up to the next step that only the role does. Nothing is decided here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from .._api.errors import ApiFailure, Held, HoldfastError, Refused, Unreachable
from .._api.runner import Context, Params, Result
from .._api.watch import Deadline
from .._budget import claims
from .._budget.node_claim import node_claim
from .._fencing import expired_keys
from .._holds import leases
from .._progress import last_answer
from .._progress.event_rules import waits
from . import journey_rules as rules
from .begin_rules import files_of, selects
from .journey_rules import Facts, Failure, Settings, Step, Work
from .record import machine_guard_record
from .rules import DEADLINE, FAILED, NEVER, PURPOSE, RELEASED, done_at
from .steps import take_machine
from .wait import machine_guard_wait

# A record that is forgotten would repeat the user's tasks, or stay with a run that lives and works on it no more.
_TRIES, _PAUSE = 30, 10.0
_HELD_PAUSE = 5.0
# Seconds after which a worker that waits for a Machine looks whether another worker has dropped out.
_TURN = 300


def machine_guard_step(context: Context, params: Params) -> Result:
    """Record the outcome of the last step, and answer the next one; see the module of the same name."""
    key = answer_key(params["begun"]["run"], params["worker"])
    # Without it, the last task failed before its module answered, or this is the first step.
    journey = _Journey(context, {**params, "last": params.get("last") or last_answer.last(context.folder, key)})
    try:
        return journey.run()
    except HoldfastError as error:
        error.fields.update(step="failed", kept=journey.kept)
        raise
    finally:
        last_answer.keep(context.folder, key, journey.kept)


def answer_key(run: str, worker: str) -> str:
    """Return the key of the last answer of a worker."""
    return f"machine_guard_step {run} {worker}"


class _Journey:
    def __init__(self, context: Context, params: Params) -> None:
        self._context, self._params = context, params
        self._begun: Mapping[str, Any] = params["begun"]
        self._given: Mapping[str, Any] = self._begun["settings"]
        last: Mapping[str, Any] = of_run(self._begun, [params.get("last") or {}])[0]
        self._machine: dict[str, Any] | None = last.get("machine")
        self._results: list[dict[str, Any]] = list(last.get("results") or [])
        self._refused: list[dict[str, Any]] = list(last.get("refused") or [])
        self._renew = ""
        failed: Mapping[str, Any] | None = params.get("failed")
        work = Work(**last["work"]) if last.get("work") else None
        self._facts = Facts(
            settings=settings_of(self._given, self._begun["playbook_dir"]),
            turn=last.get("turn", 0),
            swept=last.get("swept", False),
            work=work,
            failure=failure_of(failed) if failed else None,
            lost=not last,
            troubles=last.get("troubles", 0) + int(failed is not None and work is None),
        )
        self._acts: Mapping[str, Callable[[Step], Facts]] = {
            rules.SWEEP: self._sweep,
            rules.TAKE: self._take,
            rules.CLAIM: self._claim,
            rules.UNCLAIM: self._unclaim,
            rules.LOOK: self._look,
            rules.DONE_FILE: self._done_file,
            rules.AWAIT_REPLACEMENT: self._await_replacement,
            rules.AWAIT_HOLDERS: self._await_holders,
            rules.AWAIT_VOLUMES: self._await_volumes,
            rules.RELEASE: self._release,
            rules.KEEP: self._keep,
            rules.FREE_HOST: self._free_host,
            rules.PAUSE: self._pause,
            rules.STOP: self._stop,
        }

    def run(self) -> Result:
        for left in of_run(self._begun, self._params["dropped"]):
            record_dropped(self._context, self._begun, left)
        while True:
            step = rules.next_step(replace(self._facts, over=self._seconds_left <= 0))
            if step.name in rules.ANSWERS:
                return self._answer(step)
            self._facts = self._acts[step.name](step)

    # -- what is known

    @property
    def kept(self) -> dict[str, Any]:
        """What the next task of this worker has to know."""
        facts = self._facts
        return {
            "begun": self._begun["run"],
            "turn": facts.turn,
            "swept": facts.swept,
            "troubles": facts.troubles,
            "work": asdict(facts.work) if facts.work else None,
            "machine": self._machine,
            "results": self._results,
            "refused": self._refused,
        }

    @property
    def _work(self) -> Work:
        if self._facts.work is None:
            raise ValueError("there is no work")
        return self._facts.work

    def _with(self, work: Work) -> Facts:
        return replace(self._facts, work=work)

    @property
    def _run(self) -> str:
        return str((self._machine or {})["run"])

    @property
    def _seconds_left(self) -> int:
        return int(self._begun["ends"] - time.time())

    def _answer(self, step: Step) -> Result:
        facts, machine = self._facts, self._machine or {}
        if step.name not in (rules.CONTINUE, rules.DONE):
            self._facts = facts = self._with(self._work.is_asked(step))
        elif facts.work is not None and facts.work.result:
            self._facts = facts = replace(facts, work=None)
        work = facts.work
        return {
            "changed": facts.again or work is not None or facts.failure is not None,
            "step": step.name,
            "why": step.why,
            "file": step.file.path if step.file else "",
            "file_name": step.file.name if step.file else "",
            "run": machine.get("run", ""),
            "machine": machine.get("name", ""),
            "namespace": machine.get("namespace", ""),
            "cluster": machine.get("cluster", ""),
            "node": work.node if work else "",
            "node_state": work.state if work else "",
            "point": work.point if work else "",
            "resumed": bool(machine.get("resumed")),
            "renew": self._renew,
            "kept": {**self.kept, "why": step.why, "failure": self._said if step.why == FAILED else ""},
        }

    # -- steps: each answers the facts after it

    def _sweep(self, _step: Step) -> Facts:
        # A user without the right to read hosts has no keys on them.
        self._free("", 0)
        return replace(self._facts, swept=True)

    def _take(self, _step: Step) -> Facts:
        facts, begun = self._facts, self._begun
        facts = self._facts = replace(facts, turn=facts.turn + 1)
        left = None if self._given["stop"] == NEVER else max(0, self._seconds_left)
        seconds = left
        if self._given.get("parallel", 1) > 1:
            # Another worker may drop out with its Machine, which this one sees only at its next step.
            seconds = _TURN if left is None else min(_TURN, left)
        found = take_machine(
            self._context,
            {
                **selection_of(self._given),
                "run": begun["run"],
                "holder": begun["holder"],
                "worker": f"{self._params['worker']}.{facts.turn}",
                "set_points": self._given["points"] if self._given["set_hooks"] and selects(self._given) else [],
                "stop": self._given["stop"],
                "retry_seconds": self._given["retry_seconds"],
                "wait_timeout": seconds,
            },
        )
        known = {item["machine"] for item in self._refused}
        self._refused += [item for item in found["refused"] if item["machine"] not in known]
        facts = replace(facts, troubles=0)
        if found["machine"] is None and found["why"] == DEADLINE and seconds != left:
            return replace(facts, again=True)
        if found["machine"] is None:
            return replace(facts, why=found["why"])
        self._machine = {**found["machine"], "run": found["run"], "resumed": found["resumed"]}
        self._renew = found["run"]
        record, repeat = found["record"], facts.settings.repeat_tasks
        work = Work(
            point=found["step"],
            node=found["machine"]["node"] or "",
            state=found["node_state"],
            skipped=found["skipped"],
            leaves_drain=found["leaves_drain"],
            done={} if repeat else {point: tuple(names) for point, names in record["done"].items()},
        )
        return replace(facts, work=work, again=True)

    def _claim(self, _step: Step) -> Facts:
        machine = self._machine or {}
        node_claim(
            self._context,
            {
                "name": self._work.node,
                "run": self._run,
                "holder": self._begun["holder"],
                "operation": f"{machine['namespace']}/{machine['name']}",
                "purpose": PURPOSE,
                "restart": True,
                "state": "present",
                "keep": False,
                "wait_timeout": self._given["claim_timeout"],
            },
        )
        return self._with(self._work.is_claimed(claimed=True))

    def _unclaim(self, _step: Step) -> Facts:
        claims.give_back(self._context.cluster, self._work.node, run=self._run)
        return self._with(self._work.is_claimed(claimed=False))

    def _look(self, step: Step) -> Facts:
        found = self._record(phase=rules.phase_of(step.act), look=True)
        return self._with(self._work.has_begun(step.act, found["node_state"]))

    def _done_file(self, _step: Step) -> Facts:
        work = self._work
        self._persist(lambda: self._record(done=work.file, done_at=work.at))
        return self._with(work.file_is_done())

    def _await_replacement(self, _step: Step) -> Facts:
        self._tell("replacement", "its replacement to be Ready")
        self._wait("replacement", self._given["replacement_timeout"])
        return self._with(self._work.is_past(rules.REPLACEMENT))

    def _await_holders(self, _step: Step) -> Facts:
        self._tell("hold", "its holders")
        options = {"node": self._work.node, "wait_for": "free", "wait_timeout": self._given["hold_timeout"]}
        leases.lease_hold_info(self._context, options)
        return self._with(self._work.is_past(self._work.begun))

    def _await_volumes(self, _step: Step) -> Facts:
        self._tell("volumes", "its volumes to be detached")
        self._wait("volumes", self._given["volumes_timeout"])
        return self._with(self._work.is_past(rules.VOLUMES))

    def _release(self, _step: Step) -> Facts:
        """Remove the hook. This also waits for a hold that was taken at the last moment."""
        deadline = Deadline(self._given["hold_timeout"])
        while True:
            try:
                found = self._record(result=RELEASED, override_holds=self._given["override_holds"])
                return self._end(found["record"], "")
            except Held as error:
                if deadline.passed:
                    raise
                self._tell("hold", error.message)
                time.sleep(_HELD_PAUSE)

    def _keep(self, _step: Step) -> Facts:
        """Record the failure, and report it on the Machine. If another run has the Machine now, that run reports."""
        detail, record = rules.failure_text(self._params["failed"].get("where") or "", self._said), {}
        try:
            record = self._persist(lambda: self._record(result=FAILED, detail=detail))["record"]
        except (ApiFailure, Unreachable) as error:
            detail += f" THIS COULD NOT BE RECORDED: {error.message} Run it again, or holdfast.kubernetes.doctor."
        except HoldfastError as error:
            self._context.warn(error.message)
        return self._end({**record, "result": record.get("result") or FAILED}, detail)

    def _free_host(self, _step: Step) -> Facts:
        timeout = rules.host_patience(self._given["stop"], self._given["host_timeout"], self._seconds_left)
        self._free(self._work.node, timeout)
        return self._with(self._work.is_past(rules.FREE_HOST))

    def _pause(self, step: Step) -> Facts:
        time.sleep(step.seconds)
        return replace(self._facts, failure=None, again=True)

    def _stop(self, step: Step) -> Facts:
        raise Refused(step.why, node=self._work.node)

    # -- how

    def _end(self, record: Mapping[str, Any], detail: str) -> Facts:
        work = replace(self._work, result=record["result"])
        text = detail or rules.detail_of(work, self._facts.settings)
        self._results.append(entry_of(self._machine or {}, work, record, text))
        return self._with(work)

    @property
    def _said(self) -> str:
        said = str((self._params.get("failed") or {}).get("msg") or "unknown")
        return rules.lost_text(self._params["worker"], said) if self._facts.lost else said

    def _record(self, **more: Any) -> Result:
        return machine_guard_record(self._context, {**record_of(self._begun, self._machine or {}), **more})

    def _persist(self, write: Callable[[], Result]) -> Result:
        """Write, and try again while the API server is unavailable or refuses it."""
        for _try in range(_TRIES):
            try:
                return write()
            except (ApiFailure, Unreachable) as error:
                self._context.warn_now(
                    f"The work on Machine {(self._machine or {}).get('name')} is not recorded yet, and the worker "
                    f"tries again in {_PAUSE:.0f} s: {error.message}"
                )
                time.sleep(_PAUSE)
        return write()

    def _tell(self, phase: str, why: str) -> None:
        """Tell the live view what the node waits for."""
        self._context.tell(waits(self._work.node, phase, why))

    def _wait(self, what: str, timeout: int) -> None:
        machine = self._machine or {}
        machine_guard_wait(
            self._context,
            {
                "wait_for": what,
                "machine": machine["name"],
                "namespace": machine["namespace"],
                "node": self._work.node or None,
                "run": self._run,
                "wait_timeout": timeout,
            },
        )

    def _free(self, node: str, timeout: int) -> None:
        """Remove keys from BareMetalHosts. The Machine is released, and the next run or the doctor removes the rest."""
        try:
            expired_keys.remove(self._context, {"node": node, "wait": True, "wait_timeout": timeout})
        except HoldfastError:
            return


def of_run(begun: Mapping[str, Any], kept: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return what the workers of this run kept; empty for workers of an earlier run in the same play."""
    return [item if item.get("begun") == begun["run"] else {} for item in kept]


def settings_of(given: Mapping[str, Any], playbook_dir: str) -> Settings:
    """Return what the journey asks of the role's settings."""
    names = ("stop", "unreachable", "override_holds", "wait_for_replacement", "drain", "check_volumes", "make_up")
    known = {name: given[name] for name in (*names, "repeat_tasks")}
    return Settings(**known, files=files_of(given, playbook_dir))


def failure_of(failed: Mapping[str, Any]) -> Failure:
    """Return what failed. The task may be the user's, with any results."""
    status = str(failed.get("status") or "")
    return Failure(str(failed.get("error") or ""), int(status) if status.isdecimal() else 0)


def selection_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return which Machines are meant, as options of :func:`take_machine`."""
    return {
        "namespace": given.get("namespace") or None,
        **{name: given[name] for name in ("hook", "owner", "machines", "selector", "cluster", "templates")},
    }


def record_of(begun: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of :func:`machine_guard_record` for one work."""
    return {
        "machine": machine["name"],
        "namespace": machine["namespace"],
        "node": machine["node"],
        "hook": begun["settings"]["hook"],
        "owner": begun["settings"]["owner"],
        "run": machine["run"],
        "look": False,
        "override_holds": False,
    }


def entry_of(machine: Mapping[str, Any], work: Work, record: Mapping[str, Any], detail: str) -> dict[str, Any]:
    """Return what the report says about one work."""
    name, namespace = machine["name"], machine["namespace"]
    return {
        "name": name,
        "namespace": namespace,
        "cluster": machine["cluster"],
        "node": machine["node"],
        "point": work.point,
        "work": f"{namespace}/{name}/{work.point}",
        "run": machine["run"],
        "result": record["result"],
        "detail": detail,
        "node_state": work.state,
        "resumed": machine["resumed"],
        "seconds": record.get("phases") or {},
        "done": done_at(record, work.point),
        "facts": record.get("facts") or {},
    }


DROPPED = (
    "A task could not reach the host that it was delegated to (unreachable). Let your tasks wait for the connection "
    "(wait_for_connection), which fails if there is none."
)


def record_dropped(context: Context, begun: Mapping[str, Any], left: Mapping[str, Any]) -> dict[str, Any] | None:
    """Record that a worker has dropped out of the play; return the entry of its work, if it had any.

    It dropped out because a task could not reach a host. No worker serves its Machine now.
    """
    if not left.get("work"):
        return None
    machine, work = left["machine"], Work(**left["work"])
    record: dict[str, Any] = {"result": FAILED, "detail": DROPPED}
    try:
        options = {**record_of(begun, machine), "result": FAILED, "detail": DROPPED}
        record = machine_guard_record(context, options)["record"]
    except HoldfastError as error:
        # Another run may have the Machine now, or another worker records it at the same time.
        context.warn(error.message)
    return entry_of(machine, work, record, record.get("detail") or DROPPED)

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""End the reboot of a node: after success, after a hold refused the reboot, or after a failure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Callable

from .._api import node_rules, paths
from .._api.errors import Held, HoldfastError
from .._api.names import CLAIM
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .._budget import ledger_store, runs
from .._budget.claim_rules import PURPOSE, ClaimLost
from .._budget.node_operation_rules import reboot_began, record_of
from .._drain.cordon_rules import reason_of, why_it_stays
from .._nodes.leftovers import leftover_pods
from .._nodes.ready import node_ready
from .end_rules import after_hold, detail_of, detail_of_failure, overrides_of, result_of, steps_after
from .facts_rules import WAITING, WORKING
from .failure_rules import LOST, Failure, judge, may_go_down, resumes_reboot
from .journey_rules import NOTIFICATION, STOP, user_files
from .silences import Silences
from .work import Work

UNREACHABLE = "unreachable"
# Errors of a reboot that was refused before it started.
_NOT_SENT = ("held", "refused", "claimed", "claim_lost", "not_found", "invalid_input")
# A kubelet renews its Lease every 10 s, by default.
_SIGN_OF_LIFE_WITHIN = 45


def reboot_finish(context: Context, params: Params) -> Result:
    """End the work on a node, after success or failure; see the module of the same name."""
    turn, settings = params["turn"], params["settings"]
    operation, run = str(turn.get("operation") or params["operation"]), str(turn.get("run") or params["run"])
    silences = Silences(params, params["name"], run, context.warn)
    work = Work(
        context,
        params["name"],
        operation,
        run,
        conditions=settings["lifecycle_conditions"],
        taint=settings.get("prefer_no_schedule", False),
    )
    # Ignore the result of an earlier attempt.
    rebooted = (params["rebooted"] or {}) if "reboot" in (turn.get("steps") or []) else {}
    held = rebooted.get("step") == "held"
    end = _failed if params.get("failed") is not None else _held if held else _rebooted
    known = {"node": work.node, "operation": operation, "run": run, "group": turn.get("group") or settings["group"]}
    kept = {"needed": turn.get("needed") or "", "attempts": int(turn.get("attempts") or 0)}
    try:
        # After a failure, the sign of life may fail, too. The writes that follow are tried all the same.
        with runs.heartbeat(context.cluster, run, params.get("holder") or "", required=end is not _failed):
            return {**known, **kept, **end(work, {**params, **known, "rebooted": rebooted})}
    except HoldfastError as error:
        # An error here happens while the run works on the node. The cleanup after it needs what the turn said.
        for name in ("steps", "counted_in", "method"):
            error.fields[name] = turn.get(name)
        error.fields.update(known, **kept, stage=WORKING, claimed=True)
        raise
    finally:
        silences.end()


def _rebooted(work: Work, params: Params) -> Result:
    turn = params["turn"]
    known = work.uncordon(phase="uncordon")["operation"]
    work.opt_in()
    left = _leftovers(work, "absent" if params["settings"]["sweep"] else "reported")
    work.slot(params["group"], "absent", ended=_pauses(params))
    detail = detail_of(turn.get("needed") or "", overrides_of(known, work.operation))
    # One write records the result and removes the claim.
    record = work.record(result="rebooted", detail=detail, claimed=True)
    result = result_of(
        work.node,
        "rebooted",
        str(record.get("detail") or detail),
        record=record,
        before=record.get("boot_id_before"),
        after=record.get("boot_id_after"),
    )
    return {
        "changed": work.changed or left["changed"],
        "step": "done",
        "why": detail,
        "steps": steps_after(turn["steps"], "finish"),
        "files": turn.get("files") or {},
        "stage": WORKING,
        "claimed": False,
        "result": {**result, "leftovers": left["pods"]},
        "uncounted": [],
    }


def _leftovers(work: Work, state: str) -> Result:
    """Finished pods that the shutdown left. The node is healthy, so a pod that can't be removed does not fail it."""
    try:
        return leftover_pods(work.context, {"name": work.node, "state": state})
    except HoldfastError as error:
        work.context.warn(
            f"Finished pods of the shutdown of node {work.node} could not be read or removed: {error.message} They use "
            "no resources of the node. Delete them with kubectl, or run the module leftover_pods."
        )
        return {"changed": bool(error.fields.get("changed")), "pods": error.fields.get("pods") or []}


def _pauses(params: Params) -> bool:
    """Whether other nodes of the operation wait a while after the end of this one."""
    return bool(params["settings"].get("pause"))


def _held(work: Work, params: Params) -> Result:
    node, turn = read_node(work.context.cluster, work.node), params["turn"]
    began = reboot_began(record_of(node, work.operation), work.operation)
    step = after_hold(
        work.node,
        params["rebooted"]["why"],
        ready=node_rules.ready(node),
        sent_before=began and resumes_reboot(turn.get("steps") or []),
    )
    if step.name == STOP:
        raise Held(step.why, node=work.node)
    became = work.put_back(params["group"], step.record, step.why)
    why = f"Node {work.node} {became}, and tried again later: {step.why}"
    work.context.say(why)
    return {
        **{name: turn.get(name) for name in ("answer", "shutdown")},
        "changed": work.changed,
        "step": step.name,
        "why": why,
        "steps": ["again"],
        "stage": WAITING,
        "claimed": False,
        "attempts": int(turn.get("attempts") or 0) + 1,
        "left": step.why,
        "result": None,
        "uncounted": [],
    }


def _failed(work: Work, params: Params) -> Result:
    return _Failed(work, params).run()


class _Failed:
    """The cleanup of a node after a failure. Each write is tried, even if others fail."""

    def __init__(self, work: Work, params: Params) -> None:
        self._work, self._params = work, params
        failed: Mapping[str, Any] = params["failed"]
        self._why = str(failed.get("msg") or failed.get("stderr") or "unknown")
        self._error = str(failed.get("error") or "")
        self._sent: bool | None = failed.get("sent")
        self._at_the_gate = failed.get("gate") is True
        self._unwritten: list[str] = []
        self._lost = ""

    def run(self) -> Result:
        work, params, turn = self._work, self._params, self._params["turn"]
        alive = self._error != UNREACHABLE or self._gives_sign_of_life()
        seen, unseen = self._look()
        found = judge(
            seen,
            Failure(
                run=work.run,
                operation=work.operation,
                error=self._error,
                done=turn.get("step") == "done",
                # A turn whose options are invalid has no stage, and this run no claim: it did nothing.
                untouched=turn.get("stage") == WAITING
                or not (turn.get("stage") or self._error or self._has_claim(seen)),
                switched_off=self._may_go_down(seen or {}) or not alive,
                unseen=unseen,
                claimed=turn.get("stage") == WORKING,
            ),
        )
        uncordoned = found["uncordon"] and self._put_back()
        if found["return_slot"]:
            self._try(lambda: work.slot(params["group"], "absent"))
            self._try(work.unclaim)
            work.end_waiting()
        uncounted = self._count(healthy=found["healthy"]) if found["count"] and not self._lost else []
        there = unseen or seen is not None
        record = self._record() if found["count"] and there and not self._lost else {}
        if params["dropped"] and found["count"] and found["healthy"] and not self._lost:
            # The failure was counted before the node was known to be healthy, so it kept the slot.
            self._try(lambda: work.slot(params["group"], "absent"))
        known = seen or {}
        detail = detail_of_failure(
            params.get("where") or "",
            " ".join(filter(None, (self._why, self._lost))),
            overrides=overrides_of(known.get("operation"), work.operation),
            uncordoned=uncordoned,
            cordoned=known.get("cordoned", False) and not (self._lost or work.cordon_ended),
            stays=known.get("stays_cordoned", "") if work.cordon_ended else "",
            unwritten=self._unwritten,
            lost=bool(uncounted),
        )
        before, after = record.get("boot_id_before"), known.get("boot_id")
        ended = user_files(params["settings"]).get("after", [])
        return {
            "changed": work.changed,
            "step": "failed",
            "why": self._why,
            "steps": [],
            "files": {"after": [NOTIFICATION] if NOTIFICATION in ended else []},
            "stage": turn.get("stage") or "",
            "claimed": False,
            "result": result_of(
                work.node, LOST if self._lost else found["state"], detail, record=record, before=before, after=after
            ),
            "uncounted": uncounted,
        }

    def _has_claim(self, seen: Mapping[str, Any] | None) -> bool:
        claim = (seen or {}).get("claim") or {}
        return claim.get("run") == self._work.run

    def _may_go_down(self, seen: Mapping[str, Any]) -> bool:
        return may_go_down(
            seen,
            self._work.operation,
            sent=self._sent,
            refused=self._error in _NOT_SENT,
            steps=self._params["turn"].get("steps") or [],
            method=self._params["settings"]["method"],
            at_the_gate=self._at_the_gate,
        )

    def _gives_sign_of_life(self) -> bool:
        """Whether the kubelet is alive. For a while, the API reports a dead node as Ready."""
        options = {"sign_of_life": True, "daemonset_pods": False, "timeout": _SIGN_OF_LIFE_WITHIN}
        try:
            node_ready(self._work.context, {"name": self._work.node, **options})
        except HoldfastError:
            return False
        return True

    def _look(self) -> tuple[dict[str, Any] | None, bool]:
        """The node after the failure, and whether the API did not answer."""
        cluster, name = self._work.context.cluster, self._work.node
        try:
            node = cluster.find(paths.node(name))
            ledger = ledger_store.ledger_of(ledger_store.load(cluster, self._params["group"]))
        except HoldfastError:
            return None, True
        if node is None:
            return None, False
        slot = ledger.slots.get(name)
        return {
            "ready": node_rules.ready(node),
            "boot_id": node_rules.boot_id(node),
            "cordoned": reason_of(node, PURPOSE) is not None,
            "stays_cordoned": why_it_stays(node, PURPOSE),
            "claim": node_rules.record(node, CLAIM),
            "operation": record_of(node, self._work.operation),
            "slot": vars(slot) if slot else None,
        }, False

    def _put_back(self) -> bool:
        """Give a healthy node back; return whether that made it schedulable."""
        work, undone = self._work, []
        # Do not require the claim: without it, a healthy node must still be uncordoned. If another run has taken the
        # claim since the look at the node, that run works on it now.
        self._try(lambda: undone.append(work.uncordon(claimed=False)["freed"]))
        if self._lost:
            return False
        work.try_opt_in()
        return any(undone)

    def _count(self, *, healthy: bool) -> list[dict[str, Any]]:
        """Count the failure; return what could not be counted, so that others can try again."""
        work, uncounted = self._work, []
        # The slot may be in another group than the operation, and the failure stops the whole operation.
        counted_in = self._params["turn"].get("counted_in") or self._params["settings"]["group"]
        for group in dict.fromkeys((self._params["group"], counted_in)):
            if not self._try(
                partial(work.slot, group, "failed", reason=self._why, healthy=healthy, ended=_pauses(self._params))
            ):
                known = {"reason": self._why, "healthy": healthy, "run": work.run}
                uncounted.append({"name": work.node, "group": group, **known})
        return uncounted

    def _record(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._try(lambda: found.update(self._work.record(result="failed", detail=self._why)))
        return found

    def _try(self, act: Callable[[], Any]) -> bool:
        """Carry out a write; return whether it succeeded."""
        try:
            act()
        except ClaimLost as error:
            self._lost = error.message
            return False
        except HoldfastError as error:
            self._unwritten.append(error.message)
            return False
        return True

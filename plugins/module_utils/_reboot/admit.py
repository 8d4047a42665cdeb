# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for a node's turn: carry out the steps that the journey's rules return, until they return an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import inf
from typing import Any

from .._api import node_rules, paths
from .._api.errors import Held, HoldfastError, NotFound, Refused, TimedOut
from .._api.names import SHUTDOWN_INHIBITED
from .._api.objects import Object
from .._api.runner import Context, Params, Result
from .._api.watch import Deadline, wait_for
from .._budget import ledger_store, runs
from .._budget.claim_rules import PURPOSE, ClaimLost, claim_of, taken_by_another
from .._budget.lifecycle_rules import others_words, still_maintained
from .._budget.node_claim import node_claim
from .._budget.operation_rules import is_fresh_id
from .._holds import leases
from .._nodes.ready import node_ready
from .._progress.event_rules import waits
from .._shared.bounds import some
from . import journey_rules as rules
from .blockers import node_blockers
from .canary import await_canaries
from .canary_rules import CanaryFailed
from .end_rules import result_of
from .facts_rules import ALWAYS, Answer, Facts, Settings, SlotWait, Window
from .journey_rules import AGAIN, ANSWERS, Step, user_files
from .quorum import etcd_quorum
from .quorum_rules import CONTROL_PLANE
from .refusal_rules import Canaries, Etcd, canaries_of_run, read_shutdown, why_no_quorum_known
from .seen_rules import Seen, read_seen
from .silences import Silences
from .turn_rules import DROPPED_OUT, Budget, budget_of, dropped_out, hold_patience, slot_patience
from .window import maintenance_window
from .work import Work, sets_marks

_ERRORS: dict[str, type[HoldfastError]] = {"not_found": NotFound, "held": Held, "timed_out": TimedOut}
_AGAIN = "again"


def admit(context: Context, params: Params) -> Result:
    """Wait until a node may be rebooted, and take its slot and its claim; see the module ``reboot_turn``."""
    admission = Admission(context, params)
    try:
        with runs.heartbeat(context.cluster, params["run"], params.get("holder") or ""):
            return admission.run()
    except HoldfastError as error:
        # The cleanup after the failure depends on how far the request came.
        error.fields.update(admission.progress())
        raise


class Admission:
    """One request for a turn."""

    def __init__(self, context: Context, params: Params) -> None:
        self._context, self._cluster = context, context.cluster
        settings: Params = params["settings"]
        self._params = {**settings, **params}
        # Runs may resume the same operation night after night. An operation that the user names reboots no node twice.
        named = settings.get("operation") and not is_fresh_id(settings["operation"])
        again = settings["when"] != ALWAYS and not named
        self._old_after = float(settings["adopt_within"]) if again else inf
        self._silences = Silences(params, params["name"], params["run"], context.warn)
        self._work = Work(
            context,
            params["name"],
            params["operation"],
            params["run"],
            silences=self._silences,
            conditions=settings["lifecycle_conditions"],
            taint=settings.get("prefer_no_schedule", False),
            old_after=self._old_after,
        )
        # Use the last answer only if it asked for this request. An answer from an earlier pass or run does not count.
        given = params.get("last") or {}
        again = _AGAIN in (given.get("steps") or []) and given.get("run", params["run"]) == params["run"]
        last = given if again else {}
        # Every answer except a question is given after the warning.
        warned = bool(last) and last.get("step") != rules.ASK
        self._settings = _settings(self._params, plan=context.check_mode, again=warned)
        self._given = {name: params.get(name) or last.get(name) for name in ("answer", "shutdown")}
        # The last look at the node. Facts that must be read again are dropped; the group and the boot ID are kept.
        self._last = Seen(params["name"], exists=False)
        self._counted, self._warned = False, False
        # This request has shown on the node that it waits.
        self._shown = False
        shutdown = self._given["shutdown"]
        self._facts = Facts(
            self._settings,
            answer=_answer(self._given["answer"]),
            shutdown=read_shutdown(shutdown) if shutdown else None,
            slot_wait=SlotWait(float(last.get("waited") or 0), float(last.get("idle") or 0)),
            slot_tasks_run=last.get("step") == rules.BEFORE_SLOT or bool(last.get("slot_tasks_run")),
            attempts=int(last.get("attempts") or 0),
            left=last.get("left") or "",
        )
        self._carry_out: dict[str, Callable[[Step], Facts]] = {
            rules.LOOK: self._look,
            rules.LOOK_AT_ETCD: self._look_at_etcd,
            rules.AWAIT_CANARIES: self._await_canaries,
            rules.LOOK_AT_WINDOW: self._look_at_window,
            rules.AWAIT_HOLDERS: self._await_holders,
            rules.TAKE_SLOT: self._take_slot,
            rules.CLAIM: self._claim,
            rules.AWAIT_BACK: self._await_back,
            rules.AWAIT_QUORUM: self._await_quorum,
            rules.TAKE_OVER: self._take_over,
            rules.LEAVE: self._leave,
            rules.PUT_BACK: self._put_back,
            rules.UNCLAIM: self._unclaim,
        }

    def run(self) -> Result:
        while True:
            step = rules.next_step(self._facts)
            if step.name in ANSWERS:
                return self._answer(step)
            self._facts = self._carry_out[step.name](step)

    def progress(self) -> dict[str, Any]:
        """The progress of the node and of the wait. The next request continues from it."""
        wait, facts = self._facts.slot_wait, replace(self._facts, seen=self._facts.seen or self._last)
        method = rules.method_of(facts)
        return {
            "node": self._settings.node,
            "operation": self._settings.operation,
            "run": self._settings.run,
            "group": self._budget.group,
            "counted_in": self._budget.counted_in,
            "stage": self._facts.stage,
            "claimed": facts.claimed,
            "needed": facts.needed,
            "method": method,
            "etcd_selector": self._settings.etcd_selector if method == rules.AFTER_ETCD else "",
            "answer": vars(facts.answer) if facts.answer else None,
            "shutdown": self._given["shutdown"],
            "slot_tasks_run": facts.slot_tasks_run,
            "boot_id": facts.node.boot_id_before(self._settings.operation),
            "attempts": facts.attempts,
            "left": facts.left,
            "waited": round(wait.waited, 3),
            "idle": round(wait.idle, 3),
        }

    def _answer(self, step: Step) -> Result:
        if step.name == rules.STOP:
            raise _ERRORS.get(step.error, Refused)(step.why, node=self._settings.node)
        changed = self._work.changed
        if step.name == rules.SKIPPED and step.record:
            # This record does not count as a change: the run found nothing to do.
            # While another run works on the node, the record is that run's.
            with suppress(ClaimLost):
                self._work.record(result=step.record, detail=step.why)
        self._warn()
        if step.name == rules.PUT_OFF:
            self._context.say(f"Node {self._settings.node} is put off: {step.why}")
            self._show_waiting()
        again = (_AGAIN,) if step.name in AGAIN else ()
        ended = step.name in (rules.SKIPPED, rules.POSTPONED)
        if ended and (self._facts.node.shown or self._shown):
            self._work.end_waiting()
        return {
            "changed": changed,
            "step": step.name,
            "why": step.why,
            "steps": [*step.steps, *again],
            "files": {name: files for name, files in user_files(self._params).items() if name in step.steps},
            "result": self._result(step) if ended else None,
            **self.progress(),
        }

    def _result(self, step: Step) -> dict[str, Any]:
        seen = self._facts.node
        record = {"phases": seen.phases} if step.name == rules.POSTPONED else {}
        return result_of(seen.name, step.name, step.why, record=record, before=seen.boot_id, after=seen.boot_id)

    def _warn(self) -> None:
        text = rules.warning(self._facts)
        if text and not self._warned:
            self._context.warn_now(text)
        self._warned = True

    @property
    def _budget(self) -> Budget:
        return budget_of(self._params, control_plane=self._last.control_plane)

    def _count_failures(self) -> bool:
        """Count failures of other hosts of this run that no other host counts; return whether one was counted.

        An uncounted failure stops no other node. So if the count fails, this request fails and asks for no slot.
        """
        counted = False
        lost = [
            {"name": host["node"], "reason": DROPPED_OUT, "healthy": False, "group": group, "run": host.get("run")}
            for host in dropped_out(self._params["hosts"])
            for group in dict.fromkeys((host["group"], host.get("counted_in") or host["group"]))
        ]
        for failure in [*lost, *self._params["uncounted"]]:
            work = replace(self._work, node=failure["name"], run=failure.get("run") or self._work.run)
            found = work.slot(failure["group"], "failed", reason=failure["reason"], healthy=failure["healthy"])
            counted |= found["changed"]
        return counted

    def _tell(self, phase: str, why: str) -> None:
        self._context.tell(waits(self._settings.node, phase, why))

    # One method for each step that the admission carries out.

    def _look(self, _step: Step) -> Facts:
        params, name = self._params, self._settings.node
        node = self._cluster.find(paths.node(name))
        if node is None:
            return self._facts.looked(read_seen(name, None, self._settings.operation))
        control_plane = CONTROL_PLANE in node_rules.labels_of(node)
        if self._facts.has_slot or self._facts.claimed:
            # A new label does not move the slot to the other group.
            control_plane = self._last.control_plane
        budget = budget_of(params, control_plane=control_plane)
        ledger = ledger_store.ledger_of(ledger_store.load(self._cluster, budget.group))
        slot = ledger.slots.get(name)
        seen = read_seen(
            name,
            node,
            self._settings.operation,
            holds=leases.holds_on(self._cluster, name),
            slot=vars(slot) if slot else None,
            blockers=self._blockers(wait_timeout=0)["blockers"] if self._has_blockers else (),
            override_holds=params["override_holds"],
            override_maintenance=params["override_maintenance"],
            now=self._cluster.now() if self._old_after < inf else None,
            old_after=self._old_after,
            stuck=self._why_stuck(node),
        )
        self._last = seen = replace(seen, control_plane=control_plane)
        answer = self._facts.answer
        if answer is not None and not answer.boot_id:
            # The node answered just now, so the answer is about this boot.
            answer = replace(answer, boot_id=seen.boot_id)
        return replace(self._facts.looked(seen), answer=answer)

    def _why_stuck(self, node: Object) -> str:
        """Why a dead run of another operation keeps the node from this run; empty if none does."""
        claim = claim_of(node)
        if claim is None or claim.operation == self._settings.operation or claim.run == self._settings.run:
            return ""
        live = runs.live_ids(self._cluster)
        return "" if claim.run in live else taken_by_another(self._settings.node, claim, live).message

    def _look_at_etcd(self, _step: Step) -> Facts:
        etcd = _etcd(self._quorum(wait_timeout=0))
        return replace(self._facts, etcd=etcd)

    def _await_canaries(self, _step: Step) -> Facts:
        """Wait for the canaries, also for those of other slices of the job."""
        params = self._params
        known = canaries_of_run(params["canary_results"])
        if not known.trouble and not known.postponed:
            options = {
                "nodes": params["canaries"],
                "operation": self._settings.operation,
                "soak": params["soak"],
                "old_after": self._old_after,
                "wait_timeout": params["canary_timeout"],
            }
            self._tell("canaries", f"canaries {some(params['canaries'])}, and a soak of {params['soak']} s")
            try:
                await_canaries(self._context, options)
            except (CanaryFailed, TimedOut) as error:
                known = Canaries(trouble=error.message)
        return replace(self._facts, canaries=known, window=None)

    def _look_at_window(self, _step: Step) -> Facts:
        """Wait for a window. With a slot, do not wait: others could use the slot."""
        params = self._params
        options = {
            "windows": params["windows"],
            "time_zone": params["window_time_zone"],
            "margin": params["window_margin"],
            "wait_timeout": 0 if self._facts.has_slot else params["window_wait"],
            "name": self._settings.node,
        }
        found = maintenance_window(self._context, options, waits=self._show_waiting)
        window = Window(found["open"], found["opens"] or "", found["seconds_left"])
        facts = self._facts if found["waited"] < 1 else self._facts.stale()
        return replace(facts, window=window)

    def _await_holders(self, _step: Step) -> Facts:
        params, facts = self._params, self._facts
        if not facts.midway:
            self._record("hold")
        self._tell("hold" if facts.node.held else "blocked", facts.node.why_later)
        seconds, window_closes = hold_patience(facts, params["hold_timeout"])
        deadline = Deadline(seconds)
        # If the window closes first, the wait ends without a failure.
        with suppress(*([TimedOut] if window_closes else [])), _for_the_role("hold_timeout"):
            if not params["override_holds"]:
                options = {"node": self._settings.node, "wait_for": "free", "wait_timeout": int(seconds)}
                leases.lease_hold_info(self._context, options)
                self._await_agent(deadline)
            if self._has_blockers:
                # Without a wait, the module only reports.
                self._blockers(wait_timeout=max(1, int(deadline.left)))
            if facts.node.maintained:
                self._await_other_writer(int(deadline.left))
        return facts.after_holders()

    def _await_agent(self, deadline: Deadline) -> None:
        """Wait until the node agent, which sees the end of a hold later, lets the node shut down again."""
        name = self._settings.node

        def free(node: Object | None) -> bool:
            return node is None or not node_rules.refuses_shutdown(node)

        last = wait_for(self._cluster, paths.NODES, name, free, deadline)
        if last is not None and not free(last):
            named = some(node_rules.inhibited_by(last)) or "a hold that it does not name"
            raise TimedOut(
                f"Node {name} was not started within {deadline.seconds:.0f} s: no Lease holds it, but its condition "
                f"{SHUTDOWN_INHIBITED} still names {named}. Check that holdfast-agent runs on the node and reaches the "
                "API server.",
                node=name,
            )

    def _await_other_writer(self, seconds: int) -> None:
        name = self._settings.node

        def free(node: Object | None) -> bool:
            return node is None or not others_words(node)

        last = wait_for(self._cluster, paths.NODES, name, free, Deadline(seconds))
        if not free(last):
            raise still_maintained(name, others_words(last or {}), seconds)

    def _record(self, phase: str) -> None:
        """Record that the node waits, and show it."""
        self._work.record(phase=phase)
        self._shown = True

    def _show_waiting(self) -> None:
        if not self._shown:
            self._shown = True
            self._work.show_waiting()

    def _take_slot(self, _step: Step) -> Facts:
        params, facts = self._params, self._facts
        if not self._counted:
            self._counted = True
            facts = replace(facts, slot_wait=replace(facts.slot_wait, counted=self._count_failures()))
        if not facts.midway:
            self._record("slot")
        patience = int(slot_patience(facts))
        try:
            with _for_the_role("slot_timeout"):
                self._ask_for_slot(wait_timeout=patience)
        except TimedOut as error:
            message = error.message.replace(f"within {patience} s", f"within {params['slot_timeout']} s", 1)
            return facts.after_turn(error.fields["waited"], error.fields["idle"], message)
        return replace(facts, has_slot=True)

    def _ask_for_slot(self, *, wait_timeout: int) -> None:
        self._work.slot(self._budget.group, "present", **self._slot_options(wait_timeout=wait_timeout))

    def _slot_options(self, *, wait_timeout: int) -> dict[str, Any]:
        params, budget = self._params, self._budget
        names = ("max_failed", "count_others", "unhealthy_grace", "restart")
        more = {"operation_group": budget.counted_in, "pause": params.get("pause", 0), "wait_timeout": wait_timeout}
        return {**budget.policy, **{name: params[name] for name in names}, **more}

    def _take_over(self, step: Step) -> Facts:
        """Take over the slot and the claim of a dead run on a node that is not rebooted now. Then return them."""
        try:
            if self._facts.node.slot is not None:
                # That run may have died after it returned its slot. The budget may be full by now.
                self._ask_for_slot(wait_timeout=0)
            self._take_claim(wait_timeout=0)
        except (Refused, TimedOut) as error:
            # A live run returns them itself, so its slot passes back to it.
            with suppress(Refused):
                self._work.slot(self._budget.group, "absent")
            kept = error.message if isinstance(error, Refused) else ""
            return self._facts.after_take_over(step.why, taken=False, kept=kept)
        return self._facts.after_take_over(step.why, taken=True)

    def _claim(self, _step: Step) -> Facts:
        self._take_claim(wait_timeout=self._params["claim_timeout"])
        return self._facts.after_claim()

    def _take_claim(self, *, wait_timeout: int) -> None:
        options = {
            "name": self._settings.node,
            "run": self._settings.run,
            "operation": self._settings.operation,
            "group": self._budget.group,
            "purpose": PURPOSE,
            "restart": self._params["restart"],
            "lifecycle_conditions": self._params["lifecycle_conditions"],
            "state": "present",
            "keep": False,
            "wait_timeout": wait_timeout,
        }
        changed = node_claim(self._context, options)["changed"]
        self._work.changed |= changed
        self._silences.begin()

    def _await_back(self, _step: Step) -> Facts:
        """Wait for a node that is down.

        If the user's tasks were interrupted between "off" and "on", only they can start the node: they run again.
        """
        by_tasks = self._settings.method == "command"
        timeout = self._params["resume_timeout" if by_tasks else "ready_timeout"]
        options = {"name": self._settings.node, "sign_of_life": False, "daemonset_pods": False, "timeout": timeout}
        self._tell("ready", "the node to be back")
        with suppress(*([TimedOut] if by_tasks else [])):
            node_ready(self._context, options)
        return self._facts.after_back()

    def _await_quorum(self, _step: Step) -> Facts:
        self._tell("quorum", "the other members of etcd")
        with _for_the_role("quorum_timeout"):
            etcd = _etcd(self._quorum(wait_timeout=self._params["quorum_timeout"]))
        if not etcd.kept:
            # Its pods are gone since the first look.
            why = why_no_quorum_known(self._settings.node, etcd, self._settings.etcd_selector)
            raise Refused(why, node=self._settings.node)
        return self._facts.after_quorum()

    def _leave(self, step: Step) -> Facts:
        self._work.leave(self._budget.group, step.record, step.why)
        return self._facts.after_attempt(step.why)

    def _put_back(self, step: Step) -> Facts:
        became = self._work.put_back(self._budget.group, step.record, step.why)
        again = step.record == "hold" and self._facts.restores is None
        then = ", and tried again later" if again else ""
        self._context.say(f"Node {self._settings.node} {became}{then}: {step.why}")
        return self._facts.after_attempt(step.why)

    def _unclaim(self, step: Step) -> Facts:
        self._work.unclaim()
        return self._facts.after_attempt(step.why)

    @property
    def _has_blockers(self) -> bool:
        return bool(self._params.get("pods") or self._params.get("alerts"))

    def _blockers(self, *, wait_timeout: int) -> Result:
        params = self._params
        options = {"pods": params.get("pods"), "alerts": params.get("alerts"), "interval": 15}
        return node_blockers(self._context, {"name": self._settings.node, **options, "wait_timeout": wait_timeout})

    def _quorum(self, *, wait_timeout: int) -> Result:
        options = {"namespace": "kube-system", "selector": self._params["etcd_selector"], "wait_timeout": wait_timeout}
        return etcd_quorum(self._context, {"name": self._settings.node, **options})


@contextmanager
def _for_the_role(option: str) -> Iterator[None]:
    """Name the role's variable in an error. The modules that wait have the option ``wait_timeout``."""
    try:
        yield
    except HoldfastError as error:
        error.message = error.message.replace("wait_timeout", f"rolling_reboot_{option}")
        raise


def _etcd(found: Result) -> Etcd:
    names = ("control_plane", "single_node", "only_control_plane", "kept", "member")
    return Etcd(**{name: found[name] for name in names})


def _answer(given: Params | None) -> Answer | None:
    if not given:
        return None
    return Answer(*(str(given.get(name) or "") for name in ("needed", "trouble", "boot_id")))


def _settings(params: Params, *, plan: bool, again: bool) -> Settings:
    """The user's settings. A plan neither waits nor puts nodes off."""
    same = (
        "operation",
        "run",
        "when",
        "method",
        "hold_attempts",
        "single_node",
        "etcd_selector",
        "graceful_shutdown",
        "slot_timeout",
        "unhealthy_grace",
        "restart",
        "window_wait",
    )
    play, host = params["play"], params.get("inventory_host") or ""
    # In the pass that resumes, a canary may be among the hosts.
    canary = host in (params.get("canary_hosts") or [])
    return Settings(
        node=params["name"],
        host=host,
        resumes=play == "resume" and not plan,
        own=bool(params.get("own")),
        put_off=play in ("resume", "first") and not plan,
        again=play == "last" or again,
        waits_for_canaries=bool(params["canaries"]) and not canary and not plan,
        canary=canary and not plan,
        windows=bool(params["windows"]),
        quorum_command=bool(params.get("quorum_command")),
        user_steps=frozenset(user_files(params)),
        in_turns=play != "only",
        opt_outs=sets_marks(params),
        **{name: params[name] for name in same},
    )

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journey of a node through a rolling reboot: the next step, from the current facts.

:func:`next_step` tries the rules of :data:`_RULES` in order. The first rule that returns a step decides. The admission
(:mod:`.admit`) carries out some steps, adds what it found to the facts and asks again. The other steps are its answers.
``docs/decisions/0017-one-journey.md`` lists what they decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._budget.claim_rules import PURPOSE
from .._drain.rules import LATER, NEVER, NOW
from .facts_rules import Facts
from .plan_rules import EXCLUDED, NOT_NEEDED, NOT_REQUIRED, done_words
from .refusal_rules import (
    REQUIRE,
    WARN,
    Etcd,
    shutdown_trouble,
    shutdown_warning,
    why_no_quorum_known,
    why_not_alone,
    why_unlabelled,
)
from .turn_rules import time_left

# Steps that the admission carries out. Each changes the facts, so the admission asks again.
LOOK = "look"
LOOK_AT_ETCD = "look_at_etcd"
AWAIT_CANARIES = "await_canaries"
LOOK_AT_WINDOW = "look_at_window"
AWAIT_HOLDERS = "await_holders"
TAKE_SLOT = "take_slot"
CLAIM = "claim"
AWAIT_BACK = "await_back"
AWAIT_QUORUM = "await_quorum"
TAKE_OVER = "take_over"
LEAVE = "leave"
PUT_BACK = "put_back"
UNCLAIM = "unclaim"
ACTS = (
    LOOK,
    LOOK_AT_ETCD,
    AWAIT_CANARIES,
    LOOK_AT_WINDOW,
    AWAIT_HOLDERS,
    TAKE_SLOT,
    CLAIM,
    AWAIT_BACK,
    AWAIT_QUORUM,
    TAKE_OVER,
    LEAVE,
    PUT_BACK,
    UNCLAIM,
)

# Answers of the admission.
ASK, BEFORE_SLOT, WAIT, PUT_OFF = "ask", "before_slot", "wait", "put_off"
POSTPONED, SKIPPED, STOP, GO = "postponed", "skipped", "stop", "go"
ANSWERS = (ASK, BEFORE_SLOT, WAIT, PUT_OFF, POSTPONED, SKIPPED, STOP, GO)

# The role's steps for one node, in order. The user's steps have the names of their task files.
ROLE_STEPS = (
    "before_cordon",
    "cordon",
    "opt_outs",
    "before_drain",
    "drain",
    "before_reboot",
    "reboot",
    "before_ready",
    "ready",
    "check",
    "before_uncordon",
    "finish",
    "after",
)
USER_STEPS = ("before_slot", *(step for step in ROLE_STEPS if step.startswith("before_")), "check", "after")
# The step before which the role notifies people of a phase. The end of a node's work is a phase, too.
NOTIFIED = {"cordon": "before_cordon", "drain": "before_drain", "reboot": "before_reboot", "ready": "before_ready"}
END = "end"
NOTIFICATION = "notify.yml"
# The steps in which this run waits without a change to the node, and the answers after which it leaves the node.
_WITHOUT_WORK = (AWAIT_CANARIES, AWAIT_HOLDERS, PUT_OFF, POSTPONED, SKIPPED, STOP)
# The role's task file for a node whose reboot needs the quorum of the other members, which run in pods.
AFTER_ETCD = "after_etcd"
# After these answers, the role asks for the node's turn again.
AGAIN = (ASK, BEFORE_SLOT, WAIT)


@dataclass(frozen=True)
class Step:
    """The next step.

    Attributes:
        name: One of :data:`ACTS` or :data:`ANSWERS`.
        why: The reason as text; empty if it is obvious.
        steps: The remaining steps of the role, in order.
        record: What ``leave`` records: the phase ``hold``, the result ``skipped``, or nothing.
        error: Kind of the error, for ``stop``.
    """

    name: str
    why: str = ""
    steps: tuple[str, ...] = ()
    record: str = ""
    error: str = "refused"


Rule = Callable[[Facts], "Step | None"]


def user_files(options: Mapping[str, Any]) -> dict[str, list[str]]:
    """The files that the role includes at each of the user's steps: notifications, and the user's own tasks.

    Args:
        options: The variables of the role: a file for each step, ``notify`` and ``notify_phases``.
    """
    phases = options.get("notify_phases") or () if options.get("notify") else ()
    notified = {NOTIFIED.get(phase, "after") for phase in phases if phase in (*NOTIFIED, END)}
    files = {
        step: [*([NOTIFICATION] if step in notified else []), *filter(None, [options.get(f"{step}_tasks")])]
        for step in USER_STEPS
    }
    return {step: names for step, names in files.items() if names}


def next_step(facts: Facts) -> Step:
    """The next step of a node."""
    step = decision(facts)
    waits = step.name in _WITHOUT_WORK or (step.name == LOOK_AT_WINDOW and facts.settings.window_wait > 0)
    # What a dead run left would fill the budget while this run waits, and stay after it.
    return Step(TAKE_OVER, step.why) if facts.left_behind and waits else step


def decision(facts: Facts) -> Step:
    """The next step of a node, apart from what a dead run left on it."""
    step = next(filter(None, (rule(facts) for rule in _RULES)), None) or Step(GO, facts.needed, steps_left(facts))
    if step.name in (SKIPPED, POSTPONED) and facts.stays_cordoned:
        return Step(STOP, facts.stays_cordoned)
    return step


def steps_left(facts: Facts) -> tuple[str, ...]:
    """The remaining steps of the role for a node that this run has claimed."""
    left: tuple[str, ...] = ROLE_STEPS
    if facts.rebooted:
        left = left[left.index("before_ready") :]
    elif facts.node.sent(facts.settings.operation) and facts.node.under_our_cordon:
        # Without our cordon, an earlier run has given the node back, and its pods may be there again.
        left = left[left.index("before_reboot") :]
    return tuple(step for step in left if _applies(step, facts))


@dataclass(frozen=True)
class Verdict:
    """A plan's verdict on a node: now, later, never or not needed."""

    verdict: str
    why: str


def gives_back_first(step: Step, facts: Facts) -> bool:
    """Whether a run takes over a node only to give it back. It then decides about the node that it has given back."""
    return step.name in (TAKE_SLOT, BEFORE_SLOT) and facts.gives_back


def plan_of(step: Step, facts: Facts) -> Verdict:
    """What a run would do, from its first step that changes something, or from its answer.

    The steps are those of :func:`decision`, so a plan and a run judge alike.
    """
    if step.name == SKIPPED:
        return Verdict(NEVER if facts.node.excluded else NOT_NEEDED, step.why)
    if step.name == STOP:
        return Verdict(NEVER, step.why)
    if facts.why_later:
        return Verdict(LATER, facts.why_later)
    if step.name == POSTPONED and facts.window is not None and not facts.window.open:
        return Verdict(LATER, f"the next maintenance window opens {facts.window.opens or 'never'}")
    if step.name in (POSTPONED, PUT_OFF, WAIT):
        return Verdict(LATER, step.why)
    # A plan does not wait: a node that is down now is judged as if it stays down.
    stop = _back(replace(facts, back_waited=True))
    return Verdict(NEVER, stop.why) if stop else Verdict(NOW, facts.needed)


def plan_with_drain(
    plan: Verdict,
    blockers: Sequence[Mapping[str, Any]],
    *,
    deletes: Sequence[Mapping[str, Any]] = (),
    delete_after: int | None = None,
) -> Verdict:
    """The plan of a node that could start now, with what blocks its drain.

    Args:
        deletes: Those of the blockers that are deleted if their budgets do not allow to evict them.
        delete_after: After how many seconds they are deleted.
    """
    if not blockers:
        return plan
    never = any(item["verdict"] == NEVER and item not in deletes for item in blockers)
    verdict = NEVER if never else LATER
    worst = [item for item in blockers if item["verdict"] == NEVER] or blockers
    why = "; ".join(f"{item['namespace']}/{item['name']}: {item['reason']}" for item in worst[:5])
    deleted = f"; after {delete_after} s, pods that their budgets still refuse are deleted" if deletes else ""
    return Verdict(verdict, why + deleted)


def warning(facts: Facts) -> str:
    """The warning before the reboot; empty if there is none."""
    if facts.midway or facts.shutdown is None or not facts.settings.asks_shutdown:
        return ""
    trouble = shutdown_trouble(facts.settings.node, facts.shutdown)
    return shutdown_warning(trouble) if trouble and facts.settings.graceful_shutdown != REQUIRE else ""


# The rules. Each covers one topic.


def _look(facts: Facts) -> Step | None:
    return Step(LOOK) if facts.seen is None else None


def _no_node(facts: Facts) -> Step | None:
    if facts.node.exists:
        return None
    if not facts.claimed and not facts.needs_no_answer and facts.answer is None:
        # A host that can't be reached is the more likely cause.
        return Step(ASK, "whether a reboot is needed", ("needed",))
    if facts.answer is not None and facts.answer.trouble:
        return Step(STOP, facts.answer.trouble, error="unknown")
    name, host = facts.settings.node, facts.settings.host
    return Step(
        STOP,
        f"There is no Node {name}{f' for host {host}' if host else ''}. Set rolling_reboot_node_name to the Node's "
        "name (kubectl get nodes), or leave the host out.",
        error="not_found",
    )


def _restore(facts: Facts) -> Step | None:
    """Return what a dead run left, unless that run came further, so that this one resumes its work."""
    if facts.restores is None or facts.midway:
        return None
    record = _record_of_skipped(facts) if _why_skipped(facts) is not None else "hold" if facts.why_later else ""
    return _given_back(facts, facts.restores, record)


def _given_back(facts: Facts, why: str, record: str) -> Step:
    """Return slot and claim, and the cordon and the opt-outs if they may be undone."""
    cordoned = facts.node.cordoned_by == PURPOSE and not facts.node.keeps_cordon
    return Step(PUT_BACK if cordoned or facts.node.may_opt_in else LEAVE, why, record=record)


def _slot_passed_on(facts: Facts) -> Step | None:
    """The slot passed to another run while this one was stopped between the slot and the claim."""
    settings = facts.settings
    if not facts.claimed or facts.node.slot_is(settings.run, settings.operation):
        return None
    return Step(UNCLAIM, f"the slot of node {settings.node} passed to another run")


def _not_wanted(facts: Facts) -> Step | None:
    why = _why_skipped(facts)
    if why is None:
        return None
    if facts.claimed:
        return _given_back(facts, why, _record_of_skipped(facts))
    return Step(SKIPPED, why, record=_record_of_canary(facts))


def _other_work(facts: Facts) -> Step | None:
    """Do not reboot a node that a failover has switched off, or that other work of this collection has cordoned."""
    node, name = facts.node, facts.settings.node
    why = ""
    if node.failed_over:
        why = f"Node {name} is failed over: {node.failed_over}. Run the playbook holdfast.kubernetes.recover first."
    elif node.cordoned_by not in ("", PURPOSE) and not facts.midway:
        why = (
            f"Node {name} is cordoned by {node.cordoned_by}. Let that work end first, or undo the cordon with the "
            f"module holdfast.kubernetes.cordon and owner {node.cordoned_by}."
        )
    if not why:
        return None
    return Step(LEAVE, why) if facts.claimed and not facts.midway else Step(STOP, why)


def _not_midway(facts: Facts) -> Step | None:
    """First, finish what earlier runs have begun: other nodes wait for the slots of these nodes."""
    if facts.settings.resumes and not (facts.midway or facts.claimed):
        return Step(PUT_OFF, "its reboot has not begun")
    return None


def _question(facts: Facts) -> Step | None:
    """Ask the node before the first wait, and again if it has booted since."""
    if not facts.asks:
        if facts.answer is not None and facts.answer.trouble and not facts.needs_no_answer:
            return Step(STOP, facts.answer.trouble, error="unknown")
        return None
    if facts.claimed:
        return Step(LEAVE, "it has booted since it was asked", record="hold")
    return Step(ASK, "whether a reboot is needed", ("needed",))


def _stuck(facts: Facts) -> Step | None:
    """Refuse a node that a dead run of another operation has claimed, before the wait for a slot."""
    return Step(STOP, facts.node.stuck) if facts.node.stuck and not facts.settings.restart else None


def _canaries(facts: Facts) -> Step | None:
    if facts.claimed or facts.midway or not facts.settings.waits_for_canaries:
        return None
    if facts.canaries is None:
        return Step(AWAIT_CANARIES, "the canaries go first")
    if facts.canaries.trouble:
        return Step(STOP, facts.canaries.trouble)
    if facts.canaries.postponed:
        return Step(POSTPONED, f"canary {', '.join(facts.canaries.postponed)} is postponed")
    return None


def _refusals(facts: Facts) -> Step | None:
    """Refuse a reboot that can't succeed, before anything on the node changes."""
    if facts.rebooted or (facts.claimed and facts.etcd is not None):
        return None
    settings = facts.settings
    if facts.etcd is None:
        return Step(LOOK_AT_ETCD)
    why = "" if settings.single_node else why_not_alone(settings.node, facts.etcd)
    why = why or why_unlabelled(settings.node, facts.etcd, labelled=facts.node.control_plane)
    if not why and not settings.quorum_command:
        why = why_no_quorum_known(settings.node, facts.etcd, settings.etcd_selector)
    if not why and settings.asks_shutdown and not facts.midway:
        if facts.shutdown is None:
            return Step(ASK, "whether its shutdown is graceful", ("shutdown",))
        trouble = shutdown_trouble(settings.node, facts.shutdown)
        if trouble and settings.graceful_shutdown == REQUIRE:
            why = f"{trouble} Or set rolling_reboot_graceful_shutdown: {WARN}."
    return Step(STOP, why) if why else None


def _window(facts: Facts) -> Step | None:
    """Outside the maintenance windows, start no reboot, but finish the reboots that have started."""
    if facts.midway or not facts.settings.windows:
        return None
    if facts.claimed and facts.why_later:
        # The rule about holds leaves the node anyway.
        return None
    if facts.window is None:
        return Step(LOOK_AT_WINDOW)
    if facts.window.open:
        return None
    why = f"no maintenance window is open; the next one opens {facts.window.opens or 'never'}"
    return Step(LEAVE, why, record="hold") if facts.claimed else Step(POSTPONED, why)


def _attempts(facts: Facts) -> Step | None:
    """A node whose turn ended before work on it started waits for a later pass or gets another attempt."""
    settings = facts.settings
    if facts.claimed or not facts.attempts:
        return None
    if settings.put_off:
        return Step(PUT_OFF, facts.why_later or facts.left)
    if facts.attempts < settings.hold_attempts:
        return None
    return Step(
        STOP,
        f"Node {settings.node} was held again in each of {facts.attempts} attempts: {facts.left}. Ask the holders to "
        "pause, or raise rolling_reboot_hold_attempts.",
        error="held",
    )


def _held(facts: Facts) -> Step | None:
    """Do not interrupt the holders: leave the node as it is until they release it and nothing blocks it."""
    why = facts.why_later
    if not why:
        return None
    if facts.claimed and not facts.midway:
        return Step(LEAVE, why, record="hold")
    if facts.claimed and facts.gives_back:
        return Step(PUT_BACK, why, record="hold")
    if facts.midway and not facts.claimed:
        # First take over the slot and the claim of the other run.
        return None
    if facts.holders_waited:
        return None
    # A node that is claimed keeps its slot: its reboot may still come. Others can't use the slot in the meantime.
    return Step(PUT_OFF, why) if facts.settings.put_off and not facts.claimed else Step(AWAIT_HOLDERS, why)


def _turn(facts: Facts) -> Step | None:
    if facts.claimed:
        return None
    if not facts.has_slot:
        if "before_slot" in facts.settings.user_steps and not facts.slot_tasks_run:
            return Step(BEFORE_SLOT, steps=("before_slot",))
        return _slot(facts)
    return Step(CLAIM)


def _slot(facts: Facts) -> Step:
    wait = facts.slot_wait
    if not wait.timed_out:
        return Step(TAKE_SLOT)
    if facts.settings.resumes:
        # A live run works on the node.
        return Step(PUT_OFF, wait.timed_out)
    if facts.settings.in_turns and (time_left(facts) or wait.counted):
        # The role checks the other hosts of this run, and asks again.
        return Step(WAIT, wait.timed_out)
    if time_left(facts):
        return Step(TAKE_SLOT)
    return Step(STOP, wait.timed_out, error="timed_out")


def _back(facts: Facts) -> Step | None:
    """Wait for a node whose reboot another run of the operation started: its boot ID shows whether it rebooted."""
    node, operation = facts.node, facts.settings.operation
    if not facts.midway or node.ready:
        return None
    if not facts.back_waited:
        return Step(AWAIT_BACK)
    if node.excluded and not node.went(operation):
        # It went down before its reboot was sent. It is not rebooted, and can't be given back.
        why = f"Node {node.name} was excluded after a run had cordoned it, and is not Ready."
        return Step(STOP, f"{why} Repair it, and run this again.")
    return None


def _own_node(facts: Facts) -> Step | None:
    """The node on which the controller runs goes last: its reboot ends the run."""
    if facts.settings.resumes and facts.settings.own and not facts.node.past_holds(facts.settings.operation):
        return None if facts.rebooted else Step(PUT_BACK, "this controller runs on it, so it goes last", record="hold")
    return None


def _quorum(facts: Facts) -> Step | None:
    """The other members of etcd must keep the quorum. A member that was just rebooted may still be starting."""
    if facts.rebooted or facts.quorum_kept or facts.settings.quorum_command:
        return None
    return Step(AWAIT_QUORUM) if facts.etcd is not None and facts.etcd.needs_quorum else None


_RULES: tuple[Rule, ...] = (
    _look,
    _no_node,
    _restore,
    _slot_passed_on,
    _not_wanted,
    _other_work,
    _not_midway,
    _question,
    _stuck,
    _refusals,
    _window,
    _canaries,
    _attempts,
    _held,
    _turn,
    _own_node,
    _back,
    _quorum,
)


def _why_skipped(facts: Facts) -> str | None:
    """Why the node is skipped; ``None`` if it is not, or if the node has to be asked first."""
    if facts.midway:
        return None
    if facts.node.excluded:
        return EXCLUDED
    if facts.done:
        return done_words(facts.settings.operation)
    if facts.asks or (facts.answer is not None and facts.answer.trouble):
        return None
    return None if facts.needed else NOT_REQUIRED


def _record_of_skipped(facts: Facts) -> str:
    """What to record for a node that is skipped; empty if its record already says how it was rebooted."""
    record = facts.node.record
    return "" if record.id == facts.settings.operation and record.result == "rebooted" else "skipped"


def _record_of_canary(facts: Facts) -> str:
    """Other slices of the job wait for the record of a canary, so record it even if the canary needs no reboot."""
    record = facts.node.record
    recorded = record.id == facts.settings.operation and record.result in ("rebooted", "skipped") and not record.old
    return "skipped" if facts.settings.canary and not recorded else ""


def _applies(step: str, facts: Facts) -> bool:
    if step in USER_STEPS:
        return step in facts.settings.user_steps
    if step == "drain":
        # The pods of the only node have nowhere to go.
        return not (facts.etcd or Etcd()).single_node
    return facts.settings.opt_outs if step == "opt_outs" else True


def method_of(facts: Facts) -> str:
    """How the role reboots the node. It checks etcd's quorum directly before, by the pods or by the user's command."""
    if not (facts.etcd or Etcd()).needs_quorum:
        return facts.settings.method
    return "after_quorum_command" if facts.settings.quorum_command else AFTER_ETCD

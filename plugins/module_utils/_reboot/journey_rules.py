# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journey of a node through a rolling reboot: which step is next, from the facts of the moment.

:func:`next_step` asks the rules of :data:`_RULES` in their order. The first that has a step decides. Some steps are
carried out by the admission (:mod:`.admit`), which adds what it found to the facts and asks again; the others are its
answer. ``docs/decisions/0017-one-journey.md`` has the same as a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._drain.rules import LATER, NEVER, NOW
from .plan_rules import EXCLUDED, NOT_NEEDED, NOT_REQUIRED, done_words
from .refusal_rules import (
    IGNORE,
    REQUIRE,
    WARN,
    Canaries,
    Etcd,
    Shutdown,
    shutdown_trouble,
    shutdown_warning,
    why_no_quorum_known,
    why_not_alone,
)
from .seen_rules import Seen

# Steps that the admission carries out. After each it has other facts, and asks again.
LOOK = "look"
LOOK_AT_ETCD = "look_at_etcd"
AWAIT_CANARIES = "await_canaries"
LOOK_AT_WINDOW = "look_at_window"
AWAIT_HOLDERS = "await_holders"
TAKE_SLOT = "take_slot"
CLAIM = "claim"
AWAIT_BACK = "await_back"
AWAIT_QUORUM = "await_quorum"
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
    LEAVE,
    PUT_BACK,
    UNCLAIM,
)

# Answers of the admission.
ASK, BEFORE_SLOT, WAIT, PUT_OFF = "ask", "before_slot", "wait", "put_off"
POSTPONED, SKIPPED, STOP, GO = "postponed", "skipped", "stop", "go"
ANSWERS = (ASK, BEFORE_SLOT, WAIT, PUT_OFF, POSTPONED, SKIPPED, STOP, GO)

# What the role does in the course of one node, in this order. Those of the user are named as their files are.
ROLE_STEPS = (
    "before_cordon",
    "cordon",
    "before_drain",
    "drain",
    "before_reboot",
    "quorum",
    "reboot",
    "before_ready",
    "ready",
    "check",
    "before_uncordon",
    "finish",
    "after",
)
USER_STEPS = ("before_slot", *(step for step in ROLE_STEPS if step.startswith("before_")), "check", "after")
# The answers after which the role asks for the node's turn again.
AGAIN = (ASK, BEFORE_SLOT, WAIT)

# Who says that a reboot is needed.
REQUIRED, ALWAYS, COMMAND = "required", "always", "command"
# How far a run has come with a node. While it waits, nothing of the node is touched.
LOOKING, WAITING, WORKING = "looking", "waiting", "working"
BEGUN_ELSEWHERE = "another run had begun with it"


@dataclass(frozen=True)
class Settings:
    """What the user asked for one node.

    Attributes:
        when: Who says that a reboot is needed: the distribution (``required``), ``always``, or the user's command.
        put_off: A node that is held is left for a later pass, and not waited for.
        again: The node had its turn in an earlier pass of this run, and was warned of then.
        waits_for_canaries: Other nodes go first.
        canary: This node is one of those, and other slices of the job read its record.
        windows: There are maintenance windows.
        user_steps: Those of the user's steps for which there are files.
        in_turns: The wait for a slot is cut into turns, so that hosts that dropped out are noticed.
        slot_timeout: Seconds to wait for a slot while nothing happens in the group.
    """

    node: str
    operation: str
    run: str
    host: str = ""
    when: str = REQUIRED
    method: str = "systemd"
    put_off: bool = False
    again: bool = False
    waits_for_canaries: bool = False
    canary: bool = False
    windows: bool = False
    hold_attempts: int = 5
    single_node: bool = False
    quorum_command: bool = False
    etcd_selector: str = ""
    graceful_shutdown: str = WARN
    user_steps: frozenset[str] = frozenset()
    in_turns: bool = False
    slot_timeout: int = 3600
    unhealthy_grace: int = 300

    @property
    def asks_shutdown(self) -> bool:
        """Whether the node is asked for its graceful shutdown. A warning is given once."""
        if self.method != "systemd" or self.graceful_shutdown == IGNORE:
            return False
        return self.graceful_shutdown == REQUIRE or not self.again


@dataclass(frozen=True)
class Answer:
    """What the node said to the question whether it needs a reboot.

    Attributes:
        needed: Why it does; empty where it does not.
        trouble: Why it did not say.
        boot_id: The boot in which it said so. In another one it has to be asked again.
    """

    needed: str = ""
    trouble: str = ""
    boot_id: str = ""


@dataclass(frozen=True)
class Window:
    """What the maintenance windows say. ``seconds_left`` is ``None`` where none closes."""

    open: bool = True
    opens: str = ""
    seconds_left: int | None = None


@dataclass(frozen=True)
class SlotWait:
    """The wait for a slot, over all its turns.

    Attributes:
        waited: Seconds.
        idle: Seconds in which nothing happened in the group.
        timed_out: What the last turn said when it was over; empty where none is over.
        counted: Failures of other hosts were counted since, so that the group is not idle.
    """

    waited: float = 0.0
    idle: float = 0.0
    timed_out: str = ""
    counted: bool = False

    def after(self, waited: float, idle: float, message: str) -> SlotWait:
        """After a turn that took so long, and in the last part of which nothing happened."""
        still = idle if idle < waited else self.idle + waited
        # A turn of no time at all is none, and would be repeated for ever.
        return replace(self, waited=self.waited + waited + 1, idle=still + 1, timed_out=message)


@dataclass(frozen=True)
class Facts:
    """What is known of a node and its turn. What is ``None`` was not looked at, or is too old.

    Attributes:
        has_slot: The group gave this run a slot for the node.
        claimed: This run has the claim. Nothing of the node is touched before.
        holders_waited: The holders were waited for in this attempt.
        slot_tasks_run: The user's tasks before the slot were run in this attempt.
        back_waited: A node that an earlier run sent into its reboot was waited for.
        quorum_kept: The other members of etcd were waited for.
        attempts: How often the node's turn had come and nothing could be begun.
        left: Why the last of them ended.
    """

    settings: Settings
    seen: Seen | None = None
    answer: Answer | None = None
    shutdown: Shutdown | None = None
    etcd: Etcd | None = None
    canaries: Canaries | None = None
    window: Window | None = None
    slot_wait: SlotWait = SlotWait()
    has_slot: bool = False
    claimed: bool = False
    holders_waited: bool = False
    slot_tasks_run: bool = False
    back_waited: bool = False
    quorum_kept: bool = False
    attempts: int = 0
    left: str = ""

    @property
    def node(self) -> Seen:
        """The last look at the node."""
        return self.seen or Seen(self.settings.node, exists=False)

    @property
    def midway(self) -> bool:
        """Another run of the operation left the node in the middle of its reboot."""
        return self.node.midway(self.settings.operation)

    @property
    def rebooted(self) -> bool:
        """The node is midway and has its new boot: nothing goes down any more."""
        return self.node.rebooted(self.settings.operation)

    @property
    def why_later(self) -> str:
        """Why holders, pods or alerts forbid the reboot; empty where it is over already."""
        return "" if self.rebooted else self.node.why_later

    @property
    def needed(self) -> str:
        """Why the reboot is needed; empty where it is not."""
        if self.settings.when == ALWAYS:
            return "rolling_reboot_when is always"
        if self.midway:
            return BEGUN_ELSEWHERE
        return self.answer.needed if self.answer else ""

    @property
    def stage(self) -> str:
        """How far this run has come: ``looking``, ``waiting`` (the node is wanted, and untouched) or ``working``."""
        if self.claimed:
            return WORKING
        if self.attempts or self.has_slot or self.holders_waited:
            return WAITING
        return WAITING if self.seen and self.seen.exists and (self.midway or _is_needed(self)) else LOOKING

    # What the steps of the admission change.

    def looked(self, seen: Seen) -> Facts:
        return replace(self, seen=seen)

    def stale(self) -> Facts:
        """After a wait: the node has to be looked at again."""
        return replace(self, seen=None, window=None)

    def after_holders(self) -> Facts:
        return replace(self.stale(), holders_waited=True)

    def after_turn(self, waited: float, idle: float, message: str) -> Facts:
        """A turn of the wait for a slot is over, without a slot."""
        return replace(self, slot_wait=self.slot_wait.after(waited, idle, message), window=None)

    def after_back(self) -> Facts:
        return replace(self.stale(), back_waited=True)

    def after_quorum(self) -> Facts:
        return replace(self.stale(), quorum_kept=True)

    def after_claim(self) -> Facts:
        return replace(self.stale(), claimed=True)

    def after_attempt(self, why: str) -> Facts:
        """Slot and claim are given back; the next attempt begins from the start."""
        return replace(
            self.stale(),
            has_slot=False,
            claimed=False,
            holders_waited=False,
            slot_tasks_run=False,
            back_waited=False,
            quorum_kept=False,
            slot_wait=SlotWait(),
            attempts=self.attempts + 1,
            left=why,
        )


@dataclass(frozen=True)
class Step:
    """What is next.

    Attributes:
        name: One of :data:`ACTS` or :data:`ANSWERS`.
        why: In words; empty where it goes without saying.
        steps: The steps of the role that are left, in their order.
        record: What ``leave`` records: the phase ``hold``, the result ``skipped``, or nothing.
        error: Kind of the error that ``stop`` is.
    """

    name: str
    why: str = ""
    steps: tuple[str, ...] = ()
    record: str = ""
    error: str = "refused"


Rule = Callable[[Facts], "Step | None"]


def next_step(facts: Facts) -> Step:
    """The next step of a node."""
    for rule in _RULES:
        step = rule(facts)
        if step is not None:
            return step
    return Step(GO, facts.needed, steps_left(facts))


def steps_left(facts: Facts) -> tuple[str, ...]:
    """The steps of the role that are left for a node that this run has claimed."""
    left = ROLE_STEPS
    if facts.rebooted:
        left = left[left.index("before_ready") :]
    elif facts.node.sent(facts.settings.operation):
        left = left[left.index("before_reboot") :]
    return tuple(step for step in left if _applies(step, facts))


def slot_patience(facts: Facts) -> float:
    """Seconds for one turn of the wait for a slot.

    A turn is long, because each costs every waiting host some tasks, and grows, because each is an include within the
    last one, of which Ansible bears some hundred. One turn is long enough to see that what fills the budget stays.
    """
    settings, wait = facts.settings, facts.slot_wait
    limits = [time_left(facts)]
    if settings.in_turns:
        limits.append(max(300.0, settings.unhealthy_grace + 60.0, wait.waited / 4))
    if not facts.midway and facts.window is not None and facts.window.seconds_left is not None:
        limits.append(float(facts.window.seconds_left))
    return min(limits)


def time_left(facts: Facts) -> float:
    """Seconds that are left of the wait for a slot while nothing happens in the group."""
    return max(0.0, facts.settings.slot_timeout - facts.slot_wait.idle)


def hold_patience(facts: Facts, hold_timeout: int) -> tuple[float, bool]:
    """Seconds to wait for the holders, and whether the window closes first: then that is no failure."""
    left = facts.window.seconds_left if facts.window is not None else None
    if facts.midway or left is None or hold_timeout <= left:
        return float(hold_timeout), False
    return float(left), True


@dataclass(frozen=True)
class Verdict:
    """What a plan says of a node: ``verdict`` is now, later, never or not needed."""

    verdict: str
    why: str


def plan_of(step: Step, facts: Facts) -> Verdict:
    """What a run would do, from the first step that would change something, or its answer.

    The steps are those of :func:`next_step`, so a plan and a run judge alike.
    """
    if step.name == SKIPPED:
        return Verdict(NEVER if facts.node.excluded else NOT_NEEDED, step.why)
    if step.name == STOP:
        return Verdict(NEVER, step.why)
    if facts.why_later:
        return Verdict(LATER, facts.why_later)
    return Verdict(LATER, step.why) if step.name in (POSTPONED, PUT_OFF, WAIT) else Verdict(NOW, facts.needed)


def plan_with_drain(plan: Verdict, verdict: str, blockers: Sequence[Mapping[str, Any]]) -> Verdict:
    """The plan of a node that could go at once, after what its drain would meet."""
    if verdict == NOW:
        return plan
    worst = [item for item in blockers if item["verdict"] == verdict][:5]
    return Verdict(verdict, "; ".join(f"{item['namespace']}/{item['name']}: {item['reason']}" for item in worst))


def warning(facts: Facts) -> str:
    """What the user is told of before the reboot; empty where all is well."""
    if facts.midway or facts.shutdown is None or not facts.settings.asks_shutdown:
        return ""
    trouble = shutdown_trouble(facts.settings.node, facts.shutdown)
    return shutdown_warning(trouble) if trouble and facts.settings.graceful_shutdown != REQUIRE else ""


# The rules, each about one thing.


def _look(facts: Facts) -> Step | None:
    return Step(LOOK) if facts.seen is None else None


def _no_node(facts: Facts) -> Step | None:
    if facts.node.exists:
        return None
    name, host = facts.settings.node, facts.settings.host
    return Step(
        STOP,
        f"There is no Node {name}{f' for host {host}' if host else ''}. Set rolling_reboot_node_name to the Node's "
        "name (kubectl get nodes), or leave the host out.",
        error="not_found",
    )


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
        done = facts.node.record.id == facts.settings.operation and facts.node.record.result == "rebooted"
        return Step(LEAVE, why, record="" if done else "skipped")
    return Step(SKIPPED, why, record=_record_of_canary(facts))


def _question(facts: Facts) -> Step | None:
    """The node is asked before anything is waited for, and again where it has booted since."""
    if not _asks(facts):
        if facts.answer is not None and facts.answer.trouble and not _needs_no_answer(facts):
            return Step(STOP, facts.answer.trouble, error="unknown")
        return None
    if facts.claimed:
        return Step(LEAVE, "it has booted meanwhile", record="hold")
    return Step(ASK, "whether a reboot is needed")


def _canaries(facts: Facts) -> Step | None:
    if facts.claimed or facts.midway or not facts.settings.waits_for_canaries:
        return None
    if facts.canaries is None:
        return Step(AWAIT_CANARIES)
    if facts.canaries.trouble:
        return Step(STOP, facts.canaries.trouble)
    if facts.canaries.postponed:
        return Step(POSTPONED, f"canary {', '.join(facts.canaries.postponed)} is postponed")
    return None


def _refusals(facts: Facts) -> Step | None:
    """What can't go well is refused before anything of the node is touched."""
    if facts.rebooted or (facts.claimed and facts.etcd is not None):
        return None
    settings = facts.settings
    if facts.etcd is None:
        return Step(LOOK_AT_ETCD)
    why = "" if settings.single_node else why_not_alone(settings.node, facts.etcd)
    if not why and not settings.quorum_command:
        why = why_no_quorum_known(settings.node, facts.etcd, settings.etcd_selector)
    if not why and settings.asks_shutdown and not facts.midway:
        if facts.shutdown is None:
            return Step(ASK, "whether its shutdown is graceful")
        trouble = shutdown_trouble(settings.node, facts.shutdown)
        if trouble and settings.graceful_shutdown == REQUIRE:
            why = f"{trouble} Or set rolling_reboot_graceful_shutdown: {WARN}."
    return Step(STOP, why) if why else None


def _window(facts: Facts) -> Step | None:
    """Outside of the maintenance windows nothing is begun; what is begun is finished."""
    if facts.midway or not facts.settings.windows:
        return None
    if facts.claimed and facts.why_later:
        # It is left in any case.
        return None
    if facts.window is None:
        return Step(LOOK_AT_WINDOW)
    if facts.window.open:
        return None
    why = f"no maintenance window is open; the next one opens {facts.window.opens or 'never'}"
    return Step(LEAVE, why, record="hold") if facts.claimed else Step(POSTPONED, why)


def _attempts(facts: Facts) -> Step | None:
    """A node whose turn came, and that could not be begun with, waits for another pass or has another attempt."""
    settings = facts.settings
    if facts.claimed or not facts.attempts:
        return None
    if settings.put_off:
        return Step(PUT_OFF, facts.why_later or facts.left)
    if facts.attempts < settings.hold_attempts:
        return None
    return Step(
        STOP,
        f"Node {settings.node} was held again at each of {facts.attempts} attempts: {facts.left}. Ask the holders to "
        "pause, or raise rolling_reboot_hold_attempts.",
        error="held",
    )


def _held(facts: Facts) -> Step | None:
    """Nobody's work is interrupted: the node is left as it is until its holders released it and nothing blocks it."""
    why = facts.why_later
    if not why:
        return None
    if facts.claimed and not facts.midway:
        return Step(LEAVE, why, record="hold")
    if facts.claimed and not facts.node.past_holds(facts.settings.operation):
        return Step(PUT_BACK, why, record="hold")
    if facts.midway and not facts.claimed:
        # What the other run had is taken over first.
        return None
    if facts.holders_waited:
        return None
    return Step(PUT_OFF, why) if facts.settings.put_off else Step(AWAIT_HOLDERS, why)


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
    if time_left(facts) or wait.counted:
        # The role sees what became of the other hosts of this run, and asks again.
        return Step(WAIT, wait.timed_out) if facts.settings.in_turns else Step(TAKE_SLOT)
    return Step(STOP, wait.timed_out, error="timed_out")


def _back(facts: Facts) -> Step | None:
    """A node that another run of the operation sent into its reboot is waited for: its boot ID says what happened."""
    if facts.midway and not facts.node.ready and not facts.back_waited:
        return Step(AWAIT_BACK)
    return None


def _quorum(facts: Facts) -> Step | None:
    """The other members of etcd must keep its quorum; one that was rebooted a moment ago may be on its way back."""
    if facts.rebooted or facts.quorum_kept or facts.settings.quorum_command:
        return None
    return Step(AWAIT_QUORUM) if facts.etcd is not None and facts.etcd.needs_quorum else None


_RULES: tuple[Rule, ...] = (
    _look,
    _no_node,
    _slot_passed_on,
    _not_wanted,
    _question,
    _canaries,
    _refusals,
    _window,
    _attempts,
    _held,
    _turn,
    _back,
    _quorum,
)


def _needs_no_answer(facts: Facts) -> bool:
    # A node in the middle of its reboot can't be asked, and its sign may be gone already.
    return facts.settings.when == ALWAYS or facts.midway


def _asks(facts: Facts) -> bool:
    """Whether the node has to be asked, or asked again."""
    if _needs_no_answer(facts) or facts.node.excluded or _done(facts):
        return False
    answer = facts.answer
    return answer is None or answer.boot_id not in ("", facts.node.boot_id)


def _done(facts: Facts) -> bool:
    record = facts.node.record
    return record.id == facts.settings.operation and record.result == "rebooted"


def _is_needed(facts: Facts) -> bool:
    return not (facts.node.excluded or _done(facts) or _asks(facts)) and bool(facts.needed)


def _why_skipped(facts: Facts) -> str | None:
    """Why the node is left alone; ``None`` where it is not, or where the node has to be asked first."""
    if facts.midway:
        return None
    if facts.node.excluded:
        return EXCLUDED
    if _done(facts):
        return done_words(facts.settings.operation)
    if _asks(facts) or (facts.answer is not None and facts.answer.trouble):
        return None
    return None if facts.needed else NOT_REQUIRED


def _record_of_canary(facts: Facts) -> str:
    """Other slices of the job wait for a canary wherever it is worked on, so it is recorded that it needs nothing."""
    return "skipped" if facts.settings.canary and facts.node.record.id != facts.settings.operation else ""


def _applies(step: str, facts: Facts) -> bool:
    if step in USER_STEPS:
        return step in facts.settings.user_steps
    etcd = facts.etcd or Etcd()
    if step == "drain":
        # The pods of the only node have nowhere to go.
        return not etcd.single_node
    return etcd.needs_quorum if step == "quorum" else True

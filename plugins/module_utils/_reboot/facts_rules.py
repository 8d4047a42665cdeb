# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts about a node and its turn in a rolling reboot, and how each step of the admission changes them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._budget.claim_rules import PURPOSE
from .refusal_rules import IGNORE, REQUIRE, WARN, Canaries, Etcd, Shutdown
from .seen_rules import Seen

# How the need for a reboot is decided.
REQUIRED, ALWAYS = "required", "always"
# A run's progress with a node. While it waits, it does not change the node.
LOOKING, WAITING, WORKING = "looking", "waiting", "working"
# The node used all the attempts that the user allows, and was held each time. This counts as a failure.
GIVEN_UP = "given_up"
BEGUN_ELSEWHERE = "another run had started on it"


@dataclass(frozen=True)
class Settings:
    """The user's settings for one node.

    Attributes:
        when: How the need for a reboot is decided: by the distribution (``required``), by the user's command
            (``command``), or ``always``.
        resumes: In this pass, the run only does the nodes that an earlier run has left in the middle of their reboot.
        own: The controller runs on the node.
        restart: Take over what dead runs of other operations left.
        put_off: Leave a node that is held for a later pass; do not wait for its holders.
        again: The node had its turn in an earlier pass of this run, which gave the warning.
        waits_for_canaries: Other nodes go first.
        canary: This node is a canary, and other slices of the job read its record.
        windows: There are maintenance windows.
        window_wait: Seconds to wait for a window to open.
        user_steps: The user's steps that have task files.
        in_turns: Split the wait for a slot into turns, so that hosts that dropped out are noticed.
        opt_outs: Opt the node out of the autoscaler and of health checks.
        slot_timeout: Seconds to wait for a slot while nothing happens in the group.
    """

    node: str
    operation: str
    run: str
    host: str = ""
    when: str = REQUIRED
    method: str = "systemd"
    resumes: bool = False
    own: bool = False
    restart: bool = False
    put_off: bool = False
    again: bool = False
    waits_for_canaries: bool = False
    canary: bool = False
    windows: bool = False
    window_wait: int = 0
    hold_attempts: int = 5
    single_node: bool = False
    quorum_command: bool = False
    etcd_selector: str = ""
    graceful_shutdown: str = WARN
    user_steps: frozenset[str] = frozenset()
    in_turns: bool = False
    opt_outs: bool = True
    slot_timeout: int = 3600
    unhealthy_grace: int = 300

    @property
    def asks_shutdown(self) -> bool:
        """Whether to ask the node about its graceful shutdown. The warning appears once."""
        if self.method != "systemd" or self.graceful_shutdown == IGNORE:
            return False
        return self.graceful_shutdown == REQUIRE or not self.again


@dataclass(frozen=True)
class Answer:
    """The node's answer to the question whether it needs a reboot.

    Attributes:
        needed: Why the node needs a reboot; empty if it needs none.
        trouble: Why there is no answer.
        boot_id: The boot in which the node answered. In another boot it has to be asked again.
    """

    needed: str = ""
    trouble: str = ""
    boot_id: str = ""


@dataclass(frozen=True)
class Window:
    """The state of the maintenance windows. ``seconds_left`` is ``None`` if the open window never closes."""

    open: bool = True
    opens: str = ""
    seconds_left: int | None = None


@dataclass(frozen=True)
class SlotWait:
    """The wait for a slot, over all its turns.

    Attributes:
        waited: Seconds waited.
        idle: Seconds since something last happened in the group.
        timed_out: The message with which the last turn ended; empty before the first turn has ended.
        counted: Failures of other hosts were counted since then, so the group is not idle.
    """

    waited: float = 0.0
    idle: float = 0.0
    timed_out: str = ""
    counted: bool = False

    def after(self, waited: float, idle: float, message: str) -> SlotWait:
        """The wait after one more turn: its length and its idle time at the end, in seconds."""
        still = idle if idle < waited else self.idle + waited
        # Add a second, so that turns of no length can't repeat forever.
        return replace(self, waited=self.waited + waited + 1, idle=still + 1, timed_out=message)


@dataclass(frozen=True)
class Facts:
    """The facts about a node and its turn. A fact that is ``None`` was not read yet, or is too old.

    Attributes:
        has_slot: The group gave this run a slot for the node.
        claimed: This run has the claim. Before that, the run does not change the node.
        restores: Why this run took the claim only to return what a dead run left; ``None`` if it works on the node.
        taken_over: This run has tried to take over what a dead run left on the node.
        kept: Why it could not, although that run is dead; empty if it could.
        holders_waited: The wait for the holders has ended in this attempt.
        slot_tasks_run: The user's tasks before the slot have run in this attempt.
        back_waited: The wait for a node whose reboot an earlier run started has ended.
        quorum_kept: The wait for the other members of etcd has ended.
        attempts: Number of turns of the node that ended before work on it started.
        left: Why the last attempt ended.
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
    restores: str | None = None
    taken_over: bool = False
    kept: str = ""
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
        """Another run of the operation left the node in the middle of its reboot, and this run finishes it.

        A person may have excluded the node since then. Then this run finishes only a reboot that is under way.
        """
        operation = self.settings.operation
        return self.node.under_way(operation) if self.node.excluded else self.node.midway(operation)

    @property
    def rebooted(self) -> bool:
        """The node is midway and has its new boot: this run does not take it down again."""
        return self.node.rebooted(self.settings.operation)

    @property
    def why_later(self) -> str:
        """Why holders, pods, alerts or another writer forbid the reboot; empty if the reboot is already over.

        Another writer's maintenance forbids only to start: a node that is midway is finished.
        """
        if self.rebooted:
            return ""
        return "; ".join(filter(None, (self.node.why_later, "" if self.midway else self.node.maintained)))

    @property
    def needed(self) -> str:
        """Why the reboot is needed; empty if it is not."""
        if self.settings.when == ALWAYS:
            return "rolling_reboot_when is always"
        if self.midway:
            return BEGUN_ELSEWHERE
        return self.answer.needed if self.answer else ""

    @property
    def done(self) -> bool:
        """The node was rebooted in this operation, and not so long ago that it may need another reboot."""
        record = self.node.record
        return record.id == self.settings.operation and record.result == "rebooted" and not record.old

    @property
    def left_behind(self) -> bool:
        """A dead run has left its slot, claim, cordon or opt-outs on the node, and this run may return them.

        The run got the slot of a dead run when it began, or still has to take it over. A failed node keeps all of them.
        """
        node, settings = self.node, self.settings
        if self.claimed or self.taken_over or self.midway or not node.exists or node.failed:
            return False
        if node.cordoned_by == PURPOSE:
            theirs = node.claim is not None and node.claim.purpose != PURPOSE
            taken = node.stuck and not settings.restart
            if theirs or taken:
                return False
            if not node.keeps_cordon:
                return True
            # The cordon stays. The slot and the claim under which no work has started do not.
            if not (node.record.unchecked and node.record.phase in ("hold", "slot")):
                return False
        owned = not self.attempts and node.slot_is(settings.run, settings.operation)
        opted_out = node.claim is None and node.may_opt_in
        return owned or opted_out or node.left_by_another(settings.run, settings.operation, restart=settings.restart)

    @property
    def stays_cordoned(self) -> str:
        """Why this run does not undo the cordon of an earlier run, as text; empty if there is none, or if it does."""
        node = self.node
        if node.cordoned_by != PURPOSE or any((node.uncordoned, node.excluded, self.midway, self.left_behind)):
            return ""
        if self.kept or node.stuck:
            return self.kept or node.stuck
        theirs = node.claim is not None and node.claim.run != self.settings.run
        if node.claim is not None and theirs and (self.taken_over or node.claim.operation != self.settings.operation):
            # A live run works on the node.
            return ""
        return (
            f"Node {node.name} is still cordoned since operation {node.record.id or '-'}, and stays cordoned: "
            f"{node.keeps_cordon or 'another run works on it'}. Run holdfast.kubernetes.doctor, which says what to do."
        )

    @property
    def needs_no_answer(self) -> bool:
        """Do not ask the node: in the middle of its reboot it may be down, or no longer show that it needs one."""
        return self.settings.when == ALWAYS or self.midway

    @property
    def asks(self) -> bool:
        """The node has to be asked, or asked again."""
        if self.needs_no_answer or self.node.excluded or self.done:
            return False
        return self.answer is None or self.answer.boot_id not in ("", self.node.boot_id)

    @property
    def _is_needed(self) -> bool:
        return not (self.node.excluded or self.done or self.asks) and bool(self.needed)

    @property
    def stage(self) -> str:
        """How far this run has come: ``looking``, ``waiting`` (wanted and untouched), ``working`` or ``given_up``."""
        if self.claimed:
            return WORKING
        if self.attempts >= max(1, self.settings.hold_attempts) and not self.settings.put_off:
            return GIVEN_UP
        if self.attempts or self.has_slot or self.holders_waited:
            return WAITING
        if self.seen is None or not self.seen.exists:
            return LOOKING
        if self.stays_cordoned:
            return WAITING
        return WAITING if self.midway or self.node.others_work or self._is_needed else LOOKING

    @property
    def gives_back(self) -> bool:
        """A hold forbids the reboot that an earlier run began, and it is not too late to give the node back."""
        return self.midway and bool(self.why_later) and not self.node.past_holds(self.settings.operation)

    # What the steps of the admission change.

    def looked(self, seen: Seen) -> Facts:
        return replace(self, seen=seen)

    def given_back(self) -> Facts:
        """For a plan: the facts after a run has given the node back because of a hold."""
        node = self.node
        record = replace(node.record, phase="hold", result="")
        cordoned_by = node.cordoned_by if node.keeps_cordon else ""
        return self.looked(replace(node, cordoned_by=cordoned_by, slot=None, claim=None, record=record))

    def stale(self) -> Facts:
        """After a wait: the node and the canaries have to be looked at again."""
        return replace(self, seen=None, window=None, canaries=None)

    def after_holders(self) -> Facts:
        # The wait may take hours, and the control plane may have other nodes since.
        return replace(self.stale(), holders_waited=True, etcd=None)

    def after_turn(self, waited: float, idle: float, message: str) -> Facts:
        """A turn of the wait for a slot ended without a slot."""
        return replace(self, slot_wait=self.slot_wait.after(waited, idle, message), window=None)

    def after_back(self) -> Facts:
        return replace(self.stale(), back_waited=True)

    def after_quorum(self) -> Facts:
        return replace(self.stale(), quorum_kept=True)

    def after_claim(self) -> Facts:
        return replace(self.stale(), claimed=True)

    def after_take_over(self, why: str, *, taken: bool, kept: str = "") -> Facts:
        """The claim was taken to return what a dead run left, or it could not be taken: another run has it.

        Args:
            why: Why this run does not work on the node.
            taken: Whether this run has the claim now.
            kept: Why it could not take the claim, although the other run is dead.
        """
        return replace(self.stale(), claimed=taken, restores=why if taken else None, taken_over=True, kept=kept)

    def after_attempt(self, why: str) -> Facts:
        """Slot and claim are returned; the next attempt begins from the start.

        To return what a dead run left is no attempt.
        """
        counted = self.restores is None
        return replace(
            self.stale(),
            has_slot=False,
            claimed=False,
            holders_waited=False,
            slot_tasks_run=False,
            back_waited=False,
            quorum_kept=False,
            slot_wait=SlotWait(),
            restores=None,
            attempts=self.attempts + counted,
            left=why if counted else self.left,
        )

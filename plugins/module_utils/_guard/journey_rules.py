# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The work of a guard: which step is next for a Machine whose deletion waits, from the facts of the moment.

:func:`next_step` asks the rules of :data:`_RULES` in their order. The first that has a step decides. Some steps are
carried out by the journey (:mod:`.journey`), which adds what it found to the facts and asks again; the others are its
answer to the role. ``docs/decisions/0019-the-journey-of-a-guard.md`` lists what they decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .._api.errors import passing
from .._capi.rules import PRE_DRAIN, PRE_TERMINATE
from .rules import (
    DEADLINE,
    FAILED,
    NEVER,
    NODE_GONE,
    NOT_READY,
    OFF,
    READY,
    RECOVER_FIRST,
    RELEASED,
    REMOVED,
    UNREACHABLE,
)

# Steps that the journey carries out. After each it has other facts, and asks again.
SWEEP, TAKE = "sweep", "take"
CLAIM, UNCLAIM = "claim", "unclaim"
LOOK, DONE_FILE = "look", "done_file"
AWAIT_REPLACEMENT, AWAIT_HOLDERS, AWAIT_VOLUMES = "await_replacement", "await_holders", "await_volumes"
RELEASE, KEEP, FREE_HOST, PAUSE, STOP = "release", "keep", "free_host", "pause", "stop"
ACTS = (
    SWEEP,
    TAKE,
    CLAIM,
    UNCLAIM,
    LOOK,
    DONE_FILE,
    AWAIT_REPLACEMENT,
    AWAIT_HOLDERS,
    AWAIT_VOLUMES,
    RELEASE,
    KEEP,
    FREE_HOST,
    PAUSE,
    STOP,
)

# Answers to the role: what only the role does, that it asks again, and that nothing is left.
FENCE, TASKS, DRAIN, CONTINUE, DONE = "fence", "tasks", "drain", "continue", "done"
ANSWERS = (FENCE, TASKS, DRAIN, CONTINUE, DONE)

# Recorded phases: each names the act that follows.
REPLACEMENT, HOLD, HOLD_AGAIN, VOLUMES, RELEASING = "replacement", "hold", "hold again", "volumes", "release"
FENCED = "fenced"

# The states in which the machine may be held. If the Node is gone, the machine may still run.
_MAY_BE_HELD = (READY, NOT_READY, NODE_GONE)
_ALIVE = (READY, NOT_READY)
_CLAIMABLE = (READY, NOT_READY, OFF)

# How often in a row a worker may fail to look for Machines, and the seconds between two tries.
MOST_TROUBLES = 6
TROUBLE_SECONDS = 10


@dataclass(frozen=True)
class File:
    """A file of the user's tasks: its path, and its name in the record."""

    path: str
    name: str


@dataclass(frozen=True)
class Settings:
    """What the user asked for.

    Attributes:
        files: The files of the user's tasks, by point.
    """

    stop: str = DEADLINE
    unreachable: str = FENCE
    override_holds: bool = False
    wait_for_replacement: bool = False
    drain: bool = True
    check_volumes: bool = True
    make_up: bool = False
    repeat_tasks: bool = False
    files: Mapping[str, tuple[File, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """The work of this worker on one Machine at one point.

    Attributes:
        point: Where the deletion waits.
        node: Name of the Machine's Node; empty if it has none.
        state: State of the Node at the last look.
        skipped: Whether Cluster API passed the pre-drain hook without waiting for it.
        leaves_drain: Whether the drain is left to Cluster API, which may leave it out.
        done: The files that do not run again, by point.
        past: The acts that are done.
        begun: The act whose phase is recorded, after a check of the Node.
        claimed: Whether this work has the claim on the Node.
        asked: What the role was asked for last.
        file: The file that the role was asked to run.
        at: The point of that file.
        result: How the work ended; empty while it continues.
    """

    point: str
    node: str = ""
    state: str = READY
    skipped: bool = False
    leaves_drain: bool = False
    done: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    past: tuple[str, ...] = ()
    begun: str = ""
    claimed: bool = False
    asked: str = ""
    file: str = ""
    at: str = ""
    result: str = ""

    def has_begun(self, act: str, state: str) -> Work:
        """The phase of an act is recorded, and the Node was checked."""
        return replace(self, begun=act, state=state, asked="")

    def is_past(self, act: str) -> Work:
        return replace(self, past=(*self.past, act), begun="", asked="")

    def is_claimed(self, *, claimed: bool) -> Work:
        return replace(self, claimed=claimed, begun="")

    def is_asked(self, step: Step) -> Work:
        """The role is asked for a step. A drain that fails ends the work, so it counts as done from here on."""
        if step.name == DRAIN:
            return self.is_past(DRAIN)
        return replace(self, asked=step.name, file=step.file.name if step.file else "", at=step.at)

    def file_is_done(self) -> Work:
        done = {**self.done, self.at: (*self.done.get(self.at, ()), self.file)}
        # The node may have failed during the user's tasks, so the next file begins with a look, too.
        return replace(self, done=done, asked="", file="", at="", begun="")


@dataclass(frozen=True)
class Failure:
    """What failed.

    Attributes:
        kind: Kind of the error; empty if it was not a module of this collection.
        status: HTTP status, if the API server answered.
    """

    kind: str = ""
    status: int = 0

    @property
    def passes(self) -> bool:
        """Return whether a later try may succeed without a person."""
        return self.kind == "api_unreachable" or (self.kind == "api" and passing(self.status))


@dataclass(frozen=True)
class Facts:
    """What a worker knows.

    Attributes:
        settings: What the user asked for.
        turn: How often the worker has looked for a Machine.
        swept: Whether it has removed the keys that earlier runs left on BareMetalHosts.
        over: Whether the time of the run has passed.
        again: Whether the role asks again first: the worker has just taken a Machine, whose Lease a process outside of
            the task renews from then on, or it has just paused after a failure.
        work: What it works on.
        failure: What has just failed.
        lost: Whether nothing is known of what the worker did before. If a task has failed, its answers are lost.
        troubles: How often in a row it could not look for Machines, with this failure.
        why: Why there is no Machine to work on; empty if it was not looked for.
    """

    settings: Settings
    turn: int = 0
    swept: bool = False
    over: bool = False
    again: bool = False
    work: Work | None = None
    failure: Failure | None = None
    lost: bool = False
    troubles: int = 0
    why: str = ""


@dataclass(frozen=True)
class Step:
    """What is next.

    Attributes:
        name: One of :data:`ACTS` or :data:`ANSWERS`.
        act: The act whose phase ``look`` records.
        why: Why it ends or stops, for messages.
        file: The file that ``tasks`` runs.
        at: The point of that file.
        seconds: How long ``pause`` takes.
    """

    name: str
    act: str = ""
    why: str = ""
    file: File | None = None
    at: str = ""
    seconds: int = 0


def next_step(facts: Facts) -> Step:
    """The next step of a worker."""
    return next(step for step in (rule(facts) for rule in _RULES) if step is not None)


# -- without a Machine


def _failed(facts: Facts) -> Step | None:
    if facts.failure is None:
        return None
    if facts.lost:
        # It may have a Machine, whose hook would stay unnoticed.
        return Step(DONE, why=FAILED)
    if facts.work is not None and not facts.work.result:
        return Step(KEEP)
    return _trouble(facts, facts.failure) if facts.work is None else Step(CONTINUE)


def _trouble(facts: Facts, failure: Failure) -> Step:
    """While the API server is unavailable, the run repeats the request as long as there is time."""
    often = facts.troubles >= MOST_TROUBLES
    in_time = facts.settings.stop == NEVER or not facts.over
    if (often or failure.kind in ("invalid_input", "not_found")) and not (failure.passes and in_time):
        return Step(DONE, why=FAILED)
    return Step(PAUSE, seconds=TROUBLE_SECONDS * (6 if often else 1))


def _again(facts: Facts) -> Step | None:
    return Step(CONTINUE) if facts.again else None


def _ends(facts: Facts) -> Step | None:
    if facts.work is not None:
        return None
    if facts.why:
        return Step(DONE, why=facts.why)
    if not facts.swept and facts.settings.unreachable == FENCE:
        return Step(SWEEP)
    # The first turn checks once, even if there is no time left.
    if facts.over and facts.turn and facts.settings.stop != NEVER:
        return Step(DONE, why=DEADLINE)
    return Step(TAKE)


# -- with a Machine


def _ended(facts: Facts) -> Step | None:
    work = _work(facts)
    if not work.result:
        return None
    # The key of a failover kept the machine off. It would also keep the host off in its next use. The Node no longer
    # shows the failover if it was deleted, or if it came back while a run was killed.
    fenced = work.state == OFF or (bool(work.node) and facts.settings.unreachable == FENCE)
    if (work.point, work.result) == (PRE_TERMINATE, RELEASED) and fenced and FREE_HOST not in work.past:
        return Step(FREE_HOST)
    return Step(CONTINUE)


def _asked(facts: Facts) -> Step | None:
    """The role has done what it was asked for."""
    asked = _work(facts).asked
    if asked == TASKS:
        return Step(DONE_FILE)
    return Step(LOOK, act=FENCED) if asked == FENCE else None


def _silent(facts: Facts) -> Step | None:
    """Cluster API treats a silent node as off. The role releases its volumes only on proof."""
    work = _work(facts)
    if work.state != UNREACHABLE:
        return None
    if work.begun == FENCED:
        why = f"Node {work.node} was failed over, but nothing proves that it is off. {RECOVER_FIRST}"
        return Step(STOP, why=why)
    if facts.settings.unreachable != FENCE:
        return Step(
            STOP,
            why=f"Node {work.node} gives no sign of life, and machine_guard_unreachable is keep. Switch the node off "
            f"and fail it over, or set machine_guard_unreachable: fence. {RECOVER_FIRST}",
        )
    # A failover takes its own claim.
    if work.claimed:
        return Step(UNCLAIM)
    return Step(FENCE) if work.begun == FENCE else Step(LOOK, act=FENCE)


def _claims(facts: Facts) -> Step | None:
    """With the claim, no rolling reboot and no failover interferes."""
    work = _work(facts)
    return Step(CLAIM) if work.state in _CLAIMABLE and not work.claimed else None


def _replacement(facts: Facts) -> Step | None:
    return _once(facts, REPLACEMENT, Step(AWAIT_REPLACEMENT)) if facts.settings.wait_for_replacement else None


def _holders(facts: Facts) -> Step | None:
    return _once(facts, HOLD, Step(AWAIT_HOLDERS)) if _may_be_held(facts) else None


def _files(facts: Facts) -> Step | None:
    work, settings = _work(facts), facts.settings
    points = (PRE_DRAIN, work.point) if work.skipped and settings.make_up else (work.point,)
    for point in points:
        for file in settings.files.get(point, ()):
            if file.name not in work.done.get(point, ()):
                return _begun(facts, TASKS, Step(TASKS, file=file, at=point))
    return None


def _holders_again(facts: Facts) -> Step | None:
    """Someone may hold the node by now."""
    if _work(facts).point != PRE_DRAIN or not facts.settings.drain or not _may_be_held(facts):
        return None
    return _once(facts, HOLD_AGAIN, Step(AWAIT_HOLDERS))


def _drains(facts: Facts) -> Step | None:
    work = _work(facts)
    if work.point != PRE_DRAIN or not facts.settings.drain or work.leaves_drain or work.state not in _ALIVE:
        return None
    return _once(facts, DRAIN, Step(DRAIN))


def _volumes(facts: Facts) -> Step | None:
    work = _work(facts)
    if work.point != PRE_TERMINATE or not facts.settings.check_volumes or not work.node:
        return None
    return _once(facts, VOLUMES, Step(AWAIT_VOLUMES))


def _releases(facts: Facts) -> Step | None:
    return _begun(facts, RELEASING, Step(RELEASE))


_RULES: tuple[Callable[[Facts], Step | None], ...] = (
    _failed,
    _again,
    _ends,
    _ended,
    _asked,
    _silent,
    _claims,
    _replacement,
    _holders,
    _files,
    _holders_again,
    _drains,
    _volumes,
    _releases,
)


def _work(facts: Facts) -> Work:
    if facts.work is None:
        raise ValueError("there is no work")
    return facts.work


def _may_be_held(facts: Facts) -> bool:
    return _work(facts).state in _MAY_BE_HELD and not facts.settings.override_holds


def _once(facts: Facts, act: str, step: Step) -> Step | None:
    return None if act in _work(facts).past else _begun(facts, act, step)


def _begun(facts: Facts, act: str, step: Step) -> Step:
    """Record the phase of an act and check the Node before the act."""
    return step if _work(facts).begun == act else Step(LOOK, act=act)


def phase_of(act: str) -> str:
    """Return the recorded phase of an act."""
    return HOLD if act == HOLD_AGAIN else act


# -- what the report says


def detail_of(work: Work, settings: Settings) -> str:
    """Return what the report says about work that ended."""
    if work.result == REMOVED:
        return "someone else removed the hook, or the Machine, before its work was done"
    if work.skipped and settings.files.get(PRE_DRAIN):
        return "Cluster API skipped pre-drain, " + (
            "whose tasks ran later" if settings.make_up else "whose tasks did not run"
        )
    return ""


def failure_text(where: str, text: Any) -> str:
    """Return the text of a failure: the task, and what it said."""
    return f"{where[:200]}: {str(text)[:500]}"


def lost_text(worker: str, text: str) -> str:
    """Return the text of a failure after which nothing is known of a worker."""
    return (
        f"{text} How far worker {worker} came is lost: it may have left a Machine with its hook. Start the playbook "
        "again: it resumes from the record on the Machine."
    )


def host_patience(stop: str, host_timeout: int, seconds_left: int) -> int:
    """Return how long the release of a BareMetalHost is waited for: no longer than the run lasts."""
    return host_timeout if stop == NEVER else min(host_timeout, max(0, seconds_left))

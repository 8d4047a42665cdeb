# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of roles/rolling_reboot, task file by task file, as generators that yield one act after another.

Between any two acts anything may happen: the run may be killed or paused, others may act. In one place the role has two
tasks and the model one act: the last look and the reboot itself. There, the node's own boot ID or the user's tasks must
guard what happens between them.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from model.acts import Act, Outcome

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import failure_rules

OWNER = "rolling_reboot"
MIDWAY = ("cordon", "drain", "reboot", "ready", "uncordon")
WENT = ("reboot", "ready", "uncordon")
HOLD_ATTEMPTS = 2
Program = Generator[Act, Outcome, Any]
# The end of the first pass: no node starts the last pass before all nodes are here.
NEXT_PASS = Act("next_pass")


class Failed(Exception):
    """A task failed."""

    def __init__(self, act: Act, error: str) -> None:
        super().__init__(f"{act}: {error}")
        self.act = act
        self.error = error


@dataclass(frozen=True)
class Play:
    """The variables that a run was started with."""

    run: str
    policy: dict[str, Any]
    max_failed: int = 0
    count_others: bool = True
    operation: str = ""
    restart: bool = False


@dataclass
class Host:
    """A node as the run knows it: the facts that the role sets, and at the end a result."""

    play: Play
    operation: str
    name: str
    seen: dict[str, Any] = field(default_factory=dict)
    state: str = ""
    held: bool = False
    resumed: bool = False
    sent: bool = False
    already: bool = False
    boot_id: str = ""
    attempts: int = 0
    untouched: bool = False
    switched_off: bool = False
    result: str = ""

    def act(self, name: str, **options: Any) -> Act:
        return Act(name, self.name, {"run": self.play.run, **options})

    def ours(self, name: str, **options: Any) -> Act:
        return self.act(name, operation=self.operation, **options)


def do(act: Act) -> Program:
    """A task that fails the host when it fails."""
    outcome = yield act
    if outcome.error:
        raise Failed(act, outcome.error)
    return outcome.facts


def work(host: Host) -> Program:
    """One node in both passes of the playbook."""
    for last in (False, True):
        try:
            yield from main(host, last)
        except Failed as failure:
            yield from failed(host, failure)
        if host.result:
            return
        if not last:
            yield NEXT_PASS


def main(host: Host, last: bool) -> Program:
    host.attempts, host.switched_off, host.untouched = 0, False, False
    yield from look(host)
    if host.resumed and host.held:
        yield from resume_held(host)
    elif host.state == "skipped":
        yield from tidy(host)
    if host.state == "wanted" and (last or not host.held):
        yield from attempt(host, last)


def look(host: Host) -> Program:
    host.seen = seen = yield from do(Act("look", host.name))
    record = seen["record"] or {}
    mine = record.get("id") == host.operation
    went = mine and record["phase"] in WENT
    back = went and seen["boot_id"] != record["boot_id_before"]
    cordoned = bool(seen["cordon"]) and seen["cordon"]["owner"] == OWNER
    midway = mine and (
        (not record["result"] and record["phase"] in MIDWAY)
        or (record["result"] == "failed" and went and (back or cordoned))
    )
    host.already = midway and back
    host.resumed, host.sent = midway, midway and record["phase"] == "reboot"
    host.boot_id = record["boot_id_before"] if midway else seen["boot_id"]
    host.held = seen["held"] and not host.already
    done = mine and record["result"] == "rebooted"
    host.state = "wanted" if midway or not (seen["excluded"] or done) else "skipped"
    host.result = "skipped" if host.state == "skipped" else ""


def resume_held(host: Host) -> Program:
    yield from slot(host)
    yield from look(host)
    if host.state != "wanted" or (host.held and not host.resumed):
        # Meanwhile its run finished it, or put it back.
        yield from leave(host)
    elif host.resumed and host.held and host.seen["ready"] and not host.sent:
        yield from put_back(host)


def tidy(host: Host) -> Program:
    """For a node that is done, remove what a run left that died before it could."""
    left = [mark for mark in (host.seen["claim"], host.seen["slot"]) if mark]
    if any(mark["operation"] == host.operation for mark in left):
        claimed = yield host.ours("claim", restart=False)
        yield host.ours("release")
        if not claimed.error:
            yield host.act("unclaim")


def attempt(host: Host, last: bool) -> Program:
    while True:
        host.attempts += 1
        if host.held:
            if not host.resumed:
                yield from do(host.ours("note", phase="hold"))
            host.untouched = True
            yield from do(Act("free", host.name))
        yield from slot(host)
        yield from look(host)
        if host.state == "wanted" and host.resumed and host.held and host.seen["ready"] and not host.sent:
            # That run began after we had looked, and was paused before the claim passed on.
            yield from put_back(host)
        elif host.state == "wanted" and (host.resumed or not host.held):
            yield from reboot(host)
        else:
            yield from leave(host)
        if host.state != "wanted" or not last:
            return
        if host.attempts >= HOLD_ATTEMPTS:
            raise Failed(Act("attempt", host.name), "held again each time")


def slot(host: Host) -> Program:
    play = host.play
    if not host.resumed:
        yield from do(host.ours("note", phase="slot"))
    host.untouched = True
    limits = {"max_failed": play.max_failed, "count_others": play.count_others}
    while True:
        # What a run reads before it takes a slot may be out of date by then: see Memory.do_peek.
        yield host.ours("peek")
        yield from do(host.ours("slot", policy=play.policy, **limits))
        yield from do(host.ours("claim", restart=play.restart))
        yield from do(host.ours("mark"))
        # A run that was paused between these acts has the claim, but the slot may have passed on.
        mine = (yield from do(Act("look", host.name)))["slot"]
        if mine and (mine["run"], mine["operation"], mine["state"]) == (play.run, host.operation, "active"):
            host.untouched = False
            return
        yield from do(host.act("unclaim"))


def leave(host: Host) -> Program:
    if host.state == "wanted":
        yield from do(host.ours("note", phase="hold"))
    elif (host.seen["record"] or {}).get("result") != "rebooted":
        yield from do(host.ours("note", result="skipped"))
    yield from do(host.ours("release"))
    yield from do(host.act("unclaim"))


def reboot(host: Host) -> Program:
    if host.resumed and not host.seen["ready"]:
        yield Act("back", host.name, {"boot_id_before": ""})
        yield from look(host)
    if not host.already and not (yield from down(host)):
        if not host.seen["ready"]:
            # Another run sent the node down, and it is still off: its slot stays.
            raise Failed(Act("back", host.name), "it is held, and not back from its reboot")
        yield from put_back(host)
        return
    yield from finish(host)


def down(host: Host) -> Program:
    """Whether the node went down; it does not where it is held."""
    if not host.sent:
        yield from do(host.ours("note", phase="cordon", claimed=True))
        yield from do(host.ours("cordon"))
        yield from do(host.ours("note", phase="drain", claimed=True))
        yield from do(host.ours("drain"))
    yield from do(host.ours("note", phase="reboot", claimed=True))
    facts = yield from do(host.ours("reboot", boot_id_before=host.boot_id))
    if facts["held"]:
        return False
    host.switched_off = True
    yield from do(Act("back", host.name, {"boot_id_before": host.boot_id}))
    host.switched_off = False
    return True


def put_back(host: Host) -> Program:
    yield from do(host.act("uncordon"))
    yield from do(host.ours("note", phase="hold"))
    yield from do(host.ours("release"))
    yield from do(host.act("unclaim"))
    host.held, host.resumed = True, False


def finish(host: Host) -> Program:
    yield from do(host.ours("note", phase="ready", claimed=True))
    yield from do(Act("back", host.name, {"boot_id_before": host.boot_id}))
    yield from do(Act("check", host.name))
    yield from do(host.ours("note", phase="uncordon", claimed=True))
    yield from do(host.act("uncordon"))
    yield from do(host.ours("release"))
    yield from do(host.ours("note", result="rebooted", claimed=True))
    host.state = "done"
    host.result = "rebooted"


def failed(host: Host, failure: Failed) -> Program:
    seen = (yield Act("look", host.name)).facts
    known = failure_rules.Failure(
        run=host.play.run,
        operation=host.operation,
        error=failure.error,
        untouched=host.untouched,
        switched_off=host.switched_off,
    )
    aftermath = failure_rules.judge({**seen, "operation": seen["record"]}, known)
    if aftermath["give_back"]:
        yield Act("uncordon", host.name, {"run": ""})
    if aftermath["release"]:
        yield host.ours("release")
    if aftermath["count"]:
        yield host.ours("fail", healthy=aftermath["healthy"])
        yield host.ours("note", result="failed")
    host.result = aftermath["state"]

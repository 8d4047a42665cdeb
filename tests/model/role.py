# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reboot of a node, driven by the rules of its journey, as generators that yield one act after another.

Between any two acts anything may happen: the run may be killed or paused, others may act. In one place the role has two
tasks and the model one act: the last look and the reboot itself. There, the node's own boot ID or the user's tasks must
guard what happens between them.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from model.acts import Act, Outcome

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import (
    end_rules,
    facts_rules,
    failure_rules,
    journey_rules,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.facts_rules import Facts, Settings
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.journey_rules import Step
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.refusal_rules import Etcd
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.seen_rules import Record, Seen, SlotSeen

OWNER = "rolling_reboot"
NODE_TASKS = Path(__file__).resolve().parents[2] / "roles/rolling_reboot/tasks/node.yml"
HOLD_ATTEMPTS = 2
Program = Generator[Act, Outcome, Any]
# The end of the first pass: no node starts the last pass before all nodes are here.
NEXT_PASS = Act("next_pass")


def order_of_the_role() -> tuple[str, ...]:
    """The steps in the order of the role's tasks: the first task that a step is a condition of takes it."""
    _settings, block = yaml.safe_load(NODE_TASKS.read_text())
    conditions = [f"{task.get('when', '')} {task.get('loop', '')}" for task in block["block"]]
    named = [name for text in conditions for name in re.findall(r"'(\w+)'", text)]
    return tuple(dict.fromkeys(name for name in named if name in journey_rules.ROLE_STEPS))


ORDER = order_of_the_role()


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
    facts: Facts = field(init=False)
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
            yield from journey(host, last)
        except Failed as failure:
            yield from failed(host, failure)
        if host.result:
            return
        if not last:
            yield NEXT_PASS


def journey(host: Host, last: bool) -> Program:
    """The course of one node in one pass: what the rules say, one act after the other."""
    host.switched_off = False
    host.facts = Facts(
        Settings(
            node=host.name,
            operation=host.operation,
            run=host.play.run,
            when="always",
            method="metal3",
            put_off=not last,
            hold_attempts=HOLD_ATTEMPTS,
            single_node=True,
        ),
        etcd=Etcd(),
    )
    while True:
        step = journey_rules.next_step(host.facts)
        if step.name == journey_rules.GO:
            if (yield from go(host, step.steps)):
                return
            host.facts = host.facts.after_attempt("held at the last moment")
        elif step.name == journey_rules.SKIPPED:
            host.result = "skipped"
            return
        elif step.name == journey_rules.PUT_OFF:
            return
        elif step.name == journey_rules.STOP:
            raise Failed(Act("stop", host.name), step.error)
        else:
            host.facts = yield from ADMISSION[step.name](host, step)


def look(host: Host, _step: Step) -> Program:
    found = yield from do(Act("look", host.name))
    record, slot = found["record"] or {}, found["slot"]
    seen = Seen(
        name=host.name,
        ready=found["ready"],
        boot_id=found["boot_id"],
        excluded=found["excluded"],
        cordoned_by=(found["cordon"] or {}).get("owner") or "",
        record=Record(**{key: record.get(key) or "" for key in ("id", "phase", "result", "boot_id_before")}),
        claim_run=(found["claim"] or {}).get("run") or "",
        slot=SlotSeen(slot["run"], slot["operation"], slot["state"]) if slot else None,
        held="held" if found["held"] else "",
    )
    return host.facts.looked(seen)


def await_holders(host: Host, _step: Step) -> Program:
    if not host.facts.midway:
        yield from do(host.ours("note", phase="hold"))
    yield from do(Act("free", host.name))
    return host.facts.after_holders()


def take_slot(host: Host, _step: Step) -> Program:
    play = host.play
    if not host.facts.midway:
        yield from do(host.ours("note", phase="slot"))
    # What a run reads before it takes a slot may be out of date by then: see Memory.do_peek.
    yield host.ours("peek")
    limits = {"max_failed": play.max_failed, "count_others": play.count_others}
    yield from do(host.ours("slot", policy=play.policy, **limits))
    return replace(host.facts, has_slot=True)


def claim(host: Host, _step: Step) -> Program:
    yield from do(host.ours("claim", restart=host.play.restart))
    yield from do(host.ours("mark"))
    return host.facts.after_claim()


def await_back(host: Host, _step: Step) -> Program:
    yield Act("back", host.name, {"boot_id_before": ""})
    return host.facts.after_back()


def leave(host: Host, step: Step) -> Program:
    if step.record == "hold":
        yield from do(host.ours("note", phase="hold"))
    elif step.record:
        yield from do(host.ours("note", result=step.record))
    yield from do(host.ours("release"))
    yield from do(host.act("unclaim"))
    return host.facts.after_attempt(step.why)


def put_back(host: Host, step: Step) -> Program:
    yield from do(host.act("uncordon"))
    return (yield from leave(host, step))


def unclaim(host: Host, step: Step) -> Program:
    yield from do(host.act("unclaim"))
    return host.facts.after_attempt(step.why)


# What the rules call them, and how the admission carries them out.
ADMISSION = {
    journey_rules.LOOK: look,
    journey_rules.AWAIT_HOLDERS: await_holders,
    journey_rules.TAKE_SLOT: take_slot,
    journey_rules.CLAIM: claim,
    journey_rules.AWAIT_BACK: await_back,
    journey_rules.LEAVE: leave,
    journey_rules.PUT_BACK: put_back,
    journey_rules.UNCLAIM: unclaim,
}


def go(host: Host, steps: tuple[str, ...]) -> Program:
    """The steps of the role; whether they came to their end, and were not refused by a hold."""
    boot_id = host.facts.node.boot_id_before(host.operation)
    for step in (step for step in ORDER if step in steps):
        if step in ("cordon", "drain", "reboot", "ready"):
            yield from do(host.ours("note", phase=step, claimed=True))
        if step in ("cordon", "drain"):
            yield from do(host.ours(step))
        elif step == "reboot":
            facts = yield from do(host.ours("reboot", boot_id_before=boot_id))
            if facts["held"]:
                yield from refused(host)
                return False
            host.switched_off = True
            yield from do(Act("back", host.name, {"boot_id_before": boot_id}))
            host.switched_off = False
        elif step == "ready":
            yield from do(Act("back", host.name, {"boot_id_before": boot_id}))
            yield from do(Act("check", host.name))
        elif step == "finish":
            yield from finish(host)
    return True


def refused(host: Host) -> Program:
    """A hold came between the last look and the reboot."""
    seen = yield from do(Act("look", host.name))
    step = end_rules.after_hold(host.name, "held", ready=seen["ready"])
    if step.name == journey_rules.STOP:
        raise Failed(Act("back", host.name), step.error)
    yield from put_back(host, step)


def finish(host: Host) -> Program:
    yield from do(host.ours("note", phase="uncordon", claimed=True))
    yield from do(host.act("uncordon"))
    yield from do(host.ours("release"))
    yield from do(host.ours("note", result="rebooted", claimed=True))
    host.result = "rebooted"


def failed(host: Host, failure: Failed) -> Program:
    seen = (yield Act("look", host.name)).facts
    known = failure_rules.Failure(
        run=host.play.run,
        operation=host.operation,
        error=failure.error,
        untouched=host.facts.stage == facts_rules.WAITING,
        switched_off=host.switched_off,
    )
    aftermath = failure_rules.judge({**seen, "operation": seen["record"]}, known)
    if aftermath["give_back"]:
        yield Act("uncordon", host.name, {"run": ""})
    if aftermath["release"]:
        yield host.ours("release")
        yield host.act("unclaim")
    if aftermath["count"]:
        yield host.ours("fail", healthy=aftermath["healthy"])
        yield host.ours("note", result="failed")
    host.result = aftermath["state"]

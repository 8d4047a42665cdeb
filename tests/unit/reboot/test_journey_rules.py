# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which step of a rolling reboot is next."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.claim_rules import Claim
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import journey_rules as rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.facts_rules import (
    Answer,
    Facts,
    Settings,
    SlotWait,
    Window,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.journey_rules import (
    ANSWERS,
    GO,
    ROLE_STEPS,
    STOP,
    Step,
    Verdict,
    decision,
    method_of,
    next_step,
    plan_of,
    plan_with_drain,
    steps_left,
    warning,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.plan_rules import EXCLUDED, done_words
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.refusal_rules import Canaries, Etcd, Shutdown
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.seen_rules import (
    WENT,
    WORK,
    Record,
    Seen,
    SlotSeen,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.turn_rules import (
    hold_patience,
    slot_patience,
    time_left,
)

SETTINGS = Settings(node="node-1", operation="kernel", run="me", when="always", method="metal3")
SEEN = Seen("node-1", boot_id="boot-1")
LABELLED = {"control_plane": True}
MINE = SlotSeen("me", "kernel")
FULL = tuple(step for step in ROLE_STEPS if step in ("cordon", "opt_outs", "drain", "reboot", "ready", "finish"))


def facts(settings=None, seen=None, **more):
    known = {"etcd": Etcd(), **more}
    return Facts(replace(SETTINGS, **(settings or {})), replace(SEEN, **(seen or {})), **known)


def claimed(settings=None, seen=None, **more):
    return facts(settings, {"slot": MINE, **(seen or {})}, **{"has_slot": True, "claimed": True, **more})


def midway(phase, boot_id="boot-1", **more):
    record = Record("kernel", phase, more.pop("result", ""), "boot-1")
    return {"record": record, "boot_id": boot_id, "cordoned_by": "rolling_reboot", **more}


def test_the_next_attempt_begins_from_the_start():
    flags = dict.fromkeys(("holders_waited", "slot_tasks_run", "back_waited", "quorum_kept"), True)
    known = claimed(attempts=1, **flags).after_turn(3.0, 2.0, "full")
    assert known.after_attempt("held") == Facts(SETTINGS, etcd=Etcd(), attempts=2, left="held")


def test_after_a_wait_the_node_is_looked_at_again():
    for after, flag in (
        (Facts.after_back, "back_waited"),
        (Facts.after_quorum, "quorum_kept"),
        (Facts.after_claim, "claimed"),
    ):
        assert after(facts()) == replace(facts(), seen=None, **{flag: True})


def test_after_a_wait_for_holders_the_control_plane_is_looked_at_again():
    """It may have taken hours, and an only node is rebooted without a drain."""
    assert facts(etcd=Etcd(single_node=True)).after_holders() == Facts(SETTINGS, holders_waited=True)


def test_an_undisturbed_node_goes_step_by_step():
    known, went = Facts(SETTINGS), []
    while (step := next_step(known)).name not in ANSWERS:
        went.append(step.name)
        if step.name == "look":
            known = known.looked(replace(SEEN, slot=MINE if known.claimed else None))
        elif step.name == "look_at_etcd":
            known = replace(known, etcd=Etcd())
        elif step.name == "take_slot":
            known = replace(known, has_slot=True)
        else:
            known = known.after_claim()
    assert went == ["look", "look_at_etcd", "take_slot", "claim", "look"]
    assert (step.name, step.steps, step.why) == (GO, FULL, "rolling_reboot_when is always")


ANOTHER = Claim("other", "kernel", "rolling_reboot", "")
ANSWERED = Answer("kernel 6.1 is installed", boot_id="boot-1")
TABLE = {
    "no Node": (facts(seen={"exists": False}), "stop", "There is no Node node-1"),
    "claimed midway, and its Node is gone": (
        claimed({"when": "required"}, {"exists": False}),
        "stop",
        "There is no Node",
    ),
    "excluded": (facts(seen={"excluded": True}), "skipped", "it has the label holdfast.dev/exclude"),
    "excluded, and left in its drain": (
        facts(seen=midway("drain", excluded=True, claim=ANOTHER)),
        "take_over",
        "it has the label holdfast.dev/exclude",
    ),
    "excluded, left in its drain, and claimed to give it back": (
        claimed(seen=midway("drain", excluded=True), restores=EXCLUDED),
        "put_back",
        "it has the label holdfast.dev/exclude",
    ),
    "excluded, and claimed in its drain": (
        claimed(seen=midway("drain", excluded=True)),
        "put_back",
        "it has the label holdfast.dev/exclude",
    ),
    "excluded, and down in its drain": (
        claimed(seen=midway("drain", excluded=True, ready=False)),
        "await_back",
        "",
    ),
    "excluded, down in its drain, and waited for": (
        claimed(seen=midway("drain", excluded=True, ready=False), back_waited=True),
        "stop",
        "was excluded after a run had cordoned it, and is not Ready",
    ),
    "excluded, and its reboot was sent": (
        facts(seen=midway("reboot", excluded=True)),
        "take_slot",
        "",
    ),
    "excluded, down, and its reboot was sent": (
        claimed(seen=midway("reboot", excluded=True, ready=False), back_waited=True),
        "go",
        "",
    ),
    "excluded, and uncordoned after its reboot was recorded": (
        facts(seen=midway("reboot", excluded=True, uncordoned=True, claim=ANOTHER)),
        "take_over",
        "it has the label holdfast.dev/exclude",
    ),
    "excluded, and cordoned again after its reboot was recorded": (
        facts(seen=midway("reboot", excluded=True, cordoned_again=True, claim=ANOTHER)),
        "take_over",
        "it has the label holdfast.dev/exclude",
    ),
    "excluded, and its reboot failed": (
        facts(
            seen=midway(
                "reboot",
                result="failed",
                excluded=True,
                cordoned_by="rolling_reboot",
                slot=SlotSeen("other", "kernel", "failed"),
            )
        ),
        "skipped",
        "it has the label holdfast.dev/exclude",
    ),
    "excluded, and rebooted": (facts(seen=midway("ready", "boot-2", excluded=True)), "take_slot", ""),
    "excluded, and cordoned by an earlier rolling reboot": (
        facts(seen={"excluded": True, "cordoned_by": "rolling_reboot"}),
        "take_over",
        "it has the label holdfast.dev/exclude",
    ),
    "done in this operation": (
        facts(seen={"record": Record("kernel", "uncordon", "rebooted", "boot-0")}),
        "skipped",
        "it was already rebooted in operation kernel",
    ),
    "done in this operation, and claimed by another run": (
        facts(seen={"record": Record("kernel", "uncordon", "rebooted", "boot-0"), "claim": ANOTHER}),
        "take_over",
        "",
    ),
    "not needed, and claimed by another run": (
        facts({"when": "required"}, {"claim": ANOTHER}, answer=Answer()),
        "take_over",
        "",
    ),
    "excluded, and claimed by a live run": (
        facts(seen={"excluded": True, "claim": ANOTHER}, taken_over=True),
        "skipped",
        "",
    ),
    "excluded, and claimed in another operation": (
        facts(seen={"excluded": True, "claim": replace(ANOTHER, operation="x")}),
        "skipped",
        "",
    ),
    "excluded, and claimed for other work": (
        facts(seen={"excluded": True, "claim": replace(ANOTHER, purpose="x")}),
        "skipped",
        "",
    ),
    "excluded, and its claim is this run's": (
        facts(seen={"excluded": True, "claim": replace(ANOTHER, run="me")}),
        "skipped",
        "",
    ),
    "done in this operation, and its slot passed to this run": (
        facts(seen={"record": Record("kernel", "uncordon", "rebooted", "boot-0"), "slot": MINE}),
        "take_over",
        "",
    ),
    "excluded, and its slot is still this run's after an attempt": (
        facts(seen={"excluded": True, "slot": MINE}, attempts=1),
        "skipped",
        "",
    ),
    "excluded, and its slot passed to this run, but another one has the claim": (
        facts(seen={"excluded": True, "slot": MINE}, taken_over=True),
        "skipped",
        "",
    ),
    "held, and its slot passed to this run": (facts(seen={"held": "x", "slot": MINE}), "take_over", "x"),
    "held, and its slot passed to this run, first pass": (
        facts({"put_off": True}, {"held": "x", "slot": MINE}),
        "take_over",
        "x",
    ),
    "held, and its slot passed to this run, but another one has the claim": (
        facts({"put_off": True}, {"held": "x", "slot": MINE}, taken_over=True),
        "put_off",
        "x",
    ),
    "held, and its slot is still this run's after an attempt": (
        facts(seen={"held": "x", "slot": MINE}, attempts=1),
        "await_holders",
        "x",
    ),
    "excluded, failed and claimed by another run": (
        facts(seen={"excluded": True, "claim": ANOTHER, "slot": SlotSeen("other", "kernel", "failed")}),
        "skipped",
        "",
    ),
    "needed, and claimed by another run": (facts(seen={"claim": ANOTHER}), "take_slot", ""),
    "done in this operation long ago": (
        facts({"when": "required"}, {"record": Record("kernel", "uncordon", "rebooted", "boot-0", old=True)}),
        "ask",
        "",
    ),
    "done in another operation": (facts(seen={"record": Record("x", "uncordon", "rebooted", "b")}), "take_slot", ""),
    "not asked": (facts({"when": "required"}), "ask", ""),
    "asked in another boot": (facts({"when": "required"}, answer=Answer("yes", boot_id="boot-0")), "ask", ""),
    "asked": (facts({"when": "required"}, answer=ANSWERED), "take_slot", ""),
    "asked, not needed": (facts({"when": "required"}, answer=Answer()), "skipped", "no reboot is required"),
    "can't be asked": (facts({"when": "command"}, answer=Answer(trouble="It is down.")), "stop", "It is down."),
    "excluded, and can't be asked": (
        facts({"when": "command"}, {"excluded": True}, answer=Answer(trouble="It is down.")),
        "skipped",
        "it has the label holdfast.dev/exclude",
    ),
    "midway, and can't be asked": (
        facts({"when": "command"}, midway("drain"), answer=Answer(trouble="It is down.")),
        "take_slot",
        "",
    ),
    "failed over": (
        facts(seen={"failed_over": "it is out of service"}),
        "stop",
        "it is out of service. Run the playbook",
    ),
    "failed over, and excluded": (facts(seen={"failed_over": "x", "excluded": True}), "skipped", ""),
    "failed over, not asked": (facts({"when": "required"}, {"failed_over": "x"}), "stop", "recover first"),
    "failed over meanwhile": (claimed(seen={"failed_over": "x"}), "leave", "recover first"),
    "sent and failed over": (facts(seen=midway("reboot", ready=False, failed_over="x")), "stop", "recover first"),
    "sent, claimed and failed over": (claimed(seen=midway("reboot", failed_over="x")), "stop", "recover first"),
    "rebooted and failed over": (facts(seen=midway("ready", "boot-2", failed_over="x")), "stop", "recover first"),
    "cordoned by other work": (facts(seen={"cordoned_by": "machine_guard"}), "stop", "cordoned by machine_guard. Let"),
    "cordoned by other work, done": (
        facts(seen={"cordoned_by": "x", "record": Record("kernel", "uncordon", "rebooted", "boot-0")}),
        "skipped",
        "",
    ),
    "cordoned by other work meanwhile": (claimed(seen={"cordoned_by": "x"}), "leave", "cordoned by x"),
    "midway, and cordoned by other work": (claimed(seen=midway("reboot", cordoned_by="x")), "go", ""),
    "given back, and cordoned by other work": (
        claimed(seen=midway("drain", cordoned_by="x")),
        "leave",
        "cordoned by x",
    ),
    "cordoned by an earlier rolling reboot": (facts(seen={"cordoned_by": "rolling_reboot"}), "take_slot", ""),
    "etcd not looked at": (facts(etcd=None), "look_at_etcd", ""),
    "only node": (facts(etcd=Etcd(single_node=True)), "stop", "the cluster's only node: "),
    "only control-plane node": (facts(etcd=Etcd(only_control_plane=True)), "stop", "only control-plane node: "),
    "only node, and meant": (facts({"single_node": True}, etcd=Etcd(single_node=True)), "take_slot", ""),
    "claimed, etcd not looked at": (claimed(etcd=None), "look_at_etcd", ""),
    "claimed, only node": (claimed(etcd=Etcd(single_node=True)), "go", ""),
    "rebooted, only node": (facts(seen=midway("ready", "boot-2"), etcd=Etcd(single_node=True)), "take_slot", ""),
    "rebooted, etcd not looked at": (facts(seen=midway("ready", "boot-2"), etcd=None), "take_slot", ""),
    "only the older label of the control plane": (
        facts({"single_node": True, "quorum_command": True}, etcd=Etcd(control_plane=True, kept=True)),
        "stop",
        "kubectl label node node-1 node-role.kubernetes.io/control-plane=",
    ),
    "a member of etcd without a label": (
        facts({"quorum_command": True}, etcd=Etcd(member=True)),
        "stop",
        "Node node-1 has a pod of etcd, but not the label node-role.kubernetes.io/control-plane",
    ),
    "does not run in pods": (facts(seen=LABELLED, etcd=Etcd(control_plane=True)), "stop", "does not run in pods"),
    "does not run in pods, asked by a command": (
        facts({"quorum_command": True}, LABELLED, etcd=Etcd(control_plane=True)),
        "take_slot",
        "",
    ),
    "its shutdown not asked": (facts({"method": "systemd", "graceful_shutdown": "warn"}), "ask", ""),
    "its shutdown bad, required": (
        facts({"method": "systemd", "graceful_shutdown": "require"}, shutdown=Shutdown(in_effect=False)),
        "stop",
        "Or set rolling_reboot_graceful_shutdown: warn.",
    ),
    "its shutdown bad, warned": (
        facts({"method": "systemd", "graceful_shutdown": "warn"}, shutdown=Shutdown(in_effect=False)),
        "take_slot",
        "",
    ),
    "its shutdown good": (
        facts({"method": "systemd", "graceful_shutdown": "require"}, shutdown=Shutdown(in_effect=True)),
        "take_slot",
        "",
    ),
    "its shutdown ignored": (facts({"method": "systemd", "graceful_shutdown": "ignore"}), "take_slot", ""),
    "warned in an earlier pass": (
        facts({"method": "systemd", "graceful_shutdown": "warn", "again": True}),
        "take_slot",
        "",
    ),
    "midway, its shutdown": (
        facts({"method": "systemd", "graceful_shutdown": "require"}, midway("drain")),
        "take_slot",
        "",
    ),
    "canaries not waited for": (facts({"waits_for_canaries": True}), "await_canaries", ""),
    "canary in trouble": (facts({"waits_for_canaries": True}, canaries=Canaries("It broke.")), "stop", "It broke."),
    "canary postponed": (
        facts({"waits_for_canaries": True}, canaries=Canaries(postponed=("a", "b"))),
        "postponed",
        "canary a, b is postponed",
    ),
    "canaries well": (facts({"waits_for_canaries": True}, canaries=Canaries()), "take_slot", ""),
    "midway, whatever the canaries do": (facts({"waits_for_canaries": True}, midway("drain")), "take_slot", ""),
    "window not looked at": (facts({"windows": True}), "look_at_window", ""),
    "window open": (facts({"windows": True}, window=Window()), "take_slot", ""),
    "window closed": (
        facts({"windows": True}, window=Window(open=False, opens="tomorrow")),
        "postponed",
        "no maintenance window is open; the next one opens tomorrow",
    ),
    "no window ever": (facts({"windows": True}, window=Window(open=False)), "postponed", "opens never"),
    "midway, whatever the window": (facts({"windows": True}, midway("cordon")), "take_slot", ""),
    "held, first pass": (facts({"put_off": True}, {"held": "held by a/b"}), "put_off", "held by a/b"),
    "blocked, first pass": (facts({"put_off": True}, {"blocked": "by a pod"}), "put_off", "by a pod"),
    "held, last pass": (facts(seen={"held": "held by a/b"}), "await_holders", "held by a/b"),
    "held, waited for": (facts(seen={"held": "held by a/b"}, holders_waited=True), "take_slot", ""),
    "tasks before the slot": (facts({"user_steps": frozenset({"before_slot"})}), "before_slot", ""),
    "tasks before the slot were run": (
        facts({"user_steps": frozenset({"before_slot"})}, slot_tasks_run=True),
        "take_slot",
        "",
    ),
    "slot given": (facts(has_slot=True), "claim", ""),
    "slot not given, in turns": (facts({"in_turns": True}, slot_wait=SlotWait(1, 1, "full")), "wait", "full"),
    "slot not given, alone": (facts(slot_wait=SlotWait(1, 1, "full")), "take_slot", ""),
    "slot not given, time over": (facts(slot_wait=SlotWait(1, 9999, "full")), "stop", "full"),
    "time over, others counted": (
        facts({"in_turns": True}, slot_wait=SlotWait(1, 9999, "full", counted=True)),
        "wait",
        "full",
    ),
    "had its turn, first pass": (facts({"put_off": True}, attempts=1, left="full"), "put_off", "full"),
    "had its turn": (facts(attempts=4), "take_slot", ""),
    "had too many": (facts(attempts=5, left="held by a/b"), "stop", "held again in each of 5 attempts: held by a/b."),
    "slot passed on": (claimed(seen={"slot": SlotSeen("x", "kernel")}), "unclaim", "passed to another run"),
    "slot gone": (claimed(seen={"slot": None}), "unclaim", "passed to another run"),
    "slot failed": (claimed(seen={"slot": SlotSeen("me", "kernel", "failed")}), "unclaim", ""),
    "slot of another operation": (claimed(seen={"slot": SlotSeen("me", "x")}), "unclaim", ""),
    "held meanwhile": (claimed(seen={"held": "held by a/b"}), "leave", "held by a/b"),
    "held meanwhile, and no window is open": (
        claimed({"windows": True}, {"held": "held by a/b"}, window=Window(open=False)),
        "leave",
        "held by a/b",
    ),
    "excluded meanwhile": (claimed(seen={"excluded": True}), "leave", "it has the label holdfast.dev/exclude"),
    "booted meanwhile": (claimed({"when": "required"}, answer=Answer("yes", boot_id="boot-0")), "leave", ""),
    "window closed meanwhile": (claimed({"windows": True}, window=Window(open=False)), "leave", "no maintenance"),
    "maintained, first pass": (facts({"put_off": True}, {"maintained": "by x"}), "put_off", "by x"),
    "maintained, last pass": (facts(seen={"maintained": "by x", "blocked": "y"}), "await_holders", "y; by x"),
    "maintained meanwhile": (claimed(seen={"maintained": "by x"}), "leave", "by x"),
    "midway and maintained": (claimed(seen=midway("drain", maintained="by x")), "go", ""),
    "rebooted and maintained": (claimed(seen=midway("ready", "boot-2", maintained="by x")), "go", ""),
    "midway and held": (claimed(seen=midway("drain", held="held by a/b")), "put_back", "held by a/b"),
    "midway, held, not ours yet": (facts(seen=midway("drain", held="held by a/b")), "take_slot", ""),
    "sent and held, first pass": (claimed({"put_off": True}, midway("reboot", held="x")), "await_holders", "x"),
    "sent and held": (claimed(seen=midway("reboot", held="x")), "await_holders", "x"),
    "sent, held, waited for": (claimed(seen=midway("reboot", held="x"), holders_waited=True), "go", ""),
    "down and held": (claimed(seen=midway("drain", held="x", ready=False)), "await_holders", "x"),
    "rebooted and held": (claimed(seen=midway("ready", "boot-2", held="x")), "go", ""),
    "sent and not back": (claimed(seen=midway("reboot", ready=False)), "await_back", ""),
    "sent, waited for, not back": (claimed(seen=midway("reboot", ready=False), back_waited=True), "go", ""),
    "etcd's other members": (claimed(etcd=Etcd(control_plane=True, kept=False)), "await_quorum", ""),
    "etcd's other members are well": (claimed(etcd=Etcd(control_plane=True, kept=True), quorum_kept=True), "go", ""),
    "go": (claimed(), "go", "rolling_reboot_when is always"),
}


@pytest.mark.parametrize(("known", "name", "why"), TABLE.values(), ids=TABLE)
def test_the_next_step(known, name, why):
    step = next_step(known)
    assert step.name == name
    assert why in step.why


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (claimed(seen={"held": "x"}), Step("leave", "x", record="hold")),
        (claimed(seen=midway("drain", held="x")), Step("put_back", "x", record="hold")),
        (
            claimed({"windows": True}, window=Window(open=False, opens="tomorrow")),
            Step("leave", "no maintenance window is open; the next one opens tomorrow", record="hold"),
        ),
        (
            claimed({"when": "required"}, answer=Answer("yes", boot_id="boot-0")),
            Step("leave", "it has booted since it was asked", record="hold"),
        ),
        (claimed(seen={"excluded": True}), Step("leave", EXCLUDED, record="skipped")),
        (
            claimed(seen={"excluded": True, "record": Record("other", "uncordon", "rebooted", "boot-0")}),
            Step("leave", EXCLUDED, record="skipped"),
        ),
        (
            claimed(seen={"record": Record("kernel", "uncordon", "rebooted", "boot-0")}),
            Step("leave", done_words("kernel")),
        ),
        (facts(seen={"excluded": True, "claim": ANOTHER}), Step("take_over", EXCLUDED)),
        (facts({"canary": True}, {"excluded": True}), Step("skipped", EXCLUDED, record="skipped")),
        (facts(seen={"excluded": True}), Step("skipped", EXCLUDED)),
        (facts({"when": "required"}), Step("ask", "whether a reboot is needed", ("needed",))),
        (
            facts({"when": "required"}, {"exists": False}),
            Step("ask", "whether a reboot is needed", ("needed",)),
        ),
        (
            facts({"method": "systemd", "graceful_shutdown": "require"}),
            Step("ask", "whether its shutdown is graceful", ("shutdown",)),
        ),
        (
            facts({"when": "required"}, {"exists": False}, answer=Answer(trouble="It is down.")),
            Step("stop", "It is down.", error="unknown"),
        ),
        (
            facts({"when": "required"}, answer=Answer(trouble="It is down.")),
            Step("stop", "It is down.", error="unknown"),
        ),
    ],
)
def test_what_a_step_records_and_asks(known, expected):
    assert next_step(known) == expected


@pytest.mark.parametrize(
    ("known", "error", "words"),
    [
        (facts(seen={"exists": False}), "not_found", "There is no Node node-1. Set"),
        (facts({"host": "web1"}, {"exists": False}), "not_found", "There is no Node node-1 for host web1. Set"),
        (facts(attempts=5, left="x"), "held", "Node node-1 was held again"),
        (facts(slot_wait=SlotWait(1, 9999, "full")), "timed_out", "full"),
        (facts(etcd=Etcd(only_control_plane=True)), "refused", "Node node-1 is the cluster's only control-plane node"),
        (
            facts({"etcd_selector": "component=etcd"}, LABELLED, etcd=Etcd(control_plane=True)),
            "refused",
            "etcd of control-plane node node-1 does not run in pods: no pod in kube-system matches component=etcd.",
        ),
        (
            facts({"method": "systemd", "graceful_shutdown": "require"}, shutdown=Shutdown(in_effect=False)),
            "refused",
            "node-1",
        ),
    ],
)
def test_a_node_that_is_stopped_names_itself_and_the_kind_of_the_error(known, error, words):
    step = next_step(known)
    assert (step.name, step.error) == ("stop", error)
    assert words in step.why


def test_every_step_is_in_the_table():
    assert {name for _known, name, _why in TABLE.values()} == {*rules.ACTS, *ANSWERS} - {"look"}


@pytest.mark.parametrize(
    ("known", "left"),
    [
        (claimed(), FULL),
        (claimed(seen=midway("cordon")), FULL),
        (claimed(seen=midway("drain")), FULL),
        (claimed(seen=midway("drain", "boot-2")), FULL),
        (claimed(seen=midway("reboot")), ("reboot", "ready", "finish")),
        # Its run failed there, gave the node back, and died before it recorded that.
        (claimed(seen=midway("reboot", cordoned_by="")), FULL),
        # A person has uncordoned it, so its pods may be there again.
        (claimed(seen=midway("reboot", uncordoned=True)), FULL),
        (claimed(seen=midway("reboot", "boot-2")), ("ready", "finish")),
        (claimed(seen=midway("uncordon", "boot-2")), ("ready", "finish")),
        (claimed(etcd=Etcd(single_node=True)), ("cordon", "opt_outs", "reboot", "ready", "finish")),
        (claimed({"opt_outs": False}), ("cordon", "drain", "reboot", "ready", "finish")),
    ],
)
def test_the_steps_that_are_left(known, left):
    assert steps_left(known) == left


@pytest.mark.parametrize(
    ("settings", "etcd", "method"),
    [
        ({}, Etcd(), "metal3"),
        ({}, Etcd(control_plane=True, only_control_plane=True), "metal3"),
        ({}, Etcd(control_plane=True, kept=True), "after_etcd"),
        ({"quorum_command": True}, Etcd(control_plane=True), "after_quorum_command"),
    ],
)
def test_a_control_plane_node_reboots_after_a_look_at_its_quorum(settings, etcd, method):
    assert method_of(claimed(settings, etcd=etcd)) == method


def test_the_steps_of_the_user_that_have_files():
    known = claimed({"user_steps": frozenset({"before_slot", "before_drain", "check", "after"})})
    expected = ("cordon", "opt_outs", "before_drain", "drain", "reboot", "ready", "check", "finish", "after")
    assert steps_left(known) == expected


@pytest.mark.parametrize(
    ("phase", "boot_id", "result", "cordoned_by", "expected"),
    [
        ("hold", "boot-1", "", "", False),
        ("slot", "boot-1", "", "", False),
        # Without the cordon, a run has given the node back, and has not closed the record of another operation.
        *((phase, "boot-1", "", "", phase in WENT) for phase in WORK),
        *((phase, "boot-1", "", "rolling_reboot", True) for phase in WORK),
        *((phase, "boot-1", "failed", "", False) for phase in WORK),
        *((phase, "boot-1", "failed", "rolling_reboot", phase in WENT) for phase in WORK),
        *((phase, "boot-2", "failed", "", phase in WENT) for phase in WORK),
        *((phase, "boot-2", "failed", "rolling_reboot", True) for phase in WORK),
        *((phase, "boot-1", "failed", "someone", False) for phase in WORK),
        *((phase, "boot-2", "rebooted", "rolling_reboot", False) for phase in WORK),
        *((phase, "boot-2", "skipped", "rolling_reboot", False) for phase in WORK),
    ],
)
def test_a_node_is_midway(phase, boot_id, result, cordoned_by, expected):
    seen = replace(SEEN, boot_id=boot_id, cordoned_by=cordoned_by, record=Record("kernel", phase, result, "boot-1"))
    assert seen.midway("kernel") is expected
    assert not seen.midway("another")


def test_a_node_that_failed_in_its_drain_and_was_repaired_by_a_reboot_is_only_finished():
    failed = midway("drain", "boot-2", result="failed")
    known = claimed(seen=failed)

    assert known.rebooted
    assert steps_left(known) == ("ready", "finish")


@pytest.mark.parametrize(("phase", "before"), [("cordon", "boot-2"), ("drain", "boot-2"), ("reboot", "boot-1")])
def test_a_node_that_booted_before_its_reboot_was_sent_is_rebooted_from_that_boot(phase, before):
    assert replace(SEEN, **midway(phase, "boot-2")).boot_id_before("kernel") == before


def test_the_wait_for_a_slot():
    known = facts({"in_turns": True, "slot_timeout": 1000, "unhealthy_grace": 300}, window=Window(seconds_left=5000))
    assert slot_patience(known) == 360
    known = known.after_turn(360, 360, "full")
    assert (time_left(known), known.window) == (639, None)
    assert time_left(known.after_turn(300, 20, "full")) == 979, "something happened"
    assert slot_patience(replace(known, window=Window(seconds_left=50))) == 50
    assert slot_patience(replace(known, seen=replace(SEEN, **midway("drain")), window=Window(seconds_left=50))) == 360
    assert slot_patience(replace(known, slot_wait=SlotWait(waited=2000))) == 500


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (None, (100, False)),
        (Window(), (100, False)),
        (Window(seconds_left=100), (100, False)),
        (Window(seconds_left=99), (99, True)),
    ],
)
def test_the_wait_for_holders_ends_with_the_window(window, expected):
    assert hold_patience(facts(window=window), 100) == expected


def test_a_warning_is_given_if_the_node_is_rebooted_in_spite_of_it():
    bad = Shutdown(in_effect=False, problems=("It is 0.",))
    known = facts({"method": "systemd", "graceful_shutdown": "warn"}, shutdown=bad)
    assert "It is 0." in warning(known)
    assert "because rolling_reboot_graceful_shutdown is warn" in warning(known)
    assert not warning(replace(known, shutdown=Shutdown(in_effect=True)))
    assert not warning(replace(known, settings=replace(known.settings, again=True)))
    assert not warning(replace(known, seen=replace(SEEN, **midway("drain"))))


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (facts(), ("now", "rolling_reboot_when is always")),
        (facts({"put_off": True}, {"held": "held by a/b"}), ("later", "held by a/b")),
        (facts(seen={"held": "held by a/b"}), ("later", "held by a/b")),
        (facts({"windows": True}, window=Window(open=False, opens="tomorrow")), ("later", "opens tomorrow")),
        (facts({"windows": True}, midway("drain"), window=Window(open=False)), ("now", "is always")),
        (
            facts({"windows": True, "waits_for_canaries": True}, canaries=Canaries(postponed=("a",)), window=Window()),
            ("later", "canary a is postponed"),
        ),
        (
            facts({"waits_for_canaries": True}, canaries=Canaries(postponed=("a",))),
            ("later", "canary a is postponed"),
        ),
        (facts({"in_turns": True}, slot_wait=SlotWait(1, 1, "full")), ("later", "full")),
        (facts(etcd=Etcd(single_node=True)), ("never", "only node")),
        (facts(seen={"held": "held by a/b", "slot": MINE}), ("later", "held by a/b")),
        (facts(seen={"held": "held by a/b", "excluded": True, "slot": MINE}), ("never", "holdfast.dev/exclude")),
        (facts(seen={"excluded": True}), ("never", "it has the label holdfast.dev/exclude")),
        (facts(seen={"exists": False}), ("never", "There is no Node")),
        (facts({"when": "required"}, answer=Answer()), ("not needed", "no reboot is required")),
        (facts({"when": "required"}, midway("drain")), ("now", "another run had started on it")),
    ],
)
def test_the_plan_is_what_a_run_would_do(known, expected):
    plan = plan_of(decision(known), known)
    assert plan.verdict == expected[0]
    assert expected[1] in plan.why


PLANNED = Verdict("now", "a kernel")
DELETED = "; after 60 s, pods that their budgets still refuse are deleted"
LONE = {"namespace": "shop", "name": "lone", "verdict": "never", "reason": "no controller"}
BOUND = {"namespace": "shop", "name": "web", "verdict": "never", "reason": "budget", "pdb": "web"}
BUSY = {"namespace": "shop", "name": "api", "verdict": "later", "reason": "two of three", "pdb": "api"}


@pytest.mark.parametrize(
    ("blockers", "deletes", "expected"),
    [
        ([], [], PLANNED),
        ([BUSY], [], Verdict("later", "shop/api: two of three")),
        ([BUSY, BOUND], [], Verdict("never", "shop/web: budget")),
        ([BUSY, BOUND], [BUSY], Verdict("never", f"shop/web: budget{DELETED}")),
        ([BUSY, LONE], [BUSY], Verdict("never", f"shop/lone: no controller{DELETED}")),
        ([BUSY, BOUND], [BUSY, BOUND], Verdict("later", f"shop/web: budget{DELETED}")),
        ([BUSY] * 6, [], Verdict("later", "; ".join(["shop/api: two of three"] * 5))),
    ],
)
def test_the_plan_of_a_node_whose_drain_is_blocked(blockers, deletes, expected):
    assert plan_with_drain(PLANNED, blockers, deletes=deletes, delete_after=60) == expected


@pytest.mark.parametrize(
    ("known", "stage"),
    [
        (Facts(SETTINGS), "looking"),
        (facts(seen={"exists": False}), "looking"),
        (facts({"when": "required"}), "looking"),
        (facts({"when": "required"}, answer=Answer(trouble="It is down.")), "looking"),
        (facts(), "waiting"),
        (facts().after_holders(), "waiting"),
        (facts().after_attempt("held"), "waiting"),
        (facts({"hold_attempts": 1}).after_attempt("held"), "given_up"),
        (facts({"hold_attempts": 1, "put_off": True}).after_attempt("held"), "waiting"),
        (claimed(), "working"),
        (facts().after_claim(), "working"),
    ],
)
def test_how_far_the_run_has_come(known, stage):
    assert known.stage == stage


# Properties over all facts.

text = st.sampled_from(["", "held by a/b"])
boots = st.sampled_from(["boot-1", "boot-2"])
records = st.builds(
    Record,
    st.sampled_from(["", "kernel", "other"]),
    st.sampled_from(["", "hold", "slot", *WORK]),
    st.sampled_from(["", "rebooted", "skipped", "failed"]),
    boots,
    unchecked=st.booleans(),
)
slots = st.none() | st.builds(
    SlotSeen, st.sampled_from(["me", "x"]), st.sampled_from(["kernel", "other"]), st.sampled_from(["active", "failed"])
)
PURPOSES = st.sampled_from(["rolling_reboot", "failover"])
seens = st.none() | st.builds(
    Seen,
    st.just("node-1"),
    exists=st.booleans(),
    ready=st.booleans(),
    boot_id=boots,
    excluded=st.booleans(),
    cordoned_by=st.sampled_from(["", "rolling_reboot"]),
    record=records,
    slot=slots,
    held=text,
    blocked=text,
    claim=st.none()
    | st.builds(Claim, st.sampled_from(["me", "x"]), st.sampled_from(["kernel", "other"]), PURPOSES, st.just("")),
    stuck=text,
    failover=st.booleans(),
    uncordoned=st.booleans(),
    cordoned_again=st.booleans(),
    opted_out=st.booleans(),
)
settings_ = st.builds(
    Settings,
    node=st.just("node-1"),
    operation=st.just("kernel"),
    run=st.just("me"),
    when=st.sampled_from(["always", "required"]),
    method=st.sampled_from(["systemd", "command"]),
    put_off=st.booleans(),
    resumes=st.booleans(),
    own=st.booleans(),
    restart=st.booleans(),
    window_wait=st.sampled_from([0, 60]),
    waits_for_canaries=st.booleans(),
    canary=st.booleans(),
    windows=st.booleans(),
    hold_attempts=st.integers(1, 3),
    single_node=st.booleans(),
    graceful_shutdown=st.sampled_from(["ignore", "warn", "require"]),
    user_steps=st.sets(st.sampled_from(rules.USER_STEPS)).map(frozenset),
    in_turns=st.booleans(),
    slot_timeout=st.integers(0, 100),
)
etcds = st.builds(Etcd, st.booleans(), st.booleans(), st.booleans(), st.none() | st.booleans())
everything = st.builds(
    Facts,
    settings=settings_,
    seen=seens,
    answer=st.none() | st.builds(Answer, text, text, st.sampled_from(["", "boot-1", "boot-2"])),
    shutdown=st.none() | st.builds(Shutdown, st.none() | st.booleans()),
    etcd=st.none() | etcds,
    canaries=st.none() | st.builds(Canaries, text, st.sampled_from([(), ("a",)])),
    window=st.none() | st.builds(Window, st.booleans(), text, st.none() | st.integers(0, 100)),
    slot_wait=st.builds(SlotWait, st.floats(0, 500), st.floats(0, 500), text, st.booleans()),
    has_slot=st.booleans(),
    claimed=st.booleans(),
    holders_waited=st.booleans(),
    slot_tasks_run=st.booleans(),
    back_waited=st.booleans(),
    quorum_kept=st.booleans(),
    attempts=st.integers(0, 4),
    taken_over=st.booleans(),
    kept=text,
)


@given(everything)
def test_a_node_goes_down_only_if_nothing_forbids_it(known):
    step = next_step(known)
    if step.name != GO:
        return
    seen = known.node
    assert known.claimed
    assert seen.slot == MINE
    assert seen.exists
    if "reboot" not in step.steps:
        return
    if seen.excluded:
        assert seen.under_way("kernel"), "only a reboot that is under way is finished"
        assert "drain" not in step.steps or not seen.ready or seen.record.phase != "reboot"
    if not known.midway:
        assert not known.why_later
        assert known.needed
        assert not known.settings.windows or (known.window and known.window.open)
    assert not known.why_later or seen.past_holds("kernel"), "its cordon alone would be undone"


@given(everything)
def test_what_a_dead_run_left_is_taken_over_only_if_it_may_be_returned(known):
    step, node = next_step(known), known.node
    if step.name == rules.TAKE_OVER:
        assert not any((known.claimed, known.midway, known.taken_over, node.failed))
        # A cordon that stays may have a slot and a claim under which no work has started. These are returned.
        untouched = node.record.unchecked and node.record.phase in ("hold", "slot")
        assert untouched or not (node.cordoned_by and node.keeps_cordon)


@given(everything)
def test_no_answer_ends_well_for_a_node_that_an_earlier_run_left_cordoned(known):
    step, node = next_step(known), known.node
    if step.name in (rules.SKIPPED, rules.POSTPONED) and node.cordoned_by and not known.claimed:
        # A live run has its claim, or a person has excluded or uncordoned it.
        live = (
            node.claim is not None and node.claim.run == "x" and (known.taken_over or node.claim.operation == "other")
        )
        assert node.excluded or node.uncordoned or (live and not node.stuck)


@given(everything)
def test_what_is_not_claimed_is_not_touched(known):
    step = next_step(known)
    if not known.claimed:
        assert step.name not in (rules.LEAVE, rules.PUT_BACK, rules.UNCLAIM, rules.AWAIT_BACK, rules.AWAIT_QUORUM, GO)
    elif step.name in (rules.SKIPPED, rules.POSTPONED, rules.ASK, rules.WAIT, rules.BEFORE_SLOT):
        pytest.fail(f"{step.name} leaves slot and claim behind")


@given(everything)
def test_steps_are_in_their_order_and_end_with_the_node_given_back(known):
    left = steps_left(known)
    assert list(left) == [step for step in ROLE_STEPS if step in left]
    assert "finish" in left
    assert ("reboot" in left) is not known.rebooted


@example(facts(seen=midway("cordon", excluded=True, ready=False)), False)
@example(facts({"when": "required"}, midway("cordon", held="by a job"), answer=Answer("")), False)
@given(everything, st.booleans())
def test_a_plan_and_a_run_never_differ(known, put_off):
    """What a plan says of a node that nobody works on is what becomes of it in a run in which nothing changes."""
    fresh = replace(
        known,
        settings=replace(
            known.settings,
            put_off=False,
            resumes=False,
            in_turns=False,
            waits_for_canaries=False,
            user_steps=frozenset(),
        ),
        taken_over=False,
        kept="",
        etcd=known.etcd or Etcd(),
        seen=known.seen or SEEN,
        window=known.window or Window(),
        answer=replace(known.answer or Answer("yes"), boot_id=known.node.boot_id),
        shutdown=known.shutdown or Shutdown(True),
        slot_wait=SlotWait(),
        has_slot=False,
        claimed=False,
        holders_waited=False,
        back_waited=False,
        attempts=0,
    )
    before = fresh
    while rules.gives_back_first(decision(before), before):
        before = before.given_back()
    planned = plan_of(decision(before), before).verdict
    run = replace(fresh, settings=replace(fresh.settings, put_off=put_off))
    ended = outcome(run)
    expected = {
        "now": {GO},
        "later": {rules.PUT_OFF, rules.POSTPONED, rules.AWAIT_HOLDERS},
        "never": {STOP, rules.SKIPPED},
        "not needed": {rules.SKIPPED},
    }
    assert ended in expected[planned], planned


def outcome(known):
    """The answer of a run in which nothing changes; the wait for holders, where it would not end."""
    world, node = World(known, []), known.node
    while True:
        step = next_step(world.known)
        if step.error == "held":
            # The run has given the node back, and may not try it again.
            return rules.AWAIT_HOLDERS
        if step.name in ANSWERS or step.name == rules.AWAIT_HOLDERS:
            return step.name
        if step.name == "look":
            claimed_ = world.known.claimed
            # What a dead run left is gone once this run has returned it.
            clean = replace(node, slot=None, claim=None, cordoned_by="") if world.known.taken_over else node
            world.known = world.known.looked(replace(node, slot=MINE) if claimed_ else clean)
        elif step.name == "look_at_window":
            world.known = replace(world.known, window=known.window)
        elif step.name == "put_back" and world.known.gives_back:
            node = world.known.given_back().node
            world.known = world.known.after_attempt(step.why)
        elif step.name in ("put_back", "leave", "unclaim") and world.known.restores is None:
            return rules.SKIPPED if step.name == "leave" and step.record != "hold" else rules.PUT_OFF
        else:
            world.known = world.carry_out(step)


@given(everything)
def test_a_plan_says_now_only_if_a_run_would_begin(known):
    # A plan claims nothing.
    known = replace(known, claimed=False)
    step = decision(known)
    if known.seen is not None and plan_of(step, known).verdict == "now":
        assert step.name not in (STOP, rules.SKIPPED, rules.POSTPONED, rules.PUT_OFF, rules.WAIT, rules.LEAVE)
        assert not known.why_later


class World:
    """Carries steps out, with what happens meanwhile taken from a list."""

    def __init__(self, known, events):
        self.known, self.events = known, iter(events)

    def seen(self):
        chosen = next(self.events, None)
        seen = chosen if chosen is not None else SEEN
        return replace(seen, slot=MINE) if self.known.claimed and seen.slot is None else seen

    def carry_out(self, step):
        known = self.known
        simple = {
            "look_at_etcd": {"etcd": Etcd()},
            "await_canaries": {"canaries": Canaries()},
            "look_at_window": {"window": Window()},
            "take_slot": {"has_slot": True},
        }
        if step.name in simple:
            return replace(known, **simple[step.name])
        if step.name == "look":
            return known.looked(self.seen())
        if step.name == "take_over":
            return known.after_take_over(step.why, taken=True)
        if step.name in ("leave", "put_back", "unclaim"):
            return known.after_attempt(step.why)
        after = {
            "await_holders": Facts.after_holders,
            "claim": Facts.after_claim,
            "await_back": Facts.after_back,
            "await_quorum": Facts.after_quorum,
        }
        return after[step.name](known)


@given(settings_, st.lists(seens, max_size=12))
def test_every_admission_ends(settings, events):
    world = World(Facts(settings, answer=Answer("yes")), events)
    for _number in range(100):
        step = next_step(world.known)
        if step.name in ANSWERS:
            return
        world.known = world.carry_out(step)
    pytest.fail("it never ends")

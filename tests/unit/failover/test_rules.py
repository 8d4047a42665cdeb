# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which step of a failover is the next, and when none may be done."""

from __future__ import annotations

import copy
import json
import re
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import (
    CORDON,
    EVIDENCE,
    FAILOVER,
    OUT_OF_SERVICE,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Slot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import audit_rules, rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.rules import (
    DONE,
    FENCE,
    STOP,
    TAINT,
    Change,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import still_down_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.still_down_rules import CameBack
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.quorum_rules import Quorum

NOW = datetime(2026, 11, 21, 9, tzinfo=timezone.utc)
BOOT, OTHER = "boot-1", "boot-2"
PHASES = ("claim", "fence", "taint", "move", *rules.GOING_BACK)


def node(*, ready="Unknown", boot=BOOT, tainted=False, evidence=None, message="", since=None):
    annotations = {EVIDENCE: json.dumps({"kind": "Command", "boot_id": evidence})} if evidence else {}
    taints = [{"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}] if tainted else []
    condition = {"type": "Ready", "status": ready, "reason": "Told", "message": message}
    if since is not None:
        condition["lastTransitionTime"] = (NOW - timedelta(seconds=since)).isoformat()
    return {
        "metadata": {"name": "n", "annotations": annotations},
        "spec": {"taints": taints},
        "status": {"conditions": [condition], "nodeInfo": {"bootID": boot}},
    }


def record(phase="claim", result="", boot=BOOT):
    begun = rules.begin(node(boot=boot), "op", run="r", holder="ada", reason="", fence="command", now=NOW)
    return {**begun, "phase": phase, "result": result}


any_node = st.builds(
    node,
    ready=st.sampled_from(["True", "False", "Unknown"]),
    boot=st.sampled_from([BOOT, OTHER]),
    tainted=st.booleans(),
    evidence=st.sampled_from([None, BOOT, OTHER]),
)
any_record = st.none() | st.builds(
    record,
    phase=st.sampled_from(PHASES),
    result=st.sampled_from(["", "failed", "moved"]),
    boot=st.sampled_from([BOOT, OTHER]),
)


def step_of(seen, known):
    try:
        return rules.next_step(seen, known)
    except Refused as refused:
        return refused.fields["why"]


# -- the next step ----------------------------------------------------------------------------------------------------


@given(any_node, any_record)
def test_a_node_that_is_on_is_neither_fenced_nor_tainted(seen, known):
    step = step_of(seen, known)
    on = seen["status"]["conditions"][0]["status"] == "True"
    booted = known is not None and seen["status"]["nodeInfo"]["bootID"] != known["boot_id"]
    down_again = booted and not on and known["result"] == "failed" and not seen["spec"]["taints"]
    if (on or booted) and not down_again:
        assert step in (STOP, "ready", "recover_first")
    else:
        assert step in (FENCE, TAINT, DONE, "recover_first")


@given(any_node, any_record)
def test_a_node_in_recovery_is_no_longer_proven_off(seen, known):
    if known is not None and known["phase"] in rules.GOING_BACK:
        assert step_of(seen, known) in (FENCE, STOP, "recover_first")


@given(any_node, any_record)
def test_nothing_moves_without_proof_of_this_boot(seen, known):
    if step_of(seen, known) in (TAINT, DONE):
        assert json.loads(seen["metadata"]["annotations"][EVIDENCE])["boot_id"] == seen["status"]["nodeInfo"]["bootID"]
        assert seen["spec"]["taints"]


@given(any_node, any_record)
def test_a_node_that_is_proven_off_is_not_fenced_again(seen, known):
    proven = (
        seen["spec"]["taints"]
        and seen["metadata"]["annotations"].get(EVIDENCE, "").find(seen["status"]["nodeInfo"]["bootID"]) >= 0
    )
    if proven:
        assert step_of(seen, known) != FENCE


@pytest.mark.parametrize(
    ("seen", "known", "step"),
    [
        (node(), None, FENCE),
        (node(ready="True"), None, "ready"),
        (node(tainted=True, evidence=BOOT), None, TAINT),
        (node(tainted=True), None, FENCE),
        (node(), record("fence"), FENCE),
        (node(), record("taint", "failed"), FENCE),
        (node(tainted=True, evidence=BOOT), record("move"), TAINT),
        (node(tainted=True, evidence=BOOT), record("move", "moved"), DONE),
        (node(), record("move", "moved"), FENCE),
        (node(ready="True"), record("fence"), STOP),
        (node(boot=OTHER), record("taint"), STOP),
        (node(boot=OTHER), record("taint", "failed"), FENCE),
        (node(boot=OTHER), record("uncordon", "failed"), FENCE),
        (node(ready="True", boot=OTHER), record("taint", "failed"), STOP),
        (node(boot=OTHER), record("uncordon"), STOP),
        (node(boot=OTHER, tainted=True, evidence=BOOT), record("ready", "failed"), "recover_first"),
        (node(ready="True", boot=OTHER, tainted=True, evidence=BOOT), record("move", "moved"), "recover_first"),
        *((node(tainted=True, evidence=BOOT), record(phase), "recover_first") for phase in rules.GOING_BACK),
        (node(tainted=True, evidence=BOOT), record("ready", "failed"), "recover_first"),
        (node(), record("power_on", "failed"), FENCE),
    ],
)
def test_the_next_step(seen, known, step):
    assert step_of(seen, known) == step


@pytest.mark.parametrize(
    ("seen", "known", "off"),
    [
        (node(tainted=True, evidence=BOOT), None, True),
        (node(tainted=True, evidence=BOOT), record("move", "moved"), True),
        (node(tainted=True, evidence=OTHER), None, False),
        (node(tainted=True), None, False),
        (node(evidence=BOOT), None, False),
        *((node(tainted=True, evidence=BOOT), record(phase), False) for phase in rules.GOING_BACK),
        (node(tainted=True, evidence=BOOT), {"phase": "power_on"}, False),
    ],
)
def test_a_node_is_known_to_be_off(seen, known, off):
    """A node whose record is broken may be in recovery."""
    if known is not None:
        seen = copy.deepcopy(seen)
        seen["metadata"]["annotations"][FAILOVER] = json.dumps(known)
    assert rules.known_off(seen) is off


def test_facts_of_an_earlier_boot_are_forgotten():
    facts = {"fence": "redfish", "uri": "u", "evidence": {"boot_id": BOOT}, "pods": [1], "volume_attachments": [2]}
    begun = rules.restarted(node(boot=OTHER), {**record("taint", "failed"), "facts": facts}, run="s", now=NOW)
    assert (begun["boot_id"], begun["run"], begun["phase"], begun["result"]) == (OTHER, "s", "taint", "")
    assert begun["facts"] == {"fence": "redfish", "uri": "u"}
    assert rules.next_step(node(boot=OTHER), begun) == FENCE
    still_down_rules.check_still_down(node(boot=OTHER), begun)


@pytest.mark.parametrize(
    ("seen", "proven", "booted"),
    [
        (node(ready="True", boot=OTHER), False, True),
        (node(ready="True", boot=OTHER), True, True),
        (node(boot=OTHER), True, True),
        # It may have booted before it went off.
        (node(boot=OTHER), False, False),
        (node(ready="True"), True, False),
        (node(ready="True", boot=""), True, False),
        # The run was killed before it had recorded the evidence in the record, too.
        (node(evidence=BOOT, boot=OTHER), False, True),
    ],
)
def test_a_node_that_has_booted_since_its_machine_went_off(seen, proven, booted):
    assert rules.booted_since(seen, BOOT, {"evidence": {"kind": "BareMetalHost"}} if proven else {}) is booted


def test_only_nodes_that_were_failed_over_are_recovered():
    assert rules.next_recovery(node(ready="True"), None) == DONE
    assert rules.next_recovery(node(), record("fence", "failed")) == rules.POWER_ON
    assert rules.next_recovery(node(tainted=True, evidence=BOOT), None) == rules.POWER_ON
    cordoned = node(ready="True")
    cordoned["metadata"]["annotations"][CORDON] = json.dumps({"owner": "failover"})
    assert rules.next_recovery(cordoned, None) == rules.POWER_ON
    with pytest.raises(Refused, match="someone else") as refused:
        rules.next_recovery(node(ready="True", tainted=True), None)
    assert refused.value.fields["why"] == "not_ours"
    assert rules.boot_id_before(node(tainted=True, evidence=OTHER), record()) == OTHER
    assert rules.boot_id_before(node(), record("fence")) == "", "it may never have been off"
    assert rules.boot_id_before(node(tainted=True), record(boot=OTHER)) == OTHER
    assert rules.boot_id_before(node(tainted=True), None) == ""


# -- a run that is killed anywhere ------------------------------------------------------------------------------------


class Machine:
    """A machine whose power, fences and taint are played; runs decide by the rules alone, and may die at each act."""

    def __init__(self):
        self.on, self.ready, self.tainted = True, "Unknown", False
        # How often it was switched on, which of these were ended by a fence, and what its Node tells.
        self.starts, self.fenced, self.boot, self.evidence = 1, [], 1, 0
        self.record, self.plan = None, []

    @property
    def node(self):
        evidence = str(self.evidence) if self.evidence else None
        return node(ready=self.ready, boot=str(self.boot), tainted=self.tainted, evidence=evidence)

    def boots(self):
        """Nobody's key keeps it off in this play: it may come back at any time."""
        self.starts += 1
        self.on, self.ready, self.boot = True, "True", self.starts

    def goes_away(self):
        self.ready = "Unknown"

    def is_killed(self):
        self.plan = []

    def fails(self):
        self.plan = []
        if self.record and not self.record["result"]:
            self.record = rules.advance(self.record, Change("r", result="failed"), NOW)

    def is_recovered_in_vain(self):
        """It is switched on, but its kubelet does not come so far as to tell."""
        self.plan = []
        if self.record and rules.next_recovery(self.node, self.record) == rules.POWER_ON:
            self.record = rules.advance(self.record, Change("r", phase="power_on"), NOW)
            self.starts += not self.on
            self.on = True

    def acts(self):
        plans = {
            FENCE: ["begin", "say fence", "fence", "say taint", "taint", "moved"],
            TAINT: ["begin", "moved"],
            STOP: ["forget"],
        }
        self.plan = self.plan or list(plans.get(step_of(self.node, self.record), ["nothing"]))
        try:
            self.act(self.plan.pop(0))
        except CameBack:
            self.plan = ["forget"]

    def act(self, name):
        if name == "begin" and not self.record:
            self.record = rules.begin(self.node, "op", run="r", holder="", reason="", fence="", now=NOW)
        elif name == "begin" and rules.down_again(self.node, self.record):
            self.record = rules.restarted(self.node, self.record, run="r", now=NOW)
        elif name == "begin":
            self.record = rules.advance(self.record, Change("r"), NOW)
        elif name.startswith("say"):
            still_down_rules.check_still_down(self.node, self.record)
            self.record = rules.advance(self.record, Change("r", phase=name[4:]), NOW)
        elif name == "fence" and self.on:
            self.on = False
            self.fenced.append(self.starts)
        elif name == "taint":
            # The module looks at everything again, and at the evidence.
            still_down_rules.check_still_down(self.node, self.record)
            if self.on:
                self.plan = []
            else:
                assert self.starts in self.fenced
                self.tainted, self.evidence = True, self.boot
        elif name == "moved":
            still_down_rules.check_still_down(self.node, self.record)
            assert not self.on, "nobody may be told that it is off"
            self.record = rules.advance(self.record, Change("r", phase="move", result="moved"), NOW)
        elif name == "forget":
            self.record = None


EVENTS = (
    Machine.acts,
    Machine.is_killed,
    Machine.fails,
    Machine.boots,
    Machine.goes_away,
    Machine.is_recovered_in_vain,
)


ACT = [Machine.acts]


@given(st.lists(st.sampled_from(EVENTS), max_size=40))
@example(3 * ACT + [Machine.fails, Machine.boots, Machine.goes_away] + 6 * ACT)
@example(6 * ACT + [Machine.is_recovered_in_vain, Machine.fails] + 2 * ACT)
@example(5 * ACT + [Machine.is_recovered_in_vain] + 2 * ACT)
def test_killed_anywhere_it_fences_once_and_taints_only_what_is_off(events):
    machine = Machine()
    for event in events:
        event(machine)
        assert len(machine.fenced) == len(set(machine.fenced)), "no start is ended twice"


# -- may it be done? --------------------------------------------------------------------------------------------------


def test_the_second_check():
    still_down_rules.check_still_down(node(), record("fence"))
    for back, why in (
        (node(ready="True"), "is Ready again"),
        (node(boot=OTHER), f"has booted again (boot ID {OTHER})"),
        (node(ready="True", boot=OTHER), "is Ready again"),
    ):
        with pytest.raises(CameBack, match=re.escape(f"Node {node_rules.name(back)} {why}: ")):
            still_down_rules.check_still_down(back, record("fence"))


@pytest.mark.parametrize(
    ("down", "total", "limit", "fine"),
    [
        (1, 3, "40%", True),
        (2, 3, "40%", False),
        (4, 10, "40%", True),
        (5, 10, "40%", False),
        (1, 1, "40%", True),
        (1, 3, "0", False),
        (3, 3, "3", True),
        (3, 3, "2", False),
    ],
)
def test_storms(down, total, limit, fine):
    nodes = {f"n{number}": number >= down for number in range(total)}
    if fine:
        rules.check_storm("n0", nodes, limit)
        return
    with pytest.raises(Refused) as refused:
        rules.check_storm("n0", nodes, limit)
    assert refused.value.fields["why"] == "storm"
    assert len(refused.value.fields["not_ready"]) == down


def test_a_node_that_the_selector_leaves_out_counts_too():
    with pytest.raises(Refused) as refused:
        rules.check_storm("other", {"n0": False, "n1": True}, "1")
    assert refused.value.fields["not_ready"] == ["n0", "other"]


def quorum(members, ready_others):
    return Quorum(tuple(members), tuple(ready_others), {}, ())


def test_quorum():
    rules.check_quorum("a", quorum("abc", "bc"), asked_elsewhere=False)
    rules.check_quorum("a", quorum("", ""), asked_elsewhere=True)
    for lost in (quorum("abc", "b"), quorum("", ""), quorum("ab", "b")):
        with pytest.raises(Refused) as refused:
            rules.check_quorum("a", lost, asked_elsewhere=False)
        assert refused.value.fields["why"] == "quorum"
        assert refused.value.fields.get("members", []) == list(lost.members)


def test_shutting_down_by_itself_or_because_we_asked():
    going = node(ready="False", message="node is shutting down")
    slot = ("g", Slot("n", "kernel", "live", NOW.isoformat()))
    rules.check_begin(going, record("fence"), None)
    another = record("fence", "failed", boot=OTHER)
    for known, taken in ((None, None), (record("claim"), None), (record("fence"), slot), (another, None)):
        with pytest.raises(Refused):
            rules.check_begin(going, known, taken)


def test_how_long_a_node_has_to_be_away():
    assert rules.seconds_to_confirm(node(since=10), 30, NOW) == 20
    assert rules.seconds_to_confirm(node(since=60), 30, NOW) == 0
    assert rules.seconds_to_confirm(node(since=-600), 30, NOW) == 30, "a clock that is ahead"
    assert rules.seconds_to_confirm(node(), 30, NOW) == 30
    behind = node(ready="False", since=600)
    assert rules.seconds_to_confirm(behind, 30, NOW) == 30, "a kubelet whose clock is ten minutes behind"
    odd = node()
    odd["status"]["conditions"][0]["lastTransitionTime"] = "0000-01-01T00:00:00Z"
    assert rules.seconds_to_confirm(odd, 30, NOW) == 30


# -- the record -------------------------------------------------------------------------------------------------------


def later(seconds):
    return NOW + timedelta(seconds=seconds)


def test_seconds_of_each_phase_without_the_time_between_runs():
    found = rules.begin(node(), "op", run="r", holder="ada", reason="", fence="metal3", now=NOW)
    found = rules.advance(found, Change("r", phase="fence", facts={"host": "h"}), later(2))
    found = rules.advance(found, Change("r", phase="fence", facts={"mode": "hard"}), later(5))
    found = rules.advance(found, Change("r", phase="move"), later(12))
    found = rules.advance(found, Change("r", phase="move", result="moved"), later(20))
    found = rules.advance(found, Change("s", phase="power_on"), later(1000))
    found = rules.advance(found, Change("s", result="recovered"), later(1003))
    assert found["phases"] == {"claim": 2.0, "fence": 10.0, "move": 8.0, "power_on": 3.0}
    assert found["facts"] == {"fence": "metal3", "host": "h", "mode": "hard"}


def test_parts_of_a_second_count_and_a_clock_that_was_set_back_does_not():
    begun = record()

    assert rules.advance(begun, Change("r", phase="fence"), later(0.34))["phases"] == {"claim": 0.3}
    assert rules.advance(begun, Change("r", phase="fence"), later(-60))["phases"] == {"claim": 0.0}


def test_the_first_record():
    now = "2026-11-21T09:00:00.000000Z"

    assert rules.begin(node(), "op", run="r", holder="ada", reason="dead", fence="", now=NOW) == {
        "id": "op",
        "run": "r",
        "holder": "ada",
        "reason": "dead",
        "started": now,
        "since": now,
        "phase": "claim",
        "phases": {},
        "boot_id": BOOT,
        "facts": {},
        "result": "",
        "detail": "",
    }


def test_the_id_of_a_failover_is_a_key_of_a_configmap():
    first, second = (rules.operation_of("n" * 253, later(seconds)) for seconds in (0, 1))

    assert rules.operation_of("n", NOW) == "n.20261121T090000Z"
    assert first != second
    assert len(first) <= 253


@pytest.mark.parametrize(
    "broken",
    [
        {"id": ""},
        {"result": "gone"},
        {"phases": {"claim": True}},
        {"phases": {"claim": "1"}},
        {"facts": []},
        {"facts": {"left_out": [1]}},
        {"facts": {"left_out": {"pods": "many"}}},
        {"facts": {"evidence": "off"}},
        {"facts": {"pods": "x"}},
        {"facts": {"pods": [1]}},
        {"facts": {"pods": [{"name": "web"}]}},
        {"facts": {"pods": [{"uid": []}]}},
        {"facts": {"attempts": [{"method": "redfish"}]}},
        {"facts": {"key": "ours"}},
        {"facts": {"uri": ["https://bmc"]}},
        {"started": "soon"},
        {"since": "soon"},
    ],
    ids=str,
)
def test_a_record_with_one_wrong_field_is_refused(broken):
    seen = node()
    seen["metadata"]["annotations"][FAILOVER] = json.dumps({**record("fence"), **broken})

    with pytest.raises(Refused) as refused:
        rules.record_of(seen)
    assert refused.value.fields["why"] == "broken_record"


@pytest.mark.parametrize(
    ("phase", "result", "cordoned_by", "stays"),
    [
        ("claim", "", "", True),
        ("claim", "failed", "", False),
        ("claim", "failed", "failover", True),
        ("claim", "failed", "an administrator", False),
        ("fence", "", "", True),
        ("fence", "failed", "", True),
        ("fence", "stopped", "", False),
        ("move", "moved", "", True),
        ("uncordon", "recovered", "", False),
    ],
)
def test_a_record_stays_while_it_is_needed(phase, result, cordoned_by, stays):
    seen = node()
    if cordoned_by:
        seen["metadata"].setdefault("annotations", {})[CORDON] = json.dumps({"owner": cordoned_by})
    assert rules.stays(seen, record(phase, result)) is stays


# -- the audit --------------------------------------------------------------------------------------------------------


def entry_of(node, begun, **more):
    """An entry of a machine that was asked to switch off."""
    fenced = {**begun, "phase": "fence", "result": ""}
    fenced = audit_rules.entry_after(None, node, fenced, {}, begun["started"], phase="fence", **more)
    return json.dumps(audit_rules.entry_after(fenced, node, begun, {}, "now"))


def test_entries_are_bounded_and_unfinished_ones_stay():
    data = {}
    for number in range(audit_rules.KEEP + 10):
        begun = {**record(result="moved" if number == 0 else "recovered"), "id": f"op-{number}"}
        begun["started"] = later(number).isoformat()
        data[f"op-{number}"] = entry_of(f"n{number % 3}", begun)
    kept = audit_rules.bounded(data, "op-59")
    assert len(kept) == audit_rules.KEEP
    assert "op-0" in kept, "it is not over yet"
    assert "op-59" in kept
    assert "op-1" not in kept
    assert audit_rules.last_of(kept, "n2")["operation"] == "op-59"
    assert audit_rules.last_of(kept, "nobody") is None


def test_what_the_recovery_needs_of_many_nodes_fits():
    """A rack or a zone may be down."""
    pods = [{"uid": str(number), "name": "x" * 200} for number in range(100)]
    data = {}
    for number in range(200):
        begun = {**record("move", "moved"), "id": f"op-{number}", "facts": {"pods": pods}}
        found = entry_of(f"n{number}", begun, stated={"fence": "redfish", "uri": "u"})
        data = audit_rules.bounded({**data, f"op-{number}": found}, f"op-{number}")

    assert sum(map(len, data.values())) <= audit_rules.KEEP_BYTES
    assert len(data) == 200
    oldest = audit_rules.last_of(data, "n0")
    assert audit_rules.way_of(oldest) == {"fence": "redfish", "uri": "u"}
    assert "pods" in audit_rules.last_of(data, "n199")


def test_failovers_that_sent_nothing_do_not_stay():
    """A rulebook may try again and again while a BMC does not answer."""
    data = {"lost": entry_of("n0", {**record("move", "moved"), "id": "lost"})}
    for number in range(audit_rules.KEEP * 2):
        begun = {**record(result="failed"), "id": f"op-{number}", "started": later(number).isoformat()}
        data[f"op-{number}"] = json.dumps(audit_rules.entry_after(None, "n1", begun, {}, begun["started"]))
        data = audit_rules.bounded(data, f"op-{number}")

    assert len(data) <= audit_rules.KEEP + 1
    assert "lost" in data


BEGAN = "2026-11-21T09:00:00Z"


def entry(*steps, **facts):
    """The entry of a failover that came so far."""
    found = None
    for step in steps:
        ended = step in rules.RESULTS
        known = record(*((found or {}).get("phase", "claim"), step) if ended else (step,))
        phase = "" if ended else step
        found = audit_rules.entry_after(found, "n", {**known, "facts": facts}, {}, BEGAN, phase=phase, stated=facts)
    return found


@pytest.mark.parametrize(
    ("here", "there", "found"),
    [
        ({"host": "h", "namespace": "a"}, {"host": "h", "namespace": "a", "uri": "https://bmc"}, True),
        ({"host": "h", "namespace": "a"}, {"host": "h", "namespace": "b"}, False),
        ({"uri": "https://bmc/1"}, {"uri": "https://bmc/1/"}, True),
        ({"uri": "https://bmc/1"}, {"uri": "https://bmc/2"}, False),
        ({"uri": "https://bmc/1"}, {}, False),
        ({"agent": "fence_apc", "plug": "3"}, {"agent": "fence_apc", "plug": "3"}, False),
        ({}, {}, False),
    ],
)
def test_a_later_failover_of_the_same_machine(here, there, found):
    first = {**entry("fence"), "started": "2026-01-01T00:00:00Z", **here}
    later = {**first, "operation": "later", "node": "m", "started": "2026-02-01T00:00:00Z", **there}
    later = {name: value for name, value in later.items() if name in there or name not in here}

    def of_machine(one, *others):
        texts = {str(number): json.dumps(item) for number, item in enumerate([one, *others])}
        return audit_rules.later_of_machine({**texts, "broken": "["}, one)

    assert (of_machine(first, later) == later) is found
    assert of_machine(later, first) is None
    assert of_machine(first, {**later, "node": "n"}) is None


@pytest.mark.parametrize(
    ("steps", "unfinished", "deleted"),
    [
        (("claim",), False, False),
        (("claim", "failed"), False, False),
        (("claim", "fence"), True, False),
        (("claim", "fence", "failed"), True, False),
        (("claim", "fence", "stopped"), False, False),
        (("claim", "fence", "taint", "move", "moved"), True, True),
        (("claim", "fence", "taint", "move", "delete"), True, True),
        (("claim", "fence", "taint", "move", "delete", "failed"), True, True),
        (("claim", "fence", "taint", "move", "failed"), True, False),
        (("claim", "fence", "taint", "move", "moved", "power_on", "recovered"), False, False),
    ],
)
def test_the_entry_of_a_node_without_a_record(steps, unfinished, deleted):
    found = entry(*steps)
    assert (audit_rules.unfinished(found), audit_rules.deleted(found)) == (unfinished, deleted)
    data = {"op": json.dumps(found)}
    assert audit_rules.entry_of(data, "n", "op") == found
    assert audit_rules.last_of(data, "n") == found
    assert list(audit_rules.unfinished_of(data)) == (["n"] if unfinished else [])


def test_a_node_can_not_take_back_a_phase():
    """It writes the first phase into its record while the run waits for the power-off, or before the next run."""
    found = audit_rules.entry_after(entry("claim", "fence"), "n", record("claim", "failed"), {}, "now")
    found = audit_rules.entry_after(found, "n", record("claim"), {}, "now")
    assert audit_rules.unfinished(found)
    assert audit_rules.restored(found, run="s", now=NOW)["phase"] == "fence"


def test_a_node_can_not_write_that_its_failover_deletes_it():
    found = audit_rules.entry_after(None, "n", record("delete"), {}, "now")
    assert (audit_rules.unfinished(found), audit_rules.deleted(found)) == (True, False)


def test_a_node_can_not_write_when_its_failover_began():
    begun = {**record("claim"), "started": "2020-01-01T00:00:00Z"}
    found = audit_rules.entry_after(None, "n", begun, {}, "2026-01-01T00:00:00Z")
    assert audit_rules.entry_after(found, "n", begun, {}, "2026-01-02T00:00:00Z")["started"] == "2026-01-01T00:00:00Z"


def test_a_node_can_not_write_a_large_entry():
    """It would push the entries of other nodes out of the history."""
    large = dict.fromkeys(("holder", "reason", "boot_id", "run", "detail"), "x" * 100000)
    phases = {f"{number}": 1.0 for number in range(10_000)}
    found = audit_rules.entry_after(None, "n", {**record("claim"), **large, "phases": phases}, {}, "now")
    assert len(json.dumps(found)) < 5000


def test_a_power_off_is_known_however_many_runs_follow():
    found = entry("claim", "fence", "failed")
    for number in range(100):
        found = audit_rules.entry_after(found, "n", {**record("claim"), "run": f"s-{number}"}, {}, "now")
    assert audit_rules.unfinished(json.loads(audit_rules._short(found)))


def test_a_failover_that_sent_nothing_does_not_hide_an_earlier_one():
    earlier = {**entry("claim", "fence", "failed"), "host": "h", "namespace": "m", "started": "2026-01-01T00:00:00Z"}
    later = {**went_back(), "operation": "later", "started": "2026-02-01T00:00:00Z"}
    data = {"op": json.dumps(earlier), "later": json.dumps(later)}
    assert audit_rules.last_sent_of(data, "n") == audit_rules.unfinished_of(data)["n"] == earlier
    assert audit_rules.to_resume(data, "n", BOOT) == earlier
    assert audit_rules.to_resume(data, "n", "another-boot") is None
    assert audit_rules.last_of(data, "n") == later

    other = {**later, "node": "m", "host": "h", "namespace": "m"}
    assert audit_rules.later_of_machine({**data, "later": json.dumps(other)}, earlier) is None
    at_work = {**other, "result": ""}
    assert audit_rules.later_of_machine({**data, "later": json.dumps(at_work)}, earlier) == at_work


def went_back():
    """The entry of a failover that sent nothing."""
    ended = record("claim", "failed")
    return audit_rules.entry_after(entry("claim", "fence"), "n", ended, {}, "now", phase="claim")


def test_a_failover_that_sent_nothing_is_over():
    found = went_back()
    assert (audit_rules.unfinished(found), audit_rules.deleted(found)) == (False, False)
    assert audit_rules.to_resume({"op": json.dumps(found)}, "n", BOOT) is None


@pytest.mark.parametrize("steps", [("claim", "fence", "failed", "recovered"), ("claim", "fence")])
def test_a_failure_without_a_claim_replaces_nothing_of_another_run(steps):
    known = entry(*steps)
    assert audit_rules.entry_closed(known, rules.Change("s", "claim", "failed"), "then") == known
    own = audit_rules.entry_closed(known, rules.Change("r", "claim", "failed"), "then")
    assert own["result"] == ("recovered" if "recovered" in steps else "failed")


@pytest.mark.parametrize(
    ("steps", "phase"),
    [
        (("claim",), "claim"),
        (("failed",), "claim"),
        (("claim", "fence", "failed"), "fence"),
        # A node could write it.
        (("claim", "fence", "failed", "claim"), "fence"),
        (("claim", "fence", "taint", "move", "moved"), "move"),
    ],
)
def test_the_phase_of_an_entry_of_an_earlier_version(steps, phase):
    found = entry(*steps)
    del found["phase"]
    assert audit_rules.phase_of(found) == phase


def test_a_record_that_is_gone_is_restored_from_its_entry():
    found = entry("claim", "fence", "taint", "failed", fence="metal3", key="k", host="h", namespace="m", uri="u")
    facts = audit_rules.facts_of(found)
    assert facts == {"fence": "metal3", "key": "k", "host": "h", "namespace": "m", "uri": "u"}
    again = audit_rules.restored(found, run="s", now=NOW)
    assert (again["id"], again["phase"], again["boot_id"], again["run"]) == ("op", "taint", BOOT, "s")
    seen = node()
    seen["metadata"]["annotations"][FAILOVER] = json.dumps(again)
    assert rules.record_of(seen) == again
    assert audit_rules.entry_after(found, "n", again, {}, "then")["key"] == "k"


def test_facts_do_not_replace_the_fields_of_an_entry():
    """A node can write its own record, and would rewrite the history of another node."""
    theirs = {**record("fence"), "facts": {"node": "another", "result": "recovered", "steps": [], "pods": [1]}}
    found = audit_rules.entry_after(None, "n", theirs, {}, "now")
    assert (found["node"], found["result"], len(found["steps"]), found["pods"]) == ("n", "", 1, [1])


def test_how_the_machine_is_switched_off_is_not_taken_from_the_node():
    """A node can write its own record. What the run says counts, and stays."""
    theirs = {**record("fence"), "facts": {"fence": "redfish", "uri": "https://evil", "host": "h", "pods": [1]}}
    assert audit_rules.way_of(audit_rules.entry_after(None, "n", theirs, {}, "now")) == {}
    ours = {"fence": "redfish", "uri": "https://bmc", "attempts": []}
    found = audit_rules.entry_after(None, "n", theirs, {}, "now", stated=ours)
    found = audit_rules.entry_after(found, "n", theirs, {}, "then")
    assert audit_rules.way_of(found) == {"fence": "redfish", "uri": "https://bmc"}
    assert found["pods"] == [1]
    with pytest.raises(Refused, match="is one of node n"):
        audit_rules.entry_after(found, "another", theirs, {}, "then")


@pytest.mark.parametrize(
    "broken", [{"operation": ""}, {"operation": 1}, {"steps": [1]}, {"started": "soon"}, {"seconds": []}], ids=str
)
def test_an_entry_with_one_wrong_field_counts_as_none(broken):
    data = {"op": json.dumps({**entry("claim", "fence"), **broken})}

    assert audit_rules.last_of(data, "n") is None
    assert audit_rules.unfinished_of(data) == {}


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def read(seen):
    try:
        return rules.record_of(seen), None
    except Refused as refused:
        return None, refused


@given(any_json | st.fixed_dictionaries({}, optional=dict.fromkeys(record(), any_json)), any_json)
def test_any_record_is_valid_or_refused(content, one):
    broken = {**record("fence"), "phase": "fence"}
    for text in (json.dumps(content), json.dumps({**broken, "facts": one}), json.dumps({**broken, "since": one}), "{"):
        seen = node(tainted=True, evidence=BOOT)
        seen["metadata"]["annotations"][FAILOVER] = text
        known, refused = read(seen)
        if refused:
            assert refused.fields["why"] == "broken_record"
            assert "Node n" in refused.message
            assert FAILOVER in refused.message
            continue
        assert isinstance(rules.advance(known, Change("r", phase="taint", result="failed"), NOW)["facts"], dict)
        assert rules.next_recovery(seen, known) == rules.POWER_ON
        step_of(seen, known)


@given(any_json | st.fixed_dictionaries({}, optional=dict.fromkeys(entry("claim"), any_json)))
@example({"steps": [{}]})
@example({"steps": [{"step": "of another version"}]})
def test_any_entry_is_valid_or_none(content):
    for one in (content, {**entry("claim", "fence"), **(content if isinstance(content, dict) else {}), "node": "n"}):
        data = {"op": json.dumps(one), "broken": "{"}
        found = audit_rules.last_of(data, "n")
        assert set(audit_rules.unfinished_of(data)) <= {str(one.get("node")) if isinstance(one, dict) else ""}
        if found is not None:
            audit_rules.deleted(found)
            again = audit_rules.restored(found, run="s", now=NOW)
            seen = node()
            seen["metadata"]["annotations"][FAILOVER] = json.dumps(again)
            assert rules.record_of(seen) == again


def test_one_object_never_grows_too_large():
    data = {f"op-{number}": json.dumps({"started": str(number), "x": "y" * 100_000}) for number in range(20)}
    kept = audit_rules.bounded(data, "op-3")
    assert sum(map(len, kept.values())) <= audit_rules.KEEP_BYTES
    assert "op-3" in kept


def test_the_newest_entry_stays_however_large_it_is():
    large = json.dumps({"started": "1", "x": "y" * audit_rules.KEEP_BYTES})

    assert list(audit_rules.bounded({"newest": large}, "newest")) == ["newest"]
    assert list(audit_rules.bounded({"newest": large, "other": large}, "newest")) == ["newest"]


def test_an_entry_keeps_its_first_and_its_last_steps_and_its_last_runs():
    found = None
    for number in range(150):
        found = audit_rules.entry_after(found, "n", {**record("fence"), "run": f"r-{number}"}, {}, str(number))

    times = [int(step["at"]) for step in found["steps"]]
    assert times == [*range(10), *range(100, 150)]
    assert found["runs"] == [f"r-{number}" for number in range(50, 150)]


def test_invalid_entries_are_dropped_first():
    data = {f"op-{number}": json.dumps({"started": str(number)}) for number in range(audit_rules.KEEP)} | {
        "broken": "{"
    }
    assert "broken" not in audit_rules.bounded(data, "op-0")


def test_each_step_has_its_time_run_and_versions():
    entry = audit_rules.entry_after(None, "n", record("fence"), {"node": "7"}, "now")
    entry = audit_rules.entry_after(
        entry, "n", {**record("move", "moved"), "run": "s"}, {"node": "9", "host": "3"}, "then"
    )
    assert entry["runs"] == ["r", "s"]
    assert [(step["at"], step["run"], step["step"]) for step in entry["steps"]] == [
        ("now", "r", "fence"),
        ("then", "s", "moved"),
    ]
    assert entry["steps"][1]["resource_versions"] == {"node": "9", "host": "3"}
    assert entry["ended"] == "then"
    assert "detail" not in entry["steps"][0]


def test_a_failover_under_way_has_no_end_and_a_failure_says_why():
    begun = audit_rules.entry_after(None, "n", record("fence"), {}, "now")
    failed = audit_rules.entry_after(begun, "n", {**record("fence", "failed"), "detail": "no BMC"}, {}, "then")

    assert begun["ended"] == ""
    assert (failed["ended"], failed["steps"][1]["detail"]) == ("then", "no BMC")


def test_a_failover_that_ends_after_its_node_was_deleted_keeps_its_facts():
    entry = audit_rules.entry_after(None, "n", record("move", "moved"), {"node": "7"}, "now")
    closed = audit_rules.entry_closed(entry, rules.Change("s", "", "recovered", "gone", {"by": "a"}), "then")
    assert (closed["result"], closed["ended"], closed["detail"], closed["by"]) == ("recovered", "then", "gone", "a")
    assert (closed["boot_id"], closed["runs"]) == (entry["boot_id"], ["r", "s"])
    assert [step["step"] for step in closed["steps"]] == ["moved", "recovered"]
    assert closed["steps"][1] == {
        "at": "then",
        "run": "s",
        "step": "recovered",
        "resource_versions": {},
        "detail": "gone",
    }
    silent = audit_rules.entry_closed(entry, rules.Change("r", "", "recovered"), "then")
    assert "detail" not in silent["steps"][1]
    assert silent["runs"] == ["r"]

    for number in range(audit_rules.KEEP_STEPS):
        silent = audit_rules.entry_closed(silent, rules.Change(f"r-{number}", "", "recovered"), f"{number}")
    assert (len(silent["steps"]), silent["steps"][-1]["at"]) == (audit_rules.KEEP_STEPS, "59")


def test_a_record_stays_below_the_limit_of_a_node_s_annotations():
    pods = [{"namespace": "shop", "name": f"web-{number}", "uid": "u" * 36} for number in range(1550)]
    wanted = rules.advance(record("wait"), rules.Change("r", detail="no " * 10_000, facts={"pods": pods}), NOW)

    assert len(json.dumps(wanted)) < 30_000
    assert wanted["facts"]["left_out"] == {"pods": 1450}
    assert rules.advance(wanted, rules.Change("r"), NOW)["facts"] == wanted["facts"]

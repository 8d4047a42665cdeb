# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of what a node goes through."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import OPERATION
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.lifecycle_rules import ENDS, WAITS
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation import (
    node_operation,
    record_phase,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation_rules import (
    NOTED,
    Phase,
    advance,
    boot_to_end,
    change_of,
    daemonsets_before,
    noted,
    others_began,
    phase_of,
    record_of,
    volumes_before,
)

START = datetime(2026, 11, 21, 9, tzinfo=timezone.utc)


def at(seconds):
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def node(boot_id="boot-1", *, kernel="6.1", unschedulable=False, cordon=None):
    annotations = {"holdfast.dev/cordon": json.dumps(cordon)} if cordon else {}
    return {
        "metadata": {"name": "node-1", "annotations": annotations},
        "spec": {"unschedulable": True} if unschedulable else {},
        "status": {"nodeInfo": {"bootID": boot_id, "kernelVersion": kernel}},
    }


def step(phase=None, result=None, **more):
    return {"operation": "kernel", "run": "run-1", "phase": phase, "result": result, "detail": None, **more}


def through(*steps):
    """The record after several steps, each (seconds, params) or (seconds, params, node)."""
    record = None
    for seconds, params, *where in steps:
        record = advance(record, where[0] if where else node(), params, at(seconds))
    return record


def test_the_first_phase():
    assert through((0, step("cordon"))) == {
        "id": "kernel",
        "run": "run-1",
        "started": at(0),
        "since": at(0),
        "phase": "cordon",
        "phases": {},
        "boot_id_before": "boot-1",
        "versions_before": {"kernel_version": "6.1"},
        "unschedulable_before": False,
        "result": "",
        "detail": "",
    }


def test_to_the_end():
    record = through(
        (0, step("cordon")),
        (0.26, step("drain")),
        (4.26, step("reboot")),
        (30.26, step("verify"), node("boot-2")),
        (31.26, step("uncordon", "rebooted", detail="well"), node("boot-2", kernel="6.12")),
    )

    assert record["phases"] == {"cordon": 0.3, "drain": 4.0, "reboot": 26.0, "verify": 1.0}
    assert (record["phase"], record["result"], record["detail"]) == ("uncordon", "rebooted", "well")
    assert (record["boot_id_before"], record["boot_id_after"]) == ("boot-1", "boot-2")
    assert record["versions_before"] == {"kernel_version": "6.1"}
    assert record["versions_after"] == {"kernel_version": "6.12"}
    assert (record["started"], record["since"]) == (at(0), at(31.26))


def test_writing_it_down_again_changes_nothing():
    once = through((0, step("cordon")), (1, step("drain")))
    ended = through((0, step("cordon")), (1, step("drain", "failed", detail="timed out")))

    assert advance(once, node(), step("drain"), at(99)) is once
    assert advance(ended, node(), step("drain", "failed"), at(99)) is ended
    assert advance(ended, node(), step(result="failed"), at(99)) is ended


def test_the_next_run_is_recorded_and_the_phase_continues():
    record = through((0, step("drain")), (100, step("drain", run="run-2")))

    assert (record["run"], record["since"], record["phases"]) == ("run-2", at(0), {})
    assert advance(record, node(), step("drain", run=None), at(200)) is record


@pytest.mark.parametrize(
    ("phases", "before"),
    [
        (("hold", "cordon"), "boot-2"),
        (("slot", "cordon"), "boot-2"),
        (("cordon", "cordon"), "boot-2"),
        (("drain", "cordon"), "boot-2"),
        (("reboot", "cordon"), "boot-1"),
    ],
)
def test_a_boot_before_the_reboot_is_sent_is_not_the_reboot(phases, before):
    waited, began = phases
    record = through(
        (0, step(waited)), (5, step(began), node("boot-2", kernel="6.12")), (9, step("reboot"), node("boot-3"))
    )

    assert record["boot_id_before"] == before
    assert record["versions_before"] == {"kernel_version": "6.12" if before == "boot-2" else "6.1"}


def test_a_second_reboot_in_the_same_operation_begins_with_the_present_boot():
    once = [(0, step("cordon")), (5, step("reboot")), (60, step("uncordon", "rebooted"), node("boot-2", kernel="6.12"))]
    record = through(*once, (900, step("cordon"), node("boot-2", kernel="6.12")))

    assert (record["boot_id_before"], record["phases"], record["result"]) == ("boot-2", {}, "")
    assert record["versions_before"] == {"kernel_version": "6.12"}


def test_a_long_detail_is_cut():
    record = through((0, step("drain")), (5, step(result="failed", detail="x" * 3000)))

    assert 1000 <= len(record["detail"]) < 1100


def test_a_result_alone_ends_the_phase():
    record = through((0, step("drain")), (5, step(result="failed", detail="timed out")))

    assert (record["phase"], record["result"], record["phases"]) == ("drain", "failed", {"drain": 5.0})


@pytest.mark.parametrize("phase", ["drain", "cordon"])
def test_a_resumed_node_does_not_count_the_time_since_its_failure(phase):
    record = through(
        (0, step("drain")), (5, step(result="failed", detail="timed out")), (1000, step(phase)), (1007, step("reboot"))
    )

    assert record["phases"][phase] == (12.0 if phase == "drain" else 7.0)
    assert (record["result"], record["detail"]) == ("", "")
    assert not {"boot_id_after", "versions_after"} & set(record)


def test_a_phase_that_comes_twice_adds_up():
    record = through((0, step("wait")), (2, step("drain")), (3, step("wait")), (7, step("drain")))

    assert record["phases"] == {"wait": 6.0, "drain": 1.0}


def test_a_clock_that_goes_back_takes_nothing_away():
    assert through((10, step("drain")), (5, step("reboot")))["phases"] == {"drain": 0.0}


def test_another_operation_starts_afresh():
    old = through((0, step("drain")), (1, step(result="failed")))

    record = advance(old, node("boot-2"), {**step("cordon"), "operation": "firmware"}, at(60))

    assert (record["id"], record["boot_id_before"], record["phases"]) == ("firmware", "boot-2", {})
    assert (record["started"], record["result"]) == (at(60), "")


@pytest.mark.parametrize(
    ("seen", "before"),
    [
        (node(), False),
        (node(unschedulable=True), True),
        (node(unschedulable=True, cordon={"owner": "holdfast", "unschedulable_before": False}), False),
        (node(unschedulable=True, cordon={"owner": "holdfast", "unschedulable_before": True}), True),
        (node(unschedulable=True, cordon={"owner": "holdfast"}), False),
    ],
)
def test_what_was_before_is_what_was_before_our_own_cordon(seen, before):
    assert through((0, step("drain"), seen))["unschedulable_before"] is before


@given(st.lists(st.tuples(st.floats(0, 1000), st.sampled_from(["cordon", "drain", "reboot"])), min_size=1, max_size=12))
def test_phases_add_up_to_the_time_spent(steps):
    record, clock = None, 0.0
    for seconds, phase in steps:
        clock += seconds
        record = advance(record, node(), step(phase), at(clock))
    began = float(steps[0][0])
    since = (datetime.fromisoformat(record["since"].replace("Z", "+00:00")) - START).total_seconds()

    assert sum(record["phases"].values()) == pytest.approx(since - began, abs=0.06 * len(steps))
    assert json.loads(json.dumps(record)) == record


@pytest.mark.parametrize(
    "broken",
    [{"since": None}, {"since": "yesterday"}, {"phase": 7}, {"phases": None}, {"phases": []}, {"result": None}],
)
def test_a_record_that_someone_broke_begins_again(broken):
    sound = through((0, step("hold")), (5, step("slot")))
    began = advance({**sound, **broken}, node(), step("drain"), at(9))
    assert (began["phase"], began["started"], began["phases"]) == ("drain", at(9), {})
    for name in broken:
        missing = {key: value for key, value in sound.items() if key != name}
        assert advance(missing, node(), step("drain"), at(9)) == began


@pytest.mark.parametrize(
    ("params", "change"),
    [
        (step("slot", lifecycle_conditions=True), WAITS),
        (step("hold", lifecycle_conditions=True), WAITS),
        (step("slot"), None),
        (step("drain", lifecycle_conditions=True), None),
        (step(result="rebooted"), ENDS),
        (step("hold", "failed", lifecycle_conditions=True), ENDS),
    ],
)
def test_the_conditions_that_go_with_a_record(params, change):
    assert change_of(params) == change


def marked(**record):
    return {"metadata": {"name": "n", "annotations": {OPERATION: json.dumps(record)}}}


@pytest.mark.parametrize(
    ("record", "boot"),
    [
        ({"id": "kernel", "phase": "reboot", "boot_id_before": "old"}, "old"),
        ({"id": "kernel", "phase": "reboot"}, ""),
        ({"id": "kernel", "phase": "drain", "boot_id_before": "old"}, ""),
        ({"id": "firmware", "phase": "reboot", "boot_id_before": "old"}, ""),
        # A run of another operation waits for the node.
        ({"id": "firmware", "earlier": [{"id": "kernel", "phase": "reboot", "boot_id_before": "old"}]}, "old"),
        ({}, ""),
    ],
)
def test_the_boot_that_a_run_began_to_end(record, boot):
    assert boot_to_end(marked(**record), "kernel") == boot
    assert boot_to_end({"metadata": {"name": "n"}}, "kernel") == ""


def test_an_action_records_its_phase_for_an_operation_only():
    assert phase_of({"operation": "kernel", "run": "me"}, "drain") == Phase("kernel", "me", "drain")
    assert phase_of({"operation": None, "run": "me"}, "drain") is None
    assert phase_of({}, "drain") is None
    with pytest.raises(InvalidInput, match="operation kernel needs run"):
        phase_of({"operation": "kernel", "run": ""}, "drain")


@pytest.mark.parametrize(("what", "limit"), NOTED.items())
def test_names_are_added_to_those_of_earlier_runs(what, limit):
    long = "shop/" + "x" * 3000
    record = advance(None, node(), step("drain", noted={what: ["shop/web-0", long]}), at(0))
    again = advance(record, node(), step("drain", run="run-2", noted={what: ["shop/web-0", "shop/db-0"]}), at(1))
    kept = noted(again, "kernel", what)
    assert (kept[0], kept[2:], again["run"], again["phase"]) == ("shop/web-0", ["shop/db-0"], "run-2", "drain")
    assert len(kept[1]) < len(long)
    assert noted(advance(again, node(), step(result="failed"), at(2)), "kernel", what) == kept
    many = advance(again, node(), step("drain", noted={what: map(str, range(1000))}), at(3))
    assert len(noted(many, "kernel", what)) == limit


@pytest.mark.parametrize(
    ("later", "kept"),
    [
        ([step("reboot", run="run-2")], True),
        ([step("cordon", run="run-2"), step("drain")], True),
        ([step("ready"), step("uncordon"), step(result="rebooted")], True),
        ([step("hold")], True),
        ([step("hold"), step("cordon")], False),
        ([step(result="failed"), step("slot"), step("cordon")], False),
    ],
    ids=["resumed", "cordoned again", "rebooted", "refused", "next attempt", "next attempt after a failure"],
)
def test_overridden_holds_count_for_one_attempt(later, kept):
    reboot = step("reboot", noted={"overridden_holds": ["shop/app"], "deleted_pods": ["shop/db-0"]})
    steps = [step("cordon"), step("drain"), reboot, *later]
    record = through(*enumerate(steps))
    assert noted(record, "kernel", "overridden_holds") == (["shop/app"] if kept else [])
    assert noted(record, "kernel", "deleted_pods") == ["shop/db-0"]


@pytest.mark.parametrize("record", [None, {}, {"id": "firmware", "volumes": ["a"]}, {"id": "kernel", "volumes": "a"}])
def test_names_of_another_operation_or_of_another_type_do_not_count(record):
    assert noted(record, "kernel", "volumes") == []


def test_of_names_only_texts_count():
    assert noted({"id": "kernel", "volumes": ["a", 3, None]}, "kernel", "volumes") == ["a"]


def after(*steps):
    """The node with the record after these steps."""
    found = node()
    found["metadata"].setdefault("annotations", {})[OPERATION] = json.dumps(through(*steps))
    return found


class TestDaemonSets:
    """Which DaemonSets had a Ready pod on the node before its drain."""

    KERNEL = step("drain")["operation"]

    def recorded(self, *steps):
        return daemonsets_before(after(*steps), self.KERNEL)

    @pytest.mark.parametrize("names", [{}, {"kube-system/cni": "", "kube-system/proxy": ""}])
    def test_are_kept_until_the_node_is_back(self, names):
        drained = [(0, step("cordon")), (1, step("drain", daemonsets=names))]
        assert self.recorded(*drained) == names
        # The next run resumes the drain, which may have changed them.
        assert self.recorded(*drained, (2, step("drain", run="run-2", daemonsets={"shop/web": "2f"}))) == names
        assert self.recorded(*drained, (2, step("reboot")), (3, step("ready"))) == names

    def test_have_the_containers_that_ended_with_the_last_boot(self):
        seen = after((0, step("cordon")), (1, step("drain", daemonsets={"shop/log": "1f", "shop/odd": 7})))
        assert daemonsets_before(seen, self.KERNEL) == {"shop/log": "", "shop/odd": ""}
        seen["status"]["nodeInfo"]["bootID"] = "boot-2"
        assert daemonsets_before(seen, self.KERNEL) == {"shop/log": "1f", "shop/odd": "7"}

    @pytest.mark.parametrize("last", [step(result="rebooted"), step("hold", "failed"), step("cordon")])
    def test_are_dropped_at_the_end_and_at_another_attempt(self, last):
        assert self.recorded((0, step("cordon")), (1, step("drain", daemonsets={"a/b": "1f"})), (2, last)) is None

    def test_are_unknown_without_a_drain_and_for_another_operation(self):
        assert self.recorded((0, step("cordon")), (1, step("drain"))) is None
        assert self.recorded((0, step("cordon"))) is None
        assert daemonsets_before(node(), "") is None
        assert daemonsets_before(node(), self.KERNEL) is None

    def test_have_a_limit(self):
        kept = self.recorded((0, step("drain", daemonsets={f"shop/{number}": "" for number in range(1000)})))
        assert kept is not None
        assert len(kept) == 250

    @pytest.mark.parametrize("broken", ["all", 7, ["shop/log"]])
    def test_that_someone_broke_are_unknown(self, broken):
        seen = node()
        seen["metadata"].setdefault("annotations", {})[OPERATION] = json.dumps(
            {"id": self.KERNEL, "daemonsets": broken}
        )
        assert daemonsets_before(seen, self.KERNEL) is None


class TestVolumes:
    """Which PersistentVolumes the drains of the operation had to wait for."""

    KERNEL = step("drain")["operation"]

    def recorded(self, *steps):
        return volumes_before(after(*steps), self.KERNEL)

    def test_are_kept_for_the_next_drain_until_the_node_is_done(self):
        drained = [(0, step("cordon")), (1, step("drain", noted={"volumes": ["pv-1", "pv-2"]}))]
        assert self.recorded(*drained) == {"pv-1", "pv-2"}
        assert self.recorded(*drained, (2, step("drain", run="run-2"))) == {"pv-1", "pv-2"}
        failed = [*drained, (2, step(result="failed")), (3, step("cordon"))]
        assert self.recorded(*failed, (4, step("drain", noted={"volumes": []}))) == {"pv-1", "pv-2"}
        assert self.recorded(*drained, (2, step(result="rebooted"))) == set()

    def test_have_a_limit(self):
        assert (
            len(self.recorded((0, step("drain", noted={"volumes": [f"pv-{number}" for number in range(1000)]})))) == 250
        )

    @pytest.mark.parametrize("broken", ["all", 7, {"a": "b"}])
    def test_that_someone_broke_are_none(self, broken):
        seen = node()
        seen["metadata"].setdefault("annotations", {})[OPERATION] = json.dumps({"id": self.KERNEL, "volumes": broken})
        assert volumes_before(seen, self.KERNEL) == volumes_before(seen, "") == set()


OURS = {"owner": "rolling_reboot", "unschedulable_before": False}


class TestUnchecked:
    """After a reboot without its check, the record of the next operation says that the node has to stay cordoned."""

    def after(self, *phases, seen=None, **more):
        where = node(**{"unschedulable": True, "cordon": OURS, **(seen or {})})
        return through(*((number, step(phase), where) for number, phase in enumerate(phases)), (9, step(**more), where))

    @pytest.mark.parametrize(
        ("seen", "sent", "stays"),
        [
            ({}, "reboot", True),
            ({}, "ready", True),
            ({}, "drain", False),
            ({}, "uncordon", False),
            ({"unschedulable": False}, "reboot", False),
            ({"cordon": {**OURS, "owner": "drain"}}, "reboot", False),
            ({"cordon": None}, "reboot", False),
        ],
    )
    def test_begins_with_the_next_operation(self, seen, sent, stays):
        assert self.after(sent, operation="next", phase="slot", seen=seen).get("unchecked", False) is stays

    def test_lasts_for_operations_that_do_no_more(self):
        where = node(unschedulable=True, cordon=OURS)
        steps = [step("reboot"), step("slot", operation="second"), step("slot", operation="third")]
        assert through(*((number, each, where) for number, each in enumerate(steps)))["unchecked"] is True

    @pytest.mark.parametrize(
        ("seen", "then", "stays"),
        [
            ({}, {"phase": "cordon"}, True),
            ({"unschedulable": False}, {"phase": "cordon"}, False),
            ({"unschedulable": False}, {"phase": "hold"}, True),
            ({}, {"phase": "drain"}, True),
            ({}, {"phase": "ready"}, True),
            ({}, {"phase": "uncordon"}, False),
            ({}, {"result": "failed"}, True),
            ({}, {"result": "skipped"}, True),
            ({}, {"result": "rebooted"}, False),
        ],
    )
    def test_ends_with_the_check_or_with_the_uncordon(self, seen, then, stays):
        begun = self.after("reboot", operation="kernel-2", phase="slot")
        where = node(**{"unschedulable": True, "cordon": OURS, **seen})
        assert advance(begun, where, step(operation="kernel-2", **then), at(20)).get("unchecked", False) is stays


class Stored:
    """A cluster with one Node."""

    dry_run = False

    def __init__(self, record, claim=None):
        marks = {"holdfast.dev/operation": record, "holdfast.dev/claim": claim}
        self.node = node("boot-2")
        self.node["metadata"]["resourceVersion"] = "1"
        self.node["metadata"]["annotations"] = {key: json.dumps(mark) for key, mark in marks.items() if mark}
        self.writes = []

    def find(self, _path):
        return self.node

    def now(self):
        return START

    def merge(self, _path, body, **_more):
        self.writes.append(body)
        return self.node


WORK = [(0, step("slot")), (1, step("cordon")), (2, step("drain")), (3, step("reboot")), (4, step("ready"))]


@pytest.mark.parametrize("phase", ["hold", "slot"])
@pytest.mark.parametrize(("steps", "stays"), [(1, False), (2, False), (3, False), (4, True), (5, True)])
def test_a_run_that_waits_keeps_the_record_of_a_reboot_that_nobody_claims(steps, stays, phase):
    """A run took the claim of a silent run over and returned it. A third one, which waits, must not hide the reboot."""
    cluster = Stored(through(*WORK[:steps]))
    context = Context({})
    context.cluster = cluster

    node_operation(context, {"name": "node-1", "claimed": False, **step(phase, run="other")})

    assert (cluster.writes == []) is stays


@pytest.mark.parametrize(
    ("steps", "claimed_by", "began"),
    [
        (0, "", False),
        (1, "run-1", True),
        (1, "other", False),
        (4, "", True),
        (4, "other", False),
        (6, "", True),
        (6, "other", False),
    ],
)
def test_others_began(steps, claimed_by, began):
    """Another run works on the node, or has rebooted it. A run that has the claim resumes the reboot itself."""
    claim = {"run": claimed_by, "operation": "kernel", "purpose": "rolling_reboot", "since": at(0)}
    work = [*WORK, (5, step("uncordon", "rebooted"))][:steps]
    seen = Stored(through(*work), claim if claimed_by else None).node

    assert others_began(seen, "kernel", "other", START) is began
    assert others_began(seen, "firmware", "other", START) is (claimed_by == "run-1")


@pytest.mark.parametrize(("age", "began"), [(60, True), (61, False)])
def test_an_old_reboot_no_longer_counts(age, began):
    seen = Stored(through((0, step("uncordon", "rebooted")))).node

    assert others_began(seen, "kernel", "other", START + timedelta(seconds=age), 60) is began
    assert others_began(seen, "kernel", "other", START + timedelta(days=9))


@pytest.mark.parametrize(("age", "since"), [(60, 0), (61, 61)])
def test_the_same_result_counts_again_if_the_first_one_is_old(age, since):
    record = through((0, step("slot", "skipped")))

    assert advance(record, node(), step(result="skipped", run="next", old_after=60), at(age))["since"] == at(since)


STEPS = [
    *[step(name) for name in ("hold", "slot", "cordon", "drain", "reboot", "ready", "uncordon")],
    *[step(name, "failed") for name in ("slot", "drain", "reboot", "ready", "uncordon")],
    step("uncordon", "rebooted"),
    step(result="skipped"),
]


@given(
    st.lists(st.tuples(st.sampled_from(["kernel", "firmware", "certificates"]), st.sampled_from(STEPS)), max_size=12)
)
def test_operations_over_a_node_do_not_hide_the_reboots_of_each_other(taken):
    """A run of one of them only waits, or reboots the node. A run of another one must not reboot it again."""
    record, went = None, {}
    for seconds, (operation, params) in enumerate(taken):
        record = advance(record, node(), {**params, "operation": operation}, at(seconds))
        own = record_of(Stored(record).node, operation)
        began = own["phase"] in ("reboot", "ready", "uncordon") and own["result"] != "skipped"
        went[operation] = (own["phase"], own["result"], own["since"]) if began else None
        for name, known in went.items():
            found = record_of(Stored(record).node, name)
            assert known is None or (found["phase"], found["result"], found["since"]) == known
        kept = record.get("earlier", [])
        assert not any("earlier" in item for item in kept), "the record does not grow"
        assert len(kept) <= 2


def test_a_record_keeps_those_of_the_last_two_other_operations():
    record = None
    for operation in ("kernel", "firmware", "certificates", "disks"):
        record = advance(record, node(), step("uncordon", "rebooted", operation=operation), at(0))
    assert [item["id"] for item in record["earlier"]] == ["certificates", "firmware"]


def test_a_skipped_node_has_the_record_of_its_reboot_in_another_operation():
    record = through(*WORK, (5, step("uncordon", "rebooted")))
    for operation in ("firmware", "certificates"):
        record = advance(record, node(), step(result="skipped", operation=operation), at(9))
    assert record_of(Stored(record).node, "kernel")["result"] == "rebooted"
    assert record_of(Stored(record).node, "firmware") == {}, "it may have to be rebooted"
    assert record_of(Stored(record).node, "") == {}


@pytest.mark.parametrize("cordon", [OURS, None])
@pytest.mark.parametrize("phase", ["reboot", "uncordon"])
def test_a_resumed_operation_takes_the_cordon_of_the_other_one_into_account(phase, cordon):
    """The reboot of the other one is not checked. Whether that of this one was does not count any more."""
    begun = through(*WORK[:4])
    others = advance(begun, node(), step(phase, operation="firmware"), at(8))
    where = node(unschedulable=bool(cordon), cordon=cordon)
    resumed = advance(others, where, step("ready"), at(9))
    assert resumed.get("unchecked", False) is (cordon is not None and phase == "reboot")
    assert [item["id"] for item in resumed["earlier"]] == ["firmware"]


@pytest.mark.parametrize("earlier", ["x", None, [], 1, {"id": "kernel"}, ["x"], [{"id": "kernel"}]])
def test_a_broken_record_of_another_operation_is_as_none(earlier):
    record = {**through((0, step("hold"))), "id": "firmware", "earlier": earlier}
    found = advance(record, node(), step("slot"), at(9))
    assert (found["id"], found["started"], found.get("earlier")) == ("kernel", at(9), None)


@pytest.mark.parametrize("seconds", ["x", None, True, -1, 10**400, float("inf"), float("nan"), [], {}])
def test_a_record_with_broken_times_starts_again(seconds):
    """A node can write its own record."""
    record = {**through(*WORK), "phases": {"ready": seconds}}

    assert advance(record, node(), step("uncordon"), at(9))["phases"] == {}


def test_a_run_that_returns_the_node_itself_records_that_it_waits():
    claim = {"run": "other", "operation": "kernel", "purpose": "rolling_reboot", "since": at(0)}
    cluster = Stored(through(*WORK[:4]), claim)
    context = Context({})
    context.cluster = cluster

    node_operation(context, {"name": "node-1", "claimed": False, **step("hold", run="other")})

    assert cluster.writes


def test_only_known_names_can_be_noted():
    claim = {"run": "run-1", "operation": "kernel", "purpose": "rolling_reboot", "since": at(0)}
    cluster = Stored(through(*WORK[:3]), claim)
    phase = Phase("kernel", "run-1", "reboot")

    record_phase(cluster, "node-1", phase, overridden_holds=["shop/app"])
    with pytest.raises(TypeError):
        record_phase(cluster, "node-1", phase, overriden_holds=["shop/db"])

    (written,) = cluster.writes
    assert json.loads(written["metadata"]["annotations"][OPERATION])["overridden_holds"] == ["shop/app"]

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a canary has stood its reboot, and when it has not."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation_rules import advance
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.canary import (
    _selectors,
    _wait,
    await_canaries,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.canary_rules import (
    CanaryFailed,
    check,
    read_canary,
    soaked_until,
)

START = datetime(2026, 11, 21, 9, tzinfo=timezone.utc)


def at(seconds):
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def node(name="node-1", record=None, *, ready="True", boot_id="boot-2", **labels):
    return {
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"holdfast.dev/operation": json.dumps(record)} if record else {},
        },
        "spec": {},
        "status": {
            "nodeInfo": {"bootID": boot_id},
            "conditions": [{"type": "Ready", "status": ready, "reason": "KubeletNotReady", "message": "no network"}],
        },
    }


def went_through(*steps):
    """A record as node_operation writes it; each step is (seconds, phase, result)."""
    record = None
    for seconds, phase, result in steps:
        params = {"operation": "kernel", "run": "4711", "phase": phase, "result": result, "detail": "so it is"}
        record = advance(record, node(), params, at(seconds))
    return record


def canary(record=None, operation="kernel", **more):
    return read_canary(node(record=record, **more), operation)


REBOOTED = went_through((0, "drain", None), (60, "uncordon", "rebooted"))
SKIPPED = went_through((30, None, "skipped"))
FAILED = went_through((0, "drain", None), (60, None, "failed"))
UNDER_WAY = went_through((0, "slot", None), (5, "drain", None))


class TestDone:
    @pytest.mark.parametrize(("record", "done"), [(REBOOTED, at(60)), (SKIPPED, at(30)), (FAILED, ""), (UNDER_WAY, "")])
    def test_is_when_the_result_was_written(self, record, done):
        assert canary(record).done == done

    def test_stays_when_the_next_run_looks_at_it(self):
        params = {"operation": "kernel", "run": "next", "phase": None, "result": "skipped", "detail": None}

        assert canary(advance(SKIPPED, node(), params, at(999))).done == at(30)

    @pytest.mark.parametrize("record", [REBOOTED, SKIPPED])
    def test_is_not_what_is_old(self, record):
        """An operation may last several nights, and the canary may need another reboot."""
        now, age = START + timedelta(hours=9), timedelta(hours=9).total_seconds() - 30

        assert read_canary(node(record=record), "kernel", now=now, old_after=age).done
        assert read_canary(node(record=record), "kernel", now=now).done
        assert read_canary(node(record=record), "kernel", now=now, old_after=60).words() == "node-1 has not started"

    def test_is_again_what_is_recorded_after_that(self):
        params = {"operation": "kernel", "run": "next", "phase": None, "result": "skipped", "old_after": 60}

        assert canary(advance(SKIPPED, node(), params, at(999))).done == at(999)

    def test_a_failure_does_not_get_old(self):
        seen = read_canary(node(record=FAILED), "kernel", now=START + timedelta(days=9), old_after=60)

        assert seen.result == "failed"

    def test_is_not_what_was_in_another_operation(self):
        seen = canary(REBOOTED, operation="firmware")

        assert (seen.done, seen.result, seen.phase) == ("", "", "")
        assert seen.words() == "node-1 has not started"
        assert canary(FAILED, operation="firmware").result == ""

    def test_what_it_is_waited_for(self):
        assert canary(UNDER_WAY).words() == f"node-1 has been in phase drain since {at(5)}"

    def test_as_data(self):
        assert canary(REBOOTED).to_data() == {"name": "node-1", "result": "rebooted", "done": at(60), "ready": True}
        assert canary(UNDER_WAY, ready="Unknown").to_data() == {
            "name": "node-1",
            "result": "",
            "done": None,
            "ready": False,
        }


class TestCheck:
    @pytest.mark.parametrize("record", [None, UNDER_WAY, REBOOTED, SKIPPED])
    def test_one_that_goes_its_way(self, record):
        check(canary(record), "kernel")

    @pytest.mark.parametrize("ready", ["False", "Unknown"])
    def test_one_that_is_not_ready_before_it_is_done(self, ready):
        check(canary(UNDER_WAY, ready=ready, boot_id="boot-1"), "kernel")

    def test_one_that_failed(self):
        with pytest.raises(CanaryFailed, match="Canary node-1 of operation kernel failed in phase drain: so it is"):
            check(canary(FAILED), "kernel")

    @pytest.mark.parametrize("record", [REBOOTED, SKIPPED])
    @pytest.mark.parametrize("ready", ["False", "Unknown"])
    def test_one_that_is_not_ready_since(self, record, ready):
        with pytest.raises(
            CanaryFailed, match=f"is not Ready, although it was done.* Ready is {ready} .*: no network"
        ) as caught:
            check(canary(record, ready=ready), "kernel")

        assert caught.value.kind == "canary_failed"
        assert caught.value.fields["node"] == "node-1"

    def test_one_that_has_booted_since(self):
        with pytest.raises(CanaryFailed, match="has booted again since it was done"):
            check(canary(REBOOTED, boot_id="boot-3"), "kernel")

    def test_one_that_was_skipped_may_boot(self):
        check(canary(SKIPPED, boot_id="boot-3"), "kernel")

    def test_one_whose_boot_id_is_not_known_is_believed(self):
        check(canary({**REBOOTED, "boot_id_after": ""}), "kernel")

    @pytest.mark.parametrize("since", ["", "soon", "0001-01-01T00:00:00Z"])
    def test_one_that_was_done_at_no_time(self, since):
        with pytest.raises(CanaryFailed, match="has a broken record"):
            check(canary({**REBOOTED, "since": since}), "kernel")

    @pytest.mark.parametrize("record", [None, SKIPPED])
    def test_one_that_is_excluded(self, record):
        with pytest.raises(Refused, match="has the label holdfast") as caught:
            check(canary(record, **{"holdfast.dev/exclude": ""}), "kernel")

        assert caught.value.kind == "refused"


class TestSoak:
    @given(st.lists(st.integers(0, 10_000), min_size=1, max_size=5), st.integers(0, 10_000))
    def test_begins_when_the_last_one_is_done(self, done, soak):
        some = [canary(went_through((seconds, None, "skipped"))) for seconds in done]

        assert soaked_until(some, soak) == START + timedelta(seconds=max(done) + soak)
        assert soaked_until([*some, canary(UNDER_WAY)], soak) is None


class Canaries:
    """Canaries in a cluster whose clock only waits move."""

    def __init__(self, *records):
        self.canaries = {str(number): canary(record) for number, record in enumerate(records)}
        self.cluster = self
        self.seconds = 0.0

    def now(self):
        return START + timedelta(seconds=self.seconds)

    def until_news(self, deadline):
        assert self.seconds < 10_000, "it waits for too long"
        self.seconds += deadline.seconds

    def look(self):
        pass


@pytest.mark.parametrize(("done", "waited"), [(-100, 200), (-1000, 0), (0, 300), (10**9, 300)])
def test_a_record_of_the_future_soaks_no_longer_than_one_of_now(done, waited):
    found = Canaries(went_through((done, None, "skipped")), went_through((-5000, None, "skipped")))

    _wait(found, 300, Deadline(10))

    assert found.seconds == waited


class TestWatch:
    def test_of_one_is_by_its_name(self):
        assert _selectors([node()]) == {"field_selector": "metadata.name=node-1"}

    def test_of_some_is_by_a_label(self):
        some = [node("a", **{"kubernetes.io/hostname": "host-a"}), node("b", **{"kubernetes.io/hostname": "host-b"})]

        assert _selectors(some) == {"label_selector": "kubernetes.io/hostname in (host-a,host-b)"}

    def test_of_those_without_the_label_is_of_all(self):
        assert _selectors([node("a", **{"kubernetes.io/hostname": "host-a"}), node("b")]) == {}
        assert _selectors([node(str(n), **{"kubernetes.io/hostname": str(n)}) for n in range(51)]) == {}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"nodes": []}, "nodes must name the canaries, at least one"),
        ({"nodes": ["node-1", " "]}, "nodes must name the canaries"),
        ({"operation": " "}, "operation must not be empty"),
        ({"soak": -1}, "soak must be a number of seconds, 0 or more, not -1"),
    ],
)
def test_wrong_input_is_refused(params, message):
    known = {"nodes": ["node-1"], "operation": "kernel", "soak": 0, "wait_timeout": 0}
    with pytest.raises(InvalidInput, match=message):
        await_canaries(Context({}), {**known, **params})

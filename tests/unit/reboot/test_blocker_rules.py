# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which alerts and pods speak against a reboot, and what is no answer at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.blocker_rules import (
    Alert,
    Blocker,
    InvalidAnswer,
    of_alerts,
    of_pod,
    read_alerts,
    read_filter,
    read_unevaluated,
    sentence,
)

NODE = "node-1"
DISK = Alert("DiskFull", "firing", {"alertname": "DiskFull", "severity": "page", "node": NODE}, "2026-11-21T09:00:00Z")


def alert(**changed):
    return {
        "labels": {"alertname": "DiskFull", "severity": "page"},
        "annotations": {},
        "state": "firing",
        "activeAt": "2026-11-21T09:00:00.123456789Z",
        "value": "1e+00",
        **changed,
    }


def answer(*alerts, **changed):
    return {"status": "success", "data": {"alerts": list(alerts)}, **changed}


def rules(*found):
    return {"status": "success", "data": {"groups": [{"name": "one", "rules": list(found)}, {"rules": []}]}}


def rule(name="DiskFull", health="ok", kind="alerting"):
    return {"name": name, "health": health, "type": kind, "alerts": []}


def blocks(found, **options):
    return bool(of_alerts([found], [], read_filter(options, NODE)))


class TestFilter:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, True),
            ({"only": "Disk"}, True),
            ({"only": "^Disk$"}, False),
            ({"only": ""}, True),
            ({"ignore": "Full"}, False),
            ({"ignore": "^Full"}, True),
            ({"ignore": ""}, True),
            ({"only": "Disk", "ignore": "DiskFull"}, False),
            ({"only": "(?i)disk"}, True),
            ({"labels": {"severity": "page"}}, True),
            ({"labels": {"severity": "page", "team": "a"}}, False),
            ({"labels": {"severity": "pag"}}, False),
            ({"labels": {}}, True),
            ({"node_label": "node"}, True),
            ({"node_label": "instance"}, False),
            ({"node_label": "severity"}, False),
            ({"firing_only": True}, True),
        ],
    )
    def test_a_firing_alert(self, options, expected):
        assert blocks(DISK, **options) is expected

    @pytest.mark.parametrize(
        ("state", "firing_only", "expected"),
        [
            ("firing", False, True),
            ("pending", False, True),
            ("inactive", False, False),
            ("firing", True, True),
            ("pending", True, False),
            ("inactive", True, False),
            ("smouldering", True, True),
        ],
    )
    def test_states(self, state, firing_only, expected):
        assert blocks(Alert("DiskFull", state), firing_only=firing_only) is expected

    def test_values_of_labels_may_be_numbers_and_booleans(self):
        found = Alert("A", "firing", {"level": "1", "critical": "true"})

        assert blocks(found, labels={"level": 1, "critical": True})
        assert not blocks(found, labels={"critical": "True"})

    @pytest.mark.parametrize("option", ["only", "ignore"])
    @pytest.mark.parametrize("text", ["(", "a**", "[", "(?P<a>", "a{99999999999999999999}"])
    def test_what_is_no_regular_expression_is_refused(self, option, text):
        with pytest.raises(InvalidInput, match=f"alerts.{option}"):
            read_filter({option: text}, NODE)

    @pytest.mark.parametrize("text", ["^[[:upper:]]+$", "[^[:alpha:]]", "[[:^digit:]]"])
    def test_what_kured_s_expressions_have_and_ours_have_not_is_refused(self, text):
        with pytest.raises(InvalidInput, match="POSIX"):
            read_filter({"only": text}, NODE)

    @pytest.mark.parametrize("value", [None, ["page"], {"a": 1}])
    def test_labels_without_a_text_are_refused(self, value):
        with pytest.raises(InvalidInput, match="severity"):
            read_filter({"labels": {"severity": value}}, NODE)

    @given(
        name=st.text(alphabet="abAB", min_size=1),
        state=st.sampled_from(["firing", "pending"]),
        labels=st.dictionaries(st.sampled_from(["node", "severity"]), st.sampled_from([NODE, "page"])),
        options=st.fixed_dictionaries(
            {},
            optional={
                "only": st.sampled_from(["^a", "B", "b$"]),
                "ignore": st.sampled_from(["^a", "A", "ab"]),
                "firing_only": st.booleans(),
                "labels": st.dictionaries(st.sampled_from(["node", "severity"]), st.sampled_from([NODE, "page"])),
                "node_label": st.sampled_from(["node", "severity"]),
            },
        ),
    )
    def test_each_option_alone_leaves_out_and_none_brings_back(self, name, state, labels, options):
        found = Alert(name, state, labels)

        assert blocks(found, **options) is all(blocks(found, **{key: value}) for key, value in options.items())


class TestAnswer:
    def test_of_a_prometheus(self):
        (found,) = read_alerts(answer(alert()))

        assert (found.name, found.state) == ("DiskFull", "firing")
        assert found.labels["severity"] == "page"
        assert found.since == "2026-11-21T09:00:00.123456789Z"

    def test_without_alerts(self):
        assert read_alerts(answer()) == []

    @pytest.mark.parametrize(
        "nonsense",
        [
            None,
            [],
            "success",
            {},
            {"status": "success"},
            {"status": "success", "data": None},
            {"status": "success", "data": []},
            {"status": "success", "data": {}},
            {"status": "success", "data": {"alerts": None}},
            {"status": "success", "data": {"alerts": {}}},
            {"data": {"alerts": []}},
            answer(status="error"),
            answer(warnings=["one store did not answer"]),
            answer("alert"),
            answer({}),
            answer(alert(), None),
            answer(alert(state=None)),
            answer(alert(labels=None)),
            answer(alert(labels={})),
            answer(alert(labels={"alertname": ""})),
            answer(alert(labels={"alertname": "A", "level": 1})),
        ],
    )
    def test_that_is_none_is_never_no_alerts(self, nonsense):
        with pytest.raises(InvalidAnswer):
            read_alerts(nonsense)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.text() | st.sampled_from(["success", "firing"]),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["status", "data", "alerts", "labels", "alertname", "state"]), inner)
            ),
        ).flatmap(lambda inner: st.sampled_from([inner, {"status": "success", "data": inner}]))
    )
    def test_only_an_empty_list_of_alerts_is_no_alerts(self, anything):
        try:
            found = read_alerts(anything)
        except InvalidAnswer:
            return
        assert anything["status"] == "success"
        assert isinstance(anything["data"]["alerts"], list)
        assert len(found) == len(anything["data"]["alerts"])

    def test_reports_the_server_s_message(self):
        with pytest.raises(InvalidAnswer, match=r"it reports: out of order"):
            read_alerts({"status": "error", "errorType": "internal", "error": "out of order"})
        with pytest.raises(InvalidAnswer, match=r"incomplete.*one store"):
            read_alerts(answer(warnings=["one store did not answer"]))


class TestRules:
    def test_that_were_never_evaluated(self):
        found = rules(rule("A"), rule("B", "unknown"), rule("C", "err"), rule("rate:1m", "unknown", "recording"))

        assert read_unevaluated(found) == ["B"]

    @pytest.mark.parametrize(
        "nonsense", [None, answer(), {**rules(), "status": "error"}, rules(None), rules({"type": "alerting"})]
    )
    def test_nonsense(self, nonsense):
        with pytest.raises(InvalidAnswer):
            read_unevaluated(nonsense)

    def test_block_until_they_are(self):
        (blocker,) = of_alerts([], ["B", "B"], read_filter({}, NODE))

        assert (blocker.kind, blocker.name) == ("alert", "B")
        assert "not been evaluated" in blocker.reason

    def test_of_alerts_that_can_t_block_don_t(self):
        assert not of_alerts([], ["B"], read_filter({"only": "A"}, NODE))
        assert not of_alerts([], ["B"], read_filter({"ignore": "B"}, NODE))


class TestBlocker:
    def test_of_an_alert(self):
        (blocker,) = of_alerts([DISK], [], read_filter({}, NODE))

        assert blocker.shown() == {
            "kind": "alert",
            "name": "DiskFull",
            "namespace": None,
            "reason": "firing since 2026-11-21T09:00:00Z (node=node-1, severity=page)",
        }

    def test_of_an_alert_with_nothing_but_a_name(self):
        (blocker,) = of_alerts([Alert("A", "firing", {"alertname": "A"})], [], read_filter({}, NODE))

        assert blocker.reason == "firing"

    def test_of_an_alert_with_much_to_say(self):
        (blocker,) = of_alerts([Alert("A", "firing", {"a": "x" * 5000})], [], read_filter({}, NODE))

        assert len(blocker.reason) < 400

    @pytest.mark.parametrize(
        ("more", "reason"),
        [
            ({"status": {"phase": "Running"}}, "Running, selected by app=backup"),
            ({}, "Unknown, selected by app=backup"),
        ],
    )
    def test_of_a_pod(self, more, reason):
        blocker = of_pod({"metadata": {"namespace": "ci", "name": "job-1"}, **more}, "app=backup")

        assert blocker.shown() == {"kind": "pod", "name": "job-1", "namespace": "ci", "reason": reason}

    def test_of_a_pod_that_is_ending(self):
        metadata = {"namespace": "ci", "name": "job-1", "deletionTimestamp": "2026-11-21T09:00:00Z"}

        assert of_pod({"metadata": metadata}, "a").reason == "ending since 2026-11-21T09:00:00Z, selected by a"

    def test_many_are_counted(self):
        found = [Blocker("pod", "ci", f"job-{number}", "Running") for number in range(12)]

        assert sentence(found[:1]) == "pod ci/job-0: Running"
        assert sentence(found[:10]).endswith("pod ci/job-9: Running")
        assert sentence(found[:11]).endswith("; and 1 more")
        assert sentence(found).endswith("pod ci/job-9: Running; and 2 more")

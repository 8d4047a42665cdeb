# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which alerts are silenced, and which silences belong to a run. A test with a real Alertmanager is in integration."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import silence_rules as rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.silences import Silences

NOW = datetime(2026, 11, 23, 3, 0, tzinfo=timezone.utc)
NODE = "worker-1.example"


def matcher(name, value, *, regex=False, equal=True):
    return {"name": name, "value": value, "isRegex": regex, "isEqual": equal}


def silence(run="4711", node=NODE, state="active", **more):
    made = rules.new(rules.read_matchers([], node)[0], run, node, NOW, 300)
    return {**made, "id": "an-id", "status": {"state": state}, **more}


def test_by_default_the_labels_of_both_exporters():
    (of_node,), (of_instance,) = rules.read_matchers([], NODE)

    assert of_node == matcher("node", NODE)
    assert (of_instance["name"], of_instance["isRegex"]) == ("instance", True)
    pattern = re.compile(of_instance["value"])
    assert [bool(pattern.fullmatch(text)) for text in (NODE, f"{NODE}:9100", "worker-1xexample", f"{NODE}0")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('node="a"', [matcher("node", "a")]),
        ('{node="a",}', [matcher("node", "a")]),
        ('{node = "a", job!~"b.*"}', [matcher("node", "a"), matcher("job", "b.*", regex=True, equal=False)]),
        ('x!="a,b=\\"c\\"\\n",y=~"d"', [matcher("x", 'a,b="c"\n', equal=False), matcher("y", "d", regex=True)]),
        ("node=a", None),
        ("", None),
        ('node="a" job="b"', None),
        ('node="a",,job="b"', None),
    ],
)
def test_matchers_in_the_syntax_of_alertmanager(text, expected):
    if expected is None:
        with pytest.raises(InvalidInput, match="is not a list of matchers"):
            rules.read_matchers([text], NODE)
    else:
        assert rules.read_matchers([text], NODE) == [expected]


def test_only_its_own():
    mine, expired, of_other = silence(), silence(state="expired"), silence(run="4718")
    by_person = silence(createdBy="alice")
    other_node = silence(node="worker-2")
    every = [mine, expired, of_other, by_person, other_node]

    assert rules.own(every, "4711", NODE) == [mine]
    assert rules.own(every, "4711") == [mine, other_node]
    assert rules.node_of(other_node) == "worker-2"


def test_an_extension_keeps_what_keeps_the_id():
    before = silence(updatedAt="2026-11-23T03:00:00Z")

    after = rules.extended(before, NOW.replace(minute=4), 300)

    assert {key for key in before if before[key] != after.get(key)} == {"endsAt", "status", "updatedAt"}
    assert after["endsAt"] == "2026-11-23T03:09:00.000000Z"


NIGHT, SLOW = matcher("team", "night"), matcher("alertname", "Slow.*", regex=True)
WITHOUT_EQUAL = {name: value for name, value in NIGHT.items() if name != "isEqual"}


@pytest.mark.parametrize(
    ("wanted", "same"),
    [
        ([NIGHT, SLOW], True),
        ([SLOW, NIGHT], True),
        ([SLOW, WITHOUT_EQUAL], True),
        ([NIGHT], False),
        ([NIGHT, {**SLOW, "isRegex": False}], False),
        ([NIGHT, {**SLOW, "isEqual": False}], False),
        ([{**NIGHT, "name": "shift"}, SLOW], False),
        ([{**NIGHT, "value": "day"}, SLOW], False),
    ],
)
def test_a_silence_is_the_same_if_its_matchers_are_in_any_order(wanted, same):
    """Old versions of Alertmanager leave ``isEqual`` out."""
    assert rules.has_matchers({"matchers": [NIGHT, SLOW]}, wanted) is same
    assert rules.has_matchers({"matchers": wanted}, [NIGHT, SLOW]) is same


def test_one_that_nobody_extends_expires():
    now = datetime(2026, 11, 23, 3, tzinfo=timezone.utc)
    silence = rules.new(rules.read_matchers([], "n"), "4711", "n", now, 90)
    assert (silence["startsAt"], silence["endsAt"]) == ("2026-11-23T03:00:00.000000Z", "2026-11-23T03:01:30.000000Z")


@pytest.mark.parametrize(
    ("claim", "record", "expected"),
    [
        ({"run": "4711"}, {"phase": "drain", "result": ""}, True),
        ({"run": "4718"}, {"phase": "drain", "result": ""}, False),
        (None, {"phase": "drain", "result": ""}, False),
        ({"run": "4711"}, {"phase": "ready", "result": "failed"}, True),
    ],
)
def test_whether_the_run_still_works_on_a_node(claim, record, expected):
    """A run that resumes a failed node has its claim, and the result of the earlier run is still recorded."""
    claimed = {"purpose": "rolling_reboot", "since": "2026-11-23T03:00:00.000000Z", "operation": "kernel"}
    marks = {"holdfast.dev/operation": json.dumps({"id": "kernel", **record})}
    if claim:
        marks["holdfast.dev/claim"] = json.dumps({**claimed, **claim})

    assert rules.worked_on({"metadata": {"name": NODE, "annotations": marks}}, "4711") is expected


def options(**more):
    return {"url": "http://127.0.0.1:1", "validate_certs": True, "timeout": 1, "expires_after": 300, **more}


@pytest.mark.parametrize("wrong", [{}, {"url": "nowhere"}, {"expires_after": 1}, {"matchers": ["node"]}])
def test_an_alertmanager_that_is_away_is_a_warning(wrong, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    warnings = []

    silences = Silences({"alertmanager": options(**wrong)}, NODE, "4711", warnings.append)
    silences.begin()

    assert len(warnings) == 1
    assert f"The alerts of node {NODE} are not silenced: " in warnings[0]


def test_without_an_alertmanager_nothing_is_asked():
    silences = Silences({}, NODE, "4711", pytest.fail)
    silences.begin()
    silences.end()

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics as text, and that rules, dashboard and guide name only metrics that exist."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from pathlib import Path

import pytest
import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import to_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Ledger, Slot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.policy_rules import Policy
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.run_rules import Run
from ansible_collections.holdfast.kubernetes.plugins.module_utils._doctor.snapshot_rules import Finding, Snapshot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._metrics import rules

DOCS = Path(__file__).resolve().parents[3] / "docs"
NOW = datetime(2026, 11, 23, 3, 0, tzinfo=timezone.utc)
SINCE = "2026-11-23T02:00:00.000000Z"
SECONDS = "1795399200"


def node(name, **record):
    record = {"id": "kernel", "run": "4711", "since": SINCE, **record}
    return {"metadata": {"name": name, "annotations": {"holdfast.dev/operation": json.dumps(record)}}}


def facts(**more):
    nodes = {
        "a": node("a", phase="drain", result=""),
        "b": node("b", phase="uncordon", result="rebooted"),
        "c": node("c", phase="drain", result="", since="yesterday"),
    }
    slots = {"a": Slot("a", "kernel", "4711", SINCE), "x": Slot("x", "kernel", "4711", SINCE, state="failed")}
    entry = {"id": "kernel", "runs": ["4711"], "failures": {"x": "no"}, "left_out": 2, "unfinished": True}
    done = {"id": "old", "runs": [], "failures": {"x": "no"}}
    ledger = Ledger(Policy(max_unavailable="25%"), slots, (done, entry), nodes=9)
    runs = {
        "4711": Run("4711", 'alice "root"@bastion', SINCE),
        "over": Run("over", "", SINCE, ended=True),
    }
    return rules.Facts(Snapshot(nodes, {"workers": ledger}, runs, NOW), **more)


def lines(**more):
    return [line for line in rules.text(facts(**more)).splitlines() if not line.startswith("#")]


def test_of_a_cluster_without_a_run():
    assert lines() == [
        f'holdfast_node_phase_timestamp_seconds{{node="a",operation="kernel",run="4711",phase="drain"}} {SECONDS}',
        f'holdfast_node_result_timestamp_seconds{{node="b",operation="kernel",run="4711",result="rebooted"}} {SECONDS}',
        'holdfast_slots{group="workers",state="active"} 1',
        'holdfast_slots{group="workers",state="failed"} 1',
        'holdfast_budget{group="workers"} 2',
        'holdfast_operation_failed_nodes{group="workers",operation="kernel"} 3',
        f'holdfast_run_last_sign_timestamp_seconds{{run="4711",holder="alice \\"root\\"@bastion"}} {SECONDS}',
        "holdfast_written_timestamp_seconds 1795402800",
    ]


@pytest.mark.parametrize("resumed", [True, False])
def test_a_dead_run_whose_operation_a_live_run_has_resumed_is_left_out(resumed):
    runs = {"dead": Run("dead", "al", SINCE), "live": Run("live", "al", to_text(NOW) if resumed else SINCE)}
    ledger = Ledger(operations=({"id": "kernel", "runs": ["dead", "live"], "failures": {}},))
    found = rules.text(rules.Facts(Snapshot({}, {"workers": ledger}, runs, NOW)))

    assert ('last_sign_timestamp_seconds{run="dead"' in found) is not resumed
    assert 'last_sign_timestamp_seconds{run="live"' in found


def test_of_a_run():
    results = [
        {"name": "a", "result": "failed", "required": True},
        {"name": "b", "result": "rebooted", "required": False},
        {"name": "c", "result": "failed", "required": None},
    ]

    assert lines(results=results, operation="kernel", run="4711")[:2] == [
        'holdfast_reboot_required{node="a"} 1',
        'holdfast_reboot_required{node="b"} 0',
    ]
    assert 'holdfast_run_nodes{operation="kernel",run="4711",result="failed"} 2' in lines(
        results=results, operation="kernel", run="4711"
    )


def test_holds_and_what_the_doctor_finds():
    hold = {"node": "a", "namespace": "shop", "holder": "back\\slash\nline", "acquired": SINCE}
    findings = [Finding("slot", stale=True), Finding("slot", stale=True), Finding("run")]

    found = lines(holds=[hold, {**hold, "acquired": "now"}], findings=findings)

    expected = f'holdfast_hold_timestamp_seconds{{node="a",namespace="shop",holder="back\\\\slash\\nline"}} {SECONDS}'
    assert [line for line in found if "hold_timestamp" in line] == [expected]
    assert 'holdfast_stale_objects{kind="slot"} 2' in found


def test_each_family_is_described_once_before_its_samples():
    text = rules.text(facts())

    assert text.count("# TYPE holdfast_slots gauge\nholdfast_slots{") == 1
    assert text.count("# HELP holdfast_slots ") == 1


NAMED = re.compile(r"\bholdfast_[a-z_]+[a-z]\b")
KNOWN = {f"{rules.PREFIX}{name}" for name in rules.FAMILIES}


def expressions():
    dashboard = json.loads((DOCS / "monitoring/dashboard.json").read_text())
    groups = yaml.safe_load((DOCS / "monitoring/alerts.yml").read_text())["groups"]
    return [
        *(target["expr"] for panel in dashboard["panels"] for target in panel["targets"]),
        *(rule["expr"] for group in groups for rule in group["rules"]),
    ]


@pytest.mark.parametrize("expression", expressions())
def test_rules_and_dashboard_name_metrics_that_exist(expression):
    assert NAMED.findall(expression)
    assert set(NAMED.findall(expression)) <= KNOWN


def test_the_guide_has_each_metric():
    table = re.findall(r"^\| `(holdfast_\w+)` \|", (DOCS / "monitoring.md").read_text(), re.MULTILINE)

    assert set(table) == KNOWN


def test_the_dashboard_has_each_metric():
    assert {name for expression in expressions() for name in NAMED.findall(expression)} >= KNOWN

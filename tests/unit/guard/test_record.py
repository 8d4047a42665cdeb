# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The release of a Machine is decided from a look that is not too old."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import datetime, timezone

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Held, Outdated
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.gate import Pass
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.find import Place
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import last_look
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import record, rules

NOW = datetime(2026, 11, 21, 9, tzinfo=timezone.utc)
GUARD = rules.Guard("backup", "team")
HOOK = GUARD.key("pre-terminate")


class Api:
    """One Machine with our hook, whose work is done, and its Node."""

    dry_run = False

    def __init__(self):
        mine = rules.begin(None, "pre-terminate", run="r/w", holder="ada", now=NOW, uid="u")
        self.node = {"metadata": {"name": "n"}, "spec": {"providerID": "x://1"}}
        self.machine = {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Machine",
            "metadata": {
                "name": "m",
                "namespace": "metal",
                "uid": "u",
                "resourceVersion": "1",
                "annotations": {HOOK: "team", "holdfast.dev/machine-guard": json.dumps({"backup": mine})},
            },
            "spec": {"clusterName": "c", "providerID": "x://1"},
            "status": {"nodeRef": {"name": "n"}},
        }
        self.sent_once = []
        self.lost = 0

    def now(self):
        return NOW

    def find(self, path):
        return self.node if "/nodes/" in path else self.machine

    def merge(self, _path, patch, *, once=False):
        self.sent_once.append(once)
        if self.lost:
            self.lost -= 1
            raise Outdated("The API server was unavailable.", patience=0)
        marks = {**self.machine["metadata"]["annotations"], **patch["metadata"]["annotations"]}
        marks = {name: value for name, value in marks.items() if value is not None}
        self.machine = {**self.machine, "metadata": {**self.machine["metadata"], "annotations": marks}}
        return self.machine


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(last_look, "steady", lambda: now[0])
    return now


@pytest.fixture
def release(monkeypatch):
    """Lets the Machine go; each answer of the gate comes from the list."""

    def act(api, answers):
        def gate(*_arguments, **_options):
            return answers.pop(0)()

        monkeypatch.setattr(record.gate, "check", gate)
        monkeypatch.setattr(record.runs, "heartbeat", lambda *_arguments: nullcontext())
        monkeypatch.setattr(record.capi, "place", lambda *_arguments: Place("/machines", "m"))
        monkeypatch.setattr(record._GuardRecord, "_end_work", lambda *_arguments: None)
        monkeypatch.setattr(rules, "check_fenced", lambda *_arguments: None)
        monkeypatch.setattr(record.nodes, "look", lambda *_a, **_o: record.nodes.Found(api.node, rules.READY))
        params = {"hook": "backup", "owner": "team", "run": "r/w", "namespace": "metal", "machine": "m"}
        params |= {"result": "released", "look": False, "override_holds": False}
        context = Context(params)
        context.__dict__.update(cluster=api, management=api)
        return record.machine_guard_record(context, params)

    return act


def held():
    raise Held("held")


def test_a_check_that_is_too_old_is_repeated(clock, release):
    api = Api()

    def paused():
        clock[0] += 60
        return Pass("b")

    with pytest.raises(Held):
        release(api, [paused, held])
    assert HOOK in api.machine["metadata"]["annotations"]
    assert api.sent_once == []


def test_a_release_that_did_not_get_through_is_checked_again(clock, release):
    api = Api()
    api.lost = 1
    with pytest.raises(Held):
        release(api, [lambda: Pass("b"), held])
    assert HOOK in api.machine["metadata"]["annotations"]
    assert api.sent_once == [True]


def test_a_recent_check_releases_the_machine(clock, release):
    api = Api()
    assert release(api, [lambda: Pass("b")])["record"]["result"] == "released"
    assert HOOK not in api.machine["metadata"]["annotations"]

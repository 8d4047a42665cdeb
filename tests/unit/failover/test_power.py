# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch a host off by metal3: a soft power-off becomes a hard one, and the phase is recorded before each."""

from __future__ import annotations

import pytest
from unit.reboot.memory_cluster import AT, MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    Held,
    HoldfastError,
    InvalidInput,
    TimedOut,
    Unreachable,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import power

RECORD = {
    "id": "op",
    "run": "me",
    "holder": "",
    "reason": "",
    "started": AT,
    "since": AT,
    "phase": "claim",
    "phases": {},
    "boot_id": "boot-1",
    "facts": {"fence": "metal3"},
    "result": "",
    "detail": "",
}
CLAIM = {"run": "me", "operation": "op", "purpose": "failover", "since": AT}
FACTS = {"fence": "metal3", "host": "unit-7", "namespace": "metal", "key": "k", "mode": "soft"}


class Metal3:
    """What metal3 answers, one after the other, and what was recorded by then."""

    def __init__(self, cluster, *answers):
        self.cluster, self.answers, self.asked = cluster, list(answers), []

    def __call__(self, _context, params):
        record = self.cluster.marks()["failover"]
        assert (record["phase"], record["facts"]["mode"]) == ("fence", params["mode"])
        assert (params["boot_id"], params["not_ready"], params["run"]) == ("boot-1", True, "me")
        self.asked.append((params["mode"], params["wait_timeout"]))
        answer = self.answers.pop(0)
        if isinstance(answer, HoldfastError):
            raise answer
        return {"changed": True, "evidence": answer}


@pytest.fixture
def cluster():
    found = MemoryCluster()
    found.node(ready=False, failover=RECORD, claim=CLAIM)
    return found


def switch(monkeypatch, cluster, *answers, **options):
    metal3 = Metal3(cluster, *answers)
    monkeypatch.setattr(power, "reboot_annotation", metal3)
    params = {
        "name": "node-1",
        "power": "off",
        "method": "metal3",
        "operation": "op",
        "run": "me",
        "facts": FACTS,
        "soft_timeout": 4,
        "timeout": 9,
        "override_holds": False,
        **options,
    }
    context = Context(params)
    context.cluster = cluster
    try:
        return power.failover_power(context, params), metal3.asked
    except HoldfastError as error:
        return error, metal3.asked


def test_a_soft_power_off(monkeypatch, cluster):
    done, asked = switch(monkeypatch, cluster, {"kind": "BareMetalHost"})
    assert done["evidence"] == {"kind": "BareMetalHost"}
    assert asked == [("soft", 4)]


def test_it_becomes_a_hard_one(monkeypatch, cluster):
    done, asked = switch(monkeypatch, cluster, TimedOut("It is on."), {"kind": "BareMetalHost"})
    assert done["changed"]
    assert asked == [("soft", 4), ("hard", 9)]
    assert cluster.marks()["failover"]["facts"]["mode"] == "hard"


def test_it_is_hard_at_once(monkeypatch, cluster):
    _done, asked = switch(monkeypatch, cluster, {}, facts={**FACTS, "mode": "hard"})
    assert asked == [("hard", 9)]


@pytest.mark.parametrize(
    ("answers", "sent"),
    [
        ([Held("It is held.")], False),
        ([Unreachable("The API is away.")], True),
        ([TimedOut("It is on."), TimedOut("It is still on.")], True),
        ([TimedOut("It is on."), Held("It is held.")], True),
    ],
)
def test_a_failure_says_whether_the_host_may_go_off(monkeypatch, cluster, answers, sent):
    failed, _asked = switch(monkeypatch, cluster, *answers)
    assert failed.fields["sent"] is sent


@pytest.mark.parametrize("node", [{"ready": True}, {"ready": False, "boot_id": "boot-2"}])
def test_a_node_that_is_back_is_not_switched_off(monkeypatch, cluster, node):
    cluster.node(**node, failover=RECORD, claim=CLAIM)
    failed, asked = switch(monkeypatch, cluster)
    assert (failed.kind, failed.fields["sent"], asked) == ("came_back", False, [])


def test_a_hold_keeps_it_on(monkeypatch, cluster):
    cluster.hold()
    failed, asked = switch(monkeypatch, cluster)
    assert (failed.kind, failed.fields["sent"], asked) == ("held", False, [])


def test_a_host_is_not_switched_on_here(monkeypatch, cluster):
    failed, asked = switch(monkeypatch, cluster, power="on")
    assert isinstance(failed, InvalidInput)
    assert asked == []

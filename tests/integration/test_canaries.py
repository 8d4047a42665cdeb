# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wait for canaries, against a real API server."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import from_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation import node_operation
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import canary
from lab.patience import PATIENCE

# The server reports its time in whole seconds, so two clients' estimates differ by less than one.
CLOCK = timedelta(seconds=1)


class Canaries:
    """Nodes of one operation, and the run that waits for them."""

    def __init__(self, world, names):
        self.world, self.names, self.operation = world, names, world.namespace

    def writes(self, name, phase="uncordon", result="", **more):
        step = {"operation": self.operation, "phase": phase, "result": result, "claimed": False, **more}
        written = self.world.run(node_operation, name=name, **step)
        assert not written.get("failed"), written["msg"]
        return written["operation"]

    def options(self, **more):
        return {"nodes": self.names, "operation": self.operation, "soak": 0, "wait_timeout": PATIENCE, **more}

    def wait(self, **more):
        return self.world.run(canary.await_canaries, **self.options(**more))

    def start(self, **more):
        """Start to wait in the background; return after the first look."""
        return self.world.start(canary.await_canaries, **self.options(**more))


@pytest.fixture
def canaries(world, nodes):
    return Canaries(world, nodes(2))


@pytest.fixture
def watching(monkeypatch):
    """Wait until a watch is open."""
    begun = threading.Semaphore(0)

    class Told(canary.Follower):
        def _open(self, *arguments, **more):
            begun.release()
            return super()._open(*arguments, **more)

    monkeypatch.setattr(canary, "Follower", Told)
    return lambda: begun.acquire(timeout=PATIENCE)


def test_waits_until_each_is_done(canaries, watching):
    one, two = canaries.names
    canaries.writes(one, result="skipped")
    waiting = canaries.start()
    assert watching()

    canaries.writes(two, "drain")
    assert watching()
    assert not waiting.done()
    last = canaries.writes(two, "uncordon", "rebooted")
    result = waiting.result(PATIENCE)

    assert not result.get("failed"), result.get("msg")
    assert result["changed"] is False
    assert [(item["name"], item["result"], item["ready"]) for item in result["canaries"]] == [
        (one, "skipped", True),
        (two, "rebooted", True),
    ]
    assert result["canaries"][1]["done"] == last["since"]
    assert result["soaked_until"] == max(item["done"] for item in result["canaries"])


def test_soaks_by_the_server_s_clock(canaries):
    done = [from_text(canaries.writes(name, result="rebooted")["since"]) for name in canaries.names]

    result = canaries.wait(soak=3, wait_timeout=0)

    assert from_text(result["soaked_until"]) == max(done) + timedelta(seconds=3)
    assert from_text(result["soaked_until"]) <= canaries.world.cluster.now() + CLOCK


def test_who_comes_later_does_not_soak_again(canaries):
    for name in canaries.names:
        canaries.writes(name, result="rebooted")
    first = canaries.wait(soak=2)["soaked_until"]
    assert from_text(first) <= canaries.world.cluster.now() + CLOCK

    # The moment is the same, and it has passed.
    assert canaries.wait(soak=2)["soaked_until"] == first


def test_what_others_went_through_before_does_not_count(canaries):
    one, two = canaries.names
    canaries.writes(one, result="rebooted")
    canaries.writes(two, result="rebooted", operation="the-one-before")

    result = canaries.wait(wait_timeout=1)

    assert result["error"] == "timed_out"
    assert result["waiting_for"] == [two]
    assert f"not done after 1 s: {two} has not started. Check" in result["msg"]
    assert result["canaries"][0]["result"] == "rebooted"


def test_a_timeout_names_the_phase_of_the_canary(canaries):
    one, two = canaries.names
    record = canaries.writes(one, "drain")
    canaries.writes(two, result="skipped")

    result = canaries.wait(wait_timeout=0)

    assert (result["error"], result["waiting_for"]) == ("timed_out", [one])
    assert f"{one} has been in phase drain since {record['since']}" in result["msg"]


class TestFailure:
    def test_of_one_ends_the_waiting_at_once(self, canaries, watching):
        waiting = canaries.start(soak=3600)
        assert watching()

        canaries.writes(canaries.names[1], "drain", "failed", detail="its budget says never")
        result = waiting.result(PATIENCE)

        assert (result["error"], result["node"]) == ("canary_failed", canaries.names[1])
        assert "failed in phase drain: its budget says never" in result["msg"]

    def test_one_that_is_not_ready_during_the_soak(self, canaries, watching, world):
        for name in canaries.names:
            canaries.writes(name, result="rebooted")
        waiting = canaries.start(soak=3600)
        assert watching()

        world.set_condition(canaries.names[0], "Ready", "False", "KubeletNotReady")
        result = waiting.result(PATIENCE)

        assert (result["error"], result["node"]) == ("canary_failed", canaries.names[0])
        assert "Ready is False (KubeletNotReady: by a test)" in result["msg"]
        assert result["canary"]["ready"] is False

    def test_one_that_boots_once_more_during_the_soak(self, canaries, watching, world):
        for name in canaries.names:
            canaries.writes(name, result="rebooted")
        waiting = canaries.start(soak=3600)
        assert watching()

        world.cluster.merge(
            f"{paths.node(canaries.names[0])}/status", {"status": {"nodeInfo": {"bootID": "yet another"}}}
        )
        result = waiting.result(PATIENCE)

        assert result["error"] == "canary_failed"
        assert "has booted again since it was done" in result["msg"]

    @pytest.mark.parametrize("of", [1, 2])
    def test_one_whose_node_goes_away(self, canaries, watching, world, of):
        canaries.names = canaries.names[:of]
        waiting = canaries.start()
        assert watching()

        world.cluster.delete(paths.node(canaries.names[0]))
        result = waiting.result(PATIENCE)

        assert (result["error"], result["node"]) == ("canary_failed", canaries.names[0])
        assert "no longer exists" in result["msg"]

    def test_one_that_is_not_there(self, canaries):
        result = canaries.wait(nodes=[*canaries.names, "no-such-node"])

        assert (result["error"], result["node"]) == ("not_found", "no-such-node")

    def test_one_that_is_excluded(self, canaries, watching, world):
        waiting = canaries.start()
        assert watching()

        world.cluster.merge(paths.node(canaries.names[1]), {"metadata": {"labels": {"holdfast.dev/exclude": "vendor"}}})
        result = waiting.result(PATIENCE)

        assert (result["error"], result["node"]) == ("refused", canaries.names[1])
        assert canaries.wait()["error"] == "refused"


class TestWatch:
    """The watch is narrow where the server can narrow it, and correct where it can't."""

    def test_does_not_hear_of_other_nodes(self, canaries, watching, world, nodes, monkeypatch):
        heard = []
        keep = canary._Watch._keep
        monkeypatch.setattr(
            canary._Watch,
            "_keep",
            lambda self, node: heard.append(node["metadata"]["name"]) or keep(self, node),
        )
        (other,) = nodes()
        waiting = canaries.start()
        assert watching()

        world.cluster.merge(paths.node(other), {"metadata": {"annotations": {"test": "news"}}})
        for name in canaries.names:
            canaries.writes(name, result="skipped")

        assert not waiting.result(PATIENCE).get("failed")
        assert set(heard) == set(canaries.names)

    def test_without_the_label_that_narrows_it(self, canaries, watching, world):
        one, two = canaries.names
        world.cluster.merge(paths.node(one), {"metadata": {"labels": {"kubernetes.io/hostname": None}}})
        waiting = canaries.start()
        assert watching()

        canaries.writes(one, result="skipped")
        assert watching()
        canaries.writes(two, result="skipped")

        assert not waiting.result(PATIENCE).get("failed")

    def test_the_label_is_removed_during_the_wait(self, canaries, watching, world):
        one, two = canaries.names
        waiting = canaries.start()
        assert watching()

        world.cluster.merge(paths.node(one), {"metadata": {"labels": {"kubernetes.io/hostname": None}}})
        assert watching()
        for name in (one, two):
            canaries.writes(name, result="skipped")

        assert not waiting.result(PATIENCE).get("failed")

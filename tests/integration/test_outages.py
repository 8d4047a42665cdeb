# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rolling reboots through an API server that is unavailable, frozen or overloaded: each node once, nothing left."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from integration.support.faults import AWAY, ENDED, KINDS
from integration.support.halts import Halt
from integration.support.history import History
from integration.support.playbooks import Rolling
from integration.support.world import World

pytestmark = pytest.mark.long

PATIENCE = 900
HOOKS = [
    "before_slot",
    "before_cordon",
    "before_drain",
    "before_reboot",
    "before_ready",
    "check",
    "before_uncordon",
    "after",
]


@pytest.fixture
def rolling(world, proxy, ansible):
    found = Rolling(world, ansible)
    yield found
    found.close()


@pytest.fixture
def history(world, rolling, lab):
    """Watch what happens to the group, without the proxy."""
    return History(lab.kubeconfig, group=rolling.group, selector=rolling.selector)


def assert_each_once(rolling, history, before, done):
    names = list(before)
    assert done.good().results == dict.fromkeys(names, "rebooted")
    after = rolling.boot_ids(names)
    assert history.boot_ids == {name: [before[name], after[name]] for name in names}
    rolling.assert_nothing_left(names)
    (operation,) = rolling.ledger()["operations"]
    assert (operation["runs"], operation["unfinished"], operation["failures"]) == ([], False, {})


@pytest.fixture(params=["away", "frozen"])
def outage(request, world, proxy, rolling, history, tmp_path):  # noqa: PLR0917 - what pytest gives
    """Three nodes and a budget of one: the first is in this phase, and the other two wait for their slots."""

    def play(hook, seconds):
        names = world.nodes(3)
        before = rolling.boot_ids(names)
        halt = Halt(tmp_path / "halt")
        with history:
            run = rolling.start(names, **{f"{hook}_tasks": rolling.tasks("stay", halt.command)})
            run.until(lambda: halt.reached, f"a node in {hook}", PATIENCE)
            with getattr(proxy, request.param)():
                halt.resume()
                time.sleep(seconds)
            done = run.done(PATIENCE)
        assert_each_once(rolling, history, before, done)
        assert history.most_slots == 1, history.worst_slots

    return play


@contextmanager
def kubelets_report(world: World, names: list[str]) -> Iterator[None]:
    """Report nodes as Ready that the node controller has marked, as a kubelet does. kwok reports a node only once."""
    over = threading.Event()

    def report() -> None:
        while not over.wait(1):
            for name in names:
                conditions = world.node(name)["status"]["conditions"]
                if any((item["type"], item["reason"]) == ("Ready", "NodeStatusUnknown") for item in conditions):
                    world.set_condition(name, "Ready", "True", "KubeletReady")

    with ThreadPoolExecutor(1) as pool:
        reports = pool.submit(report)
        try:
            yield
        finally:
            over.set()
        reports.result()


@pytest.mark.parametrize("hook", HOOKS)
def test_ten_seconds_in_each_phase(outage, hook):
    outage(hook, 10)


@pytest.mark.parametrize("hook", ["before_drain", "before_uncordon"])
@pytest.mark.parametrize("seconds", [30, 90])
def test_longer_ones(outage, hook, seconds):
    outage(hook, seconds)


@pytest.mark.alone
@pytest.mark.parametrize("seconds", [10, 30, 90])
def test_the_api_server_itself_is_stopped(lab, world, rolling, tmp_path, seconds):
    names = world.nodes(3)
    before = rolling.boot_ids(names)
    halt = Halt(tmp_path / "halt")
    # No kubelet can renew its Lease either, so after the outage nodes look unhealthy for a while.
    stay = rolling.tasks("stay", halt.command)
    run = rolling.start(names, before_uncordon_tasks=stay, unhealthy_grace=PATIENCE)
    run.until(lambda: halt.reached, "a node before its cordon is undone", PATIENCE)
    lab.stop_apiserver()
    try:
        halt.resume()
        time.sleep(seconds)
    finally:
        lab.start_apiserver()
    with kubelets_report(world, names):
        done = run.done(PATIENCE).good()
    assert done.results == dict.fromkeys(names, "rebooted")
    assert all(rolling.boot_id(name) != boot_id for name, boot_id in before.items())
    rolling.assert_nothing_left(names)


def test_five_percent_of_the_writes_fail(world, proxy, rolling, history):
    names = world.nodes(8)
    before = rolling.boot_ids(names)
    proxy.faults.seed = int(os.environ.get("HOLDFAST_TEST_SEED", "15"))
    proxy.faults.share = 0.05
    with history:
        done = rolling.start(names, max_unavailable="2").done(PATIENCE)
    assert_each_once(rolling, history, before, done)
    assert history.most_slots <= 2, history.worst_slots
    assert {kind for _method, _path, kind in proxy.faults.log} <= set(KINDS)
    assert proxy.faults.log, "no write failed"


def test_watches_that_end_at_once(world, proxy, rolling, history):
    names = world.nodes(3)
    before = rolling.boot_ids(names)
    proxy.faults.watches = ENDED
    with history:
        done = rolling.start(names).done(PATIENCE)
    assert_each_once(rolling, history, before, done)


def test_a_failure_that_can_not_be_counted_is_loud_and_stops_the_others_all_the_same(world, proxy, rolling, tmp_path):
    first, second = names = world.nodes(2)
    before = rolling.boot_ids(names)
    halt = Halt(tmp_path / "halt")
    hosts = {
        first: {"rolling_reboot_check_tasks": rolling.tasks("fail", halt.command, "false")},
        # It waits for a slot only when the first node has it.
        second: {"rolling_reboot_before_slot_tasks": rolling.tasks("later", halt.reached_command)},
    }
    # The second one learns of the failure when a turn of its wait ends.
    run = rolling.start(hosts, api_timeout=5)
    run.until(lambda: halt.reached, "the check of the first node", PATIENCE)
    proxy.faults.next(AWAY, path="configmaps/group", times=100000)
    halt.resume()
    run.until(lambda: rolling.record(first).get("result") == "failed", "it fails", PATIENCE)
    proxy.faults.planned.clear()
    done = run.done(PATIENCE)

    assert done.code != 0
    assert "COULD NOT BE COUNTED" in done.detail(first)
    assert "holdfast.kubernetes.doctor" in done.detail(first)
    # The failure was counted before another run passed it.
    (operation,) = rolling.ledger()["operations"]
    assert set(operation["failures"]) == {first}
    assert rolling.boot_id(second) == before[second]
    assert done.results[second] == "stopped"

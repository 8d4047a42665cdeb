# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Maintenance windows by the clock of a real API server."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.clock import ServerClock
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import from_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import run_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import window
from ansible_collections.holdfast.kubernetes.plugins.modules import maintenance_window
from lab.patience import PATIENCE


def around(now, begin, end):
    """A window from this many minutes before or after now to that many."""
    start, stop = now + timedelta(minutes=begin), now + timedelta(minutes=end)
    return [{"start": f"{start:%H:%M}", "end": f"{stop:%H:%M}"}]


@pytest.fixture
def shift(monkeypatch):
    """Shift the API server's clock by this much."""

    def set_to(offset):
        monkeypatch.setattr(ServerClock, "now", lambda self: true(self) + offset)

    true = ServerClock.now
    return set_to


def test_open_and_closed(world):
    now = world.cluster.now()
    later = now.replace(second=0, microsecond=0) + timedelta(minutes=60)

    inside = world.run(maintenance_window, windows=around(now, -60, 60))
    outside = world.run(maintenance_window, windows=around(now, 60, 120))
    after = world.cluster.now()

    assert inside["open"] is True
    assert inside["opens"] is None
    assert from_text(inside["closes"]) == later
    # Two clients' estimates of the server's time differ by less than a second, and fractions of a second are dropped.
    most, least = (later - now).total_seconds() + 1, (later - after).total_seconds() - 2
    assert least <= inside["seconds_left"] <= most
    assert outside["open"] is False
    assert from_text(outside["opens"]) == later
    assert (inside["changed"], outside["changed"]) == (False, False)


def test_it_goes_by_the_server_s_clock(world, shift):
    windows = around(world.cluster.now(), -60, 60)

    shift(timedelta(hours=5))

    assert world.run(maintenance_window, windows=windows)["open"] is False


def test_waits_for_one_and_keeps_its_run_alive(world, shift, monkeypatch):
    monkeypatch.setattr(window, "_LONGEST_SLEEP", 0.1)
    now = world.cluster.now()
    run = f"{world.namespace}-run"
    world.made.objects.append(paths.lease("holdfast", run_rules.lease_name(run)))

    waiting = world.start(
        maintenance_window, windows=around(now, 60, 120), wait_timeout=7200, run=run, holder="alice@bastion"
    )
    lease = world.until(paths.leases("holdfast"), run_rules.lease_name(run), lambda item: item is not None)
    assert not waiting.done()
    shift(timedelta(minutes=61))
    result = waiting.result(PATIENCE)

    assert lease["spec"]["holderIdentity"] == "alice@bastion"
    assert result["open"] is True
    assert result["waited"] > 0
    assert from_text(result["closes"]) == now.replace(second=0, microsecond=0) + timedelta(minutes=120)


def test_waits_not_at_all_for_what_comes_too_late(world):
    result = world.run(maintenance_window, windows=around(world.cluster.now(), 60, 120), wait_timeout=600)

    assert result["open"] is False
    assert result["waited"] < 600


@pytest.mark.long
def test_as_a_task(ansible, kubeconfig):
    """The module recognises what YAML makes of an unquoted 22:00, before it sends a request."""
    book = ansible.folder / "windows.yml"
    book.write_text("windows:\n  - {start: '22:00', end: '23:00'}\n  - {start: 22:00, end: '23:00', days: sat}\n")
    right = {"windows": [{"start": "22:00", "end": "22:00", "days": "Mon"}], "time_zone": "Europe/Berlin"}
    tasks = [
        {"holdfast.kubernetes.maintenance_window": {"windows": "{{ windows }}", "host": "https://127.0.0.1:1"}},
        {"holdfast.kubernetes.maintenance_window": {**right, "kubeconfig": kubeconfig}},
        {"holdfast.kubernetes.maintenance_window": {"windows": [{"start": "22:00", "until": "23:00"}]}},
    ]

    (wrong, well, unknown), _text = ansible.tasks(tasks, f"--extra-vars=@{book}")

    assert (wrong["failed"], wrong["error"], wrong["option"], wrong["entry"]) == (True, "invalid_input", "windows", 2)
    assert 'windows, entry 2: start "1320" is not a time of day' in wrong["msg"]
    assert isinstance(well["open"], bool)
    assert "until" in unknown["msg"]

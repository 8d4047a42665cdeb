# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time zones by name, and waiting for a window by a clock that is not ours."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import watch
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput, Unreachable
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import window
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.window import (
    maintenance_window,
    read_zone,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
EVENING = [{"start": "18:00", "end": "20:00"}]


class Machine:
    """A controller and an API server, whose clocks run on while a process sleeps."""

    def __init__(self):
        self.now_, self.monotonic_, self.slept, self.asked = NOON, 0.0, [], 0
        self.dry_run = False
        # What a sleep of the process means for the server, more where the machine was asleep, too.
        self.factor = 1.0

    def now(self):
        return self.now_

    def get(self, path):
        self.asked += 1
        if self.asked % 3 == 0:
            raise Unreachable("away for a moment")
        assert path == "/version"

    def monotonic(self):
        return self.monotonic_

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.monotonic_ += seconds
        self.now_ += timedelta(seconds=seconds * self.factor)


@pytest.fixture
def machine(monkeypatch):
    made = Machine()
    monkeypatch.setattr(window.time, "sleep", made.sleep)
    monkeypatch.setattr(watch.Deadline, "elapsed", property(lambda self: made.monotonic_))
    return made


def run(machine, *, check_mode=False, **params):
    warnings = []
    known = {"windows": EVENING, "time_zone": "UTC", "margin": 0, "wait_timeout": 0, "run": None, "holder": None}
    context = Context({}, check_mode=check_mode, warn=warnings.append)
    context.cluster = machine
    return {**maintenance_window(context, {**known, **params}), "warnings": warnings}


class TestZone:
    def test_utc_needs_no_database(self, monkeypatch):
        monkeypatch.setattr(window, "ZoneInfo", None)

        assert read_zone("UTC") is read_zone("utc") is timezone.utc

    @pytest.mark.parametrize("name", ["", "Europe", "Europe/Berlim", "../etc/passwd", "/etc/localtime", "x" * 300, "ü"])
    def test_unknown(self, name):
        with pytest.raises(InvalidInput, match=r"is unknown\. Use a name from the IANA database") as caught:
            read_zone(name)

        assert caught.value.fields == {"option": "time_zone"}

    def test_the_nearest_name_is_offered(self):
        with pytest.raises(InvalidInput, match="such as Europe/Berlin, or UTC"):
            read_zone("Europe/Berlim")

    def test_that_of_the_controller_is_none(self):
        with pytest.raises(InvalidInput, match='time_zone "localtime" is unknown'):
            read_zone("localtime")

    def test_without_a_database(self, monkeypatch):
        monkeypatch.setattr(window, "available_timezones", frozenset)
        with pytest.raises(InvalidInput, match=r"has no time zone database\. Install the distribution's package"):
            read_zone("Europe/Berlim")


class TestInput:
    """Nothing is asked before all of it is right."""

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"windows": [*EVENING, {"start": "1", "end": "2"}]}, "windows, entry 2: start"),
            ({"time_zone": "Mars/Olympus"}, "time_zone"),
            ({"windows": [], "time_zone": "Mars/Olympus"}, "time_zone"),
            ({"margin": -1}, "margin must be a number of seconds, 0 or more, not -1"),
            ({"wait_timeout": -1}, "wait_timeout must be"),
        ],
    )
    def test_is_refused(self, params, message):
        with pytest.raises(InvalidInput, match=message):
            run(None, **params)


class TestResult:
    def test_no_windows(self):
        result = run(None, windows=[])

        assert (result["open"], result["opens"], result["closes"], result["seconds_left"]) == (True, None, None, None)

    def test_closed(self, machine):
        assert run(machine) == {
            "changed": False,
            "open": False,
            "opens": "2026-11-21T18:00:00.000000Z",
            "closes": "2026-11-21T20:00:00.000000Z",
            "seconds_left": 0,
            "waited": 0.0,
            "warnings": [],
        }

    def test_open(self, machine):
        machine.now_ = NOON + timedelta(hours=6.5)
        result = run(machine)

        assert (result["open"], result["opens"], result["seconds_left"]) == (True, None, 5400)

    def test_never(self, machine):
        result = run(machine, margin=7201, wait_timeout=10**6)

        assert (result["open"], result["opens"], result["closes"], result["seconds_left"]) == (False, None, None, 0)
        assert result["warnings"] == [
            "Every maintenance window is shorter than the margin of 7201 s, so no window ever counts."
        ]
        assert machine.slept == []


class TestWaiting:
    def test_until_it_opens(self, machine):
        result = run(machine, wait_timeout=6 * 3600 + 1)

        assert result["open"] is True
        assert result["seconds_left"] == 7200
        assert result["waited"] == pytest.approx(6 * 3600)
        assert max(machine.slept) <= 60

    def test_not_at_all_if_it_would_be_in_vain(self, machine):
        result = run(machine, wait_timeout=6 * 3600 - 1)

        assert (result["open"], result["waited"], machine.slept) == (False, 0.0, [])

    def test_a_machine_that_was_asleep_notices(self, machine):
        machine.factor = 100.0
        result = run(machine, wait_timeout=6 * 3600 + 1)

        assert result["open"] is True
        assert result["waited"] < 300

    def test_a_window_that_was_slept_through_is_over(self, machine):
        machine.factor = 1000.0
        result = run(machine, wait_timeout=6 * 3600 + 1)

        assert result["open"] is False
        assert result["opens"] == "2026-11-22T18:00:00.000000Z"

    def test_for_one_with_enough_left(self, machine):
        machine.now_ = NOON + timedelta(hours=7)
        result = run(machine, wait_timeout=86400, margin=3601)

        assert result["open"] is True
        assert result["waited"] == pytest.approx(23 * 3600)

    def test_not_in_check_mode(self, machine):
        assert run(machine, wait_timeout=86400, check_mode=True)["open"] is False
        assert machine.slept == []

    def test_keeps_the_run_alive(self, machine, monkeypatch):
        kept = []
        monkeypatch.setattr(window.run_leases, "renew", lambda cluster, *run: kept.append(run))
        run(machine, run="4711", holder="alice")
        assert kept == [], "without waiting there is nothing to tell"

        run(machine, wait_timeout=86400, run="4711", holder="alice")
        assert kept[0] == ("4711", "alice")

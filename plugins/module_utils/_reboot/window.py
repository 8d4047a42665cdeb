# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check whether a maintenance window is open, and wait for one, by the API server's clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone, tzinfo
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from .._api.cluster import Cluster
from .._api.errors import HoldfastError, InvalidInput
from .._api.runner import Context, Params, Result
from .._api.times import seconds_between, to_text
from .._api.watch import Deadline
from .._budget import runs as run_leases
from .window_rules import Outlook, look, read_windows

# Seconds between two requests for the server's time. Clocks can be set, and machines can sleep.
_STEP = 60.0
_SHORTEST = 0.1
# Some systems list this name for the time zone of the local machine.
_OWN = "localtime"


def maintenance_window(context: Context, params: Params, *, waits: Callable[[], None] = lambda: None) -> Result:
    """Look at the windows; see the module of the same name.

    Args:
        waits: Called before each pause of the wait for a window.
    """
    windows, zone = read_windows(params["windows"]), read_zone(params["time_zone"])
    margin, deadline = timedelta(seconds=_seconds(params, "margin")), Deadline(_seconds(params, "wait_timeout"))
    if not windows:
        return _result(Outlook(open=True), datetime.now(timezone.utc), deadline)

    def judge(now: datetime) -> Outlook:
        return look(windows, zone, now, margin)

    cluster = context.cluster
    now = cluster.now()
    outlook = judge(now)
    if not outlook.open and outlook.opens is None:
        context.warn(
            f"Every maintenance window is shorter than the margin of {params['margin']} s, so no window ever counts."
        )
    elif not outlook.open and deadline.left and not context.check_mode:
        with run_leases.heartbeat(cluster, params.get("run") or "", params.get("holder") or ""):
            outlook, now = _wait(cluster, judge, deadline, waits)
    return _result(outlook, now, deadline)


def read_zone(name: str) -> tzinfo:
    """A time zone by its IANA name.

    Raises:
        InvalidInput: There is no time zone of that name, or no time zone database on this machine.
    """
    if name.upper() == "UTC":
        # Needs no database.
        return timezone.utc
    try:
        if name == _OWN:
            raise KeyError(name)
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        known = available_timezones() - {_OWN}
        if not known:
            raise InvalidInput(
                f'time_zone "{name}" can\'t be looked up: the machine that runs this task has no time zone database. '
                "Install the distribution's package tzdata or the Python package tzdata there, or use UTC.",
                option="time_zone",
            ) from error
        near = get_close_matches(name, known, n=1)
        raise InvalidInput(
            f'time_zone "{name}" is unknown. Use a name from the IANA database, such as '
            f"{near[0] if near else 'Europe/Berlin'}, or UTC.",
            option="time_zone",
        ) from error


def _seconds(params: Params, option: str) -> int:
    value: int = params[option]
    if value < 0:
        raise InvalidInput(f"{option} must be a number of seconds, 0 or more, not {value}.", option=option)
    return value


def _wait(
    cluster: Cluster, judge: Callable[[datetime], Outlook], deadline: Deadline, waits: Callable[[], None]
) -> tuple[Outlook, datetime]:
    """Sleep until a window opens. Return at once if the next window opens after the deadline."""
    while True:
        with suppress(HoldfastError):
            # While the API server is away, cluster.now() continues from the last time that the server sent.
            cluster.get("/version")
        now = cluster.now()
        outlook = judge(now)
        if outlook.open or outlook.opens is None:
            return outlook, now
        ahead = seconds_between(now, outlook.opens)
        if ahead > deadline.left:
            return outlook, now
        waits()
        time.sleep(max(_SHORTEST, min(ahead, _STEP)))


def _result(outlook: Outlook, now: datetime, deadline: Deadline) -> Result:
    left: int | None = 0
    if outlook.open:
        left = int(seconds_between(now, outlook.closes)) if outlook.closes else None
    return {
        "changed": False,
        "open": outlook.open,
        "opens": to_text(outlook.opens) if outlook.opens else None,
        "closes": to_text(outlook.closes) if outlook.closes else None,
        "seconds_left": left,
        "waited": round(deadline.elapsed, 3),
    }

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
from .._progress import event_rules
from .window_rules import Outlook, look, read_windows

# Seconds. After the longest sleep the server's time is read again: clocks can be set, and machines can be suspended.
_LONGEST_SLEEP = 60.0
_SHORTEST_SLEEP = 0.1
# Some systems list this name, which stands for the time zone of each machine, so controllers may not agree on it.
_LOCAL_TIME = "localtime"


def maintenance_window(context: Context, params: Params, *, waits: Callable[[], None] = lambda: None) -> Result:
    """Check the windows; see the module of the same name.

    Args:
        waits: Called before each sleep while it waits for a window.
    """
    windows, zone = read_windows(params["windows"]), read_zone(params["time_zone"])
    margin, deadline = timedelta(seconds=_seconds(params, "margin")), Deadline(_seconds(params, "wait_timeout"))
    if not windows:
        return _result(Outlook(open=True), datetime.now(timezone.utc), deadline)

    def outlook_at(now: datetime) -> Outlook:
        return look(windows, zone, now, margin)

    cluster = context.cluster
    now = cluster.now()
    outlook = outlook_at(now)
    if not outlook.open and outlook.opens is None:
        context.warn(
            f"Every maintenance window is shorter than the margin of {params['margin']} s, so no window ever counts."
        )
    elif not outlook.open and outlook.opens is not None and deadline.left and not context.check_mode:
        opens = f"the window that opens at {to_text(outlook.opens)[:16]}Z"
        context.tell(event_rules.waits(params.get("name") or "", "window", opens))
        with run_leases.heartbeat(cluster, params.get("run") or "", params.get("holder") or ""):
            outlook, now = _wait(cluster, outlook_at, deadline, waits)
    return _result(outlook, now, deadline)


def read_zone(name: str) -> tzinfo:
    """A time zone by its IANA name.

    Raises:
        InvalidInput: There is no time zone of that name, or no time zone database on this machine.
    """
    if name.upper() == "UTC":
        # It also works without a time zone database.
        return timezone.utc
    try:
        if name == _LOCAL_TIME:
            raise KeyError(name)
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        known = available_timezones() - {_LOCAL_TIME}
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
    cluster: Cluster, outlook_at: Callable[[datetime], Outlook], deadline: Deadline, waits: Callable[[], None]
) -> tuple[Outlook, datetime]:
    """Sleep until a window opens. Return immediately if the next window opens after the deadline."""
    while True:
        with suppress(HoldfastError):
            # Every answer has the server's time. While there is none, cluster.now() counts on from the last one.
            cluster.get("/version")
        now = cluster.now()
        outlook = outlook_at(now)
        if outlook.open or outlook.opens is None:
            return outlook, now
        seconds_to_wait = seconds_between(now, outlook.opens)
        if seconds_to_wait > deadline.left:
            return outlook, now
        waits()
        time.sleep(max(_SHORTEST_SLEEP, min(seconds_to_wait, _LONGEST_SLEEP)))


def _result(outlook: Outlook, now: datetime, deadline: Deadline) -> Result:
    left: int | None = 0
    if outlook.open:
        # ``None`` for a window that never closes.
        left = int(seconds_between(now, outlook.closes)) if outlook.closes else None
    return {
        "changed": False,
        "open": outlook.open,
        "opens": to_text(outlook.opens) if outlook.opens else None,
        "closes": to_text(outlook.closes) if outlook.closes else None,
        "seconds_left": left,
        "waited": round(deadline.elapsed, 3),
    }

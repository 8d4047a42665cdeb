# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node's next shutdown will be graceful, and if not, why: plain data in, problems out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any

from .._api.times import from_text
from .._logind.inhibitor_rules import Inhibitor, Logind, moment
from . import grace_rules as grace
from .kubelet_rules import Kubelet, Settings
from .logind_rules import DEFAULT, PRECISION, LogindFiles, same

NEEDS_MORE, NOT_RELOADED = "kubelet_needs_more", "logind_not_reloaded"
LOCK_MISSING, NOT_RUNNING, UNKNOWN = "delay_lock_missing", "kubelet_not_running", "kubelet_unknown"
RESTART_NEEDED, REFUSED, UNREADABLE = "restart_needed", "configuration_refused", "configuration_unreadable"
UNFINISHED, UNTOLD = "last_shutdown_unfinished", "last_shutdown_unreadable"
# These concern the past or the future; the next shutdown is still graceful.
_HARMLESS = (NOT_RELOADED, UNFINISHED, UNTOLD)
# Go writes more digits than Python reads.
_FRACTION = re.compile(r"(\.\d{1,6})\d*")


@dataclass(frozen=True)
class Problem:
    """A problem: a code for programs, a message for people, and the file that has it, if any."""

    problem: str
    message: str
    file: str | None = None


@dataclass(frozen=True)
class LastShutdown:
    """The last shutdown that the kubelet noticed.

    Attributes:
        started: When the kubelet noticed it.
        ended: When it had ended the pods; ``None`` if it never did.
        this_boot: Whether the node has not booted since: the shutdown was cancelled, or is in progress.
    """

    started: datetime
    ended: datetime | None
    this_boot: bool

    def to_data(self) -> dict[str, Any]:
        return {
            "started": moment(self.started.timestamp()),
            "ended": moment(self.ended.timestamp()) if self.ended else None,
            "finished": self.ended is not None,
            "this_boot": self.this_boot,
        }


@dataclass(frozen=True)
class Snapshot:
    """All that is known of a node.

    Attributes:
        kubelet: The kubelet.
        settings: The settings in its files.
        effective: Seconds that logind now gives to delay locks.
        files: The content of logind's files.
        logind: Its locks.
        last: The last shutdown; ``None`` if none is recorded.
    """

    kubelet: Kubelet
    settings: Settings
    effective: float
    files: LogindFiles
    logind: Logind
    last: LastShutdown | None = None

    @property
    def configured(self) -> grace.Configured:
        return grace.configured(self.settings.values)

    @property
    def groups(self) -> grace.Groups:
        return self.configured.groups

    @property
    def needed(self) -> int:
        return grace.needed(self.groups)

    @property
    def enabled(self) -> bool:
        return bool(self.groups)

    @property
    def restart_needed(self) -> bool:
        return self.kubelet.started is not None and self.settings.changed > self.kubelet.started

    @property
    def delay_lock(self) -> Inhibitor | None:
        """The lock of the running kubelet; the lock of an earlier process does not count."""
        return next((lock for lock in self.logind.inhibitors if self._is_its(lock)), None)

    @property
    def lock_missing(self) -> bool:
        """Whether the lock is missing. In a shutdown, the kubelet releases it when it is done."""
        wanted = self.enabled and self.kubelet.active and not self.logind.preparing_for_shutdown
        return wanted and not self.delay_lock

    def _is_its(self, lock: Inhibitor) -> bool:
        delays = lock.mode == "delay" and "shutdown" in lock.what.split(":")
        return delays and self.kubelet.active and lock.pid == self.kubelet.pid


def read_state(text: str, booted: float) -> LastShutdown | None:
    """Read the kubelet's ``graceful_node_shutdown_state``; ``None`` if it records no shutdown.

    Args:
        text: The content of the file.
        booted: When the node booted, by its clock.

    Raises:
        ValueError: The text has another format.
    """
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - one error for all that is wrong with the text
    started, ended = (_time(data.get(key)) for key in ("startTime", "endTime"))
    return LastShutdown(started, ended, started.timestamp() >= booted) if started else None


def _time(value: Any) -> datetime | None:
    """Return a time; ``None`` for Go's zero time."""
    found = from_text(_FRACTION.sub(r"\1", value)) if isinstance(value, str) else None
    return found if found and found.year > 1 else None


def in_effect(snapshot: Snapshot, problems: Iterable[Problem]) -> bool:
    """Return whether a shutdown that begins now gives the pods their time."""
    return snapshot.enabled and all(item.problem in _HARMLESS for item in problems)


def problems(snapshot: Snapshot) -> list[Problem]:
    return [*_of_files(snapshot), *_of_kubelet(snapshot), *_of_logind(snapshot), *_of_last(snapshot)]


def _of_files(snapshot: Snapshot) -> Iterator[Problem]:
    for file, reason in snapshot.settings.troubles:
        yield Problem(
            UNREADABLE,
            f"{file} {reason}. A kubelet that starts with it fails or ignores it; fix or remove the file.",
            file,
        )
    for reason in snapshot.configured.refusals:
        named = max((key for key in snapshot.settings.set_by if key in reason), key=len, default="")
        yield Problem(
            REFUSED,
            f"The kubelet does not start with its configuration: {reason} "
            f"({', '.join(sorted(set(snapshot.settings.set_by.values())))}). Correct it before the next restart.",
            snapshot.settings.set_by.get(named),
        )


def _of_kubelet(snapshot: Snapshot) -> Iterator[Problem]:
    kubelet = snapshot.kubelet
    if not kubelet.active:
        yield Problem(
            NOT_RUNNING,
            f"{kubelet.unit} does not run, so nothing stops the pods in order at a shutdown. Start it (systemctl "
            f"status {kubelet.unit} says why it does not run), or name its unit with kubelet_unit.",
        )
    elif not kubelet.known:
        yield Problem(
            UNKNOWN,
            f"The process of {kubelet.unit} ({kubelet.pid}) is not a kubelet and has started none, so the location of "
            "the kubelet's files is unknown. Name its unit with kubelet_unit, or its files with kubelet_config and "
            "kubelet_config_dir.",
        )
    if snapshot.restart_needed:
        yield Problem(
            RESTART_NEEDED,
            f"{snapshot.settings.changed_file} was changed at {moment(snapshot.settings.changed)}, after "
            f"{kubelet.unit} started at {moment(kubelet.started or 0)}, so the kubelet does not use the change. "
            f"Restart {kubelet.unit}.",
            snapshot.settings.changed_file,
        )
    if snapshot.lock_missing:
        yield Problem(
            LOCK_MISSING,
            f"{kubelet.unit} (process {kubelet.pid}) holds no delay lock on shutdown, so logind does not wait for it "
            "and pods are killed without their grace periods. The kubelet gives up its lock when logind's "
            "InhibitDelayMaxSec stays too short or D-Bus can't be reached: look for 'shutdown manager' in journalctl "
            f"-u {kubelet.unit}, fix the cause and restart the kubelet.",
        )


def _of_logind(snapshot: Snapshot) -> Iterator[Problem]:
    files, effective = snapshot.files, snapshot.effective
    reloaded = same(files.seconds, effective)
    if snapshot.needed - effective > PRECISION:
        cause = (
            _winner(files)
            if reloaded
            else f"its files say {_seconds(files.seconds)}, but logind has not read them since they were changed"
        )
        way_out = (
            "Remove the setting there, or let the role graceful_shutdown write a drop-in that is read after it"
            if reloaded
            else "Reload it: systemctl kill -s HUP systemd-logind"
        )
        yield Problem(
            NEEDS_MORE,
            f"The kubelet needs {snapshot.needed} s for a shutdown, and logind delays one for {_seconds(effective)} at "
            f"most: {cause}. Pods that still run then are killed. {way_out}.",
            files.winner.file if files.winner else None,
        )
    if not reloaded:
        yield Problem(
            NOT_RELOADED,
            f"logind delays a shutdown for {_seconds(effective)} at most, but {_winner(files)}: logind has not read "
            "its files since they were changed. Reload it: systemctl kill -s HUP systemd-logind.",
            files.winner.file if files.winner else None,
        )


def _winner(files: LogindFiles) -> str:
    if not files.winner:
        return f"no file sets InhibitDelayMaxSec, so it is {_seconds(DEFAULT)}"
    return f"{files.winner.file} sets InhibitDelayMaxSec to {_seconds(files.seconds)} and is read last"


def _seconds(value: float) -> str:
    return "any time" if value == inf else f"{value:g} s"


def _of_last(snapshot: Snapshot) -> Iterator[Problem]:
    last = snapshot.last
    if last and not last.ended and not (last.this_boot and snapshot.logind.preparing_for_shutdown):
        yield Problem(
            UNFINISHED,
            f"The shutdown that {snapshot.kubelet.unit} noticed at {moment(last.started.timestamp())} did not finish: "
            "the power failed, or the time was over, before all pods had stopped. Compare the pods' grace periods "
            "with the kubelet's (graceful_shutdown_fit), and look at the end of the previous boot's log: journalctl "
            "-b -1.",
        )

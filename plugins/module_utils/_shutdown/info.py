# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at a node: what its kubelet needs for a shutdown, and what logind gives."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from .._logind.bus import NodeBus
from .._logind.runner import Context, Params, Result
from . import logind_files, logind_rules
from .kubelet_files import kubelet_of, read_settings
from .proof_rules import UNTOLD, LastShutdown, Problem, Snapshot, in_effect, problems, read_state

_STATE = "graceful_node_shutdown_state"
# A kubelet takes its lock after it has reached the container runtime. If it has none after this time, it is no longer
# just late. logind sends no signal for a new lock, so this polls it.
_LOCK_SECONDS = 30.0
_LOOK_EVERY = 0.5


def graceful_shutdown_info(context: Context, params: Params) -> Result:
    """Return whether the next shutdown of this node will be graceful, and whether the last one was."""
    bus = context.bus
    kubelet = kubelet_of(bus, params)
    last, trouble = _last(bus, Path(kubelet.root_dir) / _STATE)
    snapshot = Snapshot(
        kubelet=kubelet,
        settings=read_settings(kubelet.config, kubelet.config_dir, embedded=kubelet.embedded),
        effective=logind_rules.effective(bus.inhibit_delay_max()),
        files=logind_files.read(bus.systemd_version()),
        logind=bus.logind(),
        last=last,
    )
    snapshot = _with_lock(bus, snapshot)
    found = problems(snapshot) + trouble
    return {
        "changed": False,
        "enabled": snapshot.enabled,
        "in_effect": in_effect(snapshot, found),
        "kubelet": {
            "unit": kubelet.unit,
            "active": kubelet.active,
            "config": kubelet.config or None,
            "config_dir": kubelet.config_dir or None,
            "drop_ins": list(snapshot.settings.drop_ins),
            "set_by": dict(snapshot.settings.set_by),
            "groups": [group.to_data() for group in snapshot.groups],
            "needed": snapshot.needed,
            "restart_needed": snapshot.restart_needed,
        },
        "logind": {
            "inhibit_delay_max": logind_rules.finite(snapshot.effective),
            "configured": logind_rules.finite(snapshot.files.seconds),
            "file": snapshot.files.winner.file if snapshot.files.winner else None,
            "candidates": [candidate.to_data() for candidate in snapshot.files.candidates],
        },
        "delay_lock": _lock(snapshot),
        "last_shutdown": last.to_data() if last else None,
        "problems": [asdict(item) for item in found],
    }


def _with_lock(bus: NodeBus, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the lock of a kubelet that has just started, if it takes one."""
    started = snapshot.kubelet.started
    # The start is computed from two clocks, so it may seem to be a little in the future.
    while snapshot.lock_missing and started is not None and -_LOOK_EVERY <= time.time() - started < _LOCK_SECONDS:
        time.sleep(_LOOK_EVERY)
        snapshot = replace(snapshot, logind=bus.logind())
    return snapshot


def _lock(snapshot: Snapshot) -> dict[str, Any] | None:
    lock = snapshot.delay_lock
    return {"who": lock.who, "why": lock.why, "pid": lock.pid, "since": lock.since} if lock else None


def _last(bus: NodeBus, path: Path) -> tuple[LastShutdown | None, list[Problem]]:
    """Return the last shutdown that the kubelet noticed; none if it never noticed one."""
    # The times in the kubelet's file are of the real-time clock, and the start of systemd is of the monotonic clock.
    booted = time.time() - (time.monotonic() - bus.booted())
    try:
        return read_state(path.read_text(encoding="utf-8"), booted), []
    except FileNotFoundError:
        return None, []
    except (OSError, ValueError) as error:
        message = (
            f"{path} can't be read: {error}. So it is unknown whether the last shutdown finished; remove the file."
        )
        return None, [Problem(UNTOLD, message, str(path))]

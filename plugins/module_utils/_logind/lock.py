# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations on locks of the node that this runs on."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

from .._api.errors import Refused, TimedOut
from . import lock_rules
from .bus import NodeBus
from .inhibitor_rules import Logind
from .lock_rules import Lock, Plan, Slot
from .runner import Context, Params, Result
from .wait import until

# Only one module at a time changes locks on a node. The kernel releases this file lock when a module is killed.
_TURN = "/run/holdfast-inhibitor-lock"
_PATIENCE = 30.0
_LOOK_EVERY = 0.02


def inhibitor_lock_info(context: Context, _params: Params) -> Result:
    """List all locks, and report whether they block a shutdown."""
    bus = context.bus
    found = bus.logind()
    return {
        "changed": False,
        "locks": [lock_rules.describe(item, bus.unit_of(item.pid)) for item in found.inhibitors],
        "inhibit_delay_max": bus.inhibit_delay_max(),
        "preparing_for_shutdown": found.preparing_for_shutdown,
        "shutdown_blocked": bool(found.blocks()),
        "systemd_version": bus.systemd_version(),
    }


def inhibitor_lock(context: Context, params: Params) -> Result:
    """Take a lock that stays after the module ends, or release it."""
    lock_rules.check_name(params["name"])
    if os.geteuid() != 0:
        raise Refused("systemd units hold the locks, and only root may start them. Use become.")
    bus = context.bus
    lock = None
    if params["state"] == "present":
        lock = lock_rules.wanted(params["name"], params["what"], params["why"], params["mode"], bus.systemd_version())
        _refuse_in_shutdown(bus.logind())
    units = lock_rules.units(params["name"])
    if context.check_mode:
        slots = [bus.slot(unit) for unit in units]
        plan = lock_rules.plan(slots, lock)
        return _result(
            slots, plan, lock_rules.predict(lock, plan.holder) if lock and plan.start else _held(slots, plan)
        )
    with _turn():
        slots = [bus.slot(unit) for unit in units]
        plan = lock_rules.plan(slots, lock)
        _follow(bus, plan, lock)
        after = [bus.slot(unit) for unit in units] if plan.changes else slots
    return _result(slots, plan, _held(after, plan))


def _refuse_in_shutdown(found: Logind) -> None:
    if found.preparing_for_shutdown:
        raise Refused(
            "A shutdown of the node is in progress: a lock can no longer stop it, and would end with it. Try again "
            "after the next boot.",
            preparing_for_shutdown=True,
        )


def _follow(bus: NodeBus, plan: Plan, lock: Lock | None) -> None:
    """Release a lock only after logind lists its replacement: a module that dies in between leaves both, not none."""
    if plan.start and lock:
        bus.try_lock(lock)
    for unit in plan.clear:
        _stop(bus, unit)
    if plan.start and lock:
        _start(bus, plan.start, lock)
    for unit in plan.release:
        _stop(bus, unit)


def _start(bus: NodeBus, unit: str, lock: Lock) -> None:
    bus.start(unit, lock)
    if _until(lambda: lock.is_held_by(bus.slot(unit).lock)):
        return
    _stop(bus, unit)
    raise TimedOut(
        f"logind does not list the lock of {unit} after {_PATIENCE:.0f} s, so the unit was stopped again. See "
        "journalctl --identifier=holdfast-lock on the node.",
        unit=unit,
    )


def _stop(bus: NodeBus, unit: str) -> None:
    """Stop a unit, and wait until systemd no longer has the unit, and logind no longer has its lock."""
    before = bus.slot(unit).lock
    bus.stop(unit)

    def gone() -> bool:
        return bus.slot(unit).ours is None and not (before and before in bus.logind().inhibitors)

    if not _until(gone):
        raise TimedOut(
            f"{unit} still holds its lock {_PATIENCE:.0f} s after it was stopped. See systemctl status {unit} on the "
            "node.",
            unit=unit,
        )


def _until(condition: Callable[[], bool]) -> bool:
    return until(condition, _PATIENCE, _LOOK_EVERY)


@contextmanager
def _turn() -> Iterator[None]:
    """Keep other modules from changing locks meanwhile."""
    descriptor = os.open(_TURN, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if not _until(lambda: _taken(descriptor)):
            raise TimedOut(
                f"Another task has been changing locks on this node for {_PATIENCE:.0f} s. Try again when it has "
                f"ended; fuser {_TURN} shows its process."
            )
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _held(slots: list[Slot], plan: Plan) -> dict[str, Any] | None:
    """The lock that the plan's holder holds now, as results show it."""
    return next(
        (lock_rules.describe(slot.lock, slot.unit) for slot in slots if slot.lock and slot.unit == plan.holder), None
    )


def _result(slots: list[Slot], plan: Plan, lock: dict[str, Any] | None) -> Result:
    before = [lock_rules.describe(slot.lock, slot.unit) for slot in slots if slot.lock]
    return {
        "changed": plan.changes,
        "lock": lock,
        "unit": plan.holder,
        "diff": {
            "before": {"locks": [lock_rules.lasting(item) for item in before]},
            "after": {"locks": [lock_rules.lasting(lock)] if lock else []},
        },
    }

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Receives news, and carries out what the plan says until it says nothing more.

All of this runs in the GLib loop. News comes from the threads that talk to the API server, from logind and systemd as
D-Bus signals, and from timers.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any

import dbus
from gi.repository import GLib

from . import __version__
from .api import Api
from .clock import ServerClock
from .config import Config
from .executor import Executor
from .holds import Hold
from .logind import Locks, Logind
from .loop import Newest, Timer, post, report
from .masks import Masks
from .notify import Supervisor
from .overdue import OverdueHolds
from .plan import Facts, next_act
from .publisher import Publisher
from .reports import Reports
from .store import State
from .units import Units, units_of
from .watch import Watcher

LOG = logging.getLogger(__name__)

_LONGEST_PAUSE = 30
# The kubelet starts after the agent. A node whose logind does not work needs its kubelet all the same.
_READY_SECONDS = 30
# Longer than any request with its deadlines.
_STUCK_SECONDS = 300


class Agent:
    """One node's agent."""

    def __init__(self, config: Config, bus: Any, supervisor: Supervisor, state: State) -> None:
        self._config = config
        self._supervisor = supervisor
        stored = state.holds()
        self._facts = Facts(config.enforcement, units_of(config.masked_targets), holds=stored, stored=stored)
        self._logind = Logind(bus)
        self._locks = Locks(self._logind, supervisor)
        self._units = Units(bus, state)
        self._masks = Masks(self._facts, self._units)
        clock = ServerClock()
        api = Api(config, clock)
        self._publisher = Publisher(api, config)
        self._watcher = Watcher(api, config, Newest(self._on_holds).post, lambda error: post(self._on_api, error))
        self._executor = Executor(
            self._facts,
            self._locks,
            self._masks,
            state,
            self._publisher,
            shutting_down=self._units.shutting_down,
            published=self._reconcile,
        )
        self._overdue = OverdueHolds(self._publisher, state, clock, config.alert_timeout)
        self._reports = Reports(config, self._facts, clock, supervisor, self._watcher)
        # The last list from the API, also during a shutdown.
        self._latest: tuple[Hold, ...] | None = None
        self._ready = False
        self._subscribed = False
        self._failures = 0
        self._retry_timer = Timer(self._retry)

    def start(self) -> None:
        """Adopt the locks of the previous process, lock the holds on disk, then follow the API."""
        count = self._locks.adopt()
        self._facts.adopt(self._locks.keys)
        LOG.info(
            "holdfast-agent %s for node %s, %s: %d locks taken over, %d holds on disk",
            __version__,
            self._config.node_name,
            self._config.enforcement,
            count,
            len(self._facts.stored),
        )
        self._logind.on_shutdown(self._on_shutdown)
        self._logind.on_restart(self._on_logind)
        self._try(self._subscribe)
        self._try(self._ask_for_a_shutdown)
        self._try(self._look)
        self._reconcile()
        GLib.timeout_add_seconds(_READY_SECONDS, self._stop_waiting)
        GLib.timeout_add_seconds(self._config.heartbeat_interval, self._heartbeat)
        if self._supervisor.watchdog_seconds:
            GLib.timeout_add(int(self._supervisor.watchdog_seconds * 1000 / 3), self._alive)
        self._publisher.start()
        self._watcher.start()

    # -- news

    def _on_holds(self, holds: tuple[Hold, ...]) -> None:
        self._latest = holds
        if self._facts.shutting_down:
            LOG.info("A shutdown is under way: Leases matter again after the boot.")
            return
        self._log_changes(holds)
        self._facts.holds = holds
        self._facts.synced = True
        # Holders can change their Leases at any rate. A write that failed keeps its pause: each try may have succeeded,
        # so each keeps the locks that it names.
        self._executor.forget_failures(of_writes=False)
        self._reconcile()

    def _on_api(self, error: str) -> None:
        before, self._facts.api_error = self._facts.api_error, error
        if error and not before:
            LOG.warning("The API server is unavailable, so the agent changes nothing: %s", error)
        elif error:
            LOG.log(logging.DEBUG if error == before else logging.WARNING, "The API server is still away: %s", error)
            return
        else:
            LOG.info("The API server is back.")
            self._executor.forget_failures()
        self._reconcile()

    def _on_shutdown(self, active: bool) -> None:
        LOG.info("A shutdown is under way." if active else "The shutdown was cancelled.")
        self._facts.shutting_down = active
        if not active and self._latest is not None:
            self._on_holds(self._latest)
        self._reports.update()

    def _on_logind(self) -> None:
        self._look_for_a_shutdown()
        self._try(self._look)
        self._executor.forget_failures()
        self._reconcile()

    def _look_for_a_shutdown(self) -> None:
        """Ask logind: one that was restarted has forgotten a shutdown, and does not say so."""
        before = self._facts.shutting_down
        self._try(self._ask_for_a_shutdown)
        if before and not self._facts.shutting_down:
            self._on_shutdown(False)

    def _ask_for_a_shutdown(self) -> None:
        self._facts.shutting_down = self._logind.preparing_for_shutdown() or self._units.shutting_down()

    def _on_units(self) -> None:
        self._try(self._masks.look)
        self._reconcile()

    def _heartbeat(self) -> bool:
        self._try(self._subscribe)
        if self._facts.shutting_down:
            self._look_for_a_shutdown()
        self._on_units()
        if not self._facts.publishing:
            # Makes the plan write the condition again, even if another client changed it.
            self._facts.published = None
        self._reconcile()
        return True

    def _retry(self) -> None:
        self._executor.forget_failures()
        self._reconcile()

    def _log_changes(self, holds: tuple[Hold, ...]) -> None:
        before = {hold.key: hold for hold in self._facts.holds}
        after = {hold.key: hold for hold in holds}
        for key in after.keys() - before.keys():
            LOG.info("%s holds this node since %s.", after[key].entry, after[key].acquired)
        for key in before.keys() - after.keys():
            LOG.info("%s does not hold this node any more.", before[key].entry)

    # -- the plan

    def _reconcile(self) -> None:
        self._locks.drop_unneeded(self._facts.holds)
        while (act := next_act(self._facts)) is not None:
            self._executor.carry_out(act)
            self._supervisor.alive()
        if not self._executor.failed:
            if not self._facts.publishing:
                # The outcome of a write under way decides whether the pauses continue to grow.
                self._failures = 0
            self._become_ready()
        elif not self._retry_timer.runs:
            # Random, so that not all nodes write to a returning server at once.
            longest = min(2**self._failures, _LONGEST_PAUSE)
            self._retry_timer.start(longest * random.uniform(0.5, 1))  # noqa: S311 - not a secret
            self._failures += 1
        if self._facts.synced:
            report(self._overdue.look, self._facts.holds, bool(self._facts.api_error))
        self._reports.update()

    # -- looks at the system

    def _look(self) -> None:
        self._executor.verify_locks()
        self._masks.look()

    def _subscribe(self) -> None:
        if not self._subscribed:
            self._units.on_change(self._on_units)
            self._subscribed = True

    @staticmethod
    def _try(look: Callable[[], None]) -> None:
        """A look that fails is repeated with the next news, or when the plan acts."""
        try:
            look()
        except (dbus.DBusException, OSError) as error:
            LOG.warning("%s", error)

    # -- signs of life for systemd

    def _become_ready(self) -> None:
        if not self._ready:
            self._ready = self._supervisor.ready()

    def _stop_waiting(self) -> bool:
        self._become_ready()
        return False

    def _alive(self) -> bool:
        # A thread can hang where no deadline applies, for example in the resolver. It then misses every new hold. The
        # locks survive the restart that follows.
        stuck = max(self._watcher.quiet_seconds, self._publisher.busy_seconds)
        if stuck < _STUCK_SECONDS:
            self._supervisor.alive()
        else:
            LOG.error("A thread has hung for %.0f s: systemd's watchdog restarts the agent.", stuck)
        return True

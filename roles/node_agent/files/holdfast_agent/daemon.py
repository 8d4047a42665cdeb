# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service: brings news to the plan, does what it says, and comes back where something failed.

All of it runs in the GLib loop. The threads that talk to the API server only post to it.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dbus
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

from . import __version__, metrics
from .api import Api
from .bounds import cut, some
from .clock import ServerClock
from .config import Config
from .holds import Hold
from .logind import Locks, Logind
from .loop import Timer, end_on_surprise, post, report
from .notify import Supervisor
from .overdue import OverdueHolds
from .plan import Act, Facts, Lock, Mask, Publish, Store, Unlock, Unmask, next_act
from .publisher import DONE, REFUSED, Publisher
from .store import State
from .textfile import TextFile
from .units import Units, units_of
from .watch import Watcher

LOG = logging.getLogger(__name__)

_LONGEST_PAUSE = 30
# The kubelet waits for us, but not for ever: a node without logind is a node all the same.
_READY_SECONDS = 30
# Longer than any request may take, with its deadlines.
_STUCK_SECONDS = 300
_METRICS_HELD, _METRICS_IDLE = 15, 60


class Agent:
    """One node's agent."""

    def __init__(self, config: Config, bus: Any, supervisor: Supervisor, state: State) -> None:
        self._config = config
        self._supervisor = supervisor
        self._state = state
        self._logind = Logind(bus)
        self._locks = Locks(self._logind, supervisor)
        self._units = Units(bus, state)
        self._clock = ServerClock()
        api = Api(config, self._clock)
        self._publisher = Publisher(api, config)
        self._watcher = Watcher(
            api,
            config,
            lambda holds: post(self._on_holds, holds),
            lambda error: post(self._on_away, error),
        )
        stored = state.holds()
        self.facts = Facts(
            enforcement=config.enforcement,
            units=units_of(config.masked_targets),
            holds=stored,
            stored=stored,
            our_masks=self._units.ours,
        )
        # What the API said last, even while it does not matter.
        self._latest: tuple[Hold, ...] | None = None
        self._away = ""
        self._ready = False
        self._subscribed = False
        self._failures = 0
        self._retry_timer = Timer(self._retry)
        self._overdue = OverdueHolds(self._publisher, state, self._clock.now, config.alert_timeout)
        self._textfile = TextFile(config.textfile, self._metrics)

    # -- start

    def start(self) -> None:
        """Take over what a former process left, lock what the disk says, then ask the API."""
        count = self._locks.take_over()
        self.facts.locks = self._locks.keys
        LOG.info(
            "holdfast-agent %s for node %s, %s: %d locks taken over, %d holds on disk",
            __version__,
            self._config.node_name,
            self._config.enforcement,
            count,
            len(self.facts.stored),
        )
        self._logind.on_shutdown(self._on_shutdown)
        self._logind.on_restart(self._on_logind)
        self._try(self._subscribe)
        self._try(self._look)
        self.reconcile()
        GLib.timeout_add_seconds(_READY_SECONDS, self._give_up_waiting)
        GLib.timeout_add_seconds(self._config.heartbeat_interval, self._heartbeat)
        if self._supervisor.watchdog_seconds:
            GLib.timeout_add(int(self._supervisor.watchdog_seconds * 1000 / 3), self._alive)
        self._publisher.start()
        self._watcher.start()

    def _look(self) -> None:
        """See what logind and systemd have of ours."""
        self.facts.shutting_down = self._logind.preparing_for_shutdown()
        self._verify_locks()
        self._look_at_masks()

    def _subscribe(self) -> None:
        """Hear of units that others mask or unmask."""
        if not self._subscribed:
            self._units.on_change(self._on_units)
            self._subscribed = True

    def _alive(self) -> bool:
        # A thread that hangs where no deadline reaches, in the resolver for example, hears of no hold any more. The
        # locks outlast the restart that follows.
        stuck = max(self._watcher.quiet_seconds, self._publisher.busy_seconds)
        if stuck < _STUCK_SECONDS:
            self._supervisor.alive()
        else:
            LOG.error("A thread has hung for %.0f s: the watchdog is left to restart the agent.", stuck)
        return True

    def _give_up_waiting(self) -> bool:
        self._become_ready()
        return False

    def _become_ready(self) -> None:
        if not self._ready:
            self._ready = self._supervisor.ready()

    # -- news

    def _on_holds(self, holds: tuple[Hold, ...]) -> None:
        self._latest = holds
        if self.facts.shutting_down:
            LOG.info("A shutdown is under way: Leases matter again after the boot.")
            return
        self._say_changes(holds)
        self.facts.holds = holds
        self.facts.synced = True
        self._calm()
        self.reconcile()

    def _on_away(self, error: str) -> None:
        before, self._away = self._away, error
        if error and not before:
            LOG.warning("The API server is away, everything stays as it is: %s", error)
        elif error:
            LOG.log(logging.DEBUG if error == before else logging.WARNING, "The API server is still away: %s", error)
            return
        else:
            LOG.info("The API server is back.")
            self._calm()
        self.reconcile()

    def _on_shutdown(self, active: bool) -> None:
        LOG.info("A shutdown is under way." if active else "The shutdown was given up.")
        self.facts.shutting_down = active
        if not active and self._latest is not None:
            self._on_holds(self._latest)
        self._tell()

    def _on_logind(self) -> None:
        self._try(self._look)
        self._calm()
        self.reconcile()

    def _on_units(self) -> None:
        self._try(self._look_at_masks)
        self.reconcile()

    def _say_changes(self, holds: tuple[Hold, ...]) -> None:
        before = {hold.key: hold for hold in self.facts.holds}
        after = {hold.key: hold for hold in holds}
        for key in after.keys() - before.keys():
            LOG.info("%s holds this node since %s.", after[key].entry, after[key].acquired)
        for key in before.keys() - after.keys():
            LOG.info("%s holds this node no more.", before[key].entry)

    # -- acts

    def reconcile(self) -> None:
        """Do what the plan says until it says nothing more."""
        self._locks.let_go_of_doubted(self.facts.holds)
        while (act := next_act(self.facts)) is not None:
            self._do(act)
            self._supervisor.alive()
        if self._failed:
            self._retry_later()
        else:
            self._failures = 0
            self._become_ready()
        if self.facts.synced:
            report(self._look_for_overdue)
        self._tell()

    def _look_for_overdue(self) -> None:
        self._overdue.look(self.facts.holds, away=bool(self._away))

    @property
    def _failed(self) -> bool:
        facts = self.facts
        return bool(facts.failed_locks or facts.store_failed or facts.publish_waits or self._failed_mask_acts)

    @property
    def _failed_mask_acts(self) -> list[str]:
        """Where another try may help; a mask that is in place and beaten by another file is waited for."""
        return [unit for unit in self.facts.failed_masks if not self._units.has_file(unit)]

    def _do(self, act: Act) -> None:
        LOG.debug("%s", act)
        if isinstance(act, Lock):
            self._lock(act.holds)
        elif isinstance(act, Mask):
            self._mask(act.units)
        elif isinstance(act, Store):
            self._store(act.holds)
        elif isinstance(act, Publish):
            self._publish(act)
        elif isinstance(act, Unlock):
            self._locks.let_go(act.keys)
            self.facts.locks = self._locks.keys
        elif isinstance(act, Unmask):
            self._unmask(act.units)

    def _lock(self, holds: tuple[Hold, ...]) -> None:
        failed = self._locks.take(holds)
        self.facts.failed_locks.update(failed)
        for key, reason in failed.items():
            LOG.error("No lock for %s: %s", next(hold.entry for hold in holds if hold.key == key), reason)
        self.facts.locks = self._locks.keys

    def _verify_locks(self) -> frozenset[str]:
        """Keys of the locks that we thought were held."""
        gone = self._locks.lost(self.facts.holds)
        if gone:
            LOG.warning("%d locks were lost and are taken again.", len(gone))
        self.facts.locks = self._locks.keys
        return gone

    def _mask(self, units: frozenset[str]) -> None:
        try:
            self._units.mask(units)
            self._look_at_masks()
        except (dbus.DBusException, OSError) as error:
            LOG.error("%s can't be masked: %s", ", ".join(sorted(units)), error)
            self.facts.failed_masks.update(dict.fromkeys(units, str(error)))
        for unit in sorted(units & self.facts.failed_masks.keys()):
            LOG.error("%s is not masked: %s", unit, self.facts.failed_masks[unit])
        self.facts.our_masks = self._units.ours

    def _look_at_masks(self) -> None:
        facts = self.facts
        if not (facts.wanted_units or facts.our_masks):
            # Of others, if of anybody; looked at anew when masks are wanted.
            facts.masked = frozenset()
            return
        states = self._units.states(facts.units)
        facts.masked = frozenset(unit for unit, state in states.items() if state == "masked")
        facts.failed_masks = {
            unit: _beaten(states[unit])
            for unit in facts.wanted_units - facts.masked
            # One whose mask somebody took away is masked again.
            if self._units.has_file(unit)
        }

    def _unmask(self, units: frozenset[str]) -> None:
        try:
            self._units.unmask(units)
        except (dbus.DBusException, OSError) as error:
            LOG.error("%s can't be unmasked: %s", ", ".join(sorted(units)), error)
            # Not before the plan is asked again for another reason: nothing holds, and a person may have to look.
            self.facts.publish_waits = True
            self.facts.published = None
            return
        self.facts.our_masks = self._units.ours
        self.facts.failed_masks = {
            unit: reason for unit, reason in self.facts.failed_masks.items() if unit not in units
        }
        self._try(self._look_at_masks)

    def _store(self, holds: tuple[Hold, ...]) -> None:
        try:
            self._state.write_holds(holds)
        except OSError as error:
            LOG.error("The holds can't be written to disk: %s", error)
            self.facts.store_failed = str(error)
        else:
            self.facts.stored = holds

    def _publish(self, act: Publish) -> None:
        if act.condition.status == "True" and not self._still_locked():
            return
        self.facts.publishing = True
        self._publisher.condition(act.condition, lambda outcome, said: post(self._on_published, act, outcome, said))

    def _still_locked(self) -> bool:
        """Look once more before somebody relies on it."""
        try:
            gone = self._verify_locks()
        except dbus.DBusException as error:
            LOG.error("logind does not say which locks are held: %s", error)
            self.facts.publish_waits = True
            return False
        # Not taken again at once: a lock that is never listed would keep us busy for ever.
        self.facts.failed_locks.update(dict.fromkeys(gone, "logind does not list it"))
        return not gone

    def _on_published(self, act: Publish, outcome: str, said: str) -> None:
        facts = self.facts
        facts.publishing = False
        facts.publish_refused = outcome == REFUSED
        if outcome == DONE:
            facts.published = act.condition
            LOG.info("The condition says %s: %s", act.condition.status, cut(act.condition.reason, 1000))
        else:
            # An answer that was lost may have been a yes.
            facts.published = None
            facts.publish_waits = True
            LOG.log(logging.DEBUG if self._away else logging.WARNING, "The condition was not written: %s", said)
        self.reconcile()

    # -- time

    def _calm(self) -> None:
        """There is news: what failed may go better now."""
        self.facts.failed_locks.clear()
        self.facts.store_failed = ""
        self.facts.publish_waits = False
        for unit in self._failed_mask_acts:
            del self.facts.failed_masks[unit]

    def _retry_later(self) -> None:
        if not self._retry_timer.runs:
            self._retry_timer.start(min(2**self._failures, _LONGEST_PAUSE))
            self._failures += 1

    def _retry(self) -> None:
        self._calm()
        self.reconcile()

    def _heartbeat(self) -> bool:
        self._try(self._subscribe)
        self._on_units()
        # Written anew, whatever became of it on the server.
        if not self.facts.publishing:
            self.facts.published = None
        self.reconcile()
        return True

    # -- telling

    def _tell(self) -> None:
        report(lambda: self._supervisor.status(self._status()))
        report(self._textfile.write, _METRICS_HELD if self.facts.holds else _METRICS_IDLE)

    def _status(self) -> str:
        facts = self.facts
        names = some([hold.entry for hold in facts.holds], 5)
        held = f"{len(facts.holds)} holds: {names}" if facts.holds else "no holds"
        shutdown = "; a shutdown is under way" if facts.shutting_down else ""
        return f"{held}; {len(facts.locks)} locks; API {'away' if self._away else 'up'}{shutdown}"

    def _metrics(self) -> str:
        contact = self._watcher.last_contact
        up = contact is not None and not self._away
        return metrics.text(self.facts, metrics.Moment(self._clock.now(), self._config.alert_timeout, up, contact))

    @staticmethod
    def _try(look: Callable[[], None]) -> None:
        """What can't be seen now is seen when it changes, or when it is acted upon."""
        try:
            look()
        except (dbus.DBusException, OSError) as error:
            LOG.warning("%s", error)


def _beaten(state: str) -> str:
    return "a file of its own in /etc/systemd/system beats the mask" if state == "loaded" else state


def run(config: Config) -> int:
    """Serve until told to stop; locks and masks stay where they are."""
    end_on_surprise()
    supervisor = Supervisor(os.environ)
    loop = GLib.MainLoop()
    # Without a bus there is nothing to do: the process ends when it is lost, and is started again.
    bus = dbus.SystemBus(mainloop=DBusGMainLoop())
    agent = Agent(config, bus, supervisor, State(Path(config.state_directory)))

    def stop() -> bool:
        loop.quit()
        return False

    for number in (signal.SIGTERM, signal.SIGINT):
        GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, stop)
    agent.start()
    loop.run()
    supervisor.stopping()
    logging.shutdown()
    # The threads have nothing to finish, and would be waited for.
    os._exit(0)

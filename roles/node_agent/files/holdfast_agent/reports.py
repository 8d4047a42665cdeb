# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports the state of the agent to systemd and to Prometheus."""

from __future__ import annotations

from . import metrics
from .bounds import some
from .clock import ServerClock
from .config import Config
from .loop import report
from .notify import Supervisor
from .plan import Facts
from .textfile import TextFile
from .watch import Watcher

# Seconds until the metrics are written again if nothing changes.
_METRICS_HELD, _METRICS_FREE = 15, 60


class Reports:
    """The status line of the unit, and the file of metrics."""

    def __init__(
        self, config: Config, facts: Facts, clock: ServerClock, supervisor: Supervisor, watcher: Watcher
    ) -> None:
        self._alert_timeout = config.alert_timeout
        self._facts = facts
        self._clock = clock
        self._supervisor = supervisor
        self._watcher = watcher
        self._textfile = TextFile(config.textfile, self._metrics)

    def update(self) -> None:
        report(lambda: self._supervisor.status(_status(self._facts)))
        report(self._textfile.write, _METRICS_HELD if self._facts.holds else _METRICS_FREE)

    def _metrics(self) -> str:
        contact = self._watcher.last_contact
        up = contact is not None and not self._facts.api_error
        return metrics.text(self._facts, metrics.Moment(self._clock.now(), self._alert_timeout, up, contact))


def _status(facts: Facts) -> str:
    names = some([hold.entry for hold in facts.holds], 5)
    held = f"{len(facts.holds)} holds: {names}" if facts.holds else "no holds"
    shutdown = "; a shutdown is under way" if facts.shutting_down else ""
    return f"{held}; {len(facts.locks)} locks; API {'away' if facts.api_error else 'up'}{shutdown}"

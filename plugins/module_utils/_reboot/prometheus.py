# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask a Prometheus for its alerts. If it does not answer, it blocks the reboot, because its alerts are unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._api.web import RequestFailed, WebServer
from .blocker_rules import ALERT, Blocker, InvalidAnswer, of_alerts, read_alerts, read_filter, read_unevaluated

_EXAMPLE = "the base URL of a Prometheus, for example http://prometheus.monitoring:9090"


class Prometheus:
    """One Prometheus, and which of its alerts block a node.

    Args:
        options: The option ``alerts`` of the task.
        node: Name of the Node.

    Raises:
        InvalidInput: An option has a value that can never work; no request was sent.
    """

    def __init__(self, options: Mapping[str, Any], node: str) -> None:
        self._server = WebServer(options, "alerts", _EXAMPLE)
        self._filter = read_filter(options, node)
        self.url = self._server.url

    def blockers(self) -> list[Blocker]:
        """The current blockers. A Prometheus that does not report its alerts is itself a blocker."""
        try:
            # The rules first: the second answer has the alerts of every rule that was evaluated by then.
            unevaluated = read_unevaluated(self._server.get("/api/v1/rules?type=alert"))
            alerts = read_alerts(self._server.get("/api/v1/alerts"))
        except (RequestFailed, InvalidAnswer) as error:
            return [Blocker(ALERT, None, self.url, f"this Prometheus does not report its alerts: {error}")]
        return of_alerts(alerts, unevaluated, self._filter)

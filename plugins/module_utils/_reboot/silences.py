# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Silence the alerts of a node in an Alertmanager while a run works on it.

A silence ends soon after the last extension. The process that renews the Lease of the run extends it, so the silence of
a run that dies expires by itself. An Alertmanager that does not answer is a warning, and never fails a node.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .._api import paths
from .._api.cluster import Cluster
from .._api.errors import HoldfastError, InvalidInput, NotFound
from .._api.web import RequestFailed, WebServer
from . import silence_rules as rules

_EXAMPLE = "the base URL of an Alertmanager, for example http://alertmanager.monitoring:9093"
_SILENCES = "/api/v2/silences"
# How often a silence is extended before it would expire.
_TIMES = 5


class Alertmanager:
    """One Alertmanager, and the silences of one run in it.

    Args:
        options: The option ``alertmanager`` of the task.
        run: Id of the run.

    Raises:
        InvalidInput: An option has a value that can never work; no request was sent.
    """

    def __init__(self, options: Mapping[str, Any], run: str) -> None:
        self._server = WebServer(options, "alertmanager", _EXAMPLE)
        self.url = self._server.url
        self._run = run
        self._texts: list[str] = options.get("matchers") or []
        self._seconds: int = options["expires_after"]
        rules.check_seconds(self._seconds)
        rules.read_matchers(self._texts, "node")

    @property
    def extend_every(self) -> float:
        """Seconds between two extensions."""
        return self._seconds / _TIMES

    def silence(self, node: str) -> None:
        """Silence the alerts of a node, or extend the silences that this run already has for it.

        Raises:
            RequestFailed: The Alertmanager did not answer, or refused.
        """
        present = self._own(node)
        for matchers in rules.read_matchers(self._texts, node):
            known = next((silence for silence in present if rules.has_matchers(silence, matchers)), None)
            now = self._server.clock.now()
            self._post(
                rules.extended(known, now, self._seconds)
                if known
                else rules.new(matchers, self._run, node, now, self._seconds)
            )

    def unsilence(self, node: str) -> None:
        """End the silences of this run for a node.

        Raises:
            RequestFailed: The Alertmanager did not answer, or refused.
        """
        for silence in self._own(node):
            self._server.send("DELETE", f"/api/v2/silence/{silence['id']}")

    def extend(self, cluster: Cluster) -> None:
        """Extend the silences of the nodes that the run still works on. One that could not be ended expires.

        Raises:
            RequestFailed: The Alertmanager did not answer, or refused.
        """
        for silence in self._own():
            try:
                node = cluster.get(paths.node(rules.node_of(silence)), patient=False)
            except NotFound:
                continue
            except HoldfastError:
                # The API server is unavailable, and the run continues when it is back.
                node = None
            if node is None or rules.worked_on(node, self._run):
                self._post(rules.extended(silence, self._server.clock.now(), self._seconds))

    def _own(self, node: str = "") -> list[rules.Silence]:
        found = self._server.get(_SILENCES)
        if not isinstance(found, list) or not self._server.clock.known:
            raise RequestFailed(f"{_SILENCES}: its answer does not come from an Alertmanager")
        return rules.own(found, self._run, node)

    def _post(self, silence: Mapping[str, Any]) -> None:
        self._server.send("POST", _SILENCES, json.dumps(silence).encode())


class Silences:
    """The silences of one node; does nothing without an Alertmanager, and warns if it can't be asked."""

    def __init__(self, params: Mapping[str, Any], node: str, run: str, warn: Callable[[str], None]) -> None:
        self._node, self._warn = node, warn
        self._alertmanager: Alertmanager | None = None
        try:
            if params.get("alertmanager"):
                self._alertmanager = Alertmanager(params["alertmanager"], run)
        except InvalidInput as error:
            self._warn(f"The alerts of node {node} are not silenced: {error.message}")

    def begin(self) -> None:
        self._try("are not silenced", Alertmanager.silence)

    def end(self) -> None:
        self._try("stay silenced until the silences expire", Alertmanager.unsilence)

    def _try(self, what: str, act: Callable[[Alertmanager, str], None]) -> None:
        if self._alertmanager is None:
            return
        try:
            act(self._alertmanager, self._node)
        except RequestFailed as error:
            self._warn(f"The alerts of node {self._node} {what}: {self._alertmanager.url}{error}")

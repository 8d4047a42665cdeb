# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about pods and alerts that block the reboot of a node.

Source for the format of Prometheus' answers: web/api/v1/api.go in Prometheus 2.42.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._api.errors import InvalidInput
from .._api.objects import Object
from .._shared.bounds import some

POD, ALERT = "pod", "alert"

_NAME = "alertname"
_LONGEST_REASON = 300
_POSIX_CLASS = re.compile(r"\[:\^?\w+:\]")


class InvalidAnswer(ValueError):
    """An answer that can't be parsed as alerts."""


@dataclass(frozen=True, order=True)
class Blocker:
    """A pod or an alert that blocks a reboot."""

    kind: str
    namespace: str | None
    name: str
    reason: str

    def shown(self) -> dict[str, str | None]:
        return {"kind": self.kind, "name": self.name, "namespace": self.namespace, "reason": self.reason}

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}: {self.reason}"


@dataclass(frozen=True)
class Alert:
    name: str
    state: str
    labels: Mapping[str, str] = field(default_factory=dict)
    since: str = ""


@dataclass(frozen=True)
class Filter:
    """Which alerts block the reboot of a node.

    Attributes:
        only: Only alerts whose name matches; all by default.
        ignore: No alert whose name matches.
        firing_only: No pending alert.
        labels: Only alerts with all of these labels.
        node_label: Only alerts with a label of this name whose value is ``node``.
        node: Name of the Node.
    """

    only: re.Pattern[str] | None = None
    ignore: re.Pattern[str] | None = None
    firing_only: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    node_label: str = ""
    node: str = ""

    def concerns(self, name: str) -> bool:
        """Whether alerts of this name can block."""
        wanted = self.only is None or self.only.search(name) is not None
        return wanted and (self.ignore is None or self.ignore.search(name) is None)

    def blocks(self, alert: Alert) -> bool:
        # An unknown state counts as firing.
        if alert.state == "inactive" or (alert.state == "pending" and self.firing_only):
            return False
        if any(alert.labels.get(key) != value for key, value in self.labels.items()):
            return False
        if self.node_label and alert.labels.get(self.node_label) != self.node:
            return False
        return self.concerns(alert.name)


def read_filter(options: Mapping[str, Any], node: str) -> Filter:
    """Read the filter from the options of a task.

    Raises:
        InvalidInput: An option has a value that can never work.
    """
    return Filter(
        only=_pattern("only", options.get("only")),
        ignore=_pattern("ignore", options.get("ignore")),
        firing_only=bool(options.get("firing_only")),
        labels={str(key): _label(key, value) for key, value in (options.get("labels") or {}).items()},
        node_label=options.get("node_label") or "",
        node=node,
    )


def _pattern(option: str, text: str | None) -> re.Pattern[str] | None:
    # An empty pattern would match every name; ignore would then ignore all alerts.
    if not text:
        return None
    if _POSIX_CLASS.search(text):
        raise InvalidInput(
            f'alerts.{option} "{text}" has a POSIX class such as [:alpha:], which Python reads as single letters. '
            "Write it out, for example [A-Za-z]."
        )
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidInput(f'alerts.{option} "{text}" is not a regular expression: {error}. Correct it.') from error


def _label(key: Any, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise InvalidInput(f"alerts.labels: the value of {key} is of type {type(value).__name__}. Give a string.")


def read_alerts(answer: Any) -> list[Alert]:
    """Read the alerts from an answer of ``/api/v1/alerts``.

    Raises:
        InvalidAnswer: The answer has another format. An alert that can't be read never counts as absent.
    """
    return [_alert(item) for item in _list(_data(answer), "alerts")]


def _alert(item: Any) -> Alert:
    labels = item.get("labels") if isinstance(item, dict) else None
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise InvalidAnswer("an alert in its answer has no labels")
    if not labels.get(_NAME) or not isinstance(item.get("state"), str):
        raise InvalidAnswer("an alert in its answer has no name or no state")
    return Alert(labels[_NAME], item["state"], labels, str(item.get("activeAt") or ""))


def read_unevaluated(answer: Any) -> list[str]:
    """Names of the alerts whose rules were never evaluated, from an answer of ``/api/v1/rules``.

    A Prometheus that has just started knows no alerts until it has evaluated its rules.

    Raises:
        InvalidAnswer: The answer has another format.
    """
    found = []
    for group in _list(_data(answer), "groups"):
        for rule in _list(group, "rules"):
            if not isinstance(rule, dict) or not isinstance(rule.get("name"), str):
                raise InvalidAnswer("a rule in its answer has no name")
            if rule.get("type") == "alerting" and rule.get("health") == "unknown":
                found.append(rule["name"])
    return found


def _data(answer: Any) -> Any:
    if not isinstance(answer, dict) or answer.get("status") != "success":
        said = answer.get("error") if isinstance(answer, dict) else None
        raise InvalidAnswer(f"it reports: {_short(said)}" if said else "its answer does not have Prometheus' format")
    if answer.get("warnings"):
        # A server that queries other servers warns here if an answer is missing.
        raise InvalidAnswer(f"its answer is incomplete: {_short(answer['warnings'])}")
    return answer.get("data")


def _list(data: Any, name: str) -> list[Any]:
    found = data.get(name) if isinstance(data, dict) else None
    if not isinstance(found, list):
        raise InvalidAnswer(f"its answer has no list of {name}")
    return found


def of_alerts(alerts: Iterable[Alert], unevaluated: Iterable[str], chosen: Filter) -> list[Blocker]:
    """The blockers among the alerts, and among the alerts whose rules were never evaluated."""
    found = [_of_alert(alert) for alert in alerts if chosen.blocks(alert)]
    why = "its rule has not been evaluated yet; the Prometheus has just started, or the rule is new"
    return found + [Blocker(ALERT, None, name, why) for name in sorted(set(unevaluated)) if chosen.concerns(name)]


def _of_alert(alert: Alert) -> Blocker:
    labels = ", ".join(f"{key}={value}" for key, value in sorted(alert.labels.items()) if key != _NAME)
    since = f" since {alert.since}" if alert.since else ""
    return Blocker(ALERT, None, alert.name, _short(f"{alert.state}{since}" + (f" ({labels})" if labels else "")))


def of_pod(pod: Object, selector: str) -> Blocker:
    """A blocker for a pod that ``selector`` selects and that has not ended."""
    metadata = pod["metadata"]
    ending = metadata.get("deletionTimestamp")
    state = f"ending since {ending}" if ending else str((pod.get("status") or {}).get("phase") or "Unknown")
    return Blocker(POD, metadata["namespace"], metadata["name"], f"{state}, selected by {selector}")


def sentence(blockers: list[Blocker]) -> str:
    """The blockers as text for messages."""
    return some([str(blocker) for blocker in blockers], separator="; ")


def _short(text: Any) -> str:
    whole = str(text)
    return whole if len(whole) <= _LONGEST_REASON else f"{whole[:_LONGEST_REASON]} ..."

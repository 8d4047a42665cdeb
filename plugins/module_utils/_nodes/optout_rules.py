# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Opt-outs: what the autoscaler, MachineHealthChecks and medik8s are told while we work on a node. Rules only.

What stood there before is recorded on the Node before anything else is touched, so that whoever comes next can put it
back. Each value is changed only from what was before to ours, and back; any other value is somebody's own.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from .._api import node_rules
from .._api.names import EXCLUDE_FROM_REMEDIATION, OPT_OUTS, SCALE_DOWN_DISABLED, SKIP_REMEDIATION
from .._api.objects import Object

_TRUE = "true"
# Cluster API looks whether the annotation is there; its value means nothing.
_SKIP = ""


@dataclass(frozen=True)
class NodeBefore:
    """What the Node's own annotation or label was; ``None`` where it was absent."""

    before: str | None


@dataclass(frozen=True)
class MachineBefore:
    """Which Machine it is about, and what its annotation was; ``None`` where it was absent."""

    namespace: str
    name: str
    before: str | None

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class OptOuts:
    """The record of what we told whom, and what was before.

    Attributes:
        run: Id of the run that told them; empty for a module used alone.
        since: Since when.
        autoscaler: What was before on the Node; ``None`` where the autoscaler was told nothing.
        machine: What was before on the Machine; ``None`` where no Machine was touched.
        node_health_check: What was before on the Node; ``None`` where medik8s was told nothing.
    """

    run: str
    since: str
    autoscaler: NodeBefore | None = None
    machine: MachineBefore | None = None
    node_health_check: NodeBefore | None = None

    def to_text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    def words(self) -> str:
        told = [
            "the cluster autoscaler leaves it" if self.autoscaler else "",
            f"MachineHealthChecks leave Machine {self.machine.full_name}" if self.machine else "",
            "NodeHealthChecks leave it" if self.node_health_check else "",
        ]
        return ", ".join(text for text in told if text) or "nobody was told anything"


def record_of(node: Object) -> OptOuts | None:
    """The record on a Node; ``None`` where there is none, or somebody broke it."""
    data = node_rules.record(node, OPT_OUTS)
    if data is None:
        return None
    autoscaler, machine, check = (data.get(key) for key in ("autoscaler", "machine", "node_health_check"))
    return OptOuts(
        run=str(data.get("run") or ""),
        since=str(data.get("since") or ""),
        autoscaler=NodeBefore(_text(autoscaler)) if isinstance(autoscaler, dict) else None,
        machine=MachineBefore(str(machine.get("namespace")), str(machine.get("name")), _text(machine))
        if isinstance(machine, dict)
        else None,
        node_health_check=NodeBefore(_text(check)) if isinstance(check, dict) else None,
    )


def on_node(node: Object) -> str | None:
    """What tells the cluster autoscaler to leave the node."""
    return node_rules.annotations_of(node).get(SCALE_DOWN_DISABLED)


def label_on_node(node: Object) -> str | None:
    """What tells medik8s to leave the node."""
    return node_rules.labels_of(node).get(EXCLUDE_FROM_REMEDIATION)


def on_machine(machine: Object) -> str | None:
    """What tells MachineHealthChecks to leave the Machine."""
    return node_rules.annotations_of(machine).get(SKIP_REMEDIATION)


def is_told(value: str | None) -> bool:
    """Whether the annotation or label of a Node says what we want."""
    return value == _TRUE


def told_on_node(value: str | None, known: NodeBefore) -> str | None:
    """What the Node's annotation or label is to be while we work."""
    return _told(value, known.before, _TRUE)


def put_back_on_node(value: str | None, known: NodeBefore) -> str | None:
    """What the Node's annotation or label is to be when we are done."""
    return _put_back(value, known.before, _TRUE)


def told_on_machine(value: str | None, known: MachineBefore) -> str | None:
    """What the Machine's annotation is to be while we work; one that it had before does already what we want."""
    return _told(value, known.before, _SKIP) if known.before is None else value


def put_back_on_machine(value: str | None, known: MachineBefore) -> str | None:
    """What the Machine's annotation is to be when we are done."""
    return _put_back(value, known.before, _SKIP) if known.before is None else value


def _told(value: str | None, before: str | None, ours: str) -> str | None:
    return ours if value == before else value


def _put_back(value: str | None, before: str | None, ours: str) -> str | None:
    return before if value == ours else value


def _text(data: dict[str, Any]) -> str | None:
    value = data.get("before")
    return None if value is None else str(value)

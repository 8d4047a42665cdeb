# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about opt-outs: values that tell the autoscaler, MachineHealthChecks and medik8s to leave a node alone.

The earlier values are recorded on the Node before any other object changes, so that any later run can restore them.
Each value changes only from the earlier value to the opt-out, and back. Any other value belongs to someone else and
stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .._api import node_rules
from .._api.errors import InvalidInput
from .._api.names import EXCLUDE_FROM_REMEDIATION, OPT_OUTS, SCALE_DOWN_DISABLED, SKIP_REMEDIATION
from .._api.objects import Object
from .._api.option_rules import as_texts
from .._shared.bounds import some

_TRUE = "true"
_OURS = "holdfast.dev/"
# NodeRestriction keeps kubelets from the labels of Kubernetes' own domains. A kubelet can write the record, which must
# not change them either. Source: the admission plugin NodeRestriction; it allows some more, which say where a node is.
_RESTRICTED = (".kubernetes.io", ".k8s.io")
_OPEN = (".kubelet.kubernetes.io", ".node.kubernetes.io")
# Cluster API checks only whether the annotation exists, so its value can say who set it.
OURS_ON_MACHINE = "holdfast.dev"


@dataclass(frozen=True)
class NodeBefore:
    """The earlier value of the Node's annotation or label; ``None`` if it was absent."""

    before: str | None


@dataclass(frozen=True)
class Marked:
    """A label or annotation that the user wants during the work: its value, and the earlier one."""

    value: str
    before: str | None


@dataclass(frozen=True)
class MachineBefore:
    """The Machine, the earlier value of its annotation (``None`` if it was absent), and the value during the work."""

    namespace: str
    name: str
    before: str | None
    value: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class OptOuts:
    """The record of the opt-outs that are set, and of the earlier values.

    Attributes:
        run: ID of the run that set them; empty for a module used alone.
        since: When the record was made, in RFC 3339.
        autoscaler: The earlier value on the Node; ``None`` if the opt-out from the autoscaler is not set.
        machine: The earlier value on the Machine; ``None`` if no Machine has an opt-out.
        node_health_check: The earlier value on the Node; ``None`` if the opt-out from medik8s is not set.
        labels: The user's labels by their keys.
        annotations: The user's annotations by their keys.
    """

    run: str
    since: str
    autoscaler: NodeBefore | None = None
    machine: MachineBefore | None = None
    node_health_check: NodeBefore | None = None
    labels: Mapping[str, Marked] = field(default_factory=dict)
    annotations: Mapping[str, Marked] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing is set."""
        return not (self.autoscaler or self.machine or self.node_health_check or self.labels or self.annotations)

    def to_text(self) -> str:
        # Without labels and annotations, the record is as earlier versions write it.
        data = {name: value for name, value in asdict(self).items() if value != {}}
        return json.dumps(data, sort_keys=True)

    def words(self) -> str:
        parts = [
            "the cluster autoscaler leaves it alone" if self.autoscaler else "",
            f"MachineHealthChecks leave Machine {self.machine.full_name} alone" if self.machine else "",
            "NodeHealthChecks leave it alone" if self.node_health_check else "",
            f"labels during the work: {some(sorted(self.labels))}" if self.labels else "",
            f"annotations during the work: {some(sorted(self.annotations))}" if self.annotations else "",
        ]
        return ", ".join(text for text in parts if text) or "no opt-out is set"


def record_of(node: Object) -> OptOuts | None:
    """The record on a Node; ``None`` if there is none, or it is not a JSON object."""
    data = node_rules.record(node, OPT_OUTS)
    if data is None:
        return None
    autoscaler, machine, check = (data.get(key) for key in ("autoscaler", "machine", "node_health_check"))
    return OptOuts(
        run=str(data.get("run") or ""),
        since=str(data.get("since") or ""),
        autoscaler=NodeBefore(_text(autoscaler)) if isinstance(autoscaler, dict) else None,
        machine=MachineBefore(
            namespace=str(machine.get("namespace")),
            name=str(machine.get("name")),
            before=_text(machine),
            # Earlier versions set an empty value.
            value=OURS_ON_MACHINE if machine.get("value") == OURS_ON_MACHINE else "",
        )
        if isinstance(machine, dict)
        else None,
        node_health_check=NodeBefore(_text(check)) if isinstance(check, dict) else None,
        labels={key: item for key, item in _marked(data.get("labels")).items() if not _is_restricted(key)},
        annotations=_marked(data.get("annotations")),
    )


def _marked(data: Any) -> dict[str, Marked]:
    found = data if isinstance(data, dict) else {}
    return {key: Marked(str(item.get("value")), _text(item)) for key, item in found.items() if isinstance(item, dict)}


def _is_restricted(label: str) -> bool:
    domain = f".{label.rpartition('/')[0]}"
    return domain.endswith(_RESTRICTED) and not domain.endswith(_OPEN)


def check_marks(marks: Mapping[str, Any], what: str) -> dict[str, str]:
    """Return the user's labels or annotations as texts.

    Args:
        what: The name of the option, for the message.

    Raises:
        InvalidInput: One of them is this collection's own, or has no text as its value.
    """
    for key in marks:
        if key.startswith(_OURS) or key in (SCALE_DOWN_DISABLED, EXCLUDE_FROM_REMEDIATION):
            raise InvalidInput(f"{what} must not have {key}: this collection sets and removes it itself.")
        if what.endswith("labels") and _is_restricted(key):
            raise InvalidInput(
                f"{what} must not have {key}: it is in a domain of Kubernetes, and a kubelet can write the record of "
                "its earlier value."
            )
    return as_texts(marks, what)


def with_marks(known: Mapping[str, Marked], wanted: Mapping[str, str], present: Mapping[str, str]) -> dict[str, Marked]:
    """The record with the user's labels or annotations; what is recorded before stays."""
    return {**{key: Marked(value, present.get(key)) for key, value in wanted.items()}, **known}


def marks_set(known: Mapping[str, Marked], present: Mapping[str, str], wanted: Iterable[str]) -> dict[str, str | None]:
    """The values of these keys during the work. A value that someone else has changed stays."""
    return {key: _told(present.get(key), known[key].before, known[key].value) for key in wanted}


def marks_put_back(known: Mapping[str, Marked], present: Mapping[str, str]) -> dict[str, str | None]:
    """The values after the work. A value that someone else has changed stays."""
    return {key: _put_back(present.get(key), item.before, item.value) for key, item in known.items()}


def on_node(node: Object) -> str | None:
    """The value that tells the cluster autoscaler whether to leave the node alone."""
    return node_rules.annotations_of(node).get(SCALE_DOWN_DISABLED)


def label_on_node(node: Object) -> str | None:
    """The value that tells medik8s whether to leave the node alone."""
    return node_rules.labels_of(node).get(EXCLUDE_FROM_REMEDIATION)


def on_machine(machine: Object) -> str | None:
    """The annotation that tells MachineHealthChecks to leave the Machine alone; ``None`` if it is absent."""
    return node_rules.annotations_of(machine).get(SKIP_REMEDIATION)


def before_on_machine(value: str | None) -> str | None:
    """The value to record for a Machine that has no record. Our own value is that of a run that died without one."""
    return None if value == OURS_ON_MACHINE else value


def is_opt_out(value: str | None) -> bool:
    """Whether this value of a Node's annotation or label is an opt-out."""
    return value == _TRUE


def told_on_node(value: str | None, known: NodeBefore) -> str | None:
    """The value for the Node's annotation or label while a run works on the node."""
    return _told(value, known.before, _TRUE)


def put_back_on_node(value: str | None, known: NodeBefore) -> str | None:
    """The value for the Node's annotation or label after the work."""
    return _put_back(value, known.before, _TRUE)


def told_on_machine(value: str | None, known: MachineBefore) -> str | None:
    """The value for the Machine's annotation during the work; an earlier annotation has the same effect and stays."""
    return _told(value, known.before, known.value) if known.before is None else value


def put_back_on_machine(value: str | None, known: MachineBefore) -> str | None:
    """The value for the Machine's annotation after the work."""
    return _put_back(value, known.before, known.value) if known.before is None else value


def _told(value: str | None, before: str | None, ours: str) -> str | None:
    return ours if value == before else value


def _put_back(value: str | None, before: str | None, ours: str) -> str | None:
    return before if value == ours else value


def _text(data: dict[str, Any]) -> str | None:
    value = data.get("before")
    return None if value is None else str(value)

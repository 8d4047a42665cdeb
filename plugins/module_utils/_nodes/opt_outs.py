# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell the autoscaler, MachineHealthChecks and medik8s to leave a node alone, and restore the earlier values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, HoldfastError, NotFound
from .._api.names import (
    EXCLUDE_FROM_REMEDIATION,
    MACHINE,
    MACHINE_NAMESPACE,
    OPT_OUTS,
    SCALE_DOWN_DISABLED,
    SKIP_REMEDIATION,
)
from .._api.objects import Object
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .._api.times import to_text
from .._api.watch import retry_conflicts
from .._budget import claim_rules
from .._capi import machine_rules, machines
from .._capi.machines import Machine
from . import optout_rules
from .optout_rules import OURS_ON_MACHINE, MachineBefore, NodeBefore, OptOuts


@dataclass(frozen=True)
class _State:
    """A Node and its Machine, as read or as written."""

    node: Object
    machine: Object | None = None
    why_not: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        return {
            SCALE_DOWN_DISABLED: optout_rules.on_node(self.node),
            EXCLUDE_FROM_REMEDIATION: optout_rules.label_on_node(self.node),
            SKIP_REMEDIATION: optout_rules.on_machine(self.machine) if self.machine else None,
            OPT_OUTS: node_rules.record(self.node, OPT_OUTS),
            **self._marks(),
        }

    def _marks(self) -> dict[str, Any]:
        """The user's labels and annotations that are recorded."""
        record = optout_rules.record_of(self.node) or OptOuts("", "")
        return {
            **{key: node_rules.labels_of(self.node).get(key) for key in record.labels},
            **{key: node_rules.annotations_of(self.node).get(key) for key in record.annotations},
        }


def node_opt_outs(context: Context, params: Params) -> Result:
    """Set or restore the opt-outs of one node; see the module of the same name.

    Raises:
        ClaimLost: ``run`` no longer has a claim on the node.
        NotFound: There is no such Node. Or the management cluster does not serve Machines.
    """
    if params["state"] == "present":
        before, after = _tell(context, params)
        _warn_of_others(context, after)
    else:
        before, after = put_back(context, params["name"], run=params.get("run") or "")
    record = optout_rules.record_of(after.node)
    spared = bool(record and record.machine and after.machine and optout_rules.on_machine(after.machine) is not None)
    return {
        "changed": before.facts != after.facts,
        "opt_outs": {
            "autoscaler": bool(
                record and record.autoscaler and optout_rules.is_opt_out(optout_rules.on_node(after.node))
            ),
            "node_health_check": bool(
                record and record.node_health_check and optout_rules.is_opt_out(optout_rules.label_on_node(after.node))
            ),
            "machine": record.machine.full_name if spared and record and record.machine else None,
        },
        "why_not": after.why_not,
        "diff": {"before": before.facts, "after": after.facts},
    }


def put_back(context: Context, name: str, *, run: str) -> tuple[_State, _State]:
    """Restore the earlier values: first on the Machine, then on the Node, where the record is removed too.

    Args:
        run: The run that must have the claim on the node; empty for none.

    Returns:
        Node and Machine before and after.

    Raises:
        ClaimLost: ``run`` no longer has a claim on the node.
        NotFound: There is no such Node. Or the record names a Machine, and the management cluster does not serve
            Machines; the record stays then.
    """
    first: list[_State] = []

    def attempt() -> _State:
        node = claim_rules.require_claim(read_node(context.cluster, name), run)
        record = optout_rules.record_of(node)
        if record is None:
            first.append(_State(node))
            return first[0]
        machine, why_not = _recorded(context, node, record)
        first.append(_State(node, machine.object if machine else None))
        spared = None
        if machine and record.machine:
            value = optout_rules.put_back_on_machine(optout_rules.on_machine(machine.object), record.machine)
            spared = _write_machine(context, machine, value)
        marks = optout_rules.marks_put_back(record.annotations, node_rules.annotations_of(node))
        marks[OPT_OUTS] = None
        if record.autoscaler:
            marks[SCALE_DOWN_DISABLED] = optout_rules.put_back_on_node(optout_rules.on_node(node), record.autoscaler)
        labels = optout_rules.marks_put_back(record.labels, node_rules.labels_of(node))
        if record.node_health_check:
            label = optout_rules.label_on_node(node)
            labels[EXCLUDE_FROM_REMEDIATION] = optout_rules.put_back_on_node(label, record.node_health_check)
        try:
            return _State(_write(context.cluster, paths.node(name), node, marks, labels), spared, why_not)
        except HoldfastError:
            if record.machine:
                # Another run may have taken over since the Node was read, and work under the same record.
                _match_record(context, name, machine, spared, record.machine)
            raise

    after = retry_conflicts(attempt)
    return first[0], after


def _tell(context: Context, params: Params) -> tuple[_State, _State]:
    """Record the earlier values and set the Node's opt-outs in one write; then set the Machine's."""
    name, run = params["name"], params.get("run") or ""
    ours = {kind: optout_rules.check_marks(params.get(kind) or {}, kind) for kind in ("labels", "annotations")}
    first: list[_State] = []

    def attempt() -> _State:
        node = claim_rules.require_claim(read_node(context.cluster, name), run)
        known = optout_rules.record_of(node) or OptOuts(run, to_text(context.cluster.now()))
        wanted = known
        if params["autoscaler"] and known.autoscaler is None:
            wanted = replace(wanted, autoscaler=NodeBefore(optout_rules.on_node(node)))
        if params["node_health_check"] and known.node_health_check is None:
            wanted = replace(wanted, node_health_check=NodeBefore(optout_rules.label_on_node(node)))
        present = {"labels": node_rules.labels_of(node), "annotations": node_rules.annotations_of(node)}
        wanted = replace(
            wanted,
            labels=optout_rules.with_marks(known.labels, ours["labels"], present["labels"]),
            annotations=optout_rules.with_marks(known.annotations, ours["annotations"], present["annotations"]),
        )
        machine, why_not = None, ""
        if params["machine_health_check"]:
            machine, why_not = _find(context, node, known)
        if machine and wanted.machine is None:
            metadata = machine.object["metadata"]
            before = optout_rules.before_on_machine(optout_rules.on_machine(machine.object))
            wanted = replace(
                wanted, machine=MachineBefore(metadata["namespace"], metadata["name"], before, OURS_ON_MACHINE)
            )
        first.append(_State(node, machine.object if machine else None))
        # A node can write its own record, so only what the user names is set.
        marks = optout_rules.marks_set(wanted.annotations, present["annotations"], ours["annotations"])
        labels = optout_rules.marks_set(wanted.labels, present["labels"], ours["labels"])
        if not wanted.empty:
            marks[OPT_OUTS] = wanted.to_text() if wanted != known else node_rules.annotations_of(node).get(OPT_OUTS)
        if wanted.autoscaler and params["autoscaler"]:
            marks[SCALE_DOWN_DISABLED] = optout_rules.told_on_node(optout_rules.on_node(node), wanted.autoscaler)
        if wanted.node_health_check and params["node_health_check"]:
            label = optout_rules.label_on_node(node)
            labels[EXCLUDE_FROM_REMEDIATION] = optout_rules.told_on_node(label, wanted.node_health_check)
        told = _write(context.cluster, paths.node(name), node, marks, labels)
        spared = None
        if machine and wanted.machine:
            value = optout_rules.told_on_machine(optout_rules.on_machine(machine.object), wanted.machine)
            spared = _write_machine(context, machine, value)
            if _match_record(context, name, machine, spared, wanted.machine):
                # Look again whether this run still has the claim.
                raise ApiFailure(f"The opt-outs of node {name} were restored meanwhile. Run this again.", status=409)
        return _State(told, spared, why_not)

    after = retry_conflicts(attempt)
    return first[0], after


def _match_record(
    context: Context, name: str, machine: Machine | None, written: Object | None, known: MachineBefore
) -> bool:
    """Have a Machine that this run has changed match the record on its Node, which another run may have changed.

    Args:
        written: The Machine after the write of this run; ``None`` if it is gone.

    Returns:
        Whether the Machine did not match.
    """
    if machine is None or written is None or written is machine.object or context.check_mode:
        return False

    def wanted(present: Object) -> str | None:
        node = context.cluster.find(paths.node(name))
        record = optout_rules.record_of(node) if node else None
        recorded = record is not None and record.machine is not None
        return (optout_rules.told_on_machine if recorded else optout_rules.put_back_on_machine)(
            optout_rules.on_machine(present), known
        )

    def attempt() -> None:
        present = context.management.find(machine.path)
        if present is not None:
            _write_machine(context, replace(machine, object=present), wanted(present))

    if wanted(written) == optout_rules.on_machine(written):
        return False
    retry_conflicts(attempt)
    return True


def _find(context: Context, node: Object, known: OptOuts) -> tuple[Machine | None, str]:
    """The Machine in the record, or else in the Node's annotations; and the reason if there is none."""
    if known.machine:
        return _recorded(context, node, known)
    found = machine_rules.name_of(node)
    if found is None:
        return None, f"the Node has no annotations {MACHINE} and {MACHINE_NAMESPACE}: Cluster API did not create it"
    versions = machines.served_versions(context.management)
    if not versions:
        return None, f"the API {machine_rules.GROUP} is not installed in the management cluster"
    machine = machines.find(context.management, versions, *found)
    if why_not := _foreign(node, machine):
        return None, why_not
    return machine, "" if machine else f"there is no Machine {'/'.join(found)}"


def _foreign(node: Object, machine: Machine | None) -> str:
    """The reason why a Machine is not the node's; empty if it may be. A node can write its own record."""
    if machine is None or machine_rules.relation(node, machine.object) != machine_rules.FOREIGN:
        return ""
    metadata = machine.object["metadata"]
    return f"Machine {metadata['namespace']}/{metadata['name']} belongs to another Node"


def _recorded(context: Context, node: Object, record: OptOuts) -> tuple[Machine | None, str]:
    """The Machine in the record, and the reason if it is gone or another Node's.

    Raises:
        NotFound: The management cluster does not serve Machines, so it can't tell whether this one is gone.
    """
    if record.machine is None:
        return None, ""
    versions = machines.served_versions(context.management)
    if not versions:
        raise NotFound(
            f"Machine {record.machine.full_name} of node {node_rules.name(node)} is opted out of MachineHealthChecks, "
            f"but this cluster does not serve the API {machine_rules.GROUP}. Set the option management to reach the "
            "management cluster. The record stays until then.",
            node=node_rules.name(node),
            machine=record.machine.full_name,
        )
    machine = machines.find(context.management, versions, record.machine.namespace, record.machine.name)
    if why_not := _foreign(node, machine):
        return None, why_not
    return machine, "" if machine else f"Machine {record.machine.full_name} is gone"


def _write_machine(context: Context, machine: Machine, value: str | None) -> Object | None:
    """Set the Machine's annotation; ``None`` if the Machine is gone by now."""
    try:
        return _write(context.management, machine.path, machine.object, {SKIP_REMEDIATION: value})
    except NotFound:
        return None


def _write(
    cluster: Cluster,
    path: str,
    present: Object,
    marks: dict[str, str | None],
    labels: dict[str, str | None] | None = None,
) -> Object:
    """Set annotations and labels by compare-and-swap; returns ``present`` itself if they have the values already."""
    changes = {
        "annotations": _changes(marks, node_rules.annotations_of(present)),
        "labels": _changes(labels or {}, node_rules.labels_of(present)),
    }
    changes = {kind: values for kind, values in changes.items() if values}
    if not changes:
        return present
    version = {"resourceVersion": present["metadata"]["resourceVersion"]}
    return cluster.merge(path, {"metadata": {**version, **changes}})


def _changes(wanted: dict[str, str | None], present: dict[str, str]) -> dict[str, str | None]:
    return {key: value for key, value in wanted.items() if present.get(key) != value}


def _warn_of_others(context: Context, after: _State) -> None:
    """Warn about values that someone else has changed since they were recorded; they stay."""
    record = optout_rules.record_of(after.node)
    if record and record.node_health_check and not optout_rules.is_opt_out(optout_rules.label_on_node(after.node)):
        context.warn(
            f"Someone else has changed the label {EXCLUDE_FROM_REMEDIATION} of node {node_rules.name(after.node)} to "
            f"{optout_rules.label_on_node(after.node)!r}. The value stays, so a NodeHealthCheck may fence the node."
        )
    if record and record.autoscaler and not optout_rules.is_opt_out(optout_rules.on_node(after.node)):
        context.warn(
            f"Someone else has changed {SCALE_DOWN_DISABLED} of node {node_rules.name(after.node)} to "
            f"{optout_rules.on_node(after.node)!r}. The value stays, so the cluster autoscaler may remove the node."
        )
    if record and record.machine and after.machine and optout_rules.on_machine(after.machine) is None:
        context.warn(
            f"Someone else has removed {SKIP_REMEDIATION} from Machine {record.machine.full_name}, which had it before "
            "this run. It stays removed, so a MachineHealthCheck may replace the Machine."
        )

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines whose deletion waits for one of our hooks, with work that a run has started and not finished.

Rules only. Nothing of this is cleared: the next run resumes from the record. If a hook were removed while its work is
undone, Cluster API would delete the Machine.
"""

from __future__ import annotations

from collections.abc import Iterable

from .._api import node_rules
from .._api.names import MACHINE_GUARD
from .._api.objects import Object
from .._capi.rules import KCP_CLEANUP, Hook, hooks_of, is_deleting, node_of, waiting_since, waits_for
from .._guard import rules as guard
from .snapshot_rules import Finding, Snapshot

KIND = "machine"


def is_marked(machine: Object) -> bool:
    """Return whether a Machine is being deleted and has a guard record."""
    return is_deleting(machine) and MACHINE_GUARD in node_rules.annotations_of(machine)


def examine(snapshot: Snapshot) -> Iterable[Finding]:
    """Return all findings of this kind."""
    for machine in snapshot.machines:
        # Others can write any name into the annotation.
        names = (node_rules.record(machine, MACHINE_GUARD) or {}).keys() - {KCP_CLEANUP}
        for hook in hooks_of(machine):
            if hook.name in names and waits_for(machine, hook.point, hook.annotation):
                yield from _at_hook(snapshot, machine, hook)


def _at_hook(snapshot: Snapshot, machine: Object, found: Hook) -> Iterable[Finding]:
    point, hook = found.point, found.name
    record = guard.record_of(machine, hook)
    metadata = machine["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    if record is None:
        if guard.is_invalid(machine, hook):
            yield _invalid(snapshot, machine, hook, f"Machine {name} waits at {point} for hook {hook}")
        return
    run = str(record["run"])
    # The record may be of the previous point, where the run ended.
    started = record["point"] == point
    failed = started and record["result"] == guard.FAILED
    state = f"in phase {record['phase']}" if started else "has not started"
    if failed:
        state = f"failed ({record.get('detail') or 'no reason given'})"
    alive = snapshot.works.get(run, False)
    yield Finding(
        KIND,
        node=node_of(machine) or "",
        operation=name,
        since=record["since"] if started else waiting_since(machine) or record["since"],
        **{**snapshot.signs(run), "alive": alive},
        why=f"Machine {name} waits at {point} for hook {hook}; its work {state}",
        todo="" if alive else _advice(name, hook, failed=failed),
    )


def _invalid(snapshot: Snapshot, machine: Object, hook: str, waits: str) -> Finding:
    """Report a record that no run resumes: an early version wrote it without fields that are needed now."""
    record = (node_rules.record(machine, MACHINE_GUARD) or {})[hook]
    run = str(record.get("run") or "") if isinstance(record, dict) else ""
    alive = snapshot.works.get(run, False)
    advice = "Start guard_machine again: it does the work from the beginning, with all tasks."
    return Finding(
        KIND,
        node=node_of(machine) or "",
        operation=f"{machine['metadata']['namespace']}/{machine['metadata']['name']}",
        since=waiting_since(machine) or "",
        **{**snapshot.signs(run), "alive": alive},
        why=f"{waits}; its record is invalid: someone changed it, or an early version wrote it",
        todo="" if alive else f"{waits}, and no run can resume the work. {advice}",
    )


def _advice(name: str, hook: str, *, failed: bool) -> str:
    first_step = "Fix the cause of the failure, and start" if failed else "No run works on it. Start"
    return (
        f"The deletion of Machine {name} waits for hook {hook}. {first_step} guard_machine again, which resumes the "
        "work."
    )

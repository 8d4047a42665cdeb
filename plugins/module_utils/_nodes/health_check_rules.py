# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about pauses of medik8s' NodeHealthChecks: each run has an entry of its own in ``spec.pauseRequests``.

Source: the API of the node-healthcheck-operator, remediation.medik8s.io/v1alpha1. While the list has an entry, the
NodeHealthCheck starts no remediation. Entries are free text, so ours name their run, and all others stay.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .._api.objects import Object

_OURS = "holdfast.kubernetes run "


def requests_of(check: Object) -> list[str]:
    """The entries of a NodeHealthCheck."""
    return [str(item) for item in (check.get("spec") or {}).get("pauseRequests") or []]


def runs_of(check: Object) -> list[str]:
    """The runs that have paused a NodeHealthCheck."""
    return [item.removeprefix(_OURS) for item in requests_of(check) if item.startswith(_OURS)]


def dead(check: Object, live: Collection[str]) -> list[str]:
    """The dead runs that have paused a NodeHealthCheck."""
    return [name for name in runs_of(check) if name not in live]


def paused(check: Object, run: str, live: Collection[str]) -> list[str]:
    """The entries while a run works. Those of dead runs go."""
    ended = dead(check, {run, *live})
    kept = resumed(check, ended)
    return kept if _OURS + run in kept else [*kept, _OURS + run]


def resumed(check: Object, runs: Sequence[str]) -> list[str]:
    """The entries after the end of runs."""
    return [item for item in requests_of(check) if item not in {_OURS + run for run in runs}]

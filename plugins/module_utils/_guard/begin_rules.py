# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the start of a guard: which settings can't work, which Machines get hooks, and what a refusal means."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .._api.errors import ApiFailure, HoldfastError
from .._capi.rules import NOT_DELETING, PRE_DRAIN, PRE_TERMINATE
from .journey_rules import File

PRESENT, ABSENT = "present", "absent"
# Steps of the role after the start.
SERVE, PLAN, REPORT = "serve", "plan", "report"
# The status of a change that roles, webhooks or policies of the API server forbid.
_REFUSALS = (400, 403, 413, 422)


def selects(given: Mapping[str, Any]) -> bool:
    """Return whether the settings select Machines, apart from templates."""
    return bool(given["machines"] or given["selector"] or given["cluster"])


def files_of(given: Mapping[str, Any], playbook_dir: str) -> dict[str, tuple[File, ...]]:
    """Return the files of the user's tasks, by point."""
    paths = {PRE_DRAIN: given["pre_drain_tasks"], PRE_TERMINATE: given["pre_terminate_tasks"]}
    return {point: tuple(File(path, _name(path, playbook_dir)) for path in paths[point]) for point in paths}


def _name(path: str, playbook_dir: str) -> str:
    """Return the name under which a file is recorded. The path of the checkout differs from run to run."""
    folder = f"{playbook_dir.rstrip('/')}/"
    path = path[len(folder) :].lstrip("/") if path.startswith(folder) else path
    return posixpath.basename(path) if path.startswith("/") else path


def problem(given: Mapping[str, Any], files: Mapping[str, Sequence[File]]) -> str:
    """Return why the settings can't work; empty if they can."""
    chosen = selects(given) or given["templates"]
    named = given["machines"] or given["templates"]
    all_names = {point: [file.name for file in files[point]] for point in files}
    unclear = any(len(set(names)) < len(names) for names in all_names.values())
    listed = "; ".join(", ".join(names) for names in all_names.values())
    checks = (
        (
            not chosen and (given["set_hooks"] or given["state"] == ABSENT),
            (
                "Select the Machines that get hooks: with machine_guard_machines, machine_guard_selector, "
                "machine_guard_cluster or machine_guard_templates. With machine_guard_set_hooks: false, the role "
                "serves all Machines that already have them."
            ),
        ),
        (
            not given["namespace"] and named,
            "machine_guard_machines and machine_guard_templates need machine_guard_namespace, their namespace.",
        ),
        (
            given["parallel"] < 1 or given["timeout"] < 0 or given["retry_seconds"] < 0,
            (
                "machine_guard_parallel must be at least 1, machine_guard_timeout and machine_guard_retry_seconds at "
                "least 0."
            ),
        ),
        (not given["points"], "machine_guard_points must name pre-drain, pre-terminate or both."),
        (
            unclear,
            (
                f"Two files of tasks of one point have the same name, {listed}. The role records the files that it has "
                "run by their path below playbook_dir, or else by name. Give them different names."
            ),
        ),
    )
    return next((why for wrong, why in checks if wrong), "")


def chosen(machines: Collection[Mapping[str, Any]], given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the Machines whose hooks are set or removed.

    Machines that are being deleted keep theirs: they must still be served. Templates set and remove the hooks of their
    Machines; a selector or a Cluster, in addition to templates, only narrows which of these are served.
    """
    return [
        item
        for item in machines
        if given["cluster"] in ("", item["cluster"])
        and (item["name"] in given["machines"] or not (given["machines"] or given["templates"]))
        and (given["state"] == PRESENT or item["phase"] == NOT_DELETING)
    ]


def unknown(machines: Collection[Mapping[str, Any]], given: Mapping[str, Any]) -> list[str]:
    """Return the names that no Machine has."""
    known = {item["name"] for item in machines}
    return [name for name in dict.fromkeys(given["machines"]) if name not in known]


def changes_hooks(given: Mapping[str, Any]) -> bool:
    """Return whether the run sets or removes hooks."""
    return bool(given["set_hooks"] or given["state"] == ABSENT)


def is_answered(error: HoldfastError) -> bool:
    """Return whether another try would get the same answer."""
    return is_refused(error) or error.kind not in ("api", "api_unreachable")


def is_refused(error: HoldfastError) -> bool:
    """Return whether a webhook, a policy or a role of the API server forbids a change of one Machine."""
    return isinstance(error, ApiFailure) and error.status in _REFUSALS


def is_reported(error: HoldfastError) -> bool:
    """Return whether the report names a Machine whose hook could not be set, and the others are done."""
    return is_refused(error) or error.kind in ("cannot_hold", "refused", "not_found")


def steps(given: Mapping[str, Any], *, check_mode: bool) -> list[str]:
    """Return which steps the role takes after the start."""
    serves = given["state"] == PRESENT and not check_mode
    return [*([SERVE] if serves else []), *([PLAN] if check_mode else []), REPORT]

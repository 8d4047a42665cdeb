# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What only the ansible-playbook process of a run knows for its report."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import VERSION
from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress import traffic_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._report import content_rules, timeline_rules
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _progress_file, _traffic


def complete(
    content: Mapping[str, Any], variables: Mapping[str, Any], settings: Sequence[Mapping[str, Any]], **about: str
) -> dict[str, Any]:
    """Return the report with the timeline of the run, its requests, its options and the versions.

    Args:
        content: What the run has done.
        variables: The variables of a task.
        settings: The options of each node.
        about: What else is known of the run, for example its ``group``.
    """
    timeline = timeline_rules.to_data(timeline_rules.from_events(_progress_file.Reader().new(), time.time()))
    versions = {
        "holdfast.kubernetes": VERSION,
        "ansible-core": str((variables.get("ansible_version") or {}).get("full") or ""),
        "Python": platform.python_version(),
        "kubernetes client": _client(),
    }
    known = {name: value for name, value in about.items() if value}
    traffic = _traffic.totals()
    nodes = [
        {**({"api": traffic[node["name"]]} if node.get("name") in traffic else {}), **node}
        for node in content.get("nodes") or ()
    ]
    return {
        "api": traffic_rules.total(traffic, *traffic),
        **content,
        "nodes": nodes,
        "about": {**known, "versions": versions, "options": content_rules.common(settings)},
        **({"timeline": timeline} if timeline else {}),
    }


def _client() -> str:
    try:
        return metadata.version("kubernetes")
    except metadata.PackageNotFoundError:
        return "unknown"

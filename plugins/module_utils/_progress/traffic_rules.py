# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the API server, and bytes from it, in the output and the report of a run."""

from __future__ import annotations

from collections.abc import Mapping


def total(traffic: Mapping[str, Mapping[str, int]], *names: str) -> dict[str, int]:
    """The sum of these nodes' requests and bytes."""
    return {key: sum(traffic.get(name, {}).get(key, 0) for name in names) for key in ("requests", "bytes")}


def words(api: Mapping[str, int]) -> str:
    """Requests and bytes as text; empty without requests."""
    return f"{api['requests']} requests, {api.get('bytes', 0) / 1000:.0f} kB" if api.get("requests") else ""

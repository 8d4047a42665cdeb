# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results that the role rolling_reboot registered for each host of a run, so that hosts see each other's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

READ, BEGUN, TURN = "__rolling_reboot_read", "__rolling_reboot_begun", "__rolling_reboot_turn"
Variables = Mapping[str, Any]


def others(variables: Variables, canaries: Sequence[str], *, alone: bool = False) -> dict[str, Any]:
    """Options of ``reboot_turn``: hosts that left the play, failures that are not counted yet, results of canaries.

    A pass of the playbook is a play with few of the run's hosts. A host that dropped out of an earlier pass is not
    among them.

    Args:
        alone: Each host has a run of its own.
    """
    begun, present = variables.get(BEGUN) or {}, set(variables.get("ansible_play_hosts") or [])
    every, run = str(begun.get("hosts") or "").splitlines(), begun.get("run")
    runs = {host: _registered(variables, host, BEGUN).get("run") if alone else run for host in every}
    turns = {host: _turn(variables, host, runs[host]) for host in every}
    return {
        "hosts": [turns[host] for host in every if host not in present],
        "uncounted": [failure for turn in turns.values() for failure in turn.get("uncounted") or []],
        "canary_results": [turns[host].get("result") or {} for host in canaries if host in turns],
    }


def all_of(variables: Variables, names: Sequence[str]) -> dict[str, Any]:
    """Options of ``reboot_report``: the hosts, and the operation of the run that began last.

    A playbook may import the playbook of the role twice. A host that dropped out of the first run is not in the second
    one, and its variables are those of the first.
    """
    hosts: list[dict[str, Any]] = []
    begun = max((_registered(variables, name, BEGUN) for name in names), key=_began, default={})
    for name in names:
        read = _registered(variables, name, READ)
        hosts.append(
            {
                "host": name,
                "turn": _turn(variables, name, begun.get("run")),
                "settings": read.get("settings") or {},
                "settings_error": str(read.get("msg") or "unknown") if read.get("failed") else "",
            }
        )
    # The report may run on a host of the run, and its settings are then those of the report.
    paused = bool(begun.get("paused"))
    return {"hosts": hosts, **{name: begun.get(name) or "" for name in ("operation", "run", "group")}, "paused": paused}


def settings_of(hosts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The settings of each host that has read them."""
    return [host["settings"] for host in hosts if host["settings"]]


def _began(begun: Mapping[str, Any]) -> str:
    return str(begun.get("began") or "")


def _turn(variables: Variables, host: str, run: str | None) -> Mapping[str, Any]:
    """The last answer about a host in this run. A playbook may have had another run before."""
    turn = _registered(variables, host, TURN)
    return turn if turn.get("run", run) == run else {}


def _registered(variables: Variables, host: str, name: str) -> Mapping[str, Any]:
    try:
        found = variables["hostvars"][host].get(name)
    except KeyError:
        return {}
    return found if isinstance(found, Mapping) else {}

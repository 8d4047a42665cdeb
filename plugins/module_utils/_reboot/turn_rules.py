# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's turn: its budget, how long it waits, and which failures are counted first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .._budget.run_rules import DEAD_AFTER
from .facts_rules import Facts
from .quorum_rules import CONTROL_PLANE

DROPPED_OUT = "its host dropped out, because Ansible could not reach it in one of the user's own tasks"
NO_GROUP = "none"


@dataclass(frozen=True)
class Budget:
    """The budget under which a node is rebooted.

    Attributes:
        group: The group whose ledger has the slot.
        counted_in: The group of the operation. Failures in its ledger stop all nodes of the operation.
        policy: The group's policy, as options of ``reboot_slot``.
    """

    group: str
    counted_in: str
    policy: Mapping[str, Any]


def budget_of(options: Mapping[str, Any], *, control_plane: bool) -> Budget:
    """The budget of a node.

    Control-plane nodes have a budget of their own: one at a time, over all runs. A node belongs to one group only, so
    the other group excludes them.

    Args:
        options: ``group``, ``selector``, ``max_unavailable``, ``topology_key``, ``max_unavailable_per_domain``,
            ``max_domains`` and ``control_plane_group``; and ``operation_group``, if the operation is in another group.
        control_plane: The node has the label of the control plane.
    """
    group, own_group = str(options["group"]), str(options["control_plane_group"])
    counted_in = str(options.get("operation_group") or group)
    apart = own_group != NO_GROUP
    if control_plane and apart:
        return Budget(own_group, counted_in, {"selector": CONTROL_PLANE, "max_unavailable": "1"})
    parts = [options.get("selector") or "", f"!{CONTROL_PLANE}" if apart else ""]
    names = ("topology_key", "max_unavailable_per_domain", "max_domains")
    policy = {"selector": ",".join(filter(None, parts)), "max_unavailable": options["max_unavailable"]}
    return Budget(group, counted_in, {**policy, **{name: options.get(name) for name in names}})


def dropped_out(hosts: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Hosts that have dropped out of a run that continues.

    Each of them has the claim on its node, and no result. Its failure counts at once; the report cleans up the node
    after the plays.

    Args:
        hosts: For each host that left the play: ``node``, ``group``, ``claimed`` and ``result``.
    """
    return [host for host in hosts if host.get("claimed") and not host.get("result")]


def slot_patience(facts: Facts) -> float:
    """Seconds for one turn of the wait for a slot.

    A turn is long, because each turn costs every waiting host some tasks. Turns grow, because each is a nested include
    and Ansible allows some hundred of them. One turn is longer than the grace period for unhealthy nodes.

    In the pass that resumes, the wait ends soon after it is known whether the run that has the slot is dead.
    """
    settings, wait = facts.settings, facts.slot_wait
    limits = [time_left(facts)]
    if settings.resumes:
        limits.append(DEAD_AFTER + 30.0)
    elif settings.in_turns:
        limits.append(max(300.0, settings.unhealthy_grace + 60.0, wait.waited / 4))
    if not facts.midway and facts.window is not None and facts.window.seconds_left is not None:
        limits.append(float(facts.window.seconds_left))
    return min(limits)


def time_left(facts: Facts) -> float:
    """Remaining seconds of the wait for a slot while nothing happens in the group."""
    return max(0.0, facts.settings.slot_timeout - facts.slot_wait.idle)


def hold_patience(facts: Facts, hold_timeout: int) -> tuple[float, bool]:
    """Seconds to wait for the holders, and whether the window closes first. If it does, the wait does not fail."""
    left = facts.window.seconds_left if facts.window is not None else None
    if facts.midway or left is None or hold_timeout <= left:
        return float(hold_timeout), False
    return float(left), True

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose turn it is: in whose budget a node counts, how long it waits, and which failures are counted first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .facts_rules import Facts
from .quorum_rules import CONTROL_PLANE

DROPPED_OUT = "its host could not be reached in one of the user's own tasks, and dropped out"
NO_GROUP = "none"


@dataclass(frozen=True)
class Budget:
    """The budget under which a node is rebooted.

    Attributes:
        group: Whose ledger has the slot.
        counted_in: Whose ledger has the failures: that of the operation, which stops all its nodes.
        policy: The group's policy, as options of ``reboot_slot``.
    """

    group: str
    counted_in: str
    policy: Mapping[str, Any]

    @property
    def groups(self) -> tuple[str, ...]:
        """Where a failure of the node is counted."""
        return tuple(dict.fromkeys((self.group, self.counted_in)))


def budget_of(options: Mapping[str, Any], *, control_plane: bool) -> Budget:
    """The budget of a node.

    Control-plane nodes share a budget of their own, one at a time, whatever run they are in. A node is in one group
    only, so the group of the others leaves them out.

    Args:
        options: ``group``, ``selector``, ``max_unavailable``, ``topology_key``, ``max_unavailable_per_domain``,
            ``max_domains`` and ``control_plane_group``.
        control_plane: The node has the label of the control plane.
    """
    group, own_group = str(options["group"]), str(options["control_plane_group"])
    apart = own_group != NO_GROUP
    if control_plane and apart:
        return Budget(own_group, group, {"selector": CONTROL_PLANE, "max_unavailable": "1"})
    parts = [options.get("selector") or "", f"!{CONTROL_PLANE}" if apart else ""]
    names = ("topology_key", "max_unavailable_per_domain", "max_domains")
    policy = {"selector": ",".join(filter(None, parts)), "max_unavailable": options["max_unavailable"]}
    return Budget(group, group, {**policy, **{name: options.get(name) for name in names}})


def dropped_out(hosts: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Hosts of the run that nobody works on any more, though the run lives.

    Each of them has the claim on its node, and no result. Its failure counts at once; the node itself is looked after
    when the plays are over.

    Args:
        hosts: Of each host that left the play: ``node``, ``group``, ``claimed``, and its ``result``.
    """
    return [host for host in hosts if host.get("claimed") and not host.get("result")]


def slot_patience(facts: Facts) -> float:
    """Seconds for one turn of the wait for a slot.

    A turn is long, because each costs every waiting host some tasks, and grows, because each is an include within the
    last one, of which Ansible bears some hundred. One turn is long enough to see that what fills the budget stays.
    """
    settings, wait = facts.settings, facts.slot_wait
    limits = [time_left(facts)]
    if settings.in_turns:
        limits.append(max(300.0, settings.unhealthy_grace + 60.0, wait.waited / 4))
    if not facts.midway and facts.window is not None and facts.window.seconds_left is not None:
        limits.append(float(facts.window.seconds_left))
    return min(limits)


def time_left(facts: Facts) -> float:
    """Seconds that are left of the wait for a slot while nothing happens in the group."""
    return max(0.0, facts.settings.slot_timeout - facts.slot_wait.idle)


def hold_patience(facts: Facts, hold_timeout: int) -> tuple[float, bool]:
    """Seconds to wait for the holders, and whether the window closes first: then that is no failure."""
    left = facts.window.seconds_left if facts.window is not None else None
    if facts.midway or left is None or hold_timeout <= left:
        return float(hold_timeout), False
    return float(left), True

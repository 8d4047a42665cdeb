# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about a node that was down when its failover began: whether it is back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._api import node_rules
from .._api.errors import Refused
from .._api.objects import Object
from .._shared.bounds import cut


class CameBack(Refused):
    """The node is on: it must no longer be switched off or tainted."""

    kind = "came_back"


class ReadyChanged(Refused):
    """The node is not Ready, but may have been Ready since it was last seen to stay down: it must be watched again."""


def came_back(node: Object, record: Mapping[str, Any]) -> bool:
    """Return whether the node is on, or was on since the failover began."""
    return node_rules.ready(node) or node_rules.boot_id(node) != record["boot_id"]


def down_since(node: Object) -> str:
    """Return a text that changes whenever the condition Ready changes.

    Only compare it: the time may be that of the kubelet's clock.
    """
    found = node_rules.condition(node, "Ready") or {}
    return f"{cut(str(found.get('status')))} since {cut(str(found.get('lastTransitionTime')))}"


def check_still_down(node: Object, record: Mapping[str, Any], confirmed: str = "") -> None:
    """Check the node before each step that cannot be undone.

    Args:
        confirmed: What :func:`down_since` returned when the node was last seen to stay down; empty if it may change.

    Raises:
        CameBack: The node is Ready, or has booted since the failover began.
        ReadyChanged: It may have been Ready meanwhile.
    """
    if came_back(node, record):
        name, booted = node_rules.name(node), f"has booted again (boot ID {node_rules.boot_id(node)})"
        what = "is Ready again" if node_rules.ready(node) else booted
        raise CameBack(
            f"Node {name} {what}: its pods may run there, so it is neither switched off nor declared out of service. "
            "Find out why it was down; run it again if it goes down again.",
            node=name,
            boot_id=node_rules.boot_id(node),
            ready=node_rules.ready(node),
        )
    check_not_changed(node, confirmed)


def check_not_changed(node: Object, confirmed: str) -> None:
    """Check that the condition Ready has not changed.

    Args:
        confirmed: What :func:`down_since` returned before; empty if it may change.

    Raises:
        ReadyChanged: It has.
    """
    if confirmed in ("", down_since(node)):
        return
    name = node_rules.name(node)
    raise ReadyChanged(
        f"The condition Ready of node {name} was {confirmed}, and is {down_since(node)}, so it may have been Ready "
        "meanwhile. Find out why the condition changes; run it again if the node stays down.",
        node=name,
        why="changed",
    )

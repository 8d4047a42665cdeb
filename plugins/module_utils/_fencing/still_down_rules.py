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


class CameBack(Refused):
    """The node is on: it must no longer be switched off or tainted."""

    kind = "came_back"


def came_back(node: Object, record: Mapping[str, Any]) -> bool:
    """Return whether the node is on, or was on since the failover began."""
    return node_rules.ready(node) or node_rules.boot_id(node) != record["boot_id"]


def check_still_down(node: Object, record: Mapping[str, Any]) -> None:
    """Check the node before each step that cannot be undone.

    Raises:
        CameBack: The node is Ready, or has booted since the failover began.
    """
    if not came_back(node, record):
        return
    name = node_rules.name(node)
    what = "is Ready again" if node_rules.ready(node) else f"has booted again (boot ID {node_rules.boot_id(node)})"
    raise CameBack(
        f"Node {name} {what}: its pods may run there, so it is neither switched off nor declared out of service. Find "
        "out why it was down; run it again if it goes down again.",
        node=name,
        boot_id=node_rules.boot_id(node),
        ready=node_rules.ready(node),
    )

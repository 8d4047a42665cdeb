# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watch a node that is not Ready until it has stayed so for long enough to fence it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from .._api import node_rules, paths
from .._api.errors import NotFound
from .._api.objects import Object
from .._api.runner import Context
from .._api.watch import Deadline, wait_for
from .._fencing.still_down_rules import ReadyChanged, check_not_changed, down_since
from .._progress.event_rules import waits
from . import rules

T = TypeVar("T")
# A node that dies changes Ready twice at most: its kubelet reports False, and later the node controller sets Unknown.
_ROUNDS = 3


def confirm(context: Context, node: Object, seconds: float, confirmed: str = "") -> Object:
    """Watch the node until it has stayed down, and return it as it is then. In check mode, do not wait.

    Args:
        seconds: For how long it must be seen not Ready.
        confirmed: What ``down_since`` returned when it was last seen to stay down. If its condition Ready has changed
            since, it may have been Ready, so the wait starts again.

    Returns:
        The Node, which is Ready if it came back.

    Raises:
        NotFound: The Node was deleted.
        ReadyChanged: Its condition Ready has changed during the wait. The run may have been paused, and the node Ready.
    """
    left = rules.seconds_to_confirm(node, seconds, context.cluster.now(), confirmed)
    if left <= 0 or context.check_mode:
        return node
    name = node_rules.name(node)

    def up(item: Object | None) -> bool:
        return item is None or node_rules.ready(item)

    context.tell(waits(name, "look", f"no sign of life for {left:.0f} s more"))
    found = wait_for(context.cluster, paths.NODES, name, up, Deadline(left))
    if found is None:
        raise NotFound(f"Node {name} no longer exists.", node=name)
    if not node_rules.ready(found):
        check_not_changed(found, down_since(node))
    return found


def again_if_ready_changes(act: Callable[[], T]) -> T:
    """Confirm and act, again if the condition Ready changes meanwhile.

    Raises:
        ReadyChanged: It has changed each time.
    """
    for _round in range(_ROUNDS - 1):
        with suppress(ReadyChanged):
            return act()
    return act()

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""See a host reboot: its power goes off and on again, or its Node gets a new boot ID."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import HoldfastError
from .._api.objects import Object
from .._api.watch import Deadline, Follower, only_object
from . import host_rules as rules


@dataclass
class Outcome:
    """What was seen of a host, and whether that is a reboot.

    Attributes:
        respects_holds: Whether holds that the Node confirms count.
        held_by: The holds that count.
    """

    respects_holds: bool = False
    host: Object | None = None
    seen: bool = False
    went_off: bool = False
    came_back: bool = False
    new_boot: bool = False
    held_by: Sequence[str] = ()

    def saw_host(self, host: Object | None) -> None:
        self.host, self.seen = host, True
        power = rules.powered_on(host) if host else None
        self.went_off = self.went_off or power is False
        self.came_back = self.came_back or (self.went_off and power is True)

    def saw_node(self, node: Object | None, boot_id: str) -> None:
        """See the Node, which had this boot ID before."""
        self.new_boot = node is not None and node_rules.boot_id(node) not in ("", boot_id)
        self.held_by = ()
        if self.respects_holds and node is not None and not self.new_boot:
            self.held_by = node_rules.inhibited_by(node)

    @property
    def rebooted(self) -> bool:
        """Whether it rebooted. The annotation proves nothing: metal3 removes it when the host is off, as anyone may."""
        if self.came_back:
            return True
        # If someone else rebooted the node and the annotation is still set, the host is about to go off.
        waiting = self.host is not None and rules.request_of(self.host, "") is not None
        return self.new_boot and self.host is not None and not waiting

    @property
    def held(self) -> bool:
        """Whether a hold came before the host went off."""
        return bool(self.held_by) and self.seen and not self.went_off

    @property
    def why(self) -> str:
        if self.went_off:
            return "it switched off and did not come back"
        return "its poweredOn never became false, and its Node has no new boot ID"


def wait_for_reboot(
    host: tuple[Cluster, str, str],
    node: tuple[Cluster, str, str] | None,
    deadline: Deadline,
    *,
    respect_holds: bool = False,
) -> Outcome:
    """Watch a BareMetalHost, and its Node if the Node and its old boot ID are known.

    Args:
        host: The management cluster, the path of the collection, and the name.
        node: The workload cluster, the name, and the boot ID before.
        deadline: When to stop.
        respect_holds: Whether to stop when the Node confirms a hold while the host is still on.

    Returns:
        What was seen when it had rebooted, when the host was gone, when it was held, or when the deadline passed.
    """
    management, collection, host_name = host
    followers = {"host": Follower(management, collection, deadline, field_selector=f"metadata.name={host_name}")}
    boot_id = ""
    if node:
        cluster, node_name, boot_id = node
        followers["node"] = Follower(cluster, paths.NODES, deadline, field_selector=f"metadata.name={node_name}")
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threads = [
        threading.Thread(target=_follow, args=(what, follower, events), daemon=True, name=f"follow {what} {host_name}")
        for what, follower in followers.items()
    ]
    outcome, running = Outcome(respect_holds), len(threads)
    for thread in threads:
        thread.start()
    try:
        while running:
            what, item = events.get()
            if what == "end":
                running -= 1
                if item is not None:
                    raise item
            elif what == "host":
                outcome.saw_host(item)
            else:
                outcome.saw_node(item, boot_id)
            if outcome.rebooted or outcome.held or (outcome.seen and outcome.host is None):
                break
    finally:
        for follower in followers.values():
            follower.stop()
    return outcome


def _follow(what: str, follower: Follower, events: queue.SimpleQueue[Any]) -> None:
    failure: HoldfastError | None = None
    try:
        for news in follower:
            events.put((what, only_object(news)))
    except HoldfastError as error:
        failure = error
    events.put(("end", failure))

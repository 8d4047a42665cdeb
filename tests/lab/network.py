# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's own bridge. Its index keeps several labs on one machine apart."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from .commands import run
from .errors import LabError
from .locks import locked

INDEXES = range(1, 200)
# Labs of different checkouts share only the choice of their index.
LOCK = Path("/run/holdfast-lab.lock")


@dataclass(frozen=True)
class Network:
    """Everything that follows from the index."""

    index: int

    @property
    def bridge(self) -> str:
        return f"holdfast{self.index}"

    @property
    def gateway(self) -> str:
        """The machine's own address on the bridge: the API server listens here."""
        return f"10.213.{self.index}.1"

    @property
    def loopback(self) -> str:
        """An address for what only the machine itself needs; the whole of 127/8 is local, so ports do not collide."""
        return f"127.213.{self.index}.1"

    @property
    def cgroup(self) -> str:
        return f"holdfast-lab-{self.index}"

    def node_address(self, number: int) -> str:
        return f"10.213.{self.index}.{10 + number}"

    def machine(self, name: str) -> str:
        """The machine's name, unique across labs: the host's end of its veth pair is named after it."""
        return f"lab{self.index}-{name}"

    def up(self, owner: Path) -> bool:
        """Make the bridge, unless it exists; return False if it belongs to another lab."""
        with locked(LOCK):
            found = {link["ifname"]: link.get("ifalias") for link in _links()}
            if found.get(self.bridge, str(owner)) not in (str(owner), None):
                return False
            # A crash at this point left a bridge without an owner.
            if self.bridge not in found:
                # A fixed MAC address: otherwise the bridge takes a node's, and when that node goes off, the others
                # reach no one until they ask again.
                address = f"02:68:66:00:00:{self.index:02x}"
                run(["ip", "link", "add", self.bridge, "address", address, "type", "bridge"])
            run(["ip", "link", "set", self.bridge, "alias", str(owner)])
            run(["ip", "link", "set", self.bridge, "up"])
            run(["ip", "address", "replace", f"{self.gateway}/24", "dev", self.bridge])
        return True

    @property
    def free(self) -> bool:
        return all(link["ifname"] != self.bridge for link in _links())

    def down(self) -> None:
        if not self.free:
            run(["ip", "link", "delete", self.bridge])


def claim(owner: Path) -> Network:
    """Claim the first free index. The owner's name on the bridge survives every crash."""
    for index in INDEXES:
        network = Network(index)
        if network.up(owner):
            return network
    raise LabError("all of the lab's networks are in use; run 'down' in the checkouts that no longer need theirs")


def owned(owner: Path) -> list[Network]:
    """The networks of this lab: one, or none."""
    bridges = {link["ifname"] for link in _links() if link.get("ifalias") == str(owner)}
    return [network for network in map(Network, INDEXES) if network.bridge in bridges]


def _links() -> list[dict[str, str]]:
    links: list[dict[str, str]] = json.loads(run(["ip", "-json", "link", "show"]) or "[]")
    return links

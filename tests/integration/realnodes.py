# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real nodes of the lab as members of a test's own group."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils import _paths as paths
from lab import Lab


@contextlib.contextmanager
def member(world: Any, lab: Lab, name: str) -> Iterator[dict[str, Any]]:
    """Puts a real node into the group of a world; its variables for the inventory."""
    # Others may have rebooted it just now.
    lab.wait_ready([name])
    world.until(paths.NODES, name, lambda item: item is not None and not item["spec"].get("taints"))
    world.cluster.merge(paths.node(name), {"metadata": {"labels": world.pool}})
    real = yaml.safe_load(lab.inventory.read_text())["all"]["children"]["real"]
    try:
        yield {
            "ansible_connection": "ssh",
            **real["vars"],
            **real["hosts"][name],
            "rolling_reboot_method": "systemd",
        }
    finally:
        gone = dict.fromkeys(world.pool)
        world.cluster.merge(paths.node(name), {"metadata": {"labels": gone}})


def boot_id(lab: Lab, name: str) -> str:
    """The node's own."""
    return lab.ssh(name, "cat /proc/sys/kernel/random/boot_id").strip()


# Found before systemctl itself.
_FIRST = "/usr/sbin/systemctl"
# What happens to a reboot that was noted: done as soon as somebody says so, or never.
WAITS = 'while [ ! -e /run/reboot-goes-on ]; do sleep 0.1; done; exec /usr/bin/systemctl "$@"'
NEVER = "exit 0"


@contextlib.contextmanager
def noted_reboot(lab: Lab, name: str, then: str) -> Iterator[Callable[[], bool]]:
    """The next call of systemctl on a node is noted, and then this happens to it; gives whether there was one."""
    script = f"#!/bin/sh\nrm -f {_FIRST}\ntouch /run/reboot-noted\n{then}\n"
    lab.ssh(name, f"rm -f /run/reboot-*; cat > {_FIRST} <<'END' && chmod 755 {_FIRST}\n{script}END")
    try:
        yield lambda: "reboot-noted" in lab.ssh(name, "ls /run")
    finally:
        lab.ssh(name, f"touch /run/reboot-goes-on; rm -f {_FIRST}")

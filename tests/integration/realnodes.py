# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real nodes of the lab as members of a test's own group."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
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

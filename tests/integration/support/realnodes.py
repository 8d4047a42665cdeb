# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real nodes of the lab as members of a test's own group."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from lab import Lab
from lab.inventory import PACKAGE


@contextlib.contextmanager
def member(world: Any, lab: Lab, name: str) -> Iterator[dict[str, Any]]:
    """Put a real node into the group of a world; yield its variables for the inventory."""
    # Another test may have rebooted it just now.
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
    """The node's own boot ID."""
    return lab.ssh(name, "cat /proc/sys/kernel/random/boot_id").strip()


def power_commands(lab: Lab, folder: Path) -> dict[str, str]:
    """Variables of a failover by command, whose commands do what ipmitool does for a machine with a BMC."""
    known = {
        "HOLDFAST_LAB": lab.paths.root,
        "HOLDFAST_LAB_CACHE": lab.paths.cache,
        "PYTHONPATH": PACKAGE.parent,
        "PYTHONDONTWRITEBYTECODE": 1,
    }
    settings = "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in known.items())
    python = shlex.quote(sys.executable)
    ask = (
        "import os; from lab import Lab; "
        "print('Chassis Power is', 'on' if Lab.default().powered(os.environ['HOLDFAST_NODE']) else 'off')"
    )
    scripts = {
        "fence_command": f'{python} -m lab power off "$HOLDFAST_NODE"',
        "verify_command": f"{python} -c {shlex.quote(ask)}",
        "power_on_command": f'{python} -m lab power on "$HOLDFAST_NODE"',
    }
    for name, script in scripts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\nset -e\n{settings}{script}\n")
        path.chmod(0o755)
    return {"fence": "command", **{name: str(folder / name) for name in scripts}}


# PATH has this before systemctl itself.
_FIRST = "/usr/sbin/systemctl"
# What happens to a recorded reboot: it is done as soon as the test says so, or never.
WAITS = 'while [ ! -e /run/reboot-goes-on ]; do sleep 0.1; done; exec /usr/bin/systemctl "$@"'
NEVER = "exit 0"


@contextlib.contextmanager
def noted_reboot(lab: Lab, name: str, then: str) -> Iterator[Callable[[], bool]]:
    """Record the next call of systemctl on a node, then let this happen to it; yield a check whether there was one."""
    script = f"#!/bin/sh\nrm -f {_FIRST}\ntouch /run/reboot-noted\n{then}\n"
    lab.ssh(name, f"rm -f /run/reboot-*; cat > {_FIRST} <<'END' && chmod 755 {_FIRST}\n{script}END")
    try:
        yield lambda: "reboot-noted" in lab.ssh(name, "ls /run")
    finally:
        lab.ssh(name, f"touch /run/reboot-goes-on; rm -f {_FIRST}")

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Count the locks of a real node all the while."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable, Iterator
from typing import Any

# Counts the locks of each holder a hundred times a second. The file has the lowest counts so far, and it is replaced
# as a whole, so that a reader never finds it empty.
_COUNT = """
import dbus, json, os, sys, time
path, *holders = sys.argv[1:]
bus, fewest, looks, end = dbus.SystemBus(), {}, 0, time.monotonic() + 600
while time.monotonic() < end:
    found = bus.call_blocking("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager",
        "ListInhibitors", "", ())
    counts = {holder: sum(item[1] == holder for item in found) for holder in holders}
    fewest, looks = {holder: min(count, fewest.get(holder, count)) for holder, count in counts.items()}, looks + 1
    with open(path + ".new", "w") as told:
        json.dump({**fewest, "looks": looks}, told)
    os.replace(path + ".new", path)
    time.sleep(0.01)
"""


@contextlib.contextmanager
def fewest_locks(ssh: Callable[[str], str], *holders: str) -> Iterator[dict[str, Any]]:
    """The fewest locks of each holder at any time, and how often the program looked (``looks``).

    Args:
        ssh: Runs a command on the node, fails if the command fails, and returns its output.
        holders: Who holds the locks.
    """
    unit = f"watch-locks-{secrets.token_hex(5)}"
    path = f"/run/{unit}"
    ssh(f"cat > {path}.py <<'END'\n{_COUNT}\nEND")
    ssh(f"systemd-run --quiet --unit={unit} python3 {path}.py {path} {' '.join(holders)}")
    ssh(f"until [ -e {path} ]; do sleep 0.1; done")
    seen: dict[str, Any] = {}
    try:
        yield seen
        ssh(f"systemctl is-active {unit}")
        seen.update(json.loads(ssh(f"cat {path}")))
    finally:
        ssh(f"systemctl stop {unit}; rm -f {path} {path}.*")

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program in a lock's unit: it takes the lock, gives PID 1 a copy, and becomes a process that only sleeps.

The text of this file is the unit's command, so it uses only the standard library and dbus. If the process is killed,
the copy keeps the lock until systemd has started the process again. systemd 252 corrupts the dollar sign and the
semicolon in a command, so this file has none of them, and the wanted lock comes in the environment, in hex.
"""

from __future__ import annotations

import array
import json
import os
import socket

VARIABLE = "HOLDFAST_LOCK"
_FIRST_PASSED = 3


def encode(what: str, who: str, why: str, mode: str) -> str:
    """The wanted lock as text for the unit's environment."""
    return json.dumps([what, who, why, mode]).encode().hex()


def _notify(*lines: str, descriptor: int = -1) -> None:
    address = os.environ["NOTIFY_SOCKET"].replace("@", "\0", 1)
    passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))] if descriptor >= 0 else []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.connect(address)
        notified.sendmsg(["\n".join(lines).encode()], passed)


def main() -> None:
    import dbus  # noqa: PLC0415

    arguments = json.loads(bytes.fromhex(os.environ[VARIABLE]))
    found = dbus.SystemBus().call_blocking(
        "org.freedesktop.login1",
        "/org/freedesktop/login1",
        "org.freedesktop.login1.Manager",
        "Inhibit",
        "ssss",
        arguments,
    )
    lock = found.take()
    # Without the poll, systemd keeps the copy even when logind restarts.
    _notify("FDSTORE=1", f"FDNAME=lock-{os.getpid()}", "FDPOLL=0", descriptor=lock)
    for name in filter(None, os.environ.get("LISTEN_FDNAMES", "").split(":")):
        _notify("FDSTOREREMOVE=1", f"FDNAME={name}")
    for number in range(int(os.environ.get("LISTEN_FDS", "0"))):
        os.close(_FIRST_PASSED + number)
    os.set_inheritable(lock, True)
    _notify("READY=1", f"STATUS=Holds {arguments[0]}")
    os.execvp("sleep", ["sleep", "infinity"])  # noqa: S606


if __name__ == "__main__":
    main()

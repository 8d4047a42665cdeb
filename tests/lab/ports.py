# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Free loopback ports for servers that must know their port before they start."""

from __future__ import annotations

import contextlib
import secrets
import socket

# Below the range that the kernel gives to connections: a connection could take a port before its server is up.
_FIRST, _COUNT = 20000, 10000


def free_port() -> int:
    """Return a port on which no process listens."""
    while True:
        port = _FIRST + secrets.randbelow(_COUNT)
        with socket.socket() as trial, contextlib.suppress(OSError):
            trial.bind(("127.0.0.1", port))
            return port

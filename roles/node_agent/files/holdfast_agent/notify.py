# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages to PID 1: readiness, the watchdog, and the descriptors that it keeps for the agent.

Source: sd_notify(3), sd_listen_fds(3), "File Descriptor Store" (systemd.io).
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
from collections.abc import Mapping, MutableMapping

LOG = logging.getLogger(__name__)
_FIRST_DESCRIPTOR = 3
_BARRIER_SECONDS = 5.0
# PID 1 reads 4096 bytes of a message.
_STATUS_BYTES = 1000


class Supervisor:
    """Sends messages to PID 1, or none if the agent runs on a terminal.

    A message that can't be sent is only logged, because the locks work all the same.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):
            self._address = "\0" + self._address[1:]
        usec = environment.get("WATCHDOG_USEC", "")
        self.watchdog_seconds: float | None = int(usec) / 1e6 if usec.isdigit() else None

    def ready(self) -> bool:
        """Whether the message was sent."""
        return self._report("READY=1")

    def stopping(self) -> None:
        self._report("STOPPING=1")

    def alive(self) -> None:
        self._report("WATCHDOG=1")

    def status(self, text: str) -> None:
        line = " ".join(text.split()).encode("utf-8", "replace")
        self._report("STATUS=" + line[:_STATUS_BYTES].decode("utf-8", "ignore"))

    def keep(self, name: str, descriptor: int) -> None:
        """Let PID 1 keep a copy for the next process of this service."""
        # Without FDPOLL=0, PID 1 closes its copy when logind restarts, although the lock persists.
        self._report(f"FDSTORE=1\nFDPOLL=0\nFDNAME={name}", descriptor)

    def forget(self, name: str) -> None:
        """Let PID 1 close its copies of this name."""
        self._report(f"FDSTOREREMOVE=1\nFDNAME={name}")

    def barrier(self) -> None:
        """Wait until PID 1 has handled all earlier messages.

        Raises:
            OSError: PID 1 did not in time.
        """
        if not self._address:
            return
        mine, theirs = os.pipe2(os.O_CLOEXEC)
        try:
            self._send("BARRIER=1", theirs)
            os.close(theirs)
            theirs = -1
            poll = select.poll()
            poll.register(mine, 0)
            # PID 1 has the last copy of the other end, and closes it when it has handled the message.
            if not poll.poll(_BARRIER_SECONDS * 1000):
                raise OSError(f"PID 1 did not answer within {_BARRIER_SECONDS:.0f} s")
        finally:
            for descriptor in (mine, theirs):
                if descriptor >= 0:
                    os.close(descriptor)

    def _report(self, message: str, *descriptors: int) -> bool:
        try:
            self._send(message, *descriptors)
        except OSError as error:
            LOG.error("The message %s was not sent to PID 1: %s", message.partition("\n")[0].partition("=")[0], error)
            return False
        return True

    def _send(self, message: str, *descriptors: int) -> None:
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.connect(self._address)
            socket.send_fds(sender, [message.encode("utf-8", "replace")], list(descriptors))


def inherited(environment: MutableMapping[str, str]) -> list[tuple[str, int]]:
    """The descriptors that PID 1 kept for this process, with their names."""
    pid = environment.pop("LISTEN_PID", "")
    count = environment.pop("LISTEN_FDS", "")
    names = environment.pop("LISTEN_FDNAMES", "").split(":")
    if pid != str(os.getpid()) or not count.isdigit():
        return []
    found = []
    for number in range(int(count)):
        descriptor = _FIRST_DESCRIPTOR + number
        with contextlib.suppress(OSError):
            os.set_inheritable(descriptor, False)
            found.append((names[number] if number < len(names) else "", descriptor))
    return found

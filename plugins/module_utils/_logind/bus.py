# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's systemd and logind over D-Bus. Results are plain data. Runs on the node."""

from __future__ import annotations

import inspect
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._api.errors import HoldfastError, MissingLibrary
from . import lock_holder
from .inhibitor_rules import Inhibitor, Logind, lock_times
from .lock_rules import Lock, Slot

try:
    import dbus

    IMPORT_ERROR = ""
except ImportError:
    IMPORT_ERROR = traceback.format_exc()

_LOGIN = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
_SYSTEMD = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
_PROPERTIES = "org.freedesktop.DBus.Properties"
_UNIT, _SERVICE = "org.freedesktop.systemd1.Unit", "org.freedesktop.systemd1.Service"
# Tells this collection's units from other units with the same name.
_MARK = "holdfast-lock"
_NOTES = Path("/run/systemd/inhibit")
_QUOTES = "'\""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class BusFailure(HoldfastError):
    """systemd, logind or the bus itself refused a call, or is not there.

    Args:
        message: What was called, and the answer.
        name: Name of the D-Bus error.
    """

    kind = "dbus"

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message, dbus_error=name)
        self.name = name


@dataclass(frozen=True)
class Service:
    """A service as systemd describes it.

    Attributes:
        pid: Process id of its main process; 0 if it does not run.
        started: When the main process started, in seconds of the monotonic clock.
        command: Its ExecStart, with variables not expanded.
        environment: Variables of the unit and of its environment files.
    """

    pid: int = 0
    started: float = 0.0
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class NodeBus:
    """The system bus of the node that this runs on.

    Raises:
        MissingLibrary: python3-dbus is not installed.
        BusFailure: There is no bus.
    """

    def __init__(self) -> None:
        if IMPORT_ERROR:
            raise MissingLibrary(
                f"The Python library dbus is needed, and {sys.executable or 'this Python'} does not have it. Install "
                "the package python3-dbus (Debian, Ubuntu: apt install python3-dbus; RHEL and its derivatives: dnf "
                "install python3-dbus), or set ansible_python_interpreter to the distribution's own Python.",
                IMPORT_ERROR,
            )
        try:
            self._bus = dbus.SystemBus()
        except dbus.DBusException as error:
            raise BusFailure(
                f"There is no D-Bus system bus on this machine: {error.get_dbus_message()}. logind locks need a node "
                "that runs systemd, systemd-logind and dbus.",
                str(error.get_dbus_name()),
            ) from error

    def _call(self, where: tuple[str, str, str], method: str, signature: str = "", *arguments: Any) -> Any:
        try:
            return self._bus.call_blocking(*where, method, signature, arguments)
        except dbus.DBusException as error:
            raise BusFailure(
                f"{where[0]} on this node answered to {method}: {error.get_dbus_message()} ({error.get_dbus_name()}). "
                "The node must run systemd 239 or later with systemd-logind, and some calls need root.",
                str(error.get_dbus_name()),
            ) from error

    def _get(self, where: tuple[str, str, str], name: str) -> Any:
        return self._call((where[0], where[1], _PROPERTIES), "Get", "ss", where[2], name)

    # -- reading

    def systemd_version(self) -> int:
        """The major number of systemd's version; 0 if the version has no number."""
        found = re.search(r"\d+", str(self._get(_SYSTEMD, "Version")))
        return int(found.group()) if found else 0

    def booted(self) -> float:
        """When systemd started, in seconds of the monotonic clock, which a container shares with its host."""
        return int(self._get(_SYSTEMD, "UserspaceTimestampMonotonic")) / 1_000_000

    def inhibit_delay_max(self) -> float:
        """Maximum number of seconds that delay locks may delay a shutdown or sleep."""
        return int(self._get(_LOGIN, "InhibitDelayMaxUSec")) / 1_000_000

    def logind(self) -> Logind:
        since = lock_times(_notes())
        listed = [
            (str(what), str(who), str(why), str(mode), int(uid), int(pid))
            for what, who, why, mode, uid, pid in self._call(_LOGIN, "ListInhibitors")
        ]
        return Logind(
            boot_id=_BOOT_ID.read_text(encoding="ascii").strip(),
            preparing_for_shutdown=bool(self._get(_LOGIN, "PreparingForShutdown")),
            inhibitors=tuple(
                Inhibitor(what, who, why, mode, uid, pid, since.get((str(pid), who, why)))
                for what, who, why, mode, uid, pid in listed
            ),
        )

    def unit_of(self, pid: int) -> str | None:
        """The unit that a process belongs to; ``None`` if there is none."""
        try:
            path = self._call(_SYSTEMD, "GetUnitByPID", "u", dbus.UInt32(pid))
            return str(self._get((_SYSTEMD[0], str(path), _UNIT), "Id"))
        except BusFailure:
            return None

    def slot(self, unit: str) -> Slot:
        """Whether a unit exists and is one of this collection, and which lock it holds."""
        path = str(self._call(_SYSTEMD, "LoadUnit", "s", unit))
        found = self._call((_SYSTEMD[0], path, _PROPERTIES), "GetAll", "s", _UNIT)
        if found["LoadState"] == "not-found":
            return Slot(unit)
        state = f"{found['LoadState']}, {found['ActiveState']}, {found['FragmentPath'] or 'without a file'}"
        if not found["Transient"]:
            return Slot(unit, ours=False, state=state)
        service = self._call((_SYSTEMD[0], path, _PROPERTIES), "GetAll", "s", _SERVICE)
        if service["SyslogIdentifier"] != _MARK:
            return Slot(unit, ours=False, state=state)
        pid = int(service["MainPID"])
        lock = next((item for item in self.logind().inhibitors if pid and item.pid == pid), None)
        return Slot(unit, ours=True, lock=lock, state=state)

    def service(self, unit: str) -> Service:
        """A service, running or not; one that does not exist has neither process nor command."""
        path = str(self._call(_SYSTEMD, "LoadUnit", "s", unit))
        found = self._call((_SYSTEMD[0], path, _PROPERTIES), "GetAll", "s", _SERVICE)
        environment = [str(item) for item in found.get("Environment", [])]
        for file, _optional in found.get("EnvironmentFiles", []):
            environment += _assignments(Path(str(file)))
        commands = found.get("ExecStart", [])
        return Service(
            pid=int(found.get("MainPID", 0)),
            started=int(found.get("ExecMainStartTimestampMonotonic", 0)) / 1_000_000,
            command=tuple(str(word) for word in commands[-1][1]) if commands else (),
            environment=dict(item.split("=", 1) for item in environment if "=" in item),
        )

    # -- changes

    def try_lock(self, lock: Lock) -> None:
        """Take a lock and release it at once, to learn whether logind refuses it.

        Raises:
            BusFailure: logind refuses the lock.
        """
        found = self._call(_LOGIN, "Inhibit", "ssss", ":".join(lock.what), lock.name, lock.why, lock.mode)
        os.close(found.take())

    def start(self, unit: str, lock: Lock) -> None:
        """Start a unit that takes and holds a lock."""
        command = [sys.executable, "-I", "-c", inspect.getsource(lock_holder)]
        asked = lock_holder.encode(":".join(lock.what), lock.name, lock.why, lock.mode)
        properties: dict[str, Any] = {
            "Description": f"holdfast lock {lock.name}",
            "SyslogIdentifier": _MARK,
            "CollectMode": "inactive-or-failed",
            # The unit ends only when it is stopped by name, or with the system.
            "IgnoreOnIsolate": True,
            "Type": "notify",
            "NotifyAccess": "main",
            # The old lock and, for a moment, the new one that replaces it.
            "FileDescriptorStoreMax": dbus.UInt32(2),
            "Restart": "always",
            "RestartUSec": dbus.UInt64(100_000),
            "StartLimitIntervalUSec": dbus.UInt64(0),
            "OOMScoreAdjust": dbus.Int32(-1000),
            "Environment": dbus.Array([f"{lock_holder.VARIABLE}={asked}"], signature="s"),
            "ExecStart": dbus.Array(
                [dbus.Struct((command[0], dbus.Array(command, signature="s"), False))], signature="(sasb)"
            ),
        }
        pairs = [dbus.Struct((name, value), signature="sv") for name, value in properties.items()]
        self._call(_SYSTEMD, "StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "fail", pairs, [])

    def reload_logind(self) -> None:
        """Make logind read its files again, as the kubelet does; logind keeps its locks."""
        self._call(_SYSTEMD, "KillUnit", "ssi", "systemd-logind.service", "main", dbus.Int32(signal.SIGHUP))

    def stop(self, unit: str) -> None:
        """Stop a unit, and reset it if it failed."""
        for method, arguments in (("StopUnit", (unit, "replace")), ("ResetFailedUnit", (unit,))):
            try:
                self._call(_SYSTEMD, method, "s" * len(arguments), *arguments)
            except BusFailure as error:
                if error.name != "org.freedesktop.systemd1.NoSuchUnit":
                    raise


def _assignments(file: Path) -> list[str]:
    """The assignments in an environment file. Continued lines and escapes are not supported."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    pairs = [line.strip().split("=", 1) for line in lines if "=" in line and not line.lstrip().startswith(("#", ";"))]
    return [f"{key.strip()}={value.strip().strip(_QUOTES)}" for key, value in pairs]


def _notes() -> Iterator[str]:
    """Lines for :func:`lock_times` from logind's own files, which only root can read."""
    for path in _NOTES.glob("*"):
        with suppress(OSError):
            if path.is_file():
                yield str(int(path.stat().st_mtime))
                yield from path.read_text(encoding="utf-8", errors="replace").splitlines()

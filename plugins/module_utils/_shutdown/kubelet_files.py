# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a node's kubelet has its configuration, and what it says about a shutdown. Runs on the node.

Source: cmd/kubelet/app in Kubernetes 1.36: drop-ins are merged over the main file as JSON merge patches, in the order
of filepath.WalkDir, which enters subdirectories and follows no link to one.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._api.errors import MissingLibrary
from .._logind.bus import NodeBus, Service
from .grace_rules import BY_PRIORITY, KEYS
from .kubelet_edit_rules import documents
from .kubelet_rules import Kubelet, Settings, expand, is_kubelet, places
from .logind_files import is_ours

try:
    import yaml

    IMPORT_ERROR = ""
except ImportError:
    IMPORT_ERROR = traceback.format_exc()

_KIND = ("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration")
_PROC = Path("/proc")
# Index in /proc/PID/stat, counted after the name.
_START_TIME = 19


def kubelet_of(bus: NodeBus, params: Mapping[str, Any]) -> Kubelet:
    """Return the kubelet that the options of a module name."""
    unit = params["kubelet_unit"]
    given = {name: params.get(f"kubelet_{name}") for name in ("config", "config_dir", "root_dir")}
    return find_kubelet(bus, unit if "." in unit else f"{unit}.service", given)


def find_kubelet(bus: NodeBus, unit: str, given: Mapping[str, str | None]) -> Kubelet:
    """Return the kubelet of a unit, from the command line that it runs with; else from the one that would start it.

    Args:
        bus: The node's system bus.
        unit: Name of its unit.
        given: Paths that the user gives instead: ``config``, ``config_dir``, ``root_dir``.
    """
    service = bus.service(unit)
    pid = _kubelet_below(service.pid) or service.pid
    command = _command_of(pid, service)
    said = {name: value for name, value in given.items() if value}
    found = {**places(command, _directory(pid)), **said}
    embedded = not is_kubelet(command)
    known = not embedded or bool(said.keys() & {"config", "config_dir"})
    return Kubelet(unit, pid, _started(pid, service), **found, known=known, embedded=embedded)


def read_settings(config: str, config_dir: str, *, embedded: bool = False) -> Settings:
    """Read the main file and the drop-ins as a kubelet does.

    Args:
        config: The main file; empty if there is none.
        config_dir: The directory of drop-ins; empty if there is none.
        embedded: Whether the kubelet is a part of another program.

    Raises:
        MissingLibrary: PyYAML is not installed.
    """
    if IMPORT_ERROR:
        raise MissingLibrary(
            "The Python library yaml is needed to read the kubelet's configuration, and "
            f"{sys.executable or 'this Python'} does not have it. Install the package python3-yaml (Debian, Ubuntu: "
            "apt install python3-yaml; RHEL and its derivatives: dnf install python3-pyyaml), or set "
            "ansible_python_interpreter to the distribution's own Python.",
            IMPORT_ERROR,
        )
    values: dict[str, Any] = {}
    set_by: dict[str, str] = {}
    troubles: list[tuple[str, str]] = []
    drop_ins = list(_drop_ins(config_dir, troubles))
    for path in ([config] if config else []) + drop_ins:
        for key, value in _content(path, troubles).items():
            if key in KEYS:
                values[key], set_by[key] = value, path
                if value is None and path == config and key != BY_PRIORITY:
                    troubles.append((path, f"sets {key} to null"))
    if embedded:
        # K3s writes files into the directory at each start, which are then younger than its process.
        changed, changed_file = _changed([config, *(path for path in drop_ins if is_ours(os.path.basename(path)))])
    else:
        # The time of a directory shows that files were removed.
        changed, changed_file = _changed([config, config_dir, *map(os.path.dirname, drop_ins), *drop_ins])
    there = {key: value for key, value in values.items() if value is not None}
    return Settings(there, {key: set_by[key] for key in there}, tuple(drop_ins), tuple(troubles), changed, changed_file)


def _drop_ins(config_dir: str, troubles: list[tuple[str, str]]) -> Iterator[str]:
    if not config_dir:
        return
    if os.path.islink(config_dir):
        troubles.append((config_dir, "is a link, which the kubelet does not follow: it reads no drop-ins"))
    elif os.path.isdir(config_dir):
        yield from _walk(config_dir)
    else:
        troubles.append((config_dir, "is not a directory"))


def _walk(folder: str) -> Iterator[str]:
    for name in sorted(os.listdir(folder), key=os.fsencode):
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            yield from _walk(path)
        elif name.endswith(".conf"):
            yield path


def _content(path: str, troubles: list[tuple[str, str]]) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = next(documents(file.read()), None)
    except (OSError, ValueError, yaml.YAMLError) as error:
        troubles.append((path, f"can't be read: {error}"))
        return {}
    if not isinstance(found, dict) or (found.get("apiVersion"), found.get("kind")) != _KIND:
        troubles.append((path, f"does not have apiVersion {_KIND[0]} and kind {_KIND[1]}"))
        return {}
    return found


def _changed(paths: Sequence[str]) -> tuple[float, str]:
    """Return time and path of the last change."""
    # Not the modification time: a file that was moved here keeps it, and it can be set to any time.
    found = [(os.stat(path).st_ctime, path) for path in paths if path and os.path.exists(path)]
    # A later time than the present is from before the clock was set back. No restart would be late enough for it.
    return max((item for item in found if item[0] <= time.time()), default=(0.0, ""))


def _kubelet_below(pid: int) -> int:
    """Return the kubelet that a unit's main process, if it is no kubelet, has started; 0 if there is none."""
    if not pid or is_kubelet(_command_line(pid)):
        return 0
    children = [int(child) for path in (_PROC / str(pid)).glob("task/*/children") for child in _words(path)]
    return next((child for child in children if is_kubelet(_command_line(child))), 0)


def _started(pid: int, service: Service) -> float | None:
    """Return the start time by the present clock: the clock may have been set since."""
    if not pid:
        return None
    if pid == service.pid:
        return time.time() - (time.monotonic() - service.started)
    ticks = _words(_PROC / str(pid) / "stat")
    if not ticks:
        return None
    since_boot = int(ticks[_START_TIME]) / os.sysconf("SC_CLK_TCK")
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot)


def _words(path: Path) -> list[str]:
    """Return the fields of a process's file, without the name, which may have spaces; none if the process is gone."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _command_of(pid: int, service: Service) -> list[str]:
    """Return the command line of the process; the unit's command line if it has not started yet.

    Before its start, the process has the name ``(kubelet)``, or since systemd 254 the command line of systemd-executor.
    A kubelet that refuses its configuration is started again and again, and is often seen like that.
    """
    running, declared = _command_line(pid), expand(service.command, service.environment)
    executed = is_kubelet(running) and not running[0].startswith("(")
    return declared if not running or (is_kubelet(declared) and not executed) else running


def _command_line(pid: int) -> list[str]:
    try:
        text = (_PROC / str(pid) / "cmdline").read_text(encoding="utf-8", errors="surrogateescape") if pid else ""
    except OSError:
        return []
    return text.split("\0")[:-1]


def _directory(pid: int) -> str:
    try:
        return os.readlink(_PROC / str(pid) / "cwd") if pid else "/"
    except OSError:
        return "/"

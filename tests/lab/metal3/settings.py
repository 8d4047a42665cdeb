# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long things take, and what goes wrong: one host's settings in the lab. No I/O but their own file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Times:
    """In seconds. The defaults are metal3's own."""

    # Until the next reconciliation of a host whose power is as wanted.
    requeue: float = 60.0
    # Until the next look at a change under way, or the next request to an Ironic that was busy.
    short_retry: float = 3.0
    # How long the machine may take to shut itself down.
    soft_timeout: float = 180.0
    # After the first error; doubled with each further one, less up to half of it by chance.
    backoff: float = 120.0
    # Until the next reconciliation of a detached host.
    detached: float = 600.0
    # Until missing credentials are looked up again.
    credentials: float = 10.0

    @classmethod
    def quick(cls) -> Times:
        """Return times for tests that don't measure them."""
        return cls(requeue=1.0, short_retry=0.2, soft_timeout=5.0, backoff=2.0, detached=2.0, credentials=1.0)


@dataclass(frozen=True)
class Faults:
    """What goes wrong with one host and its management controller (BMC)."""

    # The changes that the BMC refuses: "power on", "power off", "soft power off", "rebooting", "soft rebooting".
    refused: tuple[str, ...] = ()
    # This many changes fail in all, then they work.
    flaky: int = 0
    # Seconds from the request to the BMC's act.
    slow: float = 0.0
    # The reported power never changes, whatever happens.
    stale: bool = False
    # The machine ignores the power button, so a soft power-off never ends.
    soft_ignored: bool = False
    # The BMC has no soft power-off.
    soft_unsupported: bool = False
    # The BMC does not answer.
    unreachable: bool = False
    # This many requests meet a node that Ironic is busy with.
    locked: int = 0
    # The power that the BMC reports, true or not: "on" or "off".
    says: str = ""
    # The secret with the BMC's credentials is missing.
    no_credentials: bool = False


CHANGES = ("power on", "power off", "soft power off", "rebooting", "soft rebooting")


@dataclass(frozen=True)
class Settings:
    """The settings of one host. ``node`` is its node of the lab, real or simulated."""

    node: str
    times: Times = field(default_factory=Times)
    faults: Faults = field(default_factory=Faults)

    def but(self, **faults: Any) -> Settings:
        """Return a copy with these faults changed; ``refused`` may be True for every change."""
        if "refused" in faults:
            given = faults["refused"]
            faults["refused"] = (CHANGES if given else ()) if isinstance(given, bool) else tuple(given)
        return replace(self, faults=replace(self.faults, **faults))

    def save(self, path: Path) -> None:
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(self), indent=1))
        temporary.rename(path)


def load(path: Path) -> Settings | None:
    """Return None where the host is not known here."""
    try:
        data = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    faults = {**data["faults"], "refused": tuple(data["faults"]["refused"])}
    unknown = {*data["times"]} - {item.name for item in fields(Times)}
    if unknown:
        raise ValueError(f"{path}: unknown times {sorted(unknown)}")
    return Settings(data["node"], Times(**data["times"]), Faults(**faults))


def path_of(directory: Path, namespace: str, host: str) -> Path:
    # A namespace's name can't contain a dot.
    return directory / f"{namespace}.{host}.json"

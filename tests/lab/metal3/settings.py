# Copyright (c) 2026 holdfast contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""How long things take, and what goes wrong: settings of one host in the lab. No I/O but the file they are kept in."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Times:
    """Seconds. The defaults are metal3's own."""

    # Until a host whose power is as wanted is looked at again.
    requeue: float = 60.0
    # Until a change under way is looked at again, or one that Ironic had no time for is asked for again.
    short_retry: float = 3.0
    # What the machine has to end by itself.
    soft_timeout: float = 180.0
    # After the first error; doubled with each further one, less up to half of it by chance.
    backoff: float = 120.0
    # Until a detached host is looked at again.
    detached: float = 600.0
    # Until credentials that were missing are looked for again.
    credentials: float = 10.0

    @classmethod
    def quick(cls) -> Times:
        """For tests that don't measure them."""
        return cls(requeue=1.0, short_retry=0.2, soft_timeout=5.0, backoff=2.0, detached=2.0, credentials=1.0)


@dataclass(frozen=True)
class Faults:
    """What goes wrong with one host and its management controller (BMC)."""

    # The BMC refuses changes to these: "power on", "power off", "soft power off", "rebooting", "soft rebooting".
    refused: tuple[str, ...] = ()
    # So many changes fail in all, then they work.
    flaky: int = 0
    # Seconds from the request to the BMC's act.
    slow: float = 0.0
    # What is known of the power stays as it is, whatever happens.
    stale: bool = False
    # The machine does not hear of the power button, so that a soft power-off never ends.
    soft_ignored: bool = False
    # The BMC knows no soft power-off.
    soft_unsupported: bool = False
    # The BMC does not answer.
    unreachable: bool = False
    # So many requests meet a node that Ironic is busy with.
    locked: int = 0
    # What the BMC says of the power, true or not: "on" or "off".
    says: str = ""
    # The secret with the BMC's credentials is missing.
    no_credentials: bool = False


CHANGES = ("power on", "power off", "soft power off", "rebooting", "soft rebooting")


@dataclass(frozen=True)
class Settings:
    """Of one host. ``node`` is the lab's node that it is, real or simulated."""

    node: str
    times: Times = field(default_factory=Times)
    faults: Faults = field(default_factory=Faults)

    def but(self, **faults: Any) -> Settings:
        """With these faults changed and the others as they are; ``refused`` may be True for every change."""
        if "refused" in faults:
            given = faults["refused"]
            faults["refused"] = (CHANGES if given else ()) if isinstance(given, bool) else tuple(given)
        return replace(self, faults=replace(self.faults, **faults))

    def save(self, path: Path) -> None:
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(self), indent=1))
        temporary.rename(path)


def load(path: Path) -> Settings | None:
    """None where the host is not known here."""
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
    # A dot can't be in a namespace's name.
    return directory / f"{namespace}.{host}.json"

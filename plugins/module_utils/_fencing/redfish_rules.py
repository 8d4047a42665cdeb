# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about a Redfish ComputerSystem: its power state, and where and how to request a change of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from .._api.errors import HoldfastError

ON, OFF = "On", "Off"
# The reset types for each change, the best first.
RESETS = {OFF: ("ForceOff",), ON: ("On", "ForceOn")}
_SERVICE = "/redfish/"
_ACTION = "#ComputerSystem.Reset"
_Part = TypeVar("_Part", str, list[Any], dict[str, Any])


class BmcFailure(HoldfastError):
    """The BMC did not answer, or gave an unexpected answer."""

    kind = "bmc"


@dataclass(frozen=True)
class System:
    """A ComputerSystem as its BMC describes it.

    Attributes:
        uri: The URL that it was read from.
        power_state: Its PowerState.
        uuid: Its UUID; empty if there is none.
        target: The target of its own reset action, as it names it; empty if there is none.
        resets: The reset types that it allows; empty if it does not say.
    """

    uri: str
    power_state: str
    uuid: str
    target: str = ""
    resets: tuple[str, ...] = ()


def read(uri: str, content: Mapping[str, Any]) -> System:
    """Return the system that the content of its URL describes.

    Raises:
        BmcFailure: The content describes no system.
    """
    state = content.get("PowerState")
    if not isinstance(state, str):
        raise BmcFailure(f"{uri} has no PowerState. Give the URL of the system: https://BMC/redfish/v1/Systems/ID.")
    action = _part(uri, _part(uri, content, "Actions", dict), _ACTION, dict)
    resets = _part(uri, action, "ResetType@Redfish.AllowableValues", list)
    # Without a kind that can be read, it does not mean that all are allowed.
    kinds = tuple(kind if isinstance(kind, str) else "(no text)" for kind in resets)
    return System(uri, state, _part(uri, content, "UUID", str), _part(uri, action, "target", str), kinds)


def _part(uri: str, content: Mapping[str, Any], name: str, wanted: type[_Part]) -> _Part:
    """Return a part of an answer; an empty one if it is not there."""
    found = content.get(name)
    if not isinstance(found, (wanted, type(None))):
        raise BmcFailure(
            f"{uri} has {name} of an unexpected type: {type(found).__name__}. Check that it is the URL of the system, "
            "and update the firmware of the BMC, or use another way to switch the node off."
        )
    return wanted() if found is None else found


def reset_url(system: System) -> str:
    """Return the URL that changes the power of a system.

    It is the target that the system names, at the origin that the system was read from, because a BMC behind a gateway
    does not know its own name and path prefix there.

    Raises:
        BmcFailure: It names no target, or one that does not belong to it.
    """
    parts = urlsplit(system.uri)
    own, prefix = parts.path.rstrip("/"), parts.path.rpartition(_SERVICE)[0]
    try:
        path = urlsplit(system.target).path
    except ValueError:
        path = ""
    if path and not path.startswith("/"):
        path = f"{own}/{path}"
    elif path.startswith(_SERVICE):
        path = prefix + path
    if not path.startswith(f"{own}/") or ".." in path.split("/"):
        problem = f"names {system.target}, which does not belong to it" if system.target else "names none"
        raise BmcFailure(
            f"The power of {system.uri} can't be changed: as the target of {_ACTION}, it {problem}. Use another way to "
            "switch the node off."
        )
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def reset_type(system: System, wanted: str) -> str:
    """Return the reset type for a change to a power state.

    Raises:
        BmcFailure: The system does not allow it.
    """
    names = RESETS[wanted]
    found = next((name for name in names if not system.resets or name in system.resets), None)
    if found is None:
        raise BmcFailure(
            f"{system.uri} allows no reset of type {' or '.join(names)}, only {', '.join(system.resets)}. Use another "
            "way to switch the node off."
        )
    return found

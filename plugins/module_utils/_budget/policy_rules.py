# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many nodes of a group may be unavailable."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._api.errors import InvalidInput

_SHARE = re.compile(r"([0-9]+)%")
_NUMBER = re.compile(r"[0-9]+")


def check_amount(value: str | int, option: str) -> str:
    """The canonical form of a number or share: ``"3"`` or ``"10%"``.

    Raises:
        InvalidInput: The value is neither a whole number of 0 or more nor a share of 0 % to 100 %.
    """
    text = str(value).strip()
    share = _SHARE.fullmatch(text)
    if share and int(share.group(1)) <= 100:
        return f"{int(share.group(1))}%"
    if _NUMBER.fullmatch(text):
        return str(int(text))
    raise InvalidInput(f'{option} must be a whole number or a share such as "10%", it is "{value}".', option=option)


def amount(value: str, total: int) -> int:
    """The number of nodes that a value means. A share of ``total`` is rounded down to at least 1, unless it is 0 %."""
    share = _SHARE.fullmatch(value)
    if not share:
        return int(value)
    percent = int(share.group(1))
    return max(1, total * percent // 100) if percent else 0


@dataclass(frozen=True)
class Policy:
    """The policy of a group: which nodes belong to it, and how many of them may be unavailable.

    Attributes:
        selector: Label selector of the Nodes of the group; empty for all Nodes.
        max_unavailable: Number or share of these Nodes that may be unavailable; 0 pauses the group.
        topology_key: Label that names a node's domain, for example ``topology.kubernetes.io/zone``.
        max_unavailable_per_domain: Number of nodes that may be unavailable in one domain; ``None`` for no such limit.
        max_domains: Number of domains that may have unavailable nodes at the same time; ``None`` for no limit.
    """

    selector: str = ""
    max_unavailable: str = "1"
    topology_key: str = ""
    max_unavailable_per_domain: int | None = None
    max_domains: int | None = None

    def to_data(self) -> dict[str, Any]:
        return {
            "selector": self.selector,
            "max_unavailable": self.max_unavailable,
            "topology_key": self.topology_key,
            "max_unavailable_per_domain": self.max_unavailable_per_domain,
            "max_domains": self.max_domains,
        }

    @staticmethod
    def from_data(data: dict[str, Any]) -> Policy:
        return Policy(
            selector=data.get("selector") or "",
            max_unavailable=str(data.get("max_unavailable", "1")),
            topology_key=data.get("topology_key") or "",
            max_unavailable_per_domain=data.get("max_unavailable_per_domain"),
            max_domains=data.get("max_domains"),
        )

    def differs(self, other: Policy) -> list[str]:
        """Names of the options in which two policies differ."""
        mine, theirs = self.to_data(), other.to_data()
        return [key for key in mine if mine[key] != theirs[key]]


def policy_of(params: Mapping[str, Any]) -> Policy:
    """The policy in the options of ``reboot_slot``, or in the variables of the role.

    Raises:
        InvalidInput: Values that are out of range, or that need another one.
    """
    per_domain = params.get("max_unavailable_per_domain")
    domains = params.get("max_domains")
    if (per_domain is not None or domains is not None) and not params.get("topology_key"):
        raise InvalidInput(
            "max_unavailable_per_domain and max_domains need topology_key, the label that names a node's domain."
        )
    for name, value in (("max_unavailable_per_domain", per_domain), ("max_domains", domains)):
        if value is not None and value < 1:
            raise InvalidInput(f"{name} must be 1 or more, it is {value}.")
    for name in ("max_failed", "unhealthy_grace", "pause"):
        if (params.get(name) or 0) < 0:
            raise InvalidInput(f"{name} must be 0 or more, it is {params[name]}.")
    return Policy(
        selector=params.get("selector") or "",
        max_unavailable=check_amount(params["max_unavailable"], "max_unavailable"),
        topology_key=params.get("topology_key") or "",
        max_unavailable_per_domain=per_domain,
        max_domains=domains,
    )

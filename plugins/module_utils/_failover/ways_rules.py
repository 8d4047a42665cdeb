# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about several ways to switch a machine off, which are tried in their order.

The next way is tried only if nothing was sent to a machine: after a request whose effect is unknown, another way could
hide that a second machine was requested to switch off, and the recovery would not switch that one on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Failures of the way: its BMC, its program, its object. Other failures are of the node, the claim or the cluster.
_OF_THE_WAY = ("bmc", "command", "not_found", "invalid_input", "timed_out")
# Reasons of refusals that concern the machine of the way: it is not the node's, or it would not act.
_OF_THE_MACHINE = ("other_host", "inert", "foreign", "node_unknown")
# The node shuts down, maybe by the request of an earlier run. Another way would interrupt the shutdown.
_SHUTS_DOWN = "shutting_down"
# The host is off, and its key keeps it off until the recovery. Only the time since when is unknown.
_KEPT_OFF = "not_datable"
# What a key of metal3 leaves in the record.
KEY_FACTS = ("host", "namespace", "key", "mode")


def may_try_next(error: str, fields: Mapping[str, Any]) -> bool:
    """Return whether another way may be tried after a failure.

    Args:
        error: The kind of the error.
        fields: Its fields; ``sent`` says whether a request was sent, or may have been.
    """
    if error == _KEPT_OFF:
        return True
    if fields.get("sent", True) or fields.get("why") == _SHUTS_DOWN:
        return False
    return error in _OF_THE_WAY or (error == "refused" and fields.get("why") in _OF_THE_MACHINE)


def facts_after(error: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a failed way that the next one takes back: a key that was not written has no host."""
    return {} if error == _KEPT_OFF else {name: None for name in KEY_FACTS if name in facts}


def key_after(error: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the key that a failed way leaves on its host, which the recovery has to remove."""
    # A soft power-off may have become a hard one, so the mode of the way may be old.
    return {name: facts[name] for name in ("host", "namespace", "key") if name in facts} if error == _KEPT_OFF else {}


def order(ways: Sequence[str], begun: str, *, sent: bool) -> tuple[str, ...]:
    """Return the ways that a run tries.

    Args:
        ways: Those that the user gives, in their order.
        begun: The way with which an earlier run began; empty if there is none.
        sent: Whether that run may have sent a request. Then only the user can choose another way.
    """
    return (begun,) if sent and begun in ways else tuple(ways)


def told(attempts: Iterable[Mapping[str, str]]) -> str:
    """Return sentences about the ways that failed before, with a space behind; empty without any."""
    return "".join(f"{item['method']} failed: {item['why']} " for item in attempts)

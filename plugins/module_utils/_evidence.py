# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about evidence: why a node is believed to be off, since when that is known, and of which node it speaks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ._clock import from_text, seconds_between
from ._errors import InvalidInput, Refused

BARE_METAL_HOST, REDFISH, COMMAND, ATTESTATION = "BareMetalHost", "Redfish", "Command", "Attestation"
KINDS = (BARE_METAL_HOST, REDFISH, COMMAND, ATTESTATION)

# Seconds. A controller's clock, which a person may have read the time from, may be a little ahead.
FRESH, AHEAD = 300.0, 5.0
_OUTPUT = 1000

# Without these there is nothing to look at again, or nobody who vouches.
_NEEDED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    BARE_METAL_HOST: (("host",), ("namespace",), ("key",), ("at",)),
    REDFISH: (("uri",),),
    COMMAND: (("command", "argv"),),
    ATTESTATION: (("by",), ("statement",), ("at",)),
}
# What is kept of what was given. Commands and credentials are not: whoever may read Nodes could read them.
_KEPT: Mapping[str, tuple[str, ...]] = {
    BARE_METAL_HOST: ("host", "namespace", "uid", "key", "since"),
    REDFISH: ("uri",),
    COMMAND: (),
    ATTESTATION: ("by", "statement"),
}

# "Chassis Power is off" of ipmitool, or what a script prints. "is not off" is none of these.
_SAYS_OFF = re.compile(r"(?:^|\bis |[:=]\s*)off\.?$", re.IGNORECASE)


def check(evidence: Mapping[str, Any], *, node: str, boot_id: str, now: datetime) -> None:
    """Refuse evidence that is incomplete, of another node, of another boot, or old.

    Args:
        node: The Node that is said to be off.
        boot_id: Its boot ID as it is now.
        now: The time by the clock of the API server that has the Node.

    Raises:
        InvalidInput: Something is missing, or a time is none.
        Refused: It does not prove that this node is off now.
    """
    kind = evidence["kind"]
    for names in _NEEDED[kind]:
        if not any(evidence.get(name) for name in names):
            raise InvalidInput(
                f"Evidence of kind {kind} for node {node} needs {' or '.join(names)}. Without it there is nothing "
                "that could be looked at again, or nobody who vouches for it.",
                node=node,
            )
    if evidence.get("node") and evidence["node"] != node:
        raise _refused(node, f"it is of node {evidence['node']}", "Give evidence of this node.", "other_host")
    if evidence.get("boot_id") and evidence["boot_id"] != boot_id:
        raise _refused(
            node,
            f"the node has another boot ID ({boot_id}) than then ({evidence['boot_id']}): it was on again since",
            "Look at the node; if it is down again, switch it off and prove that anew.",
            "new_boot",
        )
    if evidence.get("at"):
        _check_age(node, str(evidence["at"]), now)


def _check_age(node: str, at: str, now: datetime) -> None:
    try:
        age = seconds_between(from_text(at), now)
    except ValueError as error:
        raise InvalidInput(
            f'evidence.at "{at}" for node {node} is no time; write it as 2026-11-21T09:00:00Z.', node=node
        ) from error
    if age > FRESH:
        raise _refused(
            node, f"it is {age:.0f} s old, and at most {FRESH:.0f} s is fresh", "Prove again that it is off.", "old"
        )
    if age < -AHEAD:
        raise _refused(
            node,
            f"it is of {-age:.0f} s from now, by the API server's clock",
            "Give the time at which it was seen to be off.",
            "old",
        )


def _refused(node: str, why: str, way_out: str, code: str) -> Refused:
    return Refused(f"The evidence does not prove that node {node} is off: {why}. {way_out}", node=node, why=code)


def not_true(node: str, why: str, code: str = "not_off") -> Refused:
    """Looked at again, it is not so, or not any more."""
    return _refused(node, why, "Nothing was changed. Switch the node off, and prove that it is.", code)


def off_by_command(status: int, output: str) -> bool:
    """Whether a verify command says that the node is off.

    The exit status alone could mean anything: fence agents end with 0 where a machine is on.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return status == 0 and bool(lines) and bool(_SAYS_OFF.search(lines[-1]))


def kept_output(output: str) -> str:
    """So much of a command's output as an annotation may have; the end of it, where the verdict is."""
    text = output.strip()
    return text if len(text) <= _OUTPUT else f"…{text[-_OUTPUT:]}"


def record(
    evidence: Mapping[str, Any], seen: Mapping[str, Any], *, node: str, boot_id: str, looked_at: str, run: str
) -> dict[str, Any]:
    """What stays on the Node: what was given, and what was seen when it was looked at again."""
    kept = {name: evidence.get(name) for name in _KEPT[evidence["kind"]]}
    return {
        "kind": evidence["kind"],
        "node": node,
        "boot_id": boot_id,
        "at": evidence.get("at") or looked_at,
        "looked_at": looked_at,
        "run": run,
        **{name: value for name, value in kept.items() if value},
        **seen,
    }

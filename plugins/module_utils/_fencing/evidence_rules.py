# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about evidence: why a node counts as off, since when that is known, and which node it is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from .._api import node_rules
from .._api.errors import InvalidInput, Refused
from .._api.objects import Object
from .._api.times import from_text, seconds_between, to_text
from .._shared.bounds import some

BARE_METAL_HOST, REDFISH, COMMAND, ATTESTATION = "BareMetalHost", "Redfish", "Command", "Attestation"
FENCE_AGENT = "FenceAgent"
KINDS = (BARE_METAL_HOST, REDFISH, FENCE_AGENT, COMMAND, ATTESTATION)

# The reason of a refusal after which the same evidence may be good a moment later.
NOT_OFF = "not_off"

# Seconds. A clock that a person read may be a little ahead of the API server's, or behind it.
FRESH, AHEAD, BEHIND = 300.0, 5.0, 5.0
_OUTPUT = 1000

# Without these, there is nothing to check again, or no person who vouches.
_NEEDED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    BARE_METAL_HOST: (("host",), ("namespace",), ("key",), ("at",)),
    REDFISH: (("uri",),),
    FENCE_AGENT: (("agent",),),
    COMMAND: (("command", "argv"),),
    ATTESTATION: (("by",), ("statement",), ("at",)),
}
# The fields that the record keeps. It keeps no commands and credentials: everyone who may read Nodes could read them.
_KEPT: Mapping[str, tuple[str, ...]] = {
    BARE_METAL_HOST: ("host", "namespace", "uid", "key", "since"),
    REDFISH: ("uri",),
    FENCE_AGENT: (),
    COMMAND: (),
    ATTESTATION: ("by", "statement"),
}

# "off", "Chassis Power is off" of ipmitool, "Status: OFF" of fence agents, "power=off" of a script.
_VERDICT = re.compile(r"(?:(?P<subject>[^,;!?]+?)(?:\s+is\s+|\s*[:=]\s*))?off\.?", re.IGNORECASE)
_SUBJECT_WORDS = 6
# The text before the verdict must not negate it, doubt it, or be about something else.
_DOUBTS = (
    "on not no never neither nor none cannot can could may might maybe perhaps possibly probably likely unlikely "
    "presumably supposedly apparently if whether unless until when while once or but that so sure check ensure verify "
    "think guess hope believe assume assumed assuming suppose expect expected wanted desired requested target should "
    "must would will was were before last previous tell know unknown unclear undefined unable error failed failure "
    "fails timeout timed nobody nothing false pending is "
    "fan fans led leds light lamp beacon identify locator alarm lockout policy"
)

# A name of a Node, or a word, in the text that a person writes.
_WORD = re.compile(r"[\w.-]+")

# UUIDs that firmware reports if it was never given one.
_NO_UUIDS = frozenset(
    {
        UUID(int=0),
        UUID(int=2**128 - 1),
        UUID("03000200-0400-0500-0006-000700080009"),
        # The same with the bytes of the first three groups swapped.
        UUID("00020003-0004-0005-0006-000700080009"),
    }
)


def check(evidence: Mapping[str, Any], *, node: str, boot_id: str, now: datetime) -> None:
    """Refuse evidence that is incomplete, old, of another node, or of another boot.

    Args:
        node: The Node that the evidence declares off.
        boot_id: Its present boot ID.
        now: The time by the clock of the API server that holds the Node.

    Raises:
        InvalidInput: A field is missing, or a time is invalid.
        Refused: It does not prove that this node is off now.
    """
    kind = evidence["kind"]
    for names in _NEEDED[kind]:
        if not any(evidence.get(name) for name in names):
            raise InvalidInput(
                f"Evidence of kind {kind} for node {node} needs {' or '.join(names)}. Without it, there is nothing to "
                "check again, or no person who vouches.",
                node=node,
            )
    if kind == REDFISH:
        check_uri(str(evidence["uri"]), node, insecure_http=bool(evidence.get("insecure_http")))
    if evidence.get("node") and evidence["node"] != node:
        raise _refused(node, f"it is of node {evidence['node']}", "Give evidence of this node.", "other_host")
    if evidence.get("boot_id") and evidence["boot_id"] != boot_id:
        raise _refused(
            node,
            f"the node has booted since: its boot ID is {boot_id}, it was {evidence['boot_id']}",
            "Check the node; if it is down again, switch it off and give new evidence.",
            "new_boot",
        )
    if evidence.get("at"):
        _check_age(node, str(evidence["at"]), now)


def _check_age(node: str, at: str, now: datetime) -> None:
    try:
        age = seconds_between(from_text(at), now)
    except ValueError as error:
        raise InvalidInput(
            f'evidence.at "{at}" for node {node} is not a time; write it as 2026-11-21T09:00:00Z.', node=node
        ) from error
    if age > FRESH:
        raise _refused(
            node,
            f"it is {age:.0f} s old, and at most {FRESH:.0f} s are allowed",
            "Check again that the node is off, and give new evidence.",
            "old",
        )
    if age < -AHEAD:
        raise _refused(
            node,
            f"its time is {-age:.0f} s in the future, by the API server's clock",
            "Give the time at which it was seen to be off.",
            "old",
        )


def check_statement(statement: str, node: str, others: Iterable[str]) -> None:
    """Refuse a person's statement that is not about this node, or not about it alone.

    Args:
        others: The names of the cluster's Nodes.

    Raises:
        Refused: It does not name the node, or names another one.
    """
    words = {word.strip("._-") for word in _WORD.findall(statement.lower())}
    named = sorted(other for other in set(others) - {node} if other.lower() in words)
    if node.lower() not in words:
        why = f"it does not name {node}{f', but {some(named, 5)}' if named else ''}"
    elif named:
        why = f"it also names {some(named, 5)}, so it is unclear which of them was seen"
    else:
        return
    raise _refused(
        node,
        why,
        f'Write a statement about this node only, with its name as the API has it: "{node} is off, I pulled its power '
        'cords." Make sure that it is the right machine.',
        "other_node",
    )


def check_silent_since(evidence: Mapping[str, Any], *, node: str, last_sign: datetime) -> None:
    """Refuse a person's statement that is older than the kubelet's last sign of life: it is about another machine.

    All other evidence is taken at the moment of the check.

    Args:
        evidence: Evidence that ``check`` accepted.
        last_sign: When the kubelet last renewed its Lease, by the API server's clock.

    Raises:
        Refused: The kubelet gave a later sign of life.
    """
    if evidence["kind"] != ATTESTATION:
        return
    at = str(evidence["at"])
    if seconds_between(from_text(at), last_sign) <= BEHIND:
        return
    raise _refused(
        node,
        f"it is of {at}, but the node's kubelet gave a sign of life at {to_text(last_sign)} by the API server's clock, "
        "so the person may have seen another machine",
        "Nothing was changed. Check again that it is the right machine and that it is off; give the time to the "
        "second.",
        "old",
    )


def _refused(node: str, why: str, way_out: str, code: str, **more: Any) -> Refused:
    message = f"The evidence does not prove that node {node} is off: {why}. {way_out}"
    return Refused(message, node=node, why=code, **more)


def not_confirmed(
    node: str,
    why: str,
    code: str = NOT_OFF,
    way_out: str = "Switch the node off, and give evidence of that.",
    **more: Any,
) -> Refused:
    """Return the refusal of evidence that a new check does not confirm."""
    return _refused(node, why, f"Nothing was changed. {way_out}", code, **more)


def check_uri(uri: str, node: str = "", *, insecure_http: bool = False) -> None:
    """Refuse a URI with credentials, because it is stored and shown, and one over which others can read credentials.

    Raises:
        InvalidInput: The URI is one of these, or is no URL.
    """
    about = f" for node {node}" if node else ""
    try:
        parts = urlsplit(uri)
        usable = parts.scheme in ("https", "http") and bool(parts.hostname)
    except ValueError:
        parts, usable = None, False
    if "@" in (parts.netloc if parts and usable else uri):
        raise InvalidInput(
            f"evidence.uri{about} contains a user or a password, but the URI is stored on the Node and shown. Leave "
            "them out, and use the options username and password."
        )
    if not usable:
        raise InvalidInput(
            f"evidence.uri {uri}{about} is not a URL. Give the URL of the system: https://BMC/redfish/v1/Systems/ID."
        )
    if parts and parts.scheme != "https" and not insecure_http:
        raise InvalidInput(
            f"evidence.uri {uri}{about} is not https: the password would cross the network as plain text, and anyone "
            "could answer in place of the BMC. Give an https URL, or allow it with insecure_http (in the role with "
            "failover_redfish_insecure_http)."
        )


# -- of which machine -------------------------------------------------------------------------------------------------


def check_system(node: str, system: str, *, uri: str, expected: str, of_node: str) -> None:
    """Refuse a system that is another machine than the node, or that nothing identifies as the node.

    Args:
        system: UUID of the system, from the BMC.
        expected: UUID that the user gave; empty for none. It takes precedence over the UUID of the Node.
        of_node: ``status.nodeInfo.systemUUID`` of the Node.

    Raises:
        Refused: The system is not proven to be the node.
    """
    if expected:
        if not _same(system, expected):
            raise not_confirmed(
                node,
                f"{uri} is the system with UUID {system or '-'}, not {expected}",
                "other_host",
                "Give the uri of this node's system.",
            )
        return
    if not _identifies(system) or not _identifies(of_node):
        raise not_confirmed(
            node,
            f"nothing proves that {uri} is this node: the system has UUID {system or '-'}, and the Node systemUUID "
            f"{of_node or '-'}",
            "other_host",
            "Make sure that it is the right machine, and give the UUID that its BMC reports as uuid.",
        )
    if not _same(system, of_node):
        raise not_confirmed(
            node,
            f"{uri} is the system with UUID {system}, but the Node has systemUUID {of_node}",
            "other_host",
            "Give the uri of this node's system; or, if you have made sure that it is this one, the UUID that its BMC "
            "reports as uuid.",
        )


def check_no_other_node(node: str, uuid: str, nodes: Iterable[Object]) -> None:
    """Refuse the UUID of a system that is another Node, although a person may have given it.

    Args:
        nodes: The cluster's Nodes, read only if there is a UUID.

    Raises:
        Refused: Another Node has this UUID.
    """
    if other := other_node(node, uuid, nodes):
        raise not_confirmed(
            node,
            f"the UUID {uuid} is the systemUUID of node {other}",
            "other_host",
            "Give the uri of this node's system. If both machines have this UUID, use another method or another kind "
            f"of evidence. If node {other} is an earlier name of this machine, delete that Node.",
        )


def other_node(node: str, uuid: str, nodes: Iterable[Object]) -> str:
    """Return the name of another Node with this UUID, even one that identifies no machine; empty if there is none."""
    found = (node_rules.name(item) for item in nodes if _same(uuid, node_rules.system_uuid(item)))
    return next((name for name in found if name != node), "") if uuid else ""


def check_one_node(node: Object, nodes: Iterable[Object], uuid: str = "") -> None:
    """Refuse a Node whose machine is another Node, too: its name may have changed, and the other Node may be at work.

    Args:
        nodes: The cluster's Nodes.
        uuid: The UUID of the system that evidence is about, which no other Node may have; empty for none.

    Raises:
        Refused: Another Node has the same provider ID, or the same UUID of the system.
    """
    name = node_rules.name(node)
    for item in nodes:
        other = node_rules.name(item)
        if other == name:
            continue
        check_no_other_node(name, uuid, [item])
        what, way_out = _shared_identity(node, item)
        if not what:
            continue
        raise Refused(
            f"Node {name} and Node {other} may be the same machine: both have the {what}. Nothing was changed. If the "
            "name of the machine has changed, make sure which of the two Nodes is the old one, and delete that Node "
            f"(kubectl delete node). If they are two machines, {way_out}.",
            node=name,
            other=other,
            why="other_node",
        )


def _shared_identity(node: Object, other: Object) -> tuple[str, str]:
    """Return what two Nodes have that only one machine can have, and the way out if they are two; empty for nothing."""
    provider_id, uuid = node_rules.provider_id(node), node_rules.system_uuid(node)
    if provider_id and provider_id == node_rules.provider_id(other):
        return f"providerID {provider_id}", "correct the kubelet's option --provider-id of one, and delete its Node"
    if _identifies(uuid) and _same(uuid, node_rules.system_uuid(other)):
        return f"systemUUID {uuid}", "only a person can tell them apart: use attestation"
    return "", ""


def _same(one: str, other: str) -> bool:
    """Return whether two UUIDs are the same; some firmware swaps the bytes of the first three groups."""
    left, right = _uuid(one), _uuid(other)
    if left is None or right is None:
        return one.lower() == other.lower()
    return right.bytes in (left.bytes, left.bytes_le)


def _identifies(text: str) -> bool:
    return _uuid(text) not in {None, *_NO_UUIDS}


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text.strip())
    except ValueError:
        return None


# -- what a command says ----------------------------------------------------------------------------------------------


def off_by_command(status: int, output: str) -> bool:
    """Return whether a verify command reports that the node is off.

    The exit status alone is ambiguous: fence agents exit with 0 if a machine is on.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    verdict = _VERDICT.fullmatch(lines[-1]) if status == 0 and lines else None
    return verdict is not None and _plain(verdict["subject"] or "")


def _plain(subject: str) -> bool:
    words = re.findall(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*", subject.lower())
    doubted = any(word in _DOUBTS.split() or word.endswith(("n't", "n\u2019t")) for word in words)
    return len(subject.split()) <= _SUBJECT_WORDS and not doubted


def kept_output(output: str) -> str:
    """Return as much of a command's output as fits in an annotation: its end, which has the verdict."""
    text = output.strip()
    return text if len(text) <= _OUTPUT else f"…{text[-_OUTPUT:]}"


def record(
    evidence: Mapping[str, Any], seen: Mapping[str, Any], *, node: str, boot_id: str, looked_at: str, run: str
) -> dict[str, Any]:
    """Return what the Node keeps: the given evidence, and what the check saw."""
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

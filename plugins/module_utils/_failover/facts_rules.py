# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What decides about the journey of a node through a failover and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from .rules import DONE, FAIL_OVER

METAL3, REDFISH, COMMAND, ATTESTATION = "metal3", "redfish", "command", "attestation"
FENCE_AGENT = "fence_agent"
# The look before the claim.
LOOK = "look"
# Fields of the progress that are lists where a task answers them.
_TUPLES = ("doing", "then", "attempts", "runs", "pods", "volume_attachments")


@dataclass(frozen=True)
class Settings:
    """What the user asked for. Of a secret it says only whether it is given.

    Attributes:
        fence: How the machine is switched off.
        then: The other ways, which are tried in this order if nothing could be sent.
        agent: Name and plug of the fence agent.
    """

    fence: str = METAL3
    then: tuple[str, ...] = ()
    key: str = "holdfast-failover"
    bare_metal_host: str = ""
    bare_metal_host_namespace: str = ""
    soft_timeout: int = 120
    delete_node: bool = False
    force: bool = False
    ready_timeout: int = 900
    attestation_by: str = ""
    attestation_statement: str = ""
    redfish_uri: str = ""
    quorum_command: bool = False
    power_on_command: bool = False
    agent: Mapping[str, str] = field(default_factory=dict)

    @property
    def ways(self) -> tuple[str, ...]:
        """All ways to switch the machine off, in their order."""
        return (self.fence, *self.then)

    def by(self, *ways: str) -> Settings:
        """The same settings with other ways."""
        return replace(self, fence=ways[0], then=ways[1:])


def ways_of(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The ways to switch a machine off among the variables of the role: one, or a list."""
    given = settings.get("fence") or METAL3
    return (given,) if isinstance(given, str) else tuple(dict.fromkeys(given))


def settings_of(given: Mapping[str, Any]) -> Settings:
    """The settings among the variables of the role."""
    names = {item.name for item in fields(Settings)} - {"fence", "then"}
    found = Settings(**{name: value for name, value in given.items() if name in names and value is not None})
    return found.by(*ways_of(given))


@dataclass(frozen=True)
class Host:
    """A BareMetalHost that may be the node.

    Attributes:
        node: The Node that it is, as far as is known.
        why_not: Why metal3 would not switch it off; empty if it would.
        keys_for: Keys of this collection that keep it off, each with the Node that it is for.
        powered_on: What its status shows; ``None`` if it shows nothing.
    """

    name: str
    namespace: str
    node: str | None = None
    why_not: str = ""
    keys_for: tuple[tuple[str, str], ...] = ()
    powered_on: bool | None = None


@dataclass(frozen=True)
class Progress:
    """How far this run has come with a node. It is passed from task to task.

    Attributes:
        step: The next step by the Node's record when the run claimed it; empty before.
        facts: What is recorded for later steps.
        stated: What the history says of how the machine was switched off. No node can write it.
        boot_id: The boot ID of the Node when the run claimed it.
        record_boot_id: The boot ID that is failed over; ``None`` without a record.
        boot_id_before: The boot ID that must have changed when the node is back.
        maintained_by: Which other writer maintained the node when the run claimed it, as text; empty if none did.
        sent: The machine was requested to switch off, or may have been.
        under_way: There is more to do; otherwise the role skips its other steps.
        doing: The steps of the role that follow now.
        tainted: This run has seen the taint.
        runs: The runs that worked on this failover.
        boot_id_after: The boot ID of the node that is back.
        fence: How this run switches the machine off; empty before the claim.
        then: The ways that it tries next.
        attempts: The ways that failed before anything was sent, each with ``method`` and ``why``.
        taint_stays: The taint was there before the failover, and stays.
        host: Name and namespace of the BareMetalHost that is to be switched off.
        evidence: What the step that switched the machine off has proven.
        pods: What was on the node when it was declared out of service.
        volume_attachments: As pods.
    """

    node: str = ""
    direction: str = FAIL_OVER
    run: str = ""
    step: str = ""
    operation: str = ""
    exists: bool = True
    resumed: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    stated: Mapping[str, Any] = field(default_factory=dict)
    boot_id: str = ""
    record_boot_id: str | None = None
    boot_id_before: str = ""
    maintained_by: str = ""
    sent: bool = False
    under_way: bool = False
    doing: tuple[str, ...] = ()
    tainted: bool = False
    runs: tuple[str, ...] = ()
    boot_id_after: str = ""
    taint_stays: bool = False
    fence: str = ""
    then: tuple[str, ...] = ()
    attempts: tuple[Mapping[str, str], ...] = ()
    host: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    pods: tuple[Mapping[str, Any], ...] = ()
    volume_attachments: tuple[Mapping[str, Any], ...] = ()

    @property
    def claimed(self) -> bool:
        """Whether this run must leave the node in order."""
        return self.step not in ("", DONE)

    @property
    def may_be_on_already(self) -> bool:
        """Whether the node has booted since it was fenced, as far as its Node tells.

        If the machine was not proven off, a boot shows nothing: it may have happened before, or on another machine.
        """
        never_proven = not self.boot_id_before and "evidence" not in self.facts
        return self.boot_id not in ("", self.record_boot_id or "") and not never_proven

    def to_data(self) -> dict[str, Any]:
        """The progress as plain data, which a task can answer."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}


def progress_of(data: Mapping[str, Any]) -> Progress:
    """The progress that a task answered."""
    known: dict[str, Any] = {name: tuple(data[name]) if name in _TUPLES else data[name] for name in data}
    return Progress(**known)


@dataclass(frozen=True)
class Facts:
    """What decides about the next step. ``None`` means that it was not checked yet.

    Attributes:
        done: The last step that is done, one of :data:`DONE_STEPS`.
        control_plane: The node is a control-plane node.
        quorum_asked: The user's command has said that a member of etcd may go.
        cordoned_by: Who has cordoned the node.
        hosts: The BareMetalHosts that may be the node.
        booted: The Node has booted since the machine that is failed over went off.
        off: Whether the evidence proves that the machine is off.
        result: What the step that is done answered.
        recorded: The step that follows is recorded.
    """

    settings: Settings
    progress: Progress
    done: str = LOOK
    check_mode: bool = False
    control_plane: bool = False
    quorum_asked: bool = False
    cordoned_by: str | None = None
    hosts: tuple[Host, ...] | None = None
    host_before: tuple[Host, ...] | None = None
    booted: bool = False
    off: bool | None = None
    result: Mapping[str, Any] = field(default_factory=dict)
    recorded: bool = False

    @property
    def known(self) -> Mapping[str, Any]:
        return self.progress.facts

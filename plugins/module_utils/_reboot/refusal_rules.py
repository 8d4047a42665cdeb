# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a node is refused before its reboot begins, as text. The text is empty if there is no reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .failure_rules import LOST
from .quorum_rules import CONTROL_PLANE, MASTER

REQUIRE, WARN, IGNORE = "require", "warn", "ignore"


@dataclass(frozen=True)
class Etcd:
    """The result of ``etcd_quorum`` for a node.

    Attributes:
        kept: Whether etcd keeps its quorum without the node; ``None`` if no member is known.
        member: The node has a pod of etcd.
    """

    control_plane: bool = False
    single_node: bool = False
    only_control_plane: bool = False
    kept: bool | None = None
    member: bool = False

    @property
    def needs_quorum(self) -> bool:
        """Whether other members of etcd have to keep the quorum while the node is down."""
        return self.control_plane and not self.only_control_plane


@dataclass(frozen=True)
class Canaries:
    """The outcome of the canaries, for a node that waits for them.

    Attributes:
        trouble: Why no other node may start; empty if the canaries are healthy.
        postponed: Canaries that wait for the next maintenance window. All other nodes wait with them.
    """

    trouble: str = ""
    postponed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shutdown:
    """A node's answer about its graceful shutdown.

    Attributes:
        in_effect: Whether it is in effect; ``None`` if the node could not be asked.
        enabled: The kubelet has grace periods.
        problems: What is wrong, as sentences.
        error: Why the node could not be asked.
    """

    in_effect: bool | None = None
    enabled: bool = False
    problems: tuple[str, ...] = field(default_factory=tuple)
    error: str = ""


def read_shutdown(answer: Mapping[str, Any]) -> Shutdown:
    """Read the result of ``graceful_shutdown_info``, also a failed one."""
    known = answer.get("in_effect")
    return Shutdown(
        in_effect=bool(known) if known is not None else None,
        enabled=bool(answer.get("enabled")),
        problems=tuple(str(item.get("message") or "") for item in answer.get("problems") or []),
        error=str(answer.get("msg") or ""),
    )


def canaries_of_run(results: Sequence[Mapping[str, Any] | None]) -> Canaries:
    """The outcome of this run's canaries.

    Args:
        results: The result of each, as reports show it; ``None`` for a host that dropped out.
    """
    known = [item or {"name": "of this run", "result": "dropped out", "detail": "no result"} for item in results]
    # A canary that this run has lost is judged by its record, which another run writes.
    bad = [item for item in known if item["result"] not in ("rebooted", "skipped", "postponed", LOST)]
    if bad:
        first = bad[0]
        return Canaries(
            trouble=f"Canary {first['name']} {first['result']} ({first['detail']}), so no other node is rebooted. Fix "
            "the canary, then run this again."
        )
    return Canaries(postponed=tuple(str(item["name"]) for item in known if item["result"] == "postponed"))


def why_not_alone(node: str, etcd: Etcd) -> str:
    """Why the cluster can't spare a node: no other node runs the control plane."""
    if not (etcd.single_node or etcd.only_control_plane):
        return ""
    kind = "node" if etcd.single_node else "control-plane node"
    return (
        f"Node {node} is the cluster's only {kind}: while it reboots, the API is down. Set rolling_reboot_single_node: "
        "true if you accept that, or leave the host out."
    )


def why_unlabelled(node: str, etcd: Etcd, *, labelled: bool) -> str:
    """Why a node would take its slot from the budget of the workers, although it is part of the control plane."""
    if labelled or not (etcd.control_plane or etcd.member):
        return ""
    what = f"has the older label {MASTER}" if etcd.control_plane else "has a pod of etcd"
    return (
        f"Node {node} {what}, but not the label {CONTROL_PLANE}: the budget of the workers would count for it. Run: "
        f"kubectl label node {node} {CONTROL_PLANE}= (or leave the host out)."
    )


def why_no_quorum_known(node: str, etcd: Etcd, selector: str) -> str:
    """Why it is unknown whether etcd keeps its quorum."""
    if not etcd.needs_quorum or etcd.kept is not None:
        return ""
    return (
        f"etcd of control-plane node {node} does not run in pods: no pod in kube-system matches {selector}. Set "
        "rolling_reboot_quorum_command to a command that exits 0 while etcd can spare one member."
    )


def shutdown_trouble(node: str, shutdown: Shutdown) -> str:
    """Why the reboot may kill pods, with the way out."""
    if shutdown.in_effect:
        return ""
    if shutdown.in_effect is None:
        return (
            f"It is unknown whether graceful shutdown of node {node} is in effect: "
            f"{(shutdown.error or 'no answer').strip()} The role holdfast.kubernetes.graceful_shutdown installs what "
            "is needed and configures it."
        )
    problems = " ".join(shutdown.problems)
    if not shutdown.enabled and not shutdown.problems:
        problems = "its kubelet has no grace periods for a shutdown (shutdownGracePeriod)."
    return (
        f"Graceful shutdown of node {node} is not in effect, so its reboot may kill pods: {problems} The role "
        "holdfast.kubernetes.graceful_shutdown configures it."
    )


def shutdown_warning(trouble: str) -> str:
    return f"{trouble} The node is rebooted anyway, because rolling_reboot_graceful_shutdown is {WARN}."

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a node is refused before its reboot begins, in words. Each function says nothing where all is well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

REQUIRE, WARN, IGNORE = "require", "warn", "ignore"


@dataclass(frozen=True)
class Etcd:
    """What ``etcd_quorum`` says of a node.

    Attributes:
        kept: Whether etcd keeps its quorum without the node; ``None`` where no member is known.
    """

    control_plane: bool = False
    single_node: bool = False
    only_control_plane: bool = False
    kept: bool | None = None

    @property
    def needs_quorum(self) -> bool:
        """Whether other members of etcd have to keep the quorum while the node is away."""
        return self.control_plane and not self.only_control_plane


@dataclass(frozen=True)
class Canaries:
    """What became of the canaries, for a node that waits for them.

    Attributes:
        trouble: Why no other node is begun; empty where they are well.
        postponed: Those that wait for the next maintenance window, and so do all others.
    """

    trouble: str = ""
    postponed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shutdown:
    """What a node says of its graceful shutdown.

    Attributes:
        in_effect: ``None`` where it could not be asked.
        enabled: The kubelet has grace periods.
        problems: What is wrong, in sentences.
        error: Why it could not be asked.
    """

    in_effect: bool | None = None
    enabled: bool = False
    problems: tuple[str, ...] = field(default_factory=tuple)
    error: str = ""


def read_shutdown(answer: Mapping[str, Any]) -> Shutdown:
    """From the result of ``graceful_shutdown_info``, also of one that failed."""
    known = answer.get("in_effect")
    return Shutdown(
        in_effect=bool(known) if known is not None else None,
        enabled=bool(answer.get("enabled")),
        problems=tuple(str(item.get("message") or "") for item in answer.get("problems") or []),
        error=str(answer.get("msg") or ""),
    )


def canaries_of_run(results: Sequence[Mapping[str, Any] | None]) -> Canaries:
    """What became of the canaries of this run.

    Args:
        results: The result of each, as reports show it; ``None`` for a host that dropped out.
    """
    known = [item or {"name": "of this run", "result": "dropped out", "detail": "no result"} for item in results]
    bad = [item for item in known if item["result"] not in ("rebooted", "skipped", "postponed")]
    if bad:
        first = bad[0]
        return Canaries(
            trouble=f"Canary {first['name']} {first['result']} ({first['detail']}), so no other node is begun. Look at "
            "it, then run this again."
        )
    return Canaries(postponed=tuple(str(item["name"]) for item in known if item["result"] == "postponed"))


def why_not_alone(node: str, etcd: Etcd) -> str:
    """Why a node can't be spared: no other runs the control plane."""
    if not (etcd.single_node or etcd.only_control_plane):
        return ""
    kind = "node" if etcd.single_node else "control-plane node"
    return (
        f"Node {node} is the cluster's only {kind}: while it reboots, the API is away. Set rolling_reboot_single_node: "
        "true if that is meant, or leave the host out."
    )


def why_no_quorum_known(node: str, etcd: Etcd, selector: str) -> str:
    """Why nobody can say whether etcd keeps its quorum."""
    if not etcd.needs_quorum or etcd.kept is not None:
        return ""
    return (
        f"Control-plane node {node} has its etcd elsewhere: no pod matches {selector} in kube-system. Set "
        "rolling_reboot_quorum_command, which exits 0 while one member may go."
    )


def shutdown_trouble(node: str, shutdown: Shutdown) -> str:
    """Why the reboot may kill pods, with the way out."""
    if shutdown.in_effect:
        return ""
    if shutdown.in_effect is None:
        return (
            f"Whether graceful shutdown of node {node} is in effect can't be told: "
            f"{(shutdown.error or 'no answer').strip()} The role holdfast.kubernetes.graceful_shutdown installs what "
            "is needed and sets it."
        )
    problems = " ".join(shutdown.problems)
    if not shutdown.enabled and not shutdown.problems:
        problems = "its kubelet has no grace periods for a shutdown (shutdownGracePeriod)."
    return (
        f"Graceful shutdown of node {node} is not in effect, so its reboot may kill pods: {problems} The role "
        "holdfast.kubernetes.graceful_shutdown sets it."
    )


def shutdown_warning(trouble: str) -> str:
    return f"{trouble} The node is rebooted all the same, because rolling_reboot_graceful_shutdown is {WARN}."

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a report says: its title, the nodes that need attention and what to do about them, and the run's options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .._progress.board_rules import GOOD
from . import timeline_rules
from .timeline_rules import Timeline

REBOOT, PLAN, FAILOVER, RECOVERY = "Rolling reboot", "Plan of a rolling reboot", "Failover", "Recovery"
Node = Mapping[str, Any]
_TODO = {
    "failed": "Fix the cause, then start the same playbook again. It continues, and skips nodes that are done.",
    "stopped": "Nothing was changed on this node. Remove the cause, then start the same playbook again.",
    "lost": "Another run has this node, and finishes it. Nothing is to be done.",
    "unfinished": "No run has finished this node. Look at the job that had it, and start the same playbook again.",
    "not reported": "Ansible lost this host before it had a result. Check the host, then start the playbook again.",
}
_TODO_FAILOVER = {
    "failed": "Read the message. Then start the same playbook again: it continues where this run stopped.",
    "refused": "Nothing was changed. Remove the cause, then start the same playbook again.",
    "stopped": "The node came back meanwhile, and the changes were undone. Check the node.",
}
_KERNEL = "kernel"
_VERSIONS = {
    "kernel_version": _KERNEL,
    "kubelet_version": "kubelet",
    "container_runtime_version": "runtime",
    "os_image": "OS",
}
_VERDICT = {"never": "Remove the cause, or leave the node out. The other nodes do not wait for it."}


def title(report: Mapping[str, Any]) -> str:
    """Return what the report is about."""
    about, summary = report.get("about") or {}, report.get("summary") or {}
    kind = str(about.get("kind") or _kind(report))
    name = summary.get("operation") or ""
    if not name and kind in (FAILOVER, RECOVERY):
        name = ", ".join(str(node.get("name")) for node in nodes_of(report)[:5])
    return f"{kind} {name}".strip()


def _kind(report: Mapping[str, Any]) -> str:
    if (report.get("summary") or {}).get("check_mode"):
        return PLAN
    return FAILOVER if is_failover(report) else REBOOT


def is_failover(report: Mapping[str, Any]) -> bool:
    """Whether the report is of a failover or a recovery."""
    return "moved" in (report.get("summary") or {})


def nodes_of(report: Mapping[str, Any]) -> list[Node]:
    """Return the entries of all nodes, also of those without a result."""
    silent = (report.get("summary") or {}).get("not_reported") or ()
    return [*(report.get("nodes") or ()), *({"name": name, "result": "not reported", "detail": ""} for name in silent)]


def result(node: Node) -> str:
    """Return the result of a node, or the verdict of a plan."""
    return str(node.get("verdict") or node.get("result") or "unknown")


def look_of(found: str) -> str:
    """Return how a result looks: ``good``, ``bad``, or nothing."""
    if found in _TODO or found in _TODO_FAILOVER or found in _VERDICT:
        return "bad"
    return "good" if found in GOOD and found not in ("skipped", "postponed", "planned") else ""


def counts(report: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return how many nodes have each result, those that need attention first."""
    found = Counter(map(result, nodes_of(report)))
    return sorted(found.items(), key=lambda item: (look_of(item[0]) != "bad", -item[1]))


def troubled(report: Mapping[str, Any]) -> list[tuple[Node, str]]:
    """Return the nodes that need attention, each with what to do."""
    words = {**_TODO, **(_TODO_FAILOVER if is_failover(report) else {}), **_VERDICT}
    return [(node, words[result(node)]) for node in nodes_of(report) if look_of(result(node)) == "bad"]


def timeline_of(report: Mapping[str, Any]) -> Timeline:
    """Return the timeline of a report. Without one, it is that of the records on the Nodes."""
    given = report.get("timeline")
    found = timeline_rules.from_data(given) if given else timeline_rules.from_nodes(nodes_of(report))
    for node in nodes_of(report):
        proof, seconds = evidence(node), (node.get("entry") or {}).get("seconds") or {}
        confirmed = float(seconds.get("confirm") or 0)
        kind = str(proof.get("kind") or "")
        found = timeline_rules.with_failover(found, str(node.get("name")), confirmed, proof.get("at"), kind)
    return found


# Names, and where the report itself goes.
_NO_OPTIONS = ("node_name", "host", "html", "report")


def common(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the options that were set, and how many values those have that differ between the nodes.

    Args:
        settings: The options of each node, by name. Secrets are not among them.
    """
    found: dict[str, Any] = {}
    for name in sorted({name for options in settings for name in options}):
        different: list[Any] = []
        for options in settings:
            if options.get(name) not in different:
                different.append(options.get(name))
        if len(different) > 1:
            found[name] = f"{len(different)} different values"
        elif different[0] not in (None, "", [], {}):
            found[name] = different[0]
    return {name: value for name, value in found.items() if name not in _NO_OPTIONS}


# What the evidence of a failover says, in the order in which people ask.
_EVIDENCE = ("kind", "at", "node", "boot_id")


def evidence(node: Node) -> dict[str, Any]:
    """Return the proof that a node was off; empty if there is none."""
    known = dict(node.get("evidence") or (node.get("entry") or {}).get("evidence") or {})
    first = {name: known[name] for name in _EVIDENCE if known.get(name)}
    return {**first, **{name: value for name, value in known.items() if value not in (None, "", [], {})}}


def story(node: Node) -> dict[str, Any]:
    """Return what the history of failovers says of one node, beside its steps and its evidence."""
    entry = node.get("entry") or {}
    told = (
        "operation",
        "by",
        "reason",
        "fence",
        "host",
        "uri",
        "agent",
        "runs",
        "overridden_holds",
        "started",
        "ended",
    )
    boots = {"boot ID before": node.get("boot_id_before"), "boot ID after": node.get("boot_id_after")}
    moved = {
        "pods that moved": [f"{pod.get('namespace')}/{pod.get('name')}" for pod in node.get("pods") or ()],
        "volumes that were detached": [
            str(item.get("name") or item) if isinstance(item, Mapping) else str(item)
            for item in node.get("volume_attachments") or ()
        ],
        "ways that failed before": [f"{item.get('method')}: {item.get('why')}" for item in node.get("attempts") or ()],
    }
    known = {name.replace("_", " "): entry.get(name) for name in told}
    for name in ("started", "ended"):
        known[name] = seconds_of(known[name])
    found = {**known, **boots, **moved}
    return {name: value for name, value in found.items() if value not in (None, "", [], {})}


def versions(node: Node) -> str:
    """Return the kernel of a node, and the other versions that have changed with its reboot."""
    before, after = (node.get(f"versions_{when}") or {} for when in ("before", "after"))
    found = []
    for name, word in _VERSIONS.items():
        was, now = str(before.get(name) or ""), str(after.get(name) or "")
        if was and now and was != now:
            found.append(f"{word} {was} → {now}")
        elif word == _KERNEL and (now or was):
            found.append(f"{word} {now or was}")
    return ", ".join(found)


def seconds_of(time: object) -> str:
    """Return a time of the API as people read it, to the second."""
    return f"{str(time)[:19].replace('T', ' ')} UTC" if time else ""


def steps(node: Node) -> list[Mapping[str, Any]]:
    """Return the steps of a failover, in their order."""
    return list((node.get("entry") or {}).get("steps") or ())

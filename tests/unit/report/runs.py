# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of runs, for tests: a rolling reboot of any size, with a hold and a failure, and a failover."""

from __future__ import annotations

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress import event_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._report import timeline_rules

START = 1_795_400_000.0
AT_ONCE = 2
FAILED = "Drain the node: Node was not drained in 300 s: pod shop/web-5: PodDisruptionBudget web allows no disruption."


def events(names: list[str], *, held: str = "", bad: str = "") -> list[dict[str, Any]]:
    """Return what the tasks of a run tell that reboots its nodes two at a time."""
    hosts = {name: name for name in names}
    found = [
        {**event_rules.ended("reboot_begin", {"hosts": hosts}, {"operation": "kernel", "run": "4711"}), "at": START}
    ]

    def at(seconds: float, name: str, event: dict[str, Any]) -> None:
        found.append({**event, "at": START + seconds, "host": name})

    order = [*(name for name in names if name != held), *([held] if held else [])]
    for number, name in enumerate(order):
        turn = 2.0 + number // AT_ONCE * 60
        work = ["cordon", "drain", "reboot", "node_ready", "reboot_finish"]
        at(1, name, event_rules.begun("reboot_turn", {"name": name}))
        if name == held:
            at(1.5, name, event_rules.waits(name, "hold", "held by firmware/alice since 2026-11-23T03:08:00Z"))
        at(turn - 0.5, name, event_rules.waits(name, "slot", "2 of 2 allowed are unavailable"))
        at(turn, name, event_rules.budget("workers", 2, order[number // AT_ONCE * AT_ONCE : number + 1]))
        at(turn, name, event_rules.ended("reboot_turn", {"name": name}, {"step": "go"}))
        for place, task in enumerate(work[: 2 if name == bad else None]):
            at(turn + 1 + place * 9, name, event_rules.begun(task, {"name": name}))
        at(turn + 5, name, event_rules.waits(name, "drain", "2 pods: shop/web-5: web allows no disruption"))
        result = {"name": name, "result": "failed" if name == bad else "rebooted", "detail": "required"}
        at(turn + 50, name, event_rules.ended("reboot_finish", {"name": name}, {"result": result}))
    return sorted(found, key=lambda event: event["at"])


def rolling(number: int, *, detail: str = FAILED) -> dict[str, Any]:
    """Return the JSON of a rolling reboot, in which one node was held and one failed."""
    names = [f"worker-{index + 1}" for index in range(number)]
    held, bad = names[0], names[-1]
    told = events(names, held=held, bad=bad)
    nodes = [
        {
            "name": name,
            "result": "failed" if name == bad else "rebooted",
            "detail": detail if name == bad else "/run/reboot-required exists",
            "boot_id_before": "821dbcd6-9f56-48d6-8f28-91fc9da726c0",
            "boot_id_after": "e49df1c6-a0db-4655-aa11-79870a6d5c64",
            "versions_before": {"kernel_version": "6.1.0-40-amd64", "kubelet_version": "v1.34.2"},
            "versions_after": {"kernel_version": "6.1.0-41-amd64", "kubelet_version": "v1.34.2"},
            "phases": {"cordon": 1.0, "drain": 9.0, "ready": 9.0, "reboot": 9.0, "slot": 6.0, "uncordon": 0.2},
            "api": {"requests": 96, "bytes": 383785},
        }
        for name in names
    ]
    good = [node["name"] for node in nodes if node["result"] == "rebooted"]
    timeline = timeline_rules.from_events(told, told[-1]["at"] + 2)
    return {
        "summary": {"operation": "kernel", "check_mode": False, "rebooted": good, "failed": [bad], "not_reported": []},
        "nodes": nodes,
        "api": {"requests": 96 * number, "bytes": 383785 * number},
        "timeline": timeline_rules.to_data(timeline),
        "about": {
            "kind": "Rolling reboot",
            "run": "4711",
            "group": "workers",
            "versions": {"holdfast.kubernetes": "0.1.0", "ansible-core": "2.21.3", "Python": "3.13.2"},
            "options": {"max_unavailable": 2, "when": "required", "drain_timeout": 300},
        },
    }


def failover() -> dict[str, Any]:
    """Return the JSON of a failover over Redfish."""
    evidence = {
        "kind": "Redfish",
        "at": "2026-11-23T03:10:08Z",
        "uri": "https://bmc-3/redfish/v1/Systems/1",
        "power_state": "Off",
        "system_uuid": "4c4c4544-0042-4b10",
    }
    steps = [
        ("claim", 0, ""),
        ("fence", 2, ""),
        ("taint", 9, "Off since 03:10:08"),
        ("move", 10, ""),
        ("moved", 31, ""),
    ]
    entry = {
        "operation": "worker-3-20261123",
        "node": "worker-3",
        "by": "alice@bastion",
        "runs": ["bastion/1/worker-3"],
        "reason": "no power",
        "fence": "redfish",
        "uri": evidence["uri"],
        "started": timeline_rules.text(START),
        "ended": timeline_rules.text(START + 31),
        "result": "moved",
        "evidence": evidence,
        "seconds": {"fence": 7.0, "taint": 1.0, "move": 21.0},
        "steps": [
            {"at": timeline_rules.text(START + at), "run": "bastion/1/worker-3", "step": step, "detail": detail}
            for step, at, detail in steps
        ],
    }
    node = {
        "name": "worker-3",
        "result": "moved",
        "detail": "2 pods and 1 volume have moved",
        "boot_id_before": "31c656a6-c677-4cf8-8140-0637395aa0fe",
        "seconds": entry["seconds"],
        "evidence": evidence,
        "entry": entry,
        "attempts": [{"method": "metal3", "why": "no host was found"}],
        "pods": [{"namespace": "shop", "name": "web-5"}, {"namespace": "shop", "name": "db-0"}],
        "volume_attachments": ["csi-1"],
    }
    ended = {name: [] for name in ("recovered", "skipped", "refused", "stopped", "failed")}
    return {"summary": {"run": "bastion/1", "check_mode": False, "moved": ["worker-3"], **ended}, "nodes": [node]}

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated nodes: many, cheap, and enough for everything that happens in the API alone."""

from __future__ import annotations

import json
import urllib.parse
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

LABEL = "type=kwok"
PREFIX = "kwok"
# A node with this value is off: kwok stops managing it, with its Lease and its pods. Without the label it is on. A node
# that hangs is also on, but its kubelet is silent.
POWER, OFF, HUNG = "lab.holdfast.dev/power", "off", "hung"
_ROOM = {"cpu": "32", "memory": "256Gi", "pods": "110"}
_CONDITIONS = {
    "Ready": ("True", "KubeletReady"),
    "MemoryPressure": ("False", "KubeletHasSufficientMemory"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID"),
    "NetworkUnavailable": ("False", "RouteCreated"),
}


def names(count: int, prefix: str = PREFIX) -> list[str]:
    return [f"{prefix}-{number}" for number in range(1, count + 1)]


def belongs(name: str, prefix: str) -> bool:
    """Whether a node was made with exactly this prefix, not with a longer one."""
    head, _dash, number = name.rpartition("-")
    return head == prefix and number.isdigit()


def simulated(found: Mapping[str, Any]) -> bool:
    """Whether a Node is simulated."""
    key, _equals, value = LABEL.partition("=")
    return (found["metadata"].get("labels") or {}).get(key) == value


def power(found: Mapping[str, Any]) -> str:
    """The power of a simulated node: empty where it is on."""
    return str((found["metadata"].get("labels") or {}).get(POWER) or "")


def node(name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                # As a kubelet does; the controller manager would add it at another moment.
                "beta.kubernetes.io/os": "linux",
                "type": "kwok",
                **labels,
            },
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "status": _status(name),
    }


def _status(name: str) -> dict[str, Any]:
    """The status that a node has when it joins. kwok would write it several times, and undo what a test wrote since."""
    now = f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    names = ("bootID", "machineID", "systemUUID")
    versions = ("containerRuntimeVersion", "kernelVersion", "kubeletVersion", "osImage")
    return {
        "phase": "Running",
        "addresses": [{"type": "Hostname", "address": name}],
        "allocatable": _ROOM,
        "capacity": _ROOM,
        "conditions": [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": "simulated",
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
            for kind, (status, reason) in _CONDITIONS.items()
        ],
        "nodeInfo": {
            **{key: str(uuid.uuid4()) for key in names},
            **dict.fromkeys(versions, "simulated"),
            "architecture": "amd64",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
        },
    }


def collection(wanted: Iterable[str]) -> str:
    """The path of exactly these simulated nodes in the API."""
    selector = f"{LABEL},kubernetes.io/hostname in ({','.join(wanted)})"
    return f"/api/v1/nodes?{urllib.parse.urlencode({'labelSelector': selector})}"


def manifest(wanted: Iterable[str], labels: Mapping[str, str]) -> str:
    """All of them in one list, for one call of kubectl."""
    items = [node(name, labels) for name in wanted]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})

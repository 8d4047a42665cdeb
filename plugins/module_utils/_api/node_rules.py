# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about a Node object."""

from __future__ import annotations

import json
from typing import Any

from .._shared.bounds import cut
from .._shared.hold_rules import forms
from .names import SHUTDOWN_INHIBITED
from .objects import Object


def name(node: Object) -> str:
    return str(node["metadata"]["name"])


def annotations_of(item: Object) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}


def labels_of(item: Object) -> dict[str, str]:
    return item["metadata"].get("labels") or {}


def condition(node: Object, kind: str) -> Object | None:
    conditions = (node.get("status") or {}).get("conditions") or []
    return next((item for item in conditions if item.get("type") == kind), None)


def ready(node: Object) -> bool:
    """Whether the Ready condition is True; Unknown and absent are not."""
    return (condition(node, "Ready") or {}).get("status") == "True"


def not_ready_why(node: Object) -> str:
    """Reason and message of a Ready condition that is not True."""
    found = condition(node, "Ready")
    if found is None:
        return "it has no Ready condition"
    return f"Ready is {found.get('status')} ({cut(str(found.get('reason')))}: {cut(str(found.get('message')))})"


def boot_id(node: Object) -> str:
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("bootID") or "")


# How deep the JSON of an annotation may be. A node can write its own, and Ansible fails at about 200 levels.
_DEEPEST = 20
# What may change with a reboot, by its name in status.nodeInfo.
VERSIONS = {
    "containerRuntimeVersion": "container_runtime_version",
    "kernelVersion": "kernel_version",
    "kubeletVersion": "kubelet_version",
    "osImage": "os_image",
}


def versions(node: Object) -> dict[str, str]:
    """The versions that the kubelet reports."""
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return {name: cut(str(info[key])) for key, name in VERSIONS.items() if info.get(key)}


def system_uuid(node: Object) -> str:
    """The UUID in the machine's firmware; empty if it is not known."""
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("systemUUID") or "")


def provider_id(node: Object) -> str:
    """What a cloud, or Cluster API, calls the machine; empty if it is not known."""
    return str((node.get("spec") or {}).get("providerID") or "")


def unschedulable(node: Object) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def taints(node: Object) -> list[dict[str, Any]]:
    return list((node.get("spec") or {}).get("taints") or [])


def inhibited_by(node: Object) -> list[str]:
    """The ``namespace/holder`` entries in the reason of ShutdownInhibited; empty unless the condition is True.

    Source: the design of the condition. Commas separate several holds, oldest first.
    """
    reason = (condition(node, SHUTDOWN_INHIBITED) or {}).get("reason") if refuses_shutdown(node) else ""
    return [entry for entry in str(reason or "").split(",") if entry]


def refuses_shutdown(node: Object) -> bool:
    """Whether the agent says that the node refuses a shutdown, for any hold."""
    return (condition(node, SHUTDOWN_INHIBITED) or {}).get("status") == "True"


def confirms(node: Object, entry: str) -> bool:
    """Whether the node refuses a shutdown for this hold. The reason names it by its whole or its short entry."""
    return not forms(entry).isdisjoint(inhibited_by(node))


def record(item: Object, annotation: str) -> dict[str, Any] | None:
    """The JSON object in one of our annotations; ``None`` if the annotation is absent or has nothing of the kind."""
    text = annotations_of(item).get(annotation)
    if not text:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not _is_deeper(value, _DEEPEST) else None


def _is_deeper(value: Any, than: int) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return items is not None and (than == 0 or any(_is_deeper(item, than - 1) for item in items))


def slim(item: Object) -> Object:
    """Return an object without large parts that no rule needs: managed fields, and a Node's images and addresses."""
    metadata = {key: value for key, value in item["metadata"].items() if key != "managedFields"}
    status = item.get("status") or {}
    if "nodeInfo" in status:
        status = {key: status.get(key) for key in ("conditions", "nodeInfo")}
    return {**item, "metadata": metadata, "status": status}

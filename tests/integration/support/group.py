# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A group of simulated nodes for one test, and tasks on it that run in this process."""

from __future__ import annotations

import contextlib
import importlib
import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from ansible.module_utils.common.arg_spec import ModuleArgumentSpecValidator

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_operation
from lab import Lab
from lab.patience import PATIENCE

_MODULES = "ansible_collections.holdfast.kubernetes.plugins.modules"


def perform(lab: Lab, module: str, *, check_mode: bool = False, folder: str = "", **options: Any) -> dict[str, Any]:
    """Return what a task returns: validate its options and run its operation as an action plugin does."""
    found = importlib.import_module(f"{_MODULES}.{module}")
    given = {"kubeconfig": str(lab.kubeconfig), **options}
    checked = ModuleArgumentSpecValidator(found.SPEC["argument_spec"]).validate(given)
    assert not checked.error_messages, checked.error_messages
    return run_operation(
        found.OPERATION, checked.validated_parameters, check_mode=check_mode, warn=lambda message: None, folder=folder
    )


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait until a condition is true; return its value."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"after {PATIENCE} s: {what}"
        time.sleep(0.05)
    return found


@dataclass
class Group:
    """Simulated nodes with their own label, and the ledger of a group of the same name."""

    lab: Lab
    name: str
    nodes: list[str]
    selector: str
    reported: set[str] = field(default_factory=set)

    def slot(self, node: str, *, check_mode: bool = False, **options: Any) -> dict[str, Any]:
        """The result of a task with the module reboot_slot; by default it does not wait."""
        known = {"group": self.name, "selector": self.selector, "operation": "kernel", "wait_timeout": 0}
        known |= {"unhealthy_grace": 0}
        return perform(self.lab, "reboot_slot", check_mode=check_mode, name=node, **{**known, **options})

    def taken(self, node: str, **options: Any) -> dict[str, Any]:
        """Take a slot that must be granted."""
        result = self.slot(node, **options)
        assert not result.get("failed"), result["msg"]
        return result

    def config_map(self) -> dict[str, Any] | None:
        text = self.lab.kubectl(
            "get", "configmap", f"group.{self.name}", "-n", "holdfast", "-o", "json", "--ignore-not-found"
        )
        return json.loads(text) if text.strip() else None

    def slots(self) -> dict[str, Any]:
        found = self.config_map()
        return json.loads(found["data"]["slots"]) if found else {}

    def node(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.lab.kubectl("get", "node", name, "-o", "json"))
        return found

    def report(self, node: str, *, ready: bool, boot_id: str = "") -> None:
        """Write into the status what a kubelet would."""
        self.reported.add(node)
        status: dict[str, Any] = {
            "conditions": [{"type": "Ready", "status": str(ready), "reason": "Told", "message": "by a test"}]
        }
        if boot_id:
            status["nodeInfo"] = {"bootID": boot_id}
        patch = json.dumps({"status": status})
        self.lab.kubectl("patch", "node", node, "--subresource=status", "--type=strategic", f"--patch={patch}")

    def silence(self, run: str, seconds: float = 10_000_000) -> None:
        """Make a run look silent for this long. It counts as dead after ``DEAD_AFTER`` seconds."""
        last = datetime.now(timezone.utc) - timedelta(seconds=seconds)
        patch = json.dumps({"spec": {"renewTime": f"{last:%Y-%m-%dT%H:%M:%S.%fZ}"}})
        self.lab.kubectl("patch", "lease", f"run.{run}", "-n", "holdfast", "--type=merge", f"--patch={patch}")

    def mend(self) -> None:
        """Make the nodes as good as new, for the next test."""
        for node in sorted(self.reported):
            self.report(node, ready=True, boot_id=f"{node}-{uuid.uuid4().hex[:10]}")
        self.reported.clear()
        self.lab.kubectl("uncordon", *self.nodes)
        self.lab.kubectl("delete", "configmap", "-n", "holdfast", f"group.{self.name}", "--ignore-not-found")


@contextlib.contextmanager
def group_of(lab: Lab, count: int, prefix: str, **labels: str) -> Iterator[Group]:
    """Make a group; remove it afterwards with everything that it left."""
    name = f"{prefix}-{uuid.uuid4().hex[:10]}"
    nodes = [f"{name}-{number}" for number in range(1, count + 1)]
    lab.simulate(nodes, {"group": name, **labels})
    try:
        yield Group(lab, name, nodes, f"group={name}")
    finally:
        lab.unsimulate(nodes)
        lab.kubectl("delete", "configmap", "-n", "holdfast", f"group.{name}", "--ignore-not-found")

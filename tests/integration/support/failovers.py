# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the playbooks failover and recover, as processes, over simulated nodes whose kubelets hang."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from integration.support.playbooks import Done, Run
from integration.support.world import AUDIT

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.objects import Object
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import retry_conflicts
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.record import failover_record
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.steps import failover_step
from lab import kwok
from lab.patience import PATIENCE

FAILOVER, RECOVER = "holdfast.kubernetes.failover", "holdfast.kubernetes.recover"
OURS = "holdfast.dev/"
TAINT = "node.kubernetes.io/out-of-service"
_LEASES = paths.leases("kube-node-lease")

_BOOL = {"type": "bool", "default": False}
# The operations that failover_turn begins and records a failover with, as a module: their options and defaults.
STEP: Any = SimpleNamespace(
    OPERATION=failover_step,
    SPEC={
        "argument_spec": {
            "name": {"type": "str", "required": True},
            "run": {"type": "str", "required": True},
            "holder": {"type": "str"},
            "direction": {"type": "str", "default": "failover"},
            "reason": {"type": "str"},
            "fence": {"type": "str"},
            "confirm_seconds": {"type": "int", "default": 30},
            "selector": {"type": "str"},
            "max_unhealthy": {"type": "str", "default": "40%"},
            "etcd_selector": {"type": "str", "default": "component=etcd"},
            "quorum_asked": _BOOL,
            "override_holds": _BOOL,
            "claim_timeout": {"type": "int", "default": 120},
            **auth_options(),
        }
    },
)
RECORD: Any = SimpleNamespace(
    OPERATION=failover_record,
    SPEC={
        "argument_spec": {
            "name": {"type": "str", "required": True},
            "operation": {"type": "str", "required": True},
            "run": {"type": "str", "required": True},
            "phase": {"type": "str"},
            "result": {"type": "str"},
            "detail": {"type": "str"},
            "facts": {"type": "dict"},
            "host_version": {"type": "str"},
            "look": _BOOL,
            "gate": _BOOL,
            "override_holds": _BOOL,
            "wait_timeout": {"type": "int", "default": 120},
            "confirm_seconds": {"type": "int", "default": 0},
            "delete_node": _BOOL,
            "deleted": _BOOL,
            **auth_options(),
        }
    },
)


class Victim:
    """A simulated node whose kubelet hangs while its power is on; it works again after it was off."""

    def __init__(self, world: Any, name: str) -> None:
        self.world, self.name = world, name

    @property
    def node(self) -> Object:
        found: Object = self.world.node(self.name)
        return found

    @property
    def boot_id(self) -> str:
        return str(self.node["status"]["nodeInfo"]["bootID"])

    @property
    def powered(self) -> bool:
        return self.node["metadata"]["labels"].get(kwok.POWER) != kwok.OFF

    @property
    def ready(self) -> bool:
        return any(item["type"] == "Ready" and item["status"] == "True" for item in self.node["status"]["conditions"])

    @property
    def taint(self) -> str | None:
        found = [item for item in self.node["spec"].get("taints") or [] if item["key"] == TAINT]
        return str(found[0]["value"]) if found else None

    @property
    def marks(self) -> dict[str, Any]:
        """The annotations of this collection."""
        annotations = self.node["metadata"].get("annotations") or {}
        return {key: json.loads(value) for key, value in annotations.items() if key.startswith(OURS)}

    @property
    def record(self) -> dict[str, Any]:
        return dict(self.marks.get(f"{OURS}failover") or {})

    @property
    def claim(self) -> dict[str, Any]:
        return dict(self.marks.get(f"{OURS}claim") or {})

    @property
    def untouched(self) -> bool:
        """Apart from the record of a rolling reboot, which stays on a real node when the reboot is done."""
        ours = self.marks.keys() - {f"{OURS}operation"}
        return not ours and self.taint is None and not self.world.cordoned(self.name)

    def hang(self) -> None:
        """Silence the kubelet; set the condition at once, which the node controller would do after a while."""
        self._mark(kwok.HUNG)
        with contextlib.suppress(NotFound):
            # Otherwise it would have to be silent for a while.
            self.world.cluster.delete(paths.one(_LEASES, self.name))
        self.world.set_condition(self.name, "Ready", "Unknown", "NodeStatusUnknown")

    def wake(self, boot_id: str | None = None) -> None:
        """The node was not dead, or has booted by itself."""
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

        def attempt() -> None:
            node = self.node
            others = [item for item in node["status"]["conditions"] if item["type"] != "Ready"]
            status: dict[str, Any] = report("True", "KubeletReady", now)
            status["conditions"] += others
            if boot_id:
                status["nodeInfo"] = {"bootID": boot_id}
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            body = {"metadata": version, "status": status}
            self.world.cluster.merge(f"{paths.node(self.name)}/status", body)

        retry_conflicts(attempt)
        # Not earlier: kwok gives a node that is not Ready a new boot ID.
        self._mark(None)

    def say(self, ready: str, message: str) -> None:
        """Set the last report of its kubelet."""

        def attempt() -> None:
            node = self.node
            others = [item for item in node["status"]["conditions"] if item["type"] != "Ready"]
            last = {"type": "Ready", "status": ready, "reason": "KubeletNotReady", "message": message}
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            body = {"metadata": version, "status": {"conditions": [*others, last]}}
            self.world.cluster.merge(f"{paths.node(self.name)}/status", body)

        retry_conflicts(attempt)

    def _mark(self, power: str | None) -> None:
        self.world.cluster.merge(paths.node(self.name), {"metadata": {"labels": {kwok.POWER: power}}})


def report(status: str, reason: str, now: str) -> dict[str, Any]:
    """A status as a kubelet writes it."""
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    return {"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": "by a test", **times}]}


class Failovers:
    """Start runs over nodes of a world, and look at what they leave.

    With the way ``command``, the test's own fence command and verify command switch the node's power.
    """

    def __init__(self, world: Any, ansible: Any) -> None:
        self.world = world
        self._ansible = ansible
        self._runs: list[Run] = []

    def victim(self) -> Victim:
        (name,) = self.world.nodes()
        return Victim(self.world, name)

    def close(self) -> None:
        for run in self._runs:
            run.close()

    # -- the user's commands

    @property
    def log(self) -> Path:
        """What the commands did, one line each."""
        return Path(self._ansible.folder) / "commands"

    @property
    def commands(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def command(self, name: str, script: str) -> str:
        """A command of the user; $HOLDFAST_NODE is the node."""
        path = Path(self._ansible.folder) / name
        kubectl = f"{self._ansible.lab.bin / 'kubectl'} --kubeconfig={self._ansible.lab.kubeconfig}"
        path.write_text(f"#!/bin/sh\nset -e\nkubectl='{kubectl}'\nlog={self.log}\n{script}\n")
        path.chmod(0o755)
        return str(path)

    def by_command(self, *, fence: str = "", verify: str = "") -> dict[str, str]:
        """Return variables. The given scripts run before what the commands do themselves."""
        off = f"echo off >> $log; $kubectl label --overwrite node $HOLDFAST_NODE {kwok.POWER}={kwok.OFF} >/dev/null"
        # As a kubelet reports: without a new time the node controller would not believe it.
        patch = json.dumps(report("True", "KubeletReady", "NOW") | {"nodeInfo": {"bootID": "BOOT"}})
        patch = patch.replace("NOW", "'$(date -u +%Y-%m-%dT%H:%M:%SZ)'")
        patch = patch.replace("BOOT", "'$(cat /proc/sys/kernel/random/uuid)'")
        on = (
            "echo on >> $log; $kubectl patch node $HOLDFAST_NODE --subresource=status --type=strategic "
            f"--patch '{{\"status\": {patch}}}'; $kubectl label node $HOLDFAST_NODE {kwok.POWER}-"
        )
        query = "$kubectl get node $HOLDFAST_NODE -o jsonpath='{.metadata.labels.lab\\.holdfast\\.dev/power}'"
        ask = f'power=$({query}); echo "Chassis Power is $([ "$power" = off ] && echo off || echo on)"'
        return {
            "fence": "command",
            "fence_command": self.command("fence", f"{fence}\n{off}"),
            "verify_command": self.command("verify", f"{verify}\n{ask}"),
            "power_on_command": self.command("power-on", on),
        }

    # -- runs

    def start(
        self,
        *nodes: str,
        playbook: str = FAILOVER,
        arguments: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        **variables: Any,
    ) -> Run:
        """Start a run; ``fence="command"`` stands for ``failover_fence: command``."""
        folder = Path(self._ansible.folder) / f"run-{len(self._runs)}"
        folder.mkdir()
        (folder / "ansible.cfg").write_text("[defaults]\ninternal_poll_interval = 0.01\n")
        settings = {
            "node": list(nodes) if len(nodes) > 1 else nodes[0],
            "selector": f"pool={self.world.namespace}",
            "max_unhealthy": 1,
            "confirm_seconds": 0,
            "report": str(folder / "report.json"),
            **variables,
        }
        content = {f"failover_{name}": value for name, value in settings.items()}
        (folder / "variables.yml").write_text(yaml.safe_dump(content))
        program = str(self._ansible.bin / "ansible-playbook")
        command = [program, *arguments, "-e", "@variables.yml", playbook]
        known = {"K8S_AUTH_KUBECONFIG": self.world.kubeconfig, **(environment or {})}
        run = Run(command, self._ansible.environment(ANSIBLE_SHOW_CUSTOM_STATS="True", **known), folder)
        self._runs.append(run)
        return run

    def run(self, *nodes: str, **more: Any) -> Done:
        """Run from start to end."""
        return self.start(*nodes, **more).done(PATIENCE)

    def recover(self, *nodes: str, **more: Any) -> Done:
        return self.run(*nodes, playbook=RECOVER, **{"ready_timeout": PATIENCE, **more})

    def until_ready(self, app: str, replicas: int) -> None:
        """Wait until all pods of a StatefulSet are ready."""

        def full(item: Object | None) -> bool:
            return item is not None and item["status"].get("readyReplicas", 0) == replicas

        self.world.until(self.world.path("statefulsets"), app, full)

    def audit(self) -> dict[str, Any]:
        """The audit records of failovers, by operation."""
        found = self.world.cluster.find(AUDIT)
        return {key: json.loads(text) for key, text in (found["data"] if found else {}).items()}

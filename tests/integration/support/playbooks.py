# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the playbook rolling_reboot, as processes, over the simulated nodes of one world."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from lab.inventory import PACKAGE
from lab.patience import PATIENCE

SIMULATED_REBOOT = PACKAGE / "simulated_reboot.yml"
PLAYBOOK = "holdfast.kubernetes.rolling_reboot"
_LEDGERS = "/api/v1/namespaces/holdfast/configmaps"
OURS = "holdfast.dev/"
OPERATION, CORDON, CLAIM = f"{OURS}operation", f"{OURS}cordon", f"{OURS}claim"
# It is in the environment of everything that a run starts, because Ansible's workers are in their own sessions.
_MARK = "HOLDFAST_TEST_RUN"
# A run may have no PATH of the system.
_SETPRIV = shutil.which("setpriv") or "setpriv"


@dataclass(frozen=True)
class Done:
    """The result of a run."""

    code: int
    output: str
    report: dict[str, Any]

    @property
    def results(self) -> dict[str, str]:
        """The result of each node: rebooted, skipped, failed, stopped or planned."""
        return {node["name"]: node["result"] for node in self.report["nodes"]}

    def entry(self, node: str) -> dict[str, Any]:
        """The entry of a node in the report."""
        return next(item for item in self.report["nodes"] if item["name"] == node)

    def detail(self, node: str) -> str:
        return str(self.entry(node)["detail"])

    @property
    def stats(self) -> dict[str, Any]:
        """What set_stats left for the next job of a workflow."""
        found = self.output.partition("CUSTOM STATS:")[2].partition("RUN:")[2]
        return dict(json.JSONDecoder().raw_decode(found.lstrip())[0])

    @property
    def failed_hosts(self) -> set[str]:
        """The hosts that Ansible itself counts as failed."""
        recap = self.output.rpartition("PLAY RECAP")[2]
        return {line.split()[0] for line in recap.splitlines() if "failed=" in line and "failed=0" not in line}

    def good(self) -> Done:
        assert self.code == 0, self.output
        return self


class Run:
    """One ansible-playbook process."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self.folder = folder
        self.log = folder / "output"
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                # When the tests themselves are killed, their runs end too.
                [_SETPRIV, "--pdeathsig=KILL", *command],
                cwd=folder,
                env={**environment, _MARK: str(folder), "PYTHONFAULTHANDLER": "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def until(self, condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
        """Wait while the process runs until a condition is true; return its value."""
        deadline = time.monotonic() + patience
        while not (found := condition()):
            assert self._process.poll() is None, f"it ended before {what}:\n{self.output}"
            assert time.monotonic() < deadline, f"after {patience:.0f} s: {what}\n{self.output}"
            time.sleep(0.1)
        return found

    def done(self, patience: float = PATIENCE) -> Done:
        try:
            code = self._process.wait(patience)
        except subprocess.TimeoutExpired:
            # Each process writes the stacks of its threads to the output.
            self.send_to_all(signal.SIGABRT)
            time.sleep(2)
            self.close()
            raise AssertionError(f"it does not end:\n{self.output}") from None
        report = self.folder / "report.json"
        return Done(code, self.output, json.loads(report.read_text()) if report.exists() else {})

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def send(self, number: int) -> None:
        """Send a signal to ansible-playbook and its process group; its workers are in their own groups."""
        os.killpg(self._process.pid, number)

    def send_to_all(self, number: int) -> None:
        """Send a signal to every process of this run that still exists, as when a container is stopped."""
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _processes(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if f"{_MARK}={self.folder}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

    def kill(self) -> None:
        """Kill it as a controller dies: the user's tasks that it started continue."""
        if self.running:
            self.send(signal.SIGKILL)
            self._process.wait()

    def close(self) -> None:
        self.kill()
        self.send_to_all(signal.SIGKILL)


class Rolling:
    """Start runs over the nodes of a world, which are a group of that name, and look at what they leave.

    Args:
        world: The namespace, the nodes and the API.
        ansible: Environment of ansible-playbook.
    """

    def __init__(self, world: Any, ansible: Any) -> None:
        self.world = world
        self.group = world.namespace
        self.selector = f"pool={world.namespace}"
        self._ansible = ansible
        self.lab = ansible.lab
        self._runs: list[Run] = []
        self._numbers = count()
        dead = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "node is shutting down"}
        ready = {**dead, "status": "True", "reason": "KubeletReady", "message": "a new boot"}
        boot = self.report_task(conditions=[ready], nodeInfo={"bootID": "NEW"})
        new = "'$(/bin/cat /proc/sys/kernel/random/uuid)'"
        # It does the same as the lab's own, in one task: with dozens of nodes, tasks take the time.
        self.off_and_on = (self.report_task(conditions=[dead]), boot.replace("NEW", new))
        self._reboot = self.tasks("reboot", " && ".join(self.off_and_on))
        world.made.objects.append(paths.one(_LEDGERS, f"group.{self.group}"))

    def start(
        self,
        hosts: Iterable[str] | Mapping[str, dict[str, Any]],
        *arguments: str,
        playbook: str = PLAYBOOK,
        environment: Mapping[str, str] | None = None,
        **variables: Any,
    ) -> Run:
        """Start a run; see :meth:`prepare`."""
        prepared = self.prepare(hosts, *arguments, playbook=playbook, environment=environment, **variables)
        run = Run(*prepared)
        self._runs.append(run)
        return run

    def prepare(
        self,
        hosts: Iterable[str] | Mapping[str, dict[str, Any]],
        *arguments: str,
        playbook: str = PLAYBOOK,
        environment: Mapping[str, str] | None = None,
        **variables: Any,
    ) -> tuple[list[str], dict[str, str], Path]:
        """Return command, environment and folder of a run; ``max_failed=1`` is ``rolling_reboot_max_failed: 1``.

        Args:
            hosts: Nodes, or nodes with their own variables.
            arguments: More arguments of ansible-playbook.
            playbook: Another playbook.
            environment: Replaces ``K8S_AUTH_KUBECONFIG``.
            variables: Variables of the role, without the role's prefix.
        """
        folder = self._ansible.folder / f"run-{next(self._numbers)}"
        folder.mkdir()
        # By default the main process polls for results a thousand times a second and takes a core from the workers.
        (folder / "ansible.cfg").write_text("[defaults]\ninternal_poll_interval = 0.01\n")
        (folder / "inventory.yml").write_text(yaml.safe_dump(self._inventory(hosts, folder, variables)))
        command = [str(self._ansible.bin / "ansible-playbook"), "-i", "inventory.yml", *arguments, playbook]
        known = {"K8S_AUTH_KUBECONFIG": self.world.kubeconfig} if environment is None else environment
        return command, self._ansible.environment(ANSIBLE_SHOW_CUSTOM_STATS="True", ANSIBLE_FORKS="10", **known), folder

    def run(self, hosts: Iterable[str] | Mapping[str, dict[str, Any]], *arguments: str, **more: Any) -> Done:
        """Run from start to end."""
        return self.start(hosts, *arguments, **more).done()

    def _inventory(self, hosts: Any, folder: Path, variables: dict[str, Any]) -> dict[str, Any]:
        own = hosts if isinstance(hosts, Mapping) else {name: {} for name in hosts}
        settings = {
            "group": self.group,
            "selector": self.selector,
            "when": "always",
            "method": "command",
            "command_tasks": self._reboot,
            # The test knows what fills the budget, and that it does not pass.
            "unhealthy_grace": 0,
            "report": str(folder / "report.json"),
            **variables,
        }
        lab = self._ansible.lab
        return {
            "all": {
                "hosts": own,
                "vars": {
                    "ansible_connection": "local",
                    "ansible_python_interpreter": sys.executable,
                    "lab_kubeconfig": str(lab.kubeconfig),
                    "lab_kubectl": str(lab.bin / "kubectl"),
                    "lab_reboot_seconds": 0,
                    "kubectl": f"{lab.bin / 'kubectl'} --kubeconfig={lab.kubeconfig}",
                    **{f"rolling_reboot_{name}": value for name, value in settings.items()},
                },
            }
        }

    def tasks(self, name: str, *tasks: Mapping[str, Any] | str) -> str:
        """A file of the user's tasks; a string is a shell command, in which ``{{ kubectl }}`` is kubectl."""
        steps = [
            {"name": "User's task", "ansible.builtin.raw": task, "changed_when": True}
            if isinstance(task, str)
            else dict(task)
            for task in tasks
        ]
        path = self._ansible.folder / f"{name}.yml"
        path.write_text(yaml.safe_dump(steps, sort_keys=False, width=1000))
        return str(path)

    def hold(self, node: str, holder: str = "app") -> None:
        """Take a hold, as an application does that must not be interrupted."""
        self.world.create(
            "leases", node, {"spec": {"holderIdentity": holder, "acquireTime": "2026-01-02T03:04:05.000000Z"}}
        )

    def hold_task(self) -> str:
        """A shell command with which the application takes its hold."""
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "{{ rolling_reboot_node_name }}", "namespace": self.world.namespace},
            "spec": {"holderIdentity": "late", "acquireTime": "2026-01-02T03:04:05.000000Z"},
        }
        return f"echo '{json.dumps(lease)}' | {{{{ kubectl }}}} create -f -"

    def report_task(self, **status: Any) -> str:
        """A shell command that writes the node's status in place of its kubelet."""
        what = "--subresource=status --type=strategic"
        patch = json.dumps({"status": status})
        return f"{{{{ kubectl }}}} patch node {{{{ rolling_reboot_node_name }}}} {what} --patch='{patch}'"

    def release(self, node: str) -> None:
        self.world.delete("leases", node)

    def boot_id(self, node: str) -> str:
        return str(self.world.node(node)["status"]["nodeInfo"]["bootID"])

    def boot_ids(self, nodes: Iterable[str]) -> dict[str, str]:
        return {name: self.boot_id(name) for name in nodes}

    def ours(self, node: str) -> dict[str, Any]:
        annotations = self.world.node(node)["metadata"].get("annotations") or {}
        return {
            key: json.loads(value) for key, value in annotations.items() if key.startswith(OURS) and value[:1] == "{"
        }

    def record(self, node: str) -> dict[str, Any]:
        """The record of what the node went through."""
        return dict(self.ours(node).get(OPERATION) or {})

    def ledger(self) -> dict[str, Any]:
        found = self.world.cluster.find(paths.one(_LEDGERS, f"group.{self.group}"))
        return {key: json.loads(value) for key, value in (found["data"] if found else {}).items()}

    def slots(self) -> dict[str, Any]:
        return dict(self.ledger().get("slots") or {})

    def failures(self, operation: str) -> dict[str, str]:
        """The failed nodes of an operation, as counted."""
        entries = self.ledger().get("operations") or []
        return next((dict(item["failures"]) for item in entries if item["id"] == operation), {})

    def versions(self, nodes: Iterable[str]) -> dict[str, str]:
        """Resource versions: an object with the same version was not written."""
        return {name: self.world.node(name)["metadata"]["resourceVersion"] for name in nodes}

    def assert_nothing_left(self, nodes: Iterable[str]) -> None:
        """Assert that only the record of the operation is left, and that our cordons are undone."""
        assert self.slots() == {}
        for name in nodes:
            assert set(self.ours(name)) <= {OPERATION}, name
            assert not self.world.cordoned(name), name

    def close(self) -> None:
        for run in self._runs:
            run.close()

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the playbook guard_machine, as processes, over the Machines of one fleet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from integration.support.machines_capi import Fleet
from integration.support.playbooks import Done, Run

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.objects import Object
from lab.patience import PATIENCE

GUARD = "holdfast.kubernetes.guard_machine"
HOOK, OWNER = "machine-guard", "holdfast.kubernetes"
RECORD = "holdfast.dev/machine-guard"


class Guarding:
    """Start runs over the Machines of a fleet, and look at what they leave.

    Args:
        fleet: The Machines.
        ansible: Environment of ansible-playbook.
    """

    def __init__(self, fleet: Fleet, ansible: Any) -> None:
        self.fleet = fleet
        self.world = fleet.world
        self._ansible = ansible
        self._runs: list[Run] = []

    def close(self) -> None:
        for run in self._runs:
            run.close()

    # -- the user's tasks

    @property
    def folder(self) -> Path:
        """The folder with the files of tasks."""
        return Path(self._ansible.folder)

    @property
    def log(self) -> list[str]:
        """What the user's tasks did: point and Machine, one line each."""
        path = Path(self._ansible.folder) / "log"
        return path.read_text().splitlines() if path.exists() else []

    def tasks(self, name: str, *before: Mapping[str, Any] | str, after: str = "true") -> str:
        """Write a file of the user's tasks. It logs a line when the tasks before that line are done.

        Args:
            name: The name of the file, and in the line.
            before: Tasks, or shell commands.
            after: A shell command that runs after the line is written.
        """
        line = f"{name} {{{{ machine_guard_point }}}} {{{{ machine_guard_machine_name }}}}"
        log = Path(self._ansible.folder) / "log"
        steps = [*before, f"echo {line} >> {log}", after]
        content = [
            {"name": "User's task", "ansible.builtin.raw": step, "changed_when": True}
            if isinstance(step, str)
            else dict(step)
            for step in steps
        ]
        path = Path(self._ansible.folder) / f"{name}.yml"
        path.write_text(yaml.safe_dump(content, sort_keys=False, width=1000))
        return str(path)

    def together(self, count: int) -> str:
        """A shell command that ends when it runs this many times at once."""
        folder = Path(self._ansible.folder) / "together"
        folder.mkdir()
        wait = f"for _ in $(seq 3000); do [ $(ls {folder} | wc -l) -lt {count} ] || exit 0; sleep 0.1; done; exit 1"
        return f"touch {folder}/{{{{ machine_guard_machine_name }}}}; {wait}"

    # -- runs

    def start(
        self,
        *machines: str,
        arguments: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        variables: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Run:
        """Start a run; ``stop="idle"`` stands for ``machine_guard_stop: idle``.

        Args:
            machines: Their names.
            arguments: More arguments of ansible-playbook.
            environment: More environment variables.
            variables: Variables of other roles.
            settings: Variables of the role, without the role's prefix.
        """
        folder = Path(self._ansible.folder) / f"run-{len(self._runs)}"
        folder.mkdir()
        (folder / "ansible.cfg").write_text("[defaults]\ninternal_poll_interval = 0.01\n")
        wanted = {
            "namespace": self.fleet.namespace,
            "machines": list(machines),
            "timeout": PATIENCE,
            "parallel": 1,
            "report": str(folder / "report.json"),
            **settings,
        }
        content = {**{f"machine_guard_{name}": value for name, value in wanted.items()}, **(variables or {})}
        (folder / "variables.yml").write_text(yaml.safe_dump(content))
        program = str(self._ansible.bin / "ansible-playbook")
        command = [program, *arguments, "-e", "@variables.yml", GUARD]
        known = {"K8S_AUTH_KUBECONFIG": self.world.kubeconfig, **(environment or {})}
        run = Run(
            command,
            self._ansible.environment(ANSIBLE_SHOW_CUSTOM_STATS="True", ANSIBLE_FORKS="12", **known),
            folder,
        )
        self._runs.append(run)
        return run

    def run(self, *machines: str, **more: Any) -> Done:
        """Run from start to end."""
        return self.start(*machines, **more).done(PATIENCE)

    # -- looking

    def hooked(self, name: str, *points: str) -> None:
        """Return when a Machine has our hooks."""
        wanted = {f"{point}.delete.hook.machine.cluster.x-k8s.io/{HOOK}" for point in points or _POINTS}

        def there(item: Object | None) -> bool:
            return item is not None and wanted <= (item["metadata"].get("annotations") or {}).keys()

        self.fleet.until(name, there)

    def record(self, name: str) -> dict[str, Any]:
        text = (self.fleet.get(name)["metadata"].get("annotations") or {}).get(RECORD)
        return dict(json.loads(text)[HOOK]) if text else {}

    def events(self, name: str) -> list[Object]:
        items = self.fleet.cluster.items(
            paths.namespaced("api/v1", self.fleet.namespace, "events"), field_selector=f"involvedObject.name={name}"
        )
        return [item for item in items if item["reason"].startswith("MachineGuard")]

    def leases(self) -> list[str]:
        """The Leases of our runs that are left."""
        runs = self.fleet.cluster.items(paths.leases("holdfast"))
        mine = [item["metadata"]["annotations"].get("holdfast.dev/run", "") for item in runs]
        return [name for name in mine if self.fleet.namespace in name]


_POINTS = ("pre-drain", "pre-terminate")


def points(done: Done) -> dict[tuple[str, str], str]:
    """The results by Machine and point."""
    return {(item["name"], item["point"]): item["result"] for item in done.report["machines"]}

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays in a real ansible-playbook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from lab import Lab
from lab.paths import CHECKOUT
from lab.patience import PATIENCE


class Ansible:
    """Runs plays in a real ansible-playbook."""

    def __init__(self, folder: Path, lab: Lab) -> None:
        self.folder = folder
        self.lab = lab
        # The programs of Ansible.
        self.bin = Path(sys.executable).parent

    def environment(self, **more: str) -> dict[str, str]:
        own = ("K8S_AUTH_", "KUBECONFIG", "ANSIBLE_")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(own)}
        collections = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or str(CHECKOUT / "build/collections")
        return {
            **kept,
            "ANSIBLE_COLLECTIONS_PATH": collections,
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
            "ANSIBLE_RETRY_FILES_ENABLED": "False",
            # For a connection; a busy node may not accept one at once.
            "ANSIBLE_TIMEOUT": "60",
            "ANSIBLE_HOME": str(self.folder / "home"),
            # Fewer commands on the node for each task. The Molecule scenarios run with the default, which is without.
            "ANSIBLE_PIPELINING": "True",
            **more,
        }

    def command(self, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.bin / program), *arguments],
            cwd=self.folder,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def tasks(
        self, tasks: list[dict[str, Any]], *arguments: str, hosts: str = "localhost", **environment: str
    ) -> tuple[list[dict[str, Any]], str]:
        """Run tasks on one host; return the result of each and the whole output. Failures are results, too."""
        registered = [f"result_{number}" for number in range(len(tasks))]
        results = self.folder / "results.json"
        steps = [
            {**task, "register": name, "ignore_errors": True} for task, name in zip(tasks, registered, strict=True)
        ]
        content = "{{ [" + ", ".join(registered) + "] | to_json }}"
        keep = {"ansible.builtin.copy": {"content": content, "dest": str(results), "mode": "0600"}}
        play = {
            "hosts": hosts,
            "gather_facts": False,
            "tasks": [*steps, {**keep, "delegate_to": "localhost", "check_mode": False, "no_log": True}],
        }
        book = self.folder / "play.yml"
        book.write_text(yaml.safe_dump([play], sort_keys=False))
        done = self.command("ansible-playbook", *arguments, str(book), **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(results.read_text()), done.stdout + done.stderr

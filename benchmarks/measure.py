# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run something and say how long it took, seen from outside."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHECKOUT = Path(__file__).resolve().parent.parent
# Ours and kubernetes.core's run in the same Ansible with the same libraries.
PEERS = CHECKOUT / "build/venv-peers/bin"
_OWN = ("ANSIBLE_", "K8S_AUTH_", "KUBECONFIG")


class BenchmarkError(Exception):
    """What was to be measured did not work, so that its time means nothing."""


@dataclass(frozen=True)
class Took:
    """Seconds.

    Attributes:
        step: What is compared: the tasks in a running play, or the whole process where there is no play.
        process: The whole process from start to end.
    """

    step: float
    process: float


def program(command: Sequence[str | Path], *, env: dict[str, str] | None = None) -> Took:
    """A process of its own."""
    started = time.monotonic()
    done = subprocess.run(
        [str(word) for word in command],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - started
    if done.returncode:
        raise BenchmarkError(f"{' '.join(str(word) for word in command)} ended with {done.returncode}:\n{done.stdout}")
    return Took(seconds, seconds)


def play(tasks: list[dict[str, Any]], kubeconfig: Path) -> Took:
    """Tasks on localhost, from the start of the first to the last one's result, by a callback in the play's process."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        book, times = Path(folder, "play.yml"), Path(folder, "times.jsonl")
        book.write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
        env = {key: value for key, value in os.environ.items() if not key.startswith(_OWN)}
        env |= {
            "ANSIBLE_CALLBACK_PLUGINS": str(CHECKOUT / "benchmarks/callback"),
            "ANSIBLE_CALLBACKS_ENABLED": "stopwatch",
            "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / "build/collections"),
            "ANSIBLE_HOME": str(CHECKOUT / "build/bench/home"),
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
            "K8S_AUTH_KUBECONFIG": str(kubeconfig),
            "STOPWATCH": str(times),
        }
        process = program([PEERS / "ansible-playbook", book], env=env).process
        lines = [json.loads(line) for line in times.read_text().splitlines()]
    if len(lines) != len(tasks):
        raise BenchmarkError(f"{len(lines)} of {len(tasks)} tasks ran: {lines}")
    return Took(lines[-1]["ended"] - lines[0]["started"], process)

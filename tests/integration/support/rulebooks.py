# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Event sources in this process, and rulebooks of the collection in a real ansible-rulebook."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import runpy
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from integration.support.playbooks import Run

from lab.paths import CHECKOUT
from lab.patience import PATIENCE

EDA = CHECKOUT / "extensions/eda"
# Beside the environment that runs the tests, wherever the tested tree is.
VENV = Path(sys.prefix).parent / "venv-eda"
_WAITS = "Waiting for events, ruleset"


def install() -> Path:
    """Return the programs of ansible-rulebook's virtual environment; make it where it is missing."""
    done = subprocess.run(
        [CHECKOUT / "tools/eda.sh", VENV], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return VENV / "bin"


class Listening:
    """An event source as ansible-rulebook calls it, and the events that it sent."""

    def __init__(self, source: str, **args: Any) -> None:
        self._main = runpy.run_path(str(EDA / f"plugins/event_source/{source}.py"))["main"]
        self._args = args
        self._events: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._ready = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._main(self, self._args))
        self._ready.set()
        try:
            await self._task
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - reported by failure(), in its caller's thread
            self._failure = error
        with self._news:
            self._news.notify_all()

    async def put(self, event: dict[str, Any]) -> None:
        """As ansible-rulebook's queue."""
        with self._news:
            self._events.append(event)
            self._news.notify_all()

    def events(self, **wanted: Any) -> list[dict[str, Any]]:
        """The events so far; ``node="a"`` selects events in which something has that name or is it."""
        return [event for event in list(self._events) if all(_has(event, *item) for item in wanted.items())]

    def until(self, count: int = 1, **wanted: Any) -> list[dict[str, Any]]:
        """Wait for this many events; return them."""
        with self._news:
            enough = self._news.wait_for(
                lambda: self._failure or len(self.events(**wanted)) >= count or not self._thread.is_alive(), PATIENCE
            )
        assert enough, f"not enough events: {self._events}"
        assert not self._failure, self._failure
        return self.events(**wanted)

    def failure(self) -> Exception:
        self._thread.join(PATIENCE)
        assert self._failure
        return self._failure

    def stop(self) -> None:
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


def _has(event: Mapping[str, Any], what: str, value: Any) -> bool:
    found = event.get(what)
    return bool(found == value or (isinstance(found, Mapping) and value in (found.get("name"), found.get("node"))))


class Rulebooks:
    """Starts ansible-rulebook, and ends it.

    Args:
        ansible: A folder and an environment.
        kubeconfig: Of the cluster.
    """

    def __init__(self, ansible: Any, kubeconfig: str) -> None:
        self._ansible, self._kubeconfig = ansible, kubeconfig
        self._bin = install()
        self._runs: list[Run] = []

    def start(
        self,
        rulebook: str,
        *,
        playbook: Mapping[str, Any] | None = None,
        change: Callable[[dict[str, Any]], None] | None = None,
        files: Mapping[str, Any] | None = None,
        **variables: Any,
    ) -> Run:
        """Start a rulebook of the collection; return when it waits for events.

        Args:
            playbook: Variables of the playbook; they go into the inventory.
            change: Gets the ruleset and changes it, as a user does in their own rulebook.
            files: More files in its working directory, by name.
            variables: Variables of the rulebook.
        """
        folder = Path(self._ansible.folder) / f"rulebook-{len(self._runs)}"
        folder.mkdir()
        name = f"holdfast.kubernetes.{rulebook}"
        if change:
            (ruleset,) = yaml.safe_load((EDA / f"rulebooks/{rulebook}.yml").read_text())
            change(ruleset)
            (folder / "rulebook.yml").write_text(yaml.safe_dump([ruleset], sort_keys=False))
            name = "rulebook.yml"
        for path, content in {**(files or {}), "variables.yml": variables}.items():
            (folder / path).write_text(yaml.safe_dump(content))
        host = {"ansible_connection": "local", "ansible_python_interpreter": str(self._bin / "python")}
        inventory = {"all": {"hosts": {"localhost": host}, "vars": dict(playbook or {})}}
        # By default the main process polls for results a thousand times a second and takes a core from the workers.
        (folder / "ansible.cfg").write_text("[defaults]\ninternal_poll_interval = 0.01\n")
        (folder / "inventory.yml").write_text(yaml.safe_dump(inventory))
        files = ["--rulebook", name, "--vars", "variables.yml", "--inventory", "inventory.yml"]
        program = str(self._bin / "ansible-rulebook")
        run = Run([program, *files, "--print-events", "--verbose"], self._environment(folder), folder)
        self._runs.append(run)
        run.until(lambda: _WAITS in run.output, "it waits for events", PATIENCE)
        return run

    def _environment(self, folder: Path) -> dict[str, str]:
        found: dict[str, str] = self._ansible.environment(
            K8S_AUTH_KUBECONFIG=self._kubeconfig,
            # ansible-rulebook also finds the programs that it runs there.
            PATH=f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            ANSIBLE_CONFIG=str(folder / "ansible.cfg"),
            ANSIBLE_NOCOLOR="True",
            PYTHONUNBUFFERED="1",
        )
        # It is another Python, with other libraries.
        return {name: value for name, value in found.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def close(self) -> None:
        for run in self._runs:
            run.close()


def runs(run: Run) -> int:
    """The number of playbooks that have ended."""
    return run.output.count("PLAY RECAP")


def events(run: Run, text: str) -> int:
    """The number of events that contain this."""
    parts = re.split(r"^\*\* .* \[received event\]", run.output, flags=re.MULTILINE)[1:]
    # Each event is between lines of stars, before what follows from it.
    return len([part for part in parts if text in re.split(r"^\*{20,}$", part, flags=re.MULTILINE)[0]])


def until(run: Run, condition: Callable[[], Any], what: str) -> None:
    """Wait for something while ansible-rulebook works."""
    run.until(condition, what, PATIENCE)


def until_runs(run: Run, count: int) -> None:
    """Wait until this many playbooks have ended."""
    until(run, lambda: runs(run) >= count, f"{count} playbooks have ended")

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Places where a run waits until it is released or killed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PLUGINS = Path(__file__).resolve().parent / "callbacks"


class Halt:
    """Stops the first run that gets there; later runs pass.

    Args:
        folder: This halt's own folder, which must not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._reached, self._go = folder / "reached", folder / "go"

    @property
    def reached(self) -> bool:
        return self._reached.exists()

    def resume(self) -> None:
        self._go.touch()

    @property
    def command(self) -> str:
        """A shell command for one of the user's tasks."""
        reached, go = shlex.quote(str(self._reached)), shlex.quote(str(self._go))
        # Limited in time: a user's task outlives the run that is killed during it.
        wait = f"for _ in $(seq 9000); do [ ! -e {go} ] || exit 0; sleep 0.1; done"
        return f"! mkdir {reached} 2>/dev/null || {{ {wait}; exit 1; }}"

    @property
    def reached_command(self) -> str:
        """A shell command for one of the user's tasks, which waits until a run has stopped here."""
        return f"for _ in $(seq 9000); do [ ! -e {shlex.quote(str(self._reached))} ] || exit 0; sleep 0.1; done; exit 1"

    def after(
        self, host: str, module: str, answer: Mapping[str, Any] | None = None, **options: Any
    ) -> Mapping[str, str]:
        """The environment for a run that waits between a task with this module and the next task.

        Args:
            host: The task's host.
            module: The module's name without the collection's.
            answer: Some of the task's results.
            options: Some of the task's options; ``None`` for an option that it does not have.
        """
        return self._environment(host=host, module=module, options=options, answer=answer or {})

    def after_act(self, node: str, act: str, state: str = "") -> Mapping[str, str]:
        """The environment for a run that waits, within a task, after one act of the rolling reboot.

        Args:
            node: The Node.
            act: A method of ``_reboot/work.py``: ``slot`` or ``uncordon``.
            state: The state of the slot.
        """
        return self._environment(node=node, act=act, state=state)

    def _environment(self, **wanted: Any) -> Mapping[str, str]:
        places = {"reached": self._reached, "go": self._go}
        text = json.dumps({**wanted, **places}, default=str)
        return {"ANSIBLE_CALLBACK_PLUGINS": str(_PLUGINS), "HOLDFAST_TEST_HALT": text}

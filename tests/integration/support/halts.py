# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Places where a run stays, until it is let go or killed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PLUGINS = Path(__file__).resolve().parent / "callbacks"


class Halt:
    """Keeps the first run that comes there; those that come later pass.

    Args:
        folder: Of this halt's own, not there yet.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._reached, self._go = folder / "reached", folder / "go"

    @property
    def reached(self) -> bool:
        return self._reached.exists()

    def let_go(self) -> None:
        self._go.touch()

    @property
    def command(self) -> str:
        """A command of the shell, for a task of the user's."""
        reached, go = shlex.quote(str(self._reached)), shlex.quote(str(self._go))
        # Not for ever: a user's task outlives the run that is killed in it.
        wait = f"for _ in $(seq 9000); do [ ! -e {go} ] || exit 0; sleep 0.1; done"
        return f"! mkdir {reached} 2>/dev/null || {{ {wait}; exit 1; }}"

    def after(self, host: str, module: str, **options: Any) -> Mapping[str, str]:
        """Environment of a run that stays between a task with this module and what comes next.

        Args:
            host: Of the task.
            module: Without the collection's name.
            options: Some of the task's; ``None`` for one that it does not have.
        """
        wanted = {"host": host, "module": module, "options": options, "reached": self._reached, "go": self._go}
        return {"ANSIBLE_CALLBACK_PLUGINS": str(_PLUGINS), "HOLDFAST_TEST_HALT": json.dumps(wanted, default=str)}

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: stopwatch
type: aggregate
short_description: Write down how long each task took
description: One JSON line for each task, as seen by the process that runs the play.
requirements:
  - The environment variable STOPWATCH names the file.
"""


class CallbackModule(CallbackBase):
    """From the moment a task starts to the moment its result is there, forking and all."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "stopwatch"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._started = 0.0

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        self._started = time.monotonic()

    def v2_runner_on_ok(self, result: Any) -> None:
        self._write(failed=False)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._write(failed=True)

    def _write(self, *, failed: bool) -> None:
        ended = time.monotonic()
        line = {"failed": failed, "started": self._started, "ended": ended}
        with Path(os.environ["STOPWATCH"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A callback plugin that stops ansible-playbook between two tasks or two acts: see integration.halts."""

from __future__ import annotations

import importlib
import json
import os
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: halt
type: aggregate
short_description: Stops ansible-playbook after a task
description: Waits after one task of one host, the first time that it is reached, until a file appears.
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]
    """Callbacks run in the main process, so the whole run waits while one of them waits."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "halt"

    def __init__(self) -> None:
        super().__init__()
        wanted = json.loads(os.environ["HOLDFAST_TEST_HALT"])
        if "act" in wanted:
            # The workers are forked from this process.
            halt_after(wanted)

    def v2_runner_on_ok(self, result: Any) -> None:
        wanted = json.loads(os.environ["HOLDFAST_TEST_HALT"])
        if "act" in wanted:
            return
        fields = result.task_fields
        given = fields["args"]
        if (
            result.host.get_name() == wanted["host"]
            and fields["action"].rpartition(".")[2] == wanted["module"]
            and all(given.get(name) == value for name, value in wanted["options"].items())
            and all(result.result.get(name) == value for name, value in wanted["answer"].items())
        ):
            halt(Path(wanted["reached"]), Path(wanted["go"]))


def halt_after(wanted: dict[str, str]) -> None:
    work = importlib.import_module("ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.work").Work
    original = getattr(work, wanted["act"])

    def act(self: Any, *arguments: Any, **options: Any) -> Any:
        found = original(self, *arguments, **options)
        if self.node == wanted["node"] and (not wanted["state"] or wanted["state"] in arguments):
            halt(Path(wanted["reached"]), Path(wanted["go"]))
        return found

    setattr(work, wanted["act"], act)


def halt(reached: Path, go: Path) -> None:
    try:
        reached.mkdir()
    except FileExistsError:
        return
    while not go.exists():
        time.sleep(0.05)

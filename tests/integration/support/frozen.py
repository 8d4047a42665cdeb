# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module's operation in its own process, which SIGSTOP stops between its last look at a node and its act.

Started as a program, it is that process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from lab.paths import CHECKOUT
from lab.patience import PATIENCE

# The seconds that a check stays valid there. Every longer pause has the same effect.
GOOD_FOR = 1.0


class Frozen:
    """The stopped process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def thaw(self) -> dict[str, Any]:
        """Continue the process after its look has become too old; return its result."""
        time.sleep(GOOD_FOR * 2)
        self._process.send_signal(signal.SIGCONT)
        output, _none = self._process.communicate(timeout=PATIENCE)
        result: dict[str, Any] = json.loads(output)
        return result


@contextlib.contextmanager
def frozen(world: Any, module: str, **options: Any) -> Iterator[Frozen]:
    """Run a module with these options until it is about to act."""
    request = {"module": module, "options": {"kubeconfig": world.kubeconfig, **options}}
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig=KILL", sys.executable, "-m", __name__, json.dumps(request)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{CHECKOUT / 'tests'}:{CHECKOUT / 'build/collections'}"},
    )
    try:
        # Returns at once if the process ends before that.
        seen = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert seen, process.args
        assert seen.si_code == os.CLD_STOPPED, process.communicate()
        yield Frozen(process)
    finally:
        process.kill()
        process.wait()


def main() -> None:
    request = json.loads(sys.argv[1])
    plugins = "ansible_collections.holdfast.kubernetes.plugins"
    arg_spec = importlib.import_module("ansible.module_utils.common.arg_spec")
    runner = importlib.import_module(f"{plugins}.module_utils._api.runner")
    last_look = importlib.import_module(f"{plugins}.module_utils._fencing.last_look")
    module = importlib.import_module(f"{plugins}.modules.{request['module']}")
    check, stopped = last_look.Look.check, []

    def stop_first(look: Any, *record: Any) -> None:
        if stopped:
            check(look, *record)
            return
        stopped.append(look)
        os.kill(os.getpid(), signal.SIGSTOP)
        # Only for this check: the next ones must pass on a busy machine.
        last_look.GOOD_FOR, usual = GOOD_FOR, last_look.GOOD_FOR
        try:
            check(look, *record)
        finally:
            last_look.GOOD_FOR = usual

    last_look.Look.check = stop_first
    validation = arg_spec.ArgumentSpecValidator(module.SPEC["argument_spec"]).validate(request["options"])
    assert not validation.error_messages, validation.error_messages
    result = runner.run_operation(
        module.OPERATION, validation.validated_parameters, check_mode=False, warn=lambda _text: None
    )
    print(json.dumps(result))


if __name__ == "__main__":
    main()

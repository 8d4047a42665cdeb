# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renews a run's sign of life, and its silences, while its ansible-playbook process lives, during any task.

Our own tasks renew the run's Lease while they work, but a user's task may take longer than a run may be silent. This
process follows the controller's process: it ends with it, and is silent while that is stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.web import RequestFailed
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import runs
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.silences import Alertmanager
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _parent_death

# How often in a row the Lease of the run may be missing. The run has ended, or it was paused for so long that others
# took it for dead and deleted its Lease. Then the next task that works for the run creates the Lease again. There is no
# limit for a run that lasts: it is the only one of its controller, and may work for hours after it was paused.
_MISSING_AT_MOST = 2
_NAME = "ansible_collections.holdfast.kubernetes.plugins.plugin_utils._lease_renewer"


def start(
    options: dict[str, Any], run: str, alertmanager: dict[str, Any] | None = None, *, lasts: bool = False
) -> None:
    """Start the renewer for the process that this worker belongs to.

    Args:
        options: The common options. They are passed through a pipe, because others can see a process's arguments.
        run: Id of the run.
        alertmanager: Where the run silences alerts. Its silences are extended, too.
        lasts: The run ends with the controller, or shortly before.
    """
    order = {"options": options, "run": run, "pid": _parent_death.controller(), "alertmanager": alertmanager}
    order["lasts"] = lasts
    search = [*_search_path(), *(path for path in sys.path if path)]
    process = subprocess.Popen(
        [sys.executable, "-m", _NAME],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(search)},
    )
    if process.stdin:
        process.stdin.write(json.dumps(order, default=str).encode())
        process.stdin.close()


def _search_path() -> list[str]:
    """Return where Python finds this collection: the folder that has ``ansible_collections``."""
    here = Path(os.path.abspath(__file__)).parents
    found = next((parent.parent for parent in here if parent.name == "ansible_collections"), None)
    return [str(found)] if found else []


def main() -> None:
    order = json.loads(sys.stdin.buffer.read())
    cluster = Cluster(order["options"])
    process = Process(order["pid"])
    if order["alertmanager"]:
        # In a thread, because a slow Alertmanager must not delay the run's sign of life.
        threading.Thread(target=_extend_silences, args=(order,), daemon=True).start()
    pause, missing = runs.RENEW_EVERY, 0
    while (order["lasts"] or missing < _MISSING_AT_MOST) and not process.ended_within(pause):
        if _stopped(order["pid"]):
            continue
        try:
            runs.touch(cluster, order["run"], patient=False)
            pause, missing = runs.RENEW_EVERY, 0
        except NotFound:
            pause, missing = runs.RENEW_EVERY, missing + 1
        except Exception:  # noqa: BLE001 - without this process, the run would count as dead although it works
            # The API server is unreachable, for example. Other runs decide what the silence means.
            pause = runs.RENEW_AGAIN


def _extend_silences(order: dict[str, Any]) -> None:
    alertmanager, cluster = Alertmanager(order["alertmanager"], order["run"]), Cluster(order["options"])
    while True:
        time.sleep(alertmanager.extend_every)
        if not _stopped(order["pid"]):
            # The next time may succeed. If none does, the silences expire.
            with contextlib.suppress(RequestFailed):
                alertmanager.extend(cluster)


class Process:
    """One process, even if another process gets its id after its end."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._gone = False
        self._descriptor: int | None = None
        if hasattr(os, "pidfd_open"):
            try:
                # An open descriptor always refers to this process.
                self._descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                self._gone = True
            except OSError:
                # An old kernel or a sandbox does not allow it.
                pass

    def ended_within(self, seconds: float) -> bool:
        """Wait for its end for at most this many seconds; return whether it has ended."""
        if self._gone:
            return True
        if self._descriptor is not None:
            return bool(select.select([self._descriptor], [], [], seconds)[0])
        time.sleep(seconds)
        try:
            os.kill(self._pid, 0)
        except ProcessLookupError:
            return True
        return False


def _stopped(pid: int) -> bool:
    """Return whether a process is stopped (SIGSTOP, a paused container)."""
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return state[0] in ("T", "t")
    return False


if __name__ == "__main__":
    main()

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""End a worker together with its controller.

Ansible's workers outlive a controller that is killed: each continues its task, and nothing uses or releases what it
acquires, for example a slot.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal

_PR_SET_PDEATHSIG = 1


def controller() -> int:
    """Return the process id of the controller that started this worker, even if that process has ended."""
    maker = multiprocessing.parent_process()
    return maker.pid if maker and maker.pid else os.getppid()


def end_with_parent() -> None:
    """Ask the kernel to end this process together with its parent. Only on Linux; elsewhere nothing happens."""
    parent = controller()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # The parent ended before the call to the kernel.
        os._exit(1)

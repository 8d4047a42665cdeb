# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker ends with its controller.

Ansible's workers outlive a controller that is killed: each goes on with its task, and what it gets, a slot for example,
nobody uses or gives back.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal

_PR_SET_PDEATHSIG = 1


def controller() -> int:
    """Process id of the controller that made this worker; as it was then, for one that is gone is nobody's parent."""
    maker = multiprocessing.parent_process()
    return maker.pid if maker and maker.pid else os.getppid()


def end_with_parent() -> None:
    """Have the kernel end this process when its parent is gone; on Linux only, elsewhere nothing happens."""
    parent = controller()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It went before the kernel was told.
        os._exit(1)

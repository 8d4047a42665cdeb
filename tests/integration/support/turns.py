# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns at what there is but once in the lab, for tests that several processes share."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator, Sequence

from lab import Lab


@contextlib.contextmanager
def turn(lab: Lab, thing: str, *, shared: bool = False) -> Iterator[None]:
    """Nobody else has the thing meanwhile; with ``shared`` only those who share it, too."""
    with (lab.kubeconfig.parent / f"{thing}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def node_turns(lab: Lab, names: Sequence[str]) -> Iterator[None]:
    """Nobody else has these real nodes meanwhile."""
    with contextlib.ExitStack() as turns:
        # All in one order, so that nobody waits for one who waits for them.
        for name in sorted(names):
            turns.enter_context(turn(lab, name))
        yield

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns at things that the lab has only once, for tests that several processes share."""

from __future__ import annotations

import contextlib
import fcntl
import threading
from collections.abc import Iterator, Sequence

from integration.support.fitness import make_fit

from lab import Lab

# What a test marked `alone` has to itself, and all other tests share.
TESTS = "tests"
_mine = threading.local()


@contextlib.contextmanager
def turn(lab: Lab, thing: str, *, shared: bool = False) -> Iterator[bool]:
    """Lock the thing; with ``shared``, others may share it.

    A thread that has it already keeps it: a fixture of a module may have it for all tests of that module. Yields
    whether the turn is new.

    Raises:
        RuntimeError: The thread shares it, and wants it alone. Two such threads would wait for each other forever.
    """
    held: dict[str, bool] = vars(_mine).setdefault("held", {})
    path = lab.kubeconfig.parent / f"{thing}.lock"
    if str(path) in held:
        if held[str(path)] and not shared:
            raise RuntimeError(f"{path.name} is shared by this thread. Lock it alone before anything else.")
        yield False
        return
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        held[str(path)] = shared
        try:
            yield True
        finally:
            del held[str(path)]


@contextlib.contextmanager
def node_turns(lab: Lab, names: Sequence[str], *, alone: bool = False) -> Iterator[None]:
    """Lock these real nodes, and make them fit for use: a killed test may have left something on them.

    With ``alone``, no other test runs meanwhile.

    A test that has one node for long takes no other one meanwhile, or two tests may wait for each other.
    """
    with contextlib.ExitStack() as turns:
        # First: a test marked `alone` that already had a node would wait for the tests that wait for this node.
        turns.enter_context(turn(lab, TESTS, shared=not alone))
        # All tests take them in the same order, so no two wait for each other.
        new = [name for name in sorted(names) if turns.enter_context(turn(lab, name))]
        make_fit(lab, new)
        yield

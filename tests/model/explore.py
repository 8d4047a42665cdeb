# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every history of a scope, breadth first: a broken promise has its shortest history."""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass, field
from itertools import islice

from model.after import check_the_end
from model.fleet import State


@dataclass
class Explored:
    """What came out.

    Attributes:
        ends: States in which nothing is left to do.
        whole: Whether all states were visited.
        broken: The promise that is broken, and the shortest history that breaks it.
    """

    states: int = 0
    moves: int = 0
    ends: int = 0
    seconds: float = 0.0
    whole: bool = True
    broken: str = ""
    history: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        size = f"{self.states} states, {self.moves} moves, {self.ends} ends, {self.seconds:.0f} s of CPU time"
        if not self.broken:
            return f"{size}{'' if self.whole else ', NOT ALL OF THEM'}"
        steps = "\n".join(f"{number:3} {words}" for number, words in enumerate(self.history, 1))
        return f"{size}\nBROKEN: {self.broken}\nThe shortest history that breaks it:\n{steps}"


def explore(first: State, *, limit: int = 0, seconds: float = 0) -> Explored:
    """Visit every state that can come after this one, or as many as the limits allow."""
    started, found = time.process_time(), Explored()
    seen: dict[int, tuple[tuple[int, ...], ...]] = {}
    _is_new(seen, first)
    # How each state is reached first: from which state, by which move. States are kept only until they are visited.
    came_from, by_move = array("q", [-1]), array("q", [-1])
    frontier: list[tuple[int, State]] = [(0, first)]
    while frontier:
        following: list[tuple[int, State]] = []
        for number, state in frontier:
            try:
                for which, move in enumerate(state.moves()):
                    found.moves += 1
                    if _is_new(seen, move.after):
                        following.append((len(came_from), move.after))
                        came_from.append(number)
                        by_move.append(which)
                if state.at_its_end:
                    found.ends += 1
                    check_the_end(state)
            except AssertionError as broken:
                found.broken, found.history = str(broken), _history(first, came_from, by_move, number)
                following = []
                break
        frontier = following
        found.states, found.seconds = len(came_from), time.process_time() - started
        if (limit and found.states > limit) or (seconds and found.seconds > seconds):
            found.whole = not frontier
            break
    return found


def _is_new(seen: dict[int, tuple[tuple[int, ...], ...]], state: State) -> bool:
    """Whether it was not visited yet with so many faults left, or more: then all that may follow was visited, too."""
    key = hash(state.key[:2])
    known = seen.get(key, ())
    if any(all(more >= less for more, less in zip(left, state.left, strict=True)) for left in known):
        return False
    seen[key] = (*known, state.left)
    return True


def _history(state: State, came_from: array[int], by_move: array[int], number: int) -> list[str]:
    """The words of the moves that lead to a state."""
    way = []
    while came_from[number] >= 0:
        way.append(by_move[number])
        number = came_from[number]
    words = []
    for which in reversed(way):
        move = next(islice(state.moves(), which, None))
        words.append(move.words)
        state = move.after
    return words

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every history of a scope, breadth first: a broken promise has its shortest history."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from model.after import check_the_end
from model.fleet import State


@dataclass
class Explored:
    """The result of a search.

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


@dataclass(frozen=True, slots=True)
class Visit:
    """A state on the frontier.

    Attributes:
        program: The program that moved last; see :class:`model.fleet.Move`.
        interruptions: How many more are allowed; ``None`` for no limit.
    """

    state: State
    program: tuple[int, int] | None = None
    interruptions: int | None = None

    def following(self) -> Iterator[tuple[int, Visit]]:
        """The visits after this one, each with the number of its move."""
        if self.interruptions is None:
            yield from ((which, Visit(move.after)) for which, move in enumerate(self.state.moves()))
            return
        moves = list(self.state.moves())
        can_continue = self.program is not None and any(move.program == self.program for move in moves)
        for which, move in enumerate(moves):
            left = self.interruptions - (can_continue and not move.fault and move.program != self.program)
            if left >= 0:
                yield which, Visit(move.after, move.program or self.program, left)

    @property
    def left(self) -> tuple[int, ...]:
        """What may still happen: faults, and interruptions."""
        return (*self.state.left, self.interruptions or 0)


def explore(
    first: State,
    *,
    limit: int = 0,
    seconds: float = 0,
    interruptions: int | None = None,
    check: Callable[[State], None] = lambda _state: None,
) -> Explored:
    """Visit every state that can come after this one, or as many as the limits allow.

    Args:
        limit: The number of states after which to stop.
        seconds: The CPU time after which to stop.
        interruptions: Visit only histories with so many interruptions at most. An interruption is a move of another
            program, or an event, while the program that moved last can continue. Faults count by themselves.
        check: Judges each state.
    """
    started, found = time.process_time(), Explored()
    seen: dict[int, tuple[tuple[int, ...], ...]] = {}
    frontier = [Visit(first, interruptions=interruptions)]
    _is_new(seen, frontier[0])
    # How each state is reached first: from which state, by which move. States are kept only until they are visited.
    came_from, by_move = array("q", [-1]), array("q", [-1])
    while frontier:
        following: list[Visit] = []
        # The frontier has the states that were found last, in the order in which they were found.
        for number, visit in enumerate(frontier, len(came_from) - len(frontier)):
            try:
                check(visit.state)
                for which, after in visit.following():
                    found.moves += 1
                    if _is_new(seen, after):
                        following.append(after)
                        came_from.append(number)
                        by_move.append(which)
                if visit.state.at_its_end:
                    found.ends += 1
                    check_the_end(visit.state)
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


def _is_new(seen: dict[int, tuple[tuple[int, ...], ...]], visit: Visit) -> bool:
    """Whether it was not visited yet with as much left: then all that may follow was visited, too."""
    key = hash((*visit.state.key[:2], visit.program))
    known = seen.get(key, ())
    if any(all(more >= less for more, less in zip(left, visit.left, strict=True)) for left in known):
        return False
    seen[key] = _shared((*known, visit.left))
    return True


@lru_cache(None)
def _shared(lefts: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Always the same Python object for equal arguments: millions of states have one of a few values."""
    return lefts


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

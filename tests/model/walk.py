# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random histories of a scope that has too many states to visit all of them."""

from __future__ import annotations

from random import Random

from model import api
from model.after import check_the_end
from model.fleet import Move, Scope, State
from model.judge import names
from model.plan import SETTINGS, check_plan
from model.role import Plan

# Moves until a history counts as endless.
_MOST = 5000
# How often a fault comes next, if one can.
_FAULT = 0.05
# How often a person plans a rolling reboot, where the scope has one.
_PLANS = 0.01
# How often something happens by itself although a program can go on; one of them for each history. A node that comes
# back at any moment ends most failovers at their begin.
_EVENTS = (0.01, 0.1, 0.5)


def walk(scope: Scope, chance: Random) -> tuple[list[str], str]:
    """Play one history.

    Returns:
        What happened, and the promise that it breaks; empty if it breaks none.
    """
    words: list[str] = []
    before, api.versions_grow = api.versions_grow, True
    often = chance.choice(_EVENTS)
    try:
        state = scope.begin()
        while not state.at_its_end:
            if len(words) == _MOST:
                return words, f"no end after {_MOST} moves"
            if isinstance(scope.plans[0], Plan) and chance.random() < _PLANS:
                check_plan(state, chance.choice(names(state.objects)), **chance.choice(SETTINGS))
            move = _next(state, chance, often)
            words.append(move.words)
            state = move.after
        check_the_end(state)
    except AssertionError as broken:
        return words, str(broken)
    finally:
        api.versions_grow = before
    return words, ""


def _next(state: State, chance: Random, often: float) -> Move:
    moves = list(state.moves())
    faults = [move for move in moves if move.fault]
    others = [move for move in moves if not move.fault]
    if faults and (not others or chance.random() < _FAULT):
        return chance.choice(faults)
    events = [move for move in others if move.program is None]
    requests = [move for move in others if move.program is not None]
    return chance.choice(events if events and (not requests or chance.random() < often) else requests)

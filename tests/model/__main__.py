# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Play the roles: random histories on all processors, or every history of a scope.

    python -m model --histories 10000 [--seed N]
    python -m model --runs 1 --failovers 1 --nodes 2 --faults death,pause --histories 10000 [--seed N]
    python -m model --runs 2 --nodes 1
    python -m model --runs 2 --nodes 2 --faults death --interruptions 0 [--seconds N]

Without a scope, the random histories are those of a fleet of four nodes. Each portion of random histories comes from
one seed, which is printed: the same seed gives the same histories.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from model.explore import explore
from model.failover import COMMAND, METAL3, FailoverPlan
from model.fleet import FAULTS, Scope
from model.guard import GuardPlan
from model.machine import ZONES, Machine
from model.plan import check_plans
from model.role import Plan
from model.walk import walk

PORTION, STEPS = 100, 25


@dataclass
class Told:
    """The result of a portion."""

    seed: int
    histories: int = 0
    steps: int = 0
    failure: str = ""


def play_fleet(portion: tuple[int, int]) -> Told:
    """One portion of the histories of a fleet, in its own process."""
    number, histories = portion
    told = Told(number)

    class Counted(Machine):
        def teardown(self) -> None:
            super().teardown()
            told.histories += 1
            told.steps += self.steps

    said = io.StringIO()
    how = settings(
        max_examples=histories,
        stateful_step_count=STEPS,
        phases=[Phase.generate, Phase.shrink],
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with contextlib.redirect_stdout(said):
        try:
            run_state_machine_as_test(seed(number)(Counted), settings=how)
        except Exception:  # noqa: BLE001 - any error is a finding
            told.failure = said.getvalue() + traceback.format_exc()
    return told


def play_scope(scope: Scope, portion: tuple[int, int]) -> Told:
    """One portion of the histories of a scope, in its own process."""
    number, histories = portion
    told, chance = Told(number), random.Random(number)
    while told.histories < histories and not told.failure:
        words, broken = walk(scope, chance)
        told.histories, told.steps = told.histories + 1, told.steps + len(words)
        if broken:
            told.failure = "\n".join((*words, f"BROKEN: {broken}"))
    return told


def scope_of(
    runs: int,
    nodes: int,
    faults: list[str],
    *,
    failovers: int = 0,
    deletions: int = 0,
    recoveries: int = 0,
    guards: int = 0,
    ways: Sequence[str] = (COMMAND,),
) -> Scope:
    """Runs of one operation each, all over the same nodes; the first node is down if it is to be failed over.

    Deletions are failovers that delete the Node. Guards serve the Machine of the first node.

    The cluster of a rolling reboot has a second node: the only node of a cluster is refused.
    """
    names = dict(list(ZONES.items())[:nodes])
    cluster = dict(list(ZONES.items())[: max(nodes, 2)]) if runs else names
    first = next(iter(names))
    plans = tuple(Plan(f"run-{number}", tuple(names), {}, number=number) for number in range(1, runs + 1))
    kinds = ["failover"] * failovers + ["delete"] * deletions + ["recover"] * recoveries
    others = tuple(
        FailoverPlan(
            f"{kind}-{number}/{first}",
            first,
            back=kind == "recover",
            ways=tuple(ways),
            variables={"delete_node": True} if kind == "delete" else {},
        )
        for number, kind in enumerate(kinds, 1)
    )
    guarding = tuple(GuardPlan(f"guard-{number}", first, number=number) for number in range(1, guards + 1))
    return Scope(
        (*plans, *others, *guarding), cluster, dict.fromkeys(faults, 1), first if failovers + deletions else ""
    )


def random_histories(play: Callable[[tuple[int, int]], Told], histories: int, first: int) -> int:
    sizes = [min(PORTION, histories - begun) for begun in range(0, histories, PORTION)]
    portions = [(first + number, size) for number, size in enumerate(sizes)]
    started, played, steps, broken = time.monotonic(), 0, 0, 0
    # What a process has learned of the rules takes memory, so it ends after a while.
    with multiprocessing.Pool(min(len(portions), os.cpu_count() or 1), maxtasksperchild=2) as pool:
        for told in pool.imap_unordered(play, portions):
            played, steps, broken = played + told.histories, steps + told.steps, broken + bool(told.failure)
            print(f"seed {told.seed}: {told.histories} histories, {'BROKEN' if told.failure else 'ok'}", flush=True)
            if told.failure:
                print(told.failure, flush=True)
    print(f"{played} histories, {steps} steps, {time.monotonic() - started:.0f} s; promises broken: {broken}")
    return int(broken > 0)


def main() -> int:
    parser = argparse.ArgumentParser(prog="model", description="Play the roles in memory.")
    parser.add_argument("--histories", type=int, help="so many random histories; 10000 without a scope")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--runs", type=int, default=0, help="so many runs reboot all nodes")
    parser.add_argument("--failovers", type=int, default=0, help="so many runs fail the first node over, which is down")
    parser.add_argument("--deletions", type=int, default=0, help="so many runs fail it over and delete its Node")
    parser.add_argument("--recoveries", type=int, default=0, help="so many runs bring the first node back")
    parser.add_argument("--ways", default=COMMAND, help=f"how a machine is switched off: {COMMAND}, {METAL3} or both")
    parser.add_argument("--guards", type=int, default=0, help="so many runs serve the Machine of the first node")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--faults", default="", help=f"what happens once at most: {', '.join(FAULTS)}")
    parser.add_argument("--seconds", type=float, default=0, help="CPU time after which to stop")
    parser.add_argument(
        "--interruptions", type=int, help="only histories in which programs interrupt each other so often"
    )
    parser.add_argument("--plans", action="store_true", help="compare plans with runs in each state of a scope")
    options = parser.parse_args()
    if options.histories and options.interruptions is not None:
        parser.error("--interruptions is for all histories of a scope, not for random ones")
    kinds = ("failovers", "deletions", "recoveries", "guards")
    more = {name: getattr(options, name) for name in kinds}
    if not options.runs + sum(more.values()):
        return random_histories(play_fleet, options.histories or 10000, options.seed)
    if options.guards and options.failovers + options.deletions:
        # The deletion of a Machine ends with the Node, so there is nothing to judge a failover by.
        parser.error("a scope has guards or failovers, not both")
    faults = options.faults.split(",") if options.faults else []
    if ("lost" in faults or options.deletions) and options.runs + options.guards:
        parser.error("a Node is lost or deleted only in a scope of failovers and recoveries")
    scope = scope_of(options.runs, options.nodes, faults, **more, ways=options.ways.split(","))
    if options.histories:
        return random_histories(partial(play_scope, scope), options.histories, options.seed)
    more = {"check": check_plans} if options.plans else {}
    found = explore(scope.begin(), seconds=options.seconds, interruptions=options.interruptions, **more)
    print(found)
    return int(bool(found.broken))


if __name__ == "__main__":
    sys.exit(main())

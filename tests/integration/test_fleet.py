# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many ansible-playbook processes over one group, judged by the API server's own history and not by their output."""

from __future__ import annotations

import random
import time

import pytest
from integration.support.history import History

from lab.patience import PATIENCE


def slices(names, count):
    """As AWX cuts an inventory: every n-th host."""
    return [names[start::count] for start in range(count)]


def run_all(rolling, jobs, **variables):
    """Run all at once, each with its slice and its own run."""
    runs = [rolling.start(hosts, run=f"job-{number}-{rolling.group}", **variables) for number, hosts in enumerate(jobs)]
    return [run.done(PATIENCE).good() for run in runs]


def assert_each_once(rolling, history, names, before):
    for name in names:
        assert history.boot_ids[name] == [before[name], rolling.boot_id(name)], "rebooted exactly once"
        assert rolling.record(name)["result"] == "rebooted"
    rolling.assert_nothing_left(names)


@pytest.mark.long
def test_eight_jobs_share_one_budget(rolling, nodes, kubeconfig):
    names = nodes(40)
    before = rolling.boot_ids(names)

    with History(kubeconfig, group=rolling.group, selector=rolling.selector) as history:
        done = run_all(rolling, slices(names, 8), operation="fleet", max_unavailable=3)

    assert history.most_slots <= 3, history.worst_slots
    assert history.most_unavailable <= 3, history.worst_unavailable
    assert len(history.worst.busy) <= 3, history.worst
    assert all(moment.unavailable <= moment.slots for moment in history.moments)
    # The budget was not only respected but fully used.
    assert history.most_slots == 3
    assert all(set(job.results.values()) == {"rebooted"} for job in done)
    assert_each_once(rolling, history, names, before)


@pytest.mark.long
def test_jobs_stay_within_one_zone_at_a_time(rolling, nodes, kubeconfig):
    names = nodes(9)
    zone = {name: f"zone-{number % 3}" for number, name in enumerate(names)}
    for name in names:
        rolling.world.cluster.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"zone": zone[name]}}})
    before = rolling.boot_ids(names)
    budget = {"max_unavailable": 2, "topology_key": "zone", "max_domains": 1}

    with History(kubeconfig, group=rolling.group, selector=rolling.selector) as history:
        run_all(rolling, slices(names, 4), operation="zones", **budget)

    for moment in history.moments:
        assert len(moment.busy) <= 2, moment
        assert len({zone[name] for name in moment.busy}) <= 1, moment
    assert history.most_slots == 2
    assert_each_once(rolling, history, names, before)


SEED = 20261121


@pytest.mark.long
def test_three_of_eight_jobs_are_killed_and_started_again(rolling, nodes, kubeconfig):
    names = nodes(60)
    zone = {name: f"zone-{number % 3}" for number, name in enumerate(names)}
    for name in names:
        rolling.world.cluster.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"zone": zone[name]}}})
    before = rolling.boot_ids(names)
    budget = {"max_unavailable": 2, "topology_key": "zone", "max_domains": 1}
    chance = random.Random(SEED)
    killed = chance.sample(range(8), 3)
    moments = [chance.uniform(5, 40) for _number in killed]
    print(f"seed {SEED}: job {killed} is killed after {[round(moment, 1) for moment in moments]} s each")

    with History(kubeconfig, group=rolling.group, selector=rolling.selector) as history:
        jobs = slices(names, 8)
        runs = [rolling.start(hosts, operation="fleet", **budget) for hosts in jobs]
        for number, moment in zip(killed, moments):
            time.sleep(moment)
            assert runs[number].running, "nothing is left to be killed"
            runs[number].kill()
            runs[number] = rolling.start(jobs[number], operation="fleet", **budget)
        # Two at a time, one zone after the other: thirty rounds.
        done = [run.done(4 * PATIENCE).good() for run in runs]

    for moment in history.moments:
        assert len(moment.busy) <= 2, moment
        assert len({zone[name] for name in moment.busy}) <= 1, moment
    assert history.most_slots == 2
    assert all(set(job.results.values()) <= {"rebooted", "skipped"} for job in done)
    assert_each_once(rolling, history, names, before)

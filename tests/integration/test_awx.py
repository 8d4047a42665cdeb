# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs as AWX runs them, by ansible-runner: a workflow, slices that run at the same time, relaunches, wrong answers."""

from __future__ import annotations

import pytest
from integration.support.awx_jobs import Awx, slices
from integration.support.history import History

from lab.patience import PATIENCE


@pytest.fixture
def awx(rolling, ansible):
    found = Awx(rolling, ansible)
    yield found
    found.close()


@pytest.mark.long
def test_a_workflow_plans_reboots_in_slices_and_reports(rolling, nodes, awx, kubeconfig):
    names = nodes(4)
    held = names[3]
    rolling.hold(held)
    before = rolling.boot_ids(names)
    answers = {"when": "always", "max_unavailable": "1", "hold_timeout": 1, "override_holds": "false"}

    plan = awx.launch("rolling_reboot", names, answers, check=True)
    plan.done().good()

    # The person who approves sees this on the page of the job.
    verdicts = plan.artifacts["rolling_reboot_results"]
    assert {name: text.partition(":")[0] for name, text in verdicts.items()} == {
        **dict.fromkeys(names[:3], "now"),
        held: "later",
    }
    assert f"{rolling.world.namespace}/app" in verdicts[held]
    assert rolling.boot_ids(names) == before

    with History(kubeconfig, group=rolling.group, selector=rolling.selector) as history:
        jobs = [
            awx.launch("rolling_reboot", part, answers, artifacts=plan.artifacts)
            for part in ([names[0], names[2]], [names[1], held])
        ]
        done = [job.done() for job in jobs]

    assert history.most_slots == 1
    assert [job.code == 0 for job in done] == [True, False], "the held node fails its slice"
    assert jobs[0].artifacts["rolling_reboot_rebooted"] == 2
    assert jobs[1].artifacts["rolling_reboot_results"][held].startswith("stopped: ")
    operation = plan.artifacts["rolling_reboot_operation"]
    ended, unfinished = (job.artifacts for job in jobs)
    assert (ended["rolling_reboot_operation"], ended["rolling_reboot_ended_operation"]) == ("", operation)
    assert (unfinished["rolling_reboot_operation"], unfinished["rolling_reboot_ended_operation"]) == (operation, "")

    # AWX passes on the artifacts of the last slice only; the cluster knows all of them.
    report = awx.launch("report", names, artifacts={**plan.artifacts, **jobs[1].artifacts})

    assert report.done().code != 0, "AWX counts the failure of the slice as handled"
    results = report.artifacts["rolling_reboot_results"]
    assert {name: text.partition(":")[0] for name, text in results.items()} == {
        **dict.fromkeys(names[:3], "rebooted"),
        held: "stopped",
    }
    assert f"Look at these nodes: {held} (stopped)." in report.done().output


def test_a_wrong_answer_stops_the_job_before_anything_is_read(rolling, nodes, awx):
    (name,) = nodes(1)
    before = rolling.boot_ids([name])

    job = awx.launch("rolling_reboot", [name], {"when": "always", "max_unavailable": "lots"})

    assert job.done().code != 0
    assert "max_unavailable" in job.done().output
    assert rolling.boot_ids([name]) == before
    assert rolling.record(name) == {}
    assert rolling.ledger() == {}


@pytest.mark.long
def test_four_slices_share_one_budget_while_two_are_killed_and_relaunched(rolling, nodes, awx, kubeconfig):
    names = nodes(40)
    before = rolling.boot_ids(names)
    answers = {"when": "always", "max_unavailable": "3", "operation": "kernel-2026-11"}

    with History(kubeconfig, group=rolling.group, selector=rolling.selector) as history:
        jobs = [awx.launch("rolling_reboot", part, answers) for part in slices(names, 4)]
        # Both at the same time: with all slots in dead runs, no other job gets one.
        jobs[1].until(
            lambda: all(
                any(rolling.record(name).get("result") for name in job.hosts) and set(rolling.slots()) & set(job.hosts)
                for job in jobs[:2]
            ),
            "one node of each job is done, and another one is being rebooted",
        )
        for job in jobs[:2]:
            job.kill()
        left = [name for name in jobs[1].hosts if not rolling.record(name).get("result")]
        assert 0 < len(left) < 10
        jobs[0] = awx.relaunch("rolling_reboot", jobs[0].hosts, jobs[0].extra_variables)
        jobs[1] = awx.relaunch("rolling_reboot", jobs[1].hosts, jobs[1].extra_variables, limit=",".join(left))
        for job in jobs:
            job.done(4 * PATIENCE).good()

    assert history.most_slots == 3
    assert history.most_unavailable <= 3, history.worst_unavailable
    for name in names:
        assert history.boot_ids[name] == [before[name], rolling.boot_id(name)], "rebooted exactly once"
    rolling.assert_nothing_left(names)
    assert [set(job.artifacts["rolling_reboot_results"]) for job in jobs] == [
        set(jobs[0].hosts),
        set(left),
        set(jobs[2].hosts),
        set(jobs[3].hosts),
    ]
    for job in jobs:
        counts = {name: job.artifacts[f"rolling_reboot_{name}"] for name in ("failed", "stopped", "lost", "postponed")}
        assert not any(counts.values()), counts

    report = awx.launch("report", names[:1], {"operation": "kernel-2026-11"})

    report.done().good()
    assert set(report.artifacts["rolling_reboot_results"]) == set(names)
    assert report.artifacts["rolling_reboot_rebooted"] == len(names)

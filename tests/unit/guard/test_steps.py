# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wait for a Machine survives API servers that do not answer."""

from __future__ import annotations

import pytest
from unit.guard.test_killed import MACHINE, NODE, Api, follow
from unit.guard.test_rules import waiting

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, Outdated, Unreachable
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import steps as step


def work(**options):
    params = {"hook": "backup", "owner": "team", "run": "r", "worker": "w", "machines": [], "selector": ""}
    params |= {"cluster": "", "templates": [], "set_points": [], "stop": "deadline", "retry_seconds": 0, **options}
    context = Context(params)
    context.__dict__["management"] = None
    return step._GuardStep(context, params)


@pytest.fixture
def away(monkeypatch):
    """The API server is unavailable once, so that a change was lost."""
    looks = []

    def follow(_self, _pause):
        looks.append(1)
        if len(looks) == 1:
            raise Outdated("The API server was unavailable.", patience=0)
        return {"step": "pre-drain"}

    monkeypatch.setattr(step._GuardStep, "_follow", follow)
    return looks


def test_a_change_that_was_lost_is_decided_again(away):
    assert work().next() == {"step": "pre-drain"}


def test_not_after_the_time(away):
    with pytest.raises(Outdated):
        work(wait_timeout=0).next()


class Dead:
    """The API server of a cluster that is being deleted: it does not answer, or a proxy answers."""

    dry_run = False

    def __init__(self, status=0):
        self._status = status

    def __getattr__(self, name):
        if self._status:
            raise ApiFailure("The API server https://c:6443 answered", status=self._status)
        raise Unreachable("The API server https://c:6443 did not answer.")


@pytest.fixture
def take(monkeypatch):
    """Takes a Machine. The management cluster has the Machines ``m``, with a Node, and perhaps ``n``, without one."""
    monkeypatch.setattr(step, "Follower", follow)
    monkeypatch.setattr(step.runs, "ensure_namespace", lambda _cluster: None)
    api = Api()
    del api.objects[NODE]

    def act(*, with_n=False, turn=1, status=0, **options):
        if with_n:
            other = {**waiting(name="n", node=None), "apiVersion": "cluster.x-k8s.io/v1beta2"}
            other["metadata"]["resourceVersion"] = "1"
            api.objects[MACHINE[:-1] + "n"] = other
        params = {"hook": "backup", "owner": "team", "run": "r", "worker": f"1.{turn}", "machines": [], "selector": ""}
        params |= {"cluster": "", "templates": [], "set_points": [], "stop": "deadline", "retry_seconds": 0}
        params |= {"wait_timeout": 0, **options}
        said = []
        context = Context(params, say=said.append)
        context.__dict__.update(cluster=Dead(status), management=api)
        return step.take_machine(context, params), said, api

    return act


@pytest.mark.parametrize("status", [0, 503])
def test_a_machine_whose_node_can_not_be_read_waits_and_another_one_is_served(take, status):
    found, (said,), _api = take(with_n=True, status=status)
    assert found["machine"]["name"] == "n"
    assert "Machine metal/m waits: the API server of Cluster c does not answer." in said
    assert "remove the hook with deletion_hook, state: absent" in said


def test_a_refusal_is_an_error(take):
    with pytest.raises(ApiFailure):
        take(with_n=True, status=403)


def test_if_no_other_is_left_the_report_says_why(take):
    found, _said, _api = take()
    assert (found["machine"], found["why"]) == (None, "deadline")
    assert "the API server of Cluster c does not answer" in found["unanswered"]


def test_earlier_work_that_can_not_be_ended_does_not_stop_this_one(take):
    _found, _said, api = take(with_n=True)
    lease = next(path for path in api.objects if "leases" in path)
    found, _said, api = take(with_n=True, turn=2)
    assert found["machine"]["name"] == "n"
    assert lease in api.objects, "the next work tries again"

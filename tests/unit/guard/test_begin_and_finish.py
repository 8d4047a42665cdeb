# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The start and the end of a guard, with operations that answer as told."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    ApiFailure,
    Refused,
    Unreachable,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.rules import CannotHold
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import begin, finish, journey
from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress import last_answer

GIVEN = {
    "hook": "backup",
    "owner": "team",
    "namespace": "metal",
    "machines": ["m", "n"],
    "selector": "",
    "cluster": "",
    "templates": [],
    "points": ["pre-drain"],
    "set_hooks": True,
    "state": "present",
    "parallel": 2,
    "timeout": 60,
    "retry_seconds": 0,
    "pre_drain_tasks": [],
    "pre_terminate_tasks": [],
    "report": "",
}
WHO = {"job": "", "person": "ada@ci", "host": "ci"}
MACHINES = [
    {"name": name, "namespace": "metal", "cluster": "c", "phase": "NotDeleting", "waiting_since": None}
    for name in ("m", "n")
]


@pytest.fixture
def start(monkeypatch):
    """Starts a guard; the hooks of each Machine are set as told."""

    def act(errors=None, *, check_mode=False, folder="", **given):
        log, left = [], {name: list(each) for name, each in (errors or {}).items()}

        def hook(_context, params):
            log.append((params["kind"], params["machine"], params["point"], params["state"]))
            if left.get(params["machine"]):
                raise left[params["machine"]].pop(0)
            return {"changed": True}

        monkeypatch.setattr(begin, "deletion_hook", hook)
        monkeypatch.setattr(begin, "deletion_hook_info", lambda *_arguments: {"machines": MACHINES})
        monkeypatch.setattr(begin, "take_machine", lambda *_arguments: {"left": [{**MACHINES[0], "phase": "x"}]})
        monkeypatch.setattr(begin.time, "sleep", lambda _seconds: None)
        params = {"settings": {**GIVEN, **given}, "who": WHO, "playbook_dir": "/srv"}
        return begin.machine_guard_begin(Context(params, check_mode, folder=folder), params), log

    return act


class TestBegin:
    def test_hooks_are_set_and_workers_follow(self, start):
        found, log = start()
        assert log == [("Machine", "m", "pre-drain", "present"), ("Machine", "n", "pre-drain", "present")]
        assert (found["steps"], found["workers"], found["changed"]) == (["serve", "report"], [1, 2], True)
        assert found["begun"]["run"].startswith("ci/")
        assert (found["begun"]["holder"], found["begun"]["serves"]) == ("ada@ci", True)

    def test_each_worker_is_known_to_have_done_nothing(self, start, tmp_path):
        """Its first task may fail before its module runs. Without the playbook, its number is 0."""
        found, _log = start(folder=str(tmp_path))
        run = found["begun"]["run"]
        kept = [last_answer.last(str(tmp_path), journey.answer_key(run, worker)) for worker in ("0", "1", "2", "3")]
        assert kept == [{"begun": run}, {"begun": run}, {"begun": run}, {}]

    def test_hooks_of_templates(self, start):
        _found, log = start(machines=[], templates=[{"kind": "MachineSet", "name": "t"}])
        assert log == [("MachineSet", "t", "pre-drain", "present")]

    def test_no_hooks_are_set(self, start):
        assert start(set_hooks=False)[1] == []

    def test_one_that_may_not_have_a_hook_leaves_the_others(self, start):
        found, log = start({"m": [ApiFailure("no", status=403)]})
        assert len(log) == 2
        assert found["begun"]["refused"] == [{"machine": "metal/m", "detail": "no"}]

    def test_a_hook_that_can_not_hold(self, start):
        (entry,) = start({"m": [CannotHold("past", why="past")]})[0]["begun"]["hooks"]
        assert (entry["name"], entry["error"], entry["why"]) == ("m", "cannot_hold", "past")

    def test_an_api_server_that_is_away_is_asked_again(self, start):
        _found, log = start({"m": [Unreachable("away"), ApiFailure("busy", status=503)]})
        assert len(log) == 4

    def test_it_ends_if_that_lasts(self, start):
        with pytest.raises(Unreachable):
            start({"m": [Unreachable("away")] * 99})

    def test_a_template_that_may_not_be_changed_ends_it(self, start):
        with pytest.raises(ApiFailure):
            start({"t": [ApiFailure("no", status=403)]}, templates=[{"kind": "MachineSet", "name": "t"}])

    def test_a_plan(self, start):
        found, _log = start(check_mode=True)
        assert (found["steps"], found["workers"], found["waiting"]) == (["plan", "report"], [], ["metal/m: x"])


BEGUN = {
    "settings": GIVEN,
    "run": "r",
    "holder": "ada",
    "serves": True,
    "check_mode": False,
    "hooks": [],
    "refused": [],
    "unknown": [],
}
WORKER = {"begun": "r", "results": [], "refused": [], "why": "deadline", "failure": "", "work": None}
LEFT = {
    "name": "m",
    "namespace": "metal",
    "cluster": "c",
    "node": None,
    "phase": "WaitingForPreDrainHook",
    "waiting_for": "pre-drain",
    "hooks": [{"hook": "backup", "point": "pre-drain"}],
    "paused": False,
}


@pytest.fixture
def end(monkeypatch):
    """Ends a guard; one Machine is left, and is taken as told."""

    def act(*workers, taken=None, error=None, left=None, unanswered="", at_work=False, **begun):
        log = []

        def take(context, params):
            if error:
                raise error
            found = None if context.check_mode else taken
            more = {"unanswered": unanswered, "at_work": at_work, "run": f"r/{params['worker']}"}
            return {"left": [left or LEFT], "machine": found, **more}

        def record(_context, params):
            log.append((params["run"], params["result"], params["detail"]))
            return {"record": {"result": "failed", "detail": params["detail"]}}

        for module in (finish, journey):
            monkeypatch.setattr(module, "take_machine", take)
            monkeypatch.setattr(module, "machine_guard_record", record)
        params = {"begun": {**BEGUN, **begun}, "workers": list(workers)}
        return finish.machine_guard_finish(Context(params), params), log

    return act


class TestFinish:
    def test_nothing_is_left(self, end):
        found, log = end({**WORKER, "why": "idle"})
        assert (found["steps"], found["why"], log) == ([], "", [])

    def test_a_machine_that_is_left_is_reported(self, end):
        found, log = end(WORKER, taken=LEFT)
        assert found["summary"]["waiting"] == ["m"]
        assert found["steps"] == ["fail"]
        ((run, result, detail),) = log
        assert (run, result) == ("r/left.0", "failed")
        assert detail.startswith("the work was not started: the run ended (deadline).")

    @pytest.mark.parametrize("more", [{}, {"left": {**LEFT, "paused": True}, "at_work": True}])
    def test_one_that_another_run_works_on_is_not_left(self, end, more):
        found, log = end(WORKER, **more)
        assert (found["summary"]["waiting"], log) == ([], [])

    @pytest.mark.parametrize(
        ("more", "why"),
        [
            ({"left": {**LEFT, "paused": True}}, "it or its Cluster is paused. End the pause"),
            ({"unanswered": "the API server of Cluster c does not answer."}, "the API server of Cluster c does not"),
            ({"left": {**LEFT, "waiting_for": "pre-terminate"}}, "the run ended (deadline). Start the playbook again"),
        ],
    )
    def test_one_that_no_run_can_get_is_left(self, end, more, why):
        found, log = end(WORKER, **more)
        assert (found["summary"]["waiting"], found["steps"], log) == (["m"], ["fail"], [])
        assert f"has the hook, and is not served: {why}" in found["why"]

    def test_what_is_left_is_not_known(self, end):
        found, _log = end(WORKER, error=Unreachable("away"))
        assert (found["steps"], found["why"]) == (["fail"], "away")

    def test_a_worker_that_dropped_out(self, end):
        machine = {"name": "m", "namespace": "metal", "cluster": "c", "node": "n", "run": "r/1.1", "resumed": False}
        found, log = end({**WORKER, "why": "", "work": {"point": "pre-drain"}, "machine": machine})
        assert found["summary"]["failed"] == ["m"]
        assert [run for run, _result, _detail in log] == ["r/1.1"]

    def test_nobody_was_let_in(self, end):
        with pytest.raises(Refused, match="localhost,machine_guard_workers"):
            end()

    def test_workers_of_an_earlier_run_in_the_same_play_do_not_count(self, end):
        with pytest.raises(Refused, match="localhost,machine_guard_workers"):
            end({**WORKER, "begun": "an earlier run"})

    def test_a_report_is_written(self, end):
        found, _log = end({**WORKER, "why": "idle"}, settings={**GIVEN, "report": "report.json"})
        assert found["steps"] == ["report"]
        assert found["report"]["summary"] == found["summary"]

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker's way from task to task: what it is asked, what it keeps, and what it records of a failure."""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    ApiFailure,
    Held,
    TimedOut,
    Unreachable,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import journey
from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress import last_answer
from lab.patience import PATIENCE

GIVEN = {
    "hook": "backup",
    "owner": "team",
    "namespace": "metal",
    "machines": ["m"],
    "selector": "",
    "cluster": "",
    "templates": [],
    "points": ["pre-drain"],
    "set_hooks": True,
    "stop": "deadline",
    "unreachable": "fence",
    "override_holds": False,
    "wait_for_replacement": False,
    "drain": True,
    "check_volumes": True,
    "make_up": False,
    "repeat_tasks": False,
    "retry_seconds": 0,
    "claim_timeout": 1,
    "hold_timeout": PATIENCE,
    "host_timeout": 1,
    "pre_drain_tasks": ["/srv/backup.yml"],
    "pre_terminate_tasks": [],
}
TAKEN = {
    "machine": {"name": "m", "namespace": "metal", "cluster": "c", "node": "n"},
    "run": "r/1.1",
    "step": "pre-drain",
    "node_state": "ready",
    "skipped": False,
    "leaves_drain": False,
    "resumed": False,
    "record": {"done": {}},
    "refused": [],
    "why": "",
}
NOTHING = {**TAKEN, "machine": None, "step": "done", "why": "idle"}


class World:
    """The operations that a journey uses. Each call is logged, and may fail."""

    def __init__(self, monkeypatch):
        self.log, self.errors, self.taken, self.queue = [], {}, TAKEN, []
        self.state = "ready"
        monkeypatch.setattr(journey.time, "sleep", lambda seconds: self.log.append(f"sleep {seconds:.0f}"))
        monkeypatch.setattr(journey, "take_machine", lambda _context, params: self.act("take", self.next()))
        monkeypatch.setattr(journey, "node_claim", lambda _context, params: self.act("claim", {}))
        monkeypatch.setattr(journey.leases, "lease_hold_info", lambda _context, params: self.act("holders", {}))
        monkeypatch.setattr(journey.expired_keys, "remove", lambda _context, params: self.act("sweep", {}))
        monkeypatch.setattr(journey, "machine_guard_record", self.record)

    def act(self, name, answer):
        self.log.append(name)
        errors = self.errors.get(name) or []
        if errors:
            raise errors.pop(0)
        return answer

    def next(self):
        return self.queue.pop(0) if self.queue else self.taken

    def record(self, _context, params):
        what = params.get("phase") or params.get("done") or params["result"]
        record = {"result": params.get("result") or "", "phases": {"claim": 1.0}, "done": {}, "facts": {}}
        return self.act(what, {"record": record, "node_state": self.state})


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


def step(last=None, failed=None, *, folder="", **given):
    begun = {"settings": {**GIVEN, **given}, "run": "r", "holder": "ada", "ends": time.time() + PATIENCE}
    params = {"begun": {**begun, "playbook_dir": "/srv"}, "worker": "1", "dropped": [], "failed": failed}
    # As Ansible passes it on.
    params["last"] = json.loads(json.dumps(last["kept"])) if last else None
    return journey.machine_guard_step(Context(params, folder=folder), params)


def test_one_machine_from_task_to_task(world):
    taken = step()
    assert (taken["step"], taken["renew"], taken["machine"]) == ("continue", "r/1.1", "m")
    tasks = step(taken)
    assert (tasks["step"], tasks["file"], tasks["renew"]) == ("tasks", "/srv/backup.yml", "")
    drain = step(tasks)
    assert (drain["step"], drain["node"], drain["run"]) == ("drain", "n", "r/1.1")
    released = step(drain)
    assert (released["step"], released["machine"] and released["kept"]["work"]) == ("continue", None)
    world.taken = NOTHING
    done = step(released)
    assert (done["step"], done["why"], done["changed"]) == ("done", "idle", False)
    (entry,) = done["kept"]["results"]
    assert (entry["work"], entry["result"], entry["run"]) == ("metal/m/pre-drain", "released", "r/1.1")
    assert world.log == [
        *("sweep", "take", "claim", "hold", "holders", "tasks"),
        *("backup.yml", "hold", "holders", "drain"),
        *("release", "released", "take"),
    ]


def test_a_step_that_fails_before_its_module_runs_does_not_forget_its_machine(world, tmp_path):
    """Ansible registers a result without an answer. The hook would stay, and the job would be green."""
    tasks = step(step(folder=str(tmp_path)), folder=str(tmp_path))
    assert tasks["step"] == "tasks"
    lost = {"msg": "The lookup plugin 'hashi_vault' failed: 503", "error": "", "status": ""}
    found = step(None, lost, folder=str(tmp_path))
    (entry,) = found["kept"]["results"]
    assert (entry["work"], entry["result"]) == ("metal/m/pre-drain", "failed")
    assert world.log[-1] == "failed"


def test_a_worker_whose_first_task_fails_before_its_module_runs_tries_again(world, tmp_path):
    last_answer.keep(str(tmp_path), journey.answer_key("r", "1"), {"begun": "r"})
    lost = {"msg": "The lookup plugin 'hashi_vault' failed: 503", "error": "", "status": ""}
    assert step(None, lost, folder=str(tmp_path))["step"] == "continue"


def test_a_worker_that_has_lost_its_answers_fails(world):
    """The folder of the kept answers was cleaned. The worker may have a Machine, and takes no other."""
    found = step(None, {"msg": "The lookup plugin 'hashi_vault' failed: 503.", "error": "", "status": ""})
    assert (found["step"], found["why"]) == ("done", "failed")
    said = found["kept"]["failure"]
    assert said.startswith("The lookup plugin 'hashi_vault' failed: 503. How far worker 1 came is lost")
    assert "Start the playbook again: it resumes" in said
    assert world.log == []


def test_a_worker_ends_when_all_that_waited_is_served(world):
    """One step after the other, as the role takes them, without a count of its own."""
    machines = [{**TAKEN, "machine": {**TAKEN["machine"], "name": f"m-{number}"}} for number in range(200)]
    world.queue = [*machines, NOTHING]
    last = step(stop="idle")
    while last["step"] != "done":
        last = step(last, stop="idle")
    assert last["why"] == "idle"
    assert [entry["name"] for entry in last["kept"]["results"]] == [item["machine"]["name"] for item in machines]
    assert {entry["result"] for entry in last["kept"]["results"]} == {"released"}
    assert world.queue == []


def test_a_second_run_in_the_same_play_starts_afresh(world):
    """The result of the first run is still there, and says that it is done."""
    world.taken = NOTHING
    earlier = step()
    earlier["kept"].update(begun="an earlier run", results=[{"name": "of the earlier run"}], turn=7)
    done = step(earlier)
    assert (done["kept"]["results"], done["kept"]["turn"], done["kept"]["begun"]) == ([], 1, "r")


def test_a_failure_in_the_module_keeps_what_is_known(world):
    world.errors["holders"] = [TimedOut("held for long")]
    with pytest.raises(TimedOut) as raised:
        step(step())
    fields = raised.value.fields
    assert fields["step"] == "failed"
    told = step(fields, {"where": "Take the next step", "msg": "held for long", "error": "timed_out", "status": ""})
    assert told["step"] == "continue"
    (entry,) = told["kept"]["results"]
    assert (entry["result"], entry["detail"]) == ("failed", "Take the next step: held for long")
    assert world.log[-1] == "failed"


def test_a_failure_that_could_not_be_recorded_is_said(world):
    world.errors["failed"] = [Unreachable("away")] * 99
    told = step(step(), {"where": "Back up", "msg": "full", "status": "DOWN"})
    assert told["step"] == "continue"
    (entry,) = told["kept"]["results"]
    assert entry["detail"].startswith("Back up: full THIS COULD NOT BE RECORDED: away")
    assert world.log.count("sleep 10") == 30


def test_a_file_that_was_done_is_recorded_in_the_end(world):
    tasks = step(step())
    world.errors["backup.yml"] = [ApiFailure("a webhook says no", status=403)]
    assert step(tasks)["step"] == "drain"
    assert world.log.count("backup.yml") == 2


def test_a_hold_at_the_last_moment_is_waited_for(world):
    drain = step(step(step()))
    world.errors["released"] = [Held("held")]
    assert step(drain, None)["kept"]["results"][0]["result"] == "released"
    assert world.log[-3:] == ["released", "sleep 5", "released"]


def test_the_api_is_away(world):
    world.errors["take"] = [Unreachable("away")]
    with pytest.raises(Unreachable) as raised:
        step()
    told = step(raised.value.fields, {"msg": "away", "error": "api_unreachable"})
    assert (told["step"], told["kept"]["troubles"], told["kept"]["turn"]) == ("continue", 1, 1)
    assert world.log[-1] == "sleep 10"
    assert step(told)["kept"]["troubles"] == 0


def test_a_worker_that_gives_up(world):
    world.errors["take"] = [ApiFailure("forbidden", status=403)] * 9
    last = None
    for _number in range(6):
        with pytest.raises(ApiFailure) as raised:
            step(last)
        last = step(raised.value.fields, {"msg": "forbidden", "error": "api", "status": "403"})
    assert (last["step"], last["kept"]["why"], last["kept"]["failure"]) == ("done", "failed", "forbidden")


def test_the_machine_of_a_worker_that_dropped_out(world):
    left = json.loads(json.dumps(step(step())["kept"]))
    begun = {"settings": GIVEN, "run": "r", "holder": "ada"}
    context = Context({})
    entry = journey.record_dropped(context, begun, left)
    assert (entry["name"], entry["result"], entry["run"]) == ("m", "failed", "r/1.1")
    assert "unreachable" in entry["detail"]
    assert journey.record_dropped(context, begun, {**left, "work": None}) is None

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guard that dies before or after each of its writes, and the next run: the operations, on an API in memory."""

from __future__ import annotations

import copy
import re
from contextlib import nullcontext
from datetime import datetime, timedelta, timezone

import pytest
from unit.guard.test_rules import POINTS, machine

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Listed
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import runs
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain import volumes
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import journey, steps
from ansible_collections.holdfast.kubernetes.plugins.module_utils._holds import leases

MACHINE = "/apis/cluster.x-k8s.io/v1beta2/namespaces/metal/machines/m"
NODE = "/api/v1/nodes/n"
PATH = re.compile(r"(?P<api>/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/(?P<space>[^/]+))?/(?P<kind>[^/]+)")
NAMED = re.compile(r"metadata\.name=([^,]+)")
FILES = {"pre_drain_tasks": ["/srv/one.yml", "/srv/two.yml"], "pre_terminate_tasks": ["/srv/last.yml"]}
GIVEN = {
    "hook": "backup",
    "owner": "team",
    "namespace": "metal",
    "machines": ["m"],
    "selector": "",
    "cluster": "",
    "templates": [],
    "points": ["pre-drain", "pre-terminate"],
    "set_hooks": True,
    "stop": "idle",
    "unreachable": "keep",
    "override_holds": False,
    "wait_for_replacement": True,
    "drain": True,
    "check_volumes": True,
    "make_up": False,
    "repeat_tasks": False,
    "retry_seconds": 0,
    "claim_timeout": 1,
    "hold_timeout": 1,
    "host_timeout": 1,
    "replacement_timeout": 1,
    "volumes_timeout": 1,
    **FILES,
}


class Died(BaseException):
    """The process is killed."""


class Api:
    """Objects by their paths. Cluster API's controller acts after each write."""

    dry_run = False

    def __init__(self):
        self.time = datetime(2026, 11, 21, 9, tzinfo=timezone.utc)
        self.writes = 0
        self.dies = (0, "")
        found = machine("WaitingForPreDrainHook", *POINTS)
        found["spec"]["providerID"] = "x://1"
        ready = {"type": "Ready", "status": "True"}
        node = {"metadata": {"name": "n"}, "spec": {"providerID": "x://1"}, "status": {"conditions": [ready]}}
        self.objects = {MACHINE: found, NODE: node}
        for item in self.objects.values():
            item["metadata"]["resourceVersion"] = "1"

    def now(self):
        self.time += timedelta(milliseconds=1)
        return self.time

    def find(self, path):
        if path == "/apis/cluster.x-k8s.io":
            return {"versions": [{"version": "v1beta2"}]}
        return copy.deepcopy(self.objects.get(path))

    def get(self, path, **_more):
        found = self.find(path)
        if found is None:
            raise NotFound(path)
        return found

    def items(self, path, field_selector="", **_more):
        wanted, named = PATH.fullmatch(path).groupdict(), NAMED.search(field_selector)
        for each, item in list(self.objects.items()):
            has = PATH.match(each).groupdict()
            if named and named[1] != item["metadata"]["name"]:
                continue
            if (has["api"], has["kind"]) == (wanted["api"], wanted["kind"]) and wanted["space"] in (None, has["space"]):
                yield copy.deepcopy(item)

    def merge(self, path, body, **_more):
        if path not in self.objects:
            raise NotFound(path)
        version = (body.get("metadata") or {}).get("resourceVersion")
        if version not in (None, self.objects[path]["metadata"]["resourceVersion"]):
            raise ApiFailure("conflict", status=409)
        return self.write(path, merged(self.objects[path], body))

    def create(self, path, body, **_more):
        path = f"{path}/{body['metadata']['name']}"
        if path in self.objects:
            raise ApiFailure("there", status=409)
        body = merged(body, {"metadata": {"creationTimestamp": "2026-11-21T08:00:00Z", "uid": path}})
        return self.write(path, body)

    def delete(self, path, *_arguments, **_more):
        if path not in self.objects:
            raise NotFound(path)
        return self.write(path, None)

    def write(self, path, item):
        self.writes += 1
        if self.dies == (self.writes, "before"):
            raise Died
        if item is None:
            del self.objects[path]
        else:
            item["metadata"]["resourceVersion"] = str(self.writes + 1)
            self.objects[path] = item
        self.control()
        if self.dies == (self.writes, "after"):
            raise Died
        return copy.deepcopy(item)

    def control(self):
        """Cluster API resumes the deletion where no hook holds it."""
        item = self.objects.get(MACHINE)
        marks = item["metadata"]["annotations"] if item else {}
        if item is None or any(key.startswith("pre-drain") for key in marks):
            return
        deleting = item["status"]["conditions"][0]
        if any(key.startswith("pre-terminate") for key in marks):
            if deleting["reason"] != "WaitingForPreTerminateHook":
                deleting["reason"] = "WaitingForPreTerminateHook"
                item["metadata"]["resourceVersion"] += "0"
        else:
            del self.objects[MACHINE], self.objects[NODE]


def merged(known, news):
    found = dict(known)
    for key, value in news.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(known.get(key) or {}, value) if isinstance(value, dict) else value
    return found


def follow(cluster, path, _deadline, *, keep=lambda item: item, **selectors):
    yield Listed([keep(item) for item in cluster.items(path, **selectors)])


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    for module in (steps, volumes, leases):
        monkeypatch.setattr(module, "Follower", follow)
    monkeypatch.setattr(runs, "ensure_namespace", lambda _cluster: None)
    monkeypatch.setattr(runs, "heartbeat", lambda *_arguments: nullcontext())
    monkeypatch.setattr(journey.expired_keys, "remove", lambda *_arguments: None)


def run(api, name, log):
    """What the role does with the answers of the module, until the worker ends."""
    begun = {"settings": GIVEN, "run": name, "holder": "ada", "ends": 2**40, "playbook_dir": "/srv"}
    last = None
    for _task in range(60):
        params = {"begun": begun, "worker": "1", "dropped": [], "last": last}
        context = Context(params)
        context.__dict__.update(cluster=api, management=api)
        answer = journey.machine_guard_step(context, params)
        last = answer["kept"]
        if answer["step"] == "done":
            return answer
        if answer["step"] == "tasks":
            log.append(answer["file_name"])
        if answer["step"] == "drain":
            log.append("drain")
    raise AssertionError(answer)


def test_undisturbed():
    api, log = Api(), []
    answer = run(api, "first", log)
    assert (answer["why"], log) == ("gone", ["one.yml", "two.yml", "drain", "last.yml"])
    assert [item["result"] for item in answer["kept"]["results"]] == ["released", "released"]
    assert api.objects == {}, "no record, claim or Lease is left"


@pytest.mark.parametrize("when", ["before", "after"])
def test_it_dies_at_each_write_and_the_next_run_ends_the_work(when):
    """Only the file or drain in which it died is repeated, the drain precedes the last file, nothing is left."""
    total = Api()
    run(total, "undisturbed", [])
    for number in range(1, total.writes + 1):
        api, first, second = Api(), [], []
        api.dies = (number, when)
        with pytest.raises(Died):
            run(api, "first", first)
        api.time += timedelta(seconds=200)
        run(api, "second", second)
        assert not set(first[:-1]) & set(second), number
        assert list(dict.fromkeys(first + second)) == ["one.yml", "two.yml", "drain", "last.yml"], number
        assert MACHINE not in api.objects, number
        assert not [path for path in api.objects if "second" in path], number


def step(api, worker, last, *, dropped=(), **settings):
    """One step of a worker of a run with two."""
    begun = {"settings": {**GIVEN, "parallel": 2, **settings}, "run": "r", "holder": "ada", "ends": 0}
    params = {"begun": {**begun, "playbook_dir": "/srv"}, "worker": worker, "dropped": list(dropped), "last": last}
    context = Context(params)
    context.__dict__.update(cluster=api, management=api)
    return journey.machine_guard_step(context, params)


def test_a_worker_that_waits_looks_whether_another_one_has_dropped_out(monkeypatch):
    """Ansible removes a host that it can't reach. The Lease of that worker is renewed as long as the playbook runs."""
    api = Api()
    first = step(api, "1", {}, stop="never")
    assert (first["step"], first["machine"]) == ("continue", "m")
    waits = []

    def take(_context, params):
        waits.append(params["wait_timeout"])
        return {"machine": None, "why": "deadline", "refused": []}

    with monkeypatch.context() as patch:
        patch.setattr(journey, "take_machine", take)
        second = step(api, "2", {}, stop="never")
    assert (second["step"], waits) == ("continue", [300])

    step(api, "2", second["kept"], dropped=[first["kept"]], stop="idle")

    assert '"result": "failed"' in api.objects[MACHINE]["metadata"]["annotations"]["holdfast.dev/machine-guard"]


def test_a_worker_that_has_lost_the_result_of_its_step_takes_its_machine_again():
    """Ansible's own timeout of a task, for example, ends it without a result."""
    api = Api()
    first = step(api, "1", {}, stop="deadline")
    assert first["run"] == "r/1.1"

    again = step(api, "1", {}, stop="deadline")

    assert (again["step"], again["machine"], again["run"]) == ("continue", "m", "r/1.1")

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet: some nodes, runs of the role that work on them, and everything that may happen next, from any state.

A state never changes. A move leads to another state: a request of a program is answered, or something happens to a run,
to a node or to the API server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

from model import api, deletion, host, judge
from model.api import OK, Answer, Objects, Request, Stored
from model.deletion import machine_path, next_events
from model.failover import METAL3, FailoverPlan
from model.guard import GuardPlan
from model.host import HOSTS, host_path
from model.judge import hold_path, names, node_path
from model.programs import START, Place, first_place
from model.role import Plan, reboot

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules, paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import FAILOVER, NAMESPACE, RUN
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import to_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.run_rules import lease_name
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.rules import AUDIT

ZONE = "zone"
_NODES = f"{paths.NODES}/"
_RUNS = paths.leases(NAMESPACE)
_HOLDS = paths.leases("team") + "/"
# Requests for these have the same answer at any time: collections that are empty in the model, and a namespace that
# always exists.
_QUIET = ("/pods", "/poddisruptionbudgets", "/volumeattachments", "/api/v1/namespaces/holdfast")
AnyPlan = Plan | FailoverPlan | GuardPlan
# The faults; docs/testing.md describes them.
FAULTS = ("death", "pause", "outage", "crash", "hang", "hold", "stuck", "lost", "forgotten")
# The ConfigMap with the failovers.
HISTORY = paths.one(paths.config_maps(NAMESPACE), AUDIT)
# How old the sign of life of a run can be, in seconds: fresh; older than the start of another run; so old that the run
# counts as dead; and so old that other runs no longer wait for it.
_AGES = (0, 2, 100, 200)


@dataclass(frozen=True)
class Scope:
    """What may happen in a history.

    Attributes:
        plans: The runs.
        nodes: The nodes, and the zone of each. Those that a run guards have a Machine.
        faults: How often each of :data:`FAULTS` happens at most.
        down: The node whose machine has failed before the start; empty for none.
    """

    plans: tuple[AnyPlan, ...]
    nodes: Mapping[str, str] = field(default_factory=lambda: {"alfa": "a", "bravo": "b"})
    faults: Mapping[str, int] = field(default_factory=dict)
    down: str = ""

    def begin(self) -> State:
        objects: Objects = {"judge": api.stored("judge", judge.NOTHING, 0)}
        objects = api.write(objects, f"/api/v1/namespaces/{NAMESPACE}", {"metadata": {"name": NAMESPACE}})
        guarded = {plan.node for plan in self.plans if isinstance(plan, GuardPlan)}
        hosted = {plan.node for plan in self.plans if isinstance(plan, FailoverPlan) and METAL3 in plan.ways}
        for name, zone in self.nodes.items():
            objects = api.write(
                objects, f"machine/{name}", {"up": True, "powered": True, "sent": False, "drained": False}
            )
            node = _node(name, zone, f"{name}-1", hosted=name in hosted)
            if name in hosted:
                objects = api.write(objects, host_path(name), host.host(name))
            if name in guarded:
                node["metadata"]["annotations"] = deletion.node_marks(name)
                for path, content in deletion.management(name).items():
                    objects = api.write(objects, path, content)
            objects = api.write(objects, node_path(name), node)
        runs = tuple(Run(plan, (first_place(plan.begin()),)) for plan in self.plans)
        return State(objects, runs, tuple(self.faults.get(fault, 0) for fault in FAULTS)).down(self.down)


def _node(name: str, zone: str, boot_id: str, *, hosted: bool) -> dict[str, Any]:
    """A Node, as its kubelet registers it."""
    status = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": boot_id}}
    spec = {"spec": {"providerID": host.provider_id(name)}} if hosted else {}
    return {"metadata": {"name": name, "labels": {ZONE: zone}}, "status": status, **spec}


class Run(NamedTuple):
    """A run, and the places of its programs.

    Attributes:
        status: ``awake``, ``paused`` or ``dead``.
        stage: ``begin``; ``hosts``, with a program for each node; ``end``; or ``over``.
        begun: The result of the stage ``begin``.
        turns: The last answer of each node, after the stage ``hosts``.
    """

    plan: AnyPlan
    places: tuple[Place, ...]
    status: str = "awake"
    stage: str = "begin"
    begun: dict[str, Any] | None = None
    turns: Mapping[str, dict[str, Any]] = {}

    @property
    def over(self) -> bool:
        return self.stage == "over" or self.status == "dead"

    def leases(self, objects: Objects) -> list[str]:
        """The paths of its Leases. A guard has one for each of its works."""
        if isinstance(self.plan, GuardPlan):
            return [path for path in objects if path.startswith(f"{_RUNS}/") and self._has(objects[path])]
        return [path for path in (_lease(self.plan.run),) if path in objects]

    def _has(self, lease: Stored) -> bool:
        return bool(lease.content["metadata"]["annotations"][RUN].startswith(f"{self.plan.run}/"))


@dataclass(frozen=True, eq=False)
class Move:
    """Something that happens.

    Attributes:
        parts: Its description, in parts that are joined only if it is shown.
        then: Makes the state after it.
        program: The program that makes it: the numbers of its run and of its place in the run. ``None`` for a fault,
            for what happens by itself, and for a request whose order does not matter.
        fault: Whether it is one of :data:`FAULTS`.
    """

    parts: tuple[Any, ...]
    then: Callable[[], State]
    program: tuple[int, int] | None = None
    fault: bool = False

    @cached_property
    def after(self) -> State:
        return self.then()

    @property
    def words(self) -> str:
        return "".join(map(str, self.parts))


@lru_cache(None)
def _lease(run: str) -> str:
    return paths.lease(NAMESPACE, lease_name(run))


@lru_cache(None)
def _age(lease: Stored) -> int:
    return next(age for age in _AGES if lease.content["spec"]["renewTime"] == _AGO[age])


@dataclass(frozen=True, eq=False, slots=True)
class State:
    """The objects, the runs, and how often each fault may still happen (``left``)."""

    objects: Objects
    runs: tuple[Run, ...]
    left: tuple[int, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        runs = tuple((run.status, run.stage, *(place.number for place in run.places)) for run in self.runs)
        return (frozenset(item.number for item in self.objects.values()), runs, self.left)

    def down(self, name: str) -> State:
        """The state with this node down; the same state if the name is empty."""
        failed = replace(self, objects=self._changed(f"machine/{name}", up=False)) if name else self
        return replace(failed, objects=failed._ready(name, ready=False)) if name else self

    def moves(self, *, still: bool = False) -> Iterator[Move]:
        """Everything that may happen next.

        If there is a quiet request, it comes first, and nothing else is tried: that leaves out no result.

        Args:
            still: Nothing happens by itself, and no deadline passes.
        """
        found = False
        for move in self._quiet_moves():
            found = True
            yield move
        if found:
            return
        for move in self._programs() if still else self._ordinary_moves():
            found = True
            yield move
        if not (found or still):
            yield from self._times_up()
        yield from self.faults()

    def _ordinary_moves(self) -> Iterator[Move]:
        yield from self._programs()
        yield from self.world()

    @property
    def at_its_end(self) -> bool:
        """Whether nothing is left to do."""
        return all(run.over for run in self.runs) and not any(True for _move in self.world())

    # -- programs

    def _programs(self) -> Iterator[Move]:
        for number, run in enumerate(self.runs):
            if run.status == "awake":
                for which in range(len(run.places)):
                    yield from self.steps(number, which)

    def steps(self, number: int, which: int) -> Iterator[Move]:
        """The answers to the next request of a program."""
        place = self.runs[number].places[which]
        asked = place.asked
        if asked is None:
            return
        if asked.verb == "WATCH":
            for answer in self._news(place):
                yield self._answered(number, which, self.objects, answer)
        elif asked.verb != "BARRIER":
            try:
                objects, answer = self._carry_out(place, self.runs[number].plan.run)
            except judge.Broken as broken:
                raise judge.Broken(f"{broken}: {asked} of {self.runs[number].plan.run}") from broken
            yield self._answered(number, which, objects, answer)

    def _answered(self, number: int, which: int, objects: Objects, answer: Answer, note: str = "") -> Move:
        place = self.runs[number].places[which]
        assert place.asked is not None
        assert place.call is not None
        words = (self.runs[number].plan.run, ": ", place.call.name, ": ", place.asked, " -> ", note or answer.kind)

        def then() -> State:
            after = self.with_objects(objects, words, place)
            run = after.runs[number]
            places = (*run.places[:which], run.places[which].after(answer), *run.places[which + 1 :])
            return after._with_run(number, run._replace(places=places))

        return Move(words, then, (number, which))

    def _skip_quiet_requests(self, run: Run, place: Place) -> Place:
        """The place after all quiet requests. If an outage may happen, none is skipped, as any of them may fail."""
        while not self._may("outage") and place.asked is not None and self._is_quiet(run, place.asked):
            place = place.after(api.perform(self.objects, place.asked)[1])
        return place

    def _is_quiet(self, run: Run, asked: Request) -> bool:
        """Whether a request neither changes anything nor depends on anything that changes.

        So its order among the moves of others does not matter, and :meth:`moves` tries only one: this request first.
        """
        if asked.verb == "PATCH" and asked.path.startswith(f"{_RUNS}/"):
            # A renewal changes nothing if the sign of life is fresh. No other run deletes the Lease of a run that was
            # never silent.
            late = run.plan.run in self.objects["judge"].content["late"]
            return not late and asked.path in self.objects and _age(self.objects[asked.path]) == 0
        return asked.verb in ("GET", "LIST") and self._is_alone(run, self.objects, asked)

    def _quiet_moves(self) -> Iterator[Move]:
        """One quiet request, with an answer and, if an outage may happen, without."""
        for number, run in enumerate(self.runs):
            for which, place in enumerate(run.places):
                if run.status == "awake" and place.asked is not None and self._is_quiet(run, place.asked):
                    yield from (replace(move, program=None) for move in self.steps(number, which))
                    yield from self._outages(number, which)
                    return

    def _is_alone(self, run: Run, objects: Objects, asked: Request) -> bool:
        """Whether nothing else can change the objects that a request reads."""
        if asked.path.endswith(_QUIET) or asked.path in deletion.CONSTANT or asked.only_counts:
            return True
        if asked.path.endswith("/baremetalhosts"):
            return not any(path.startswith(HOSTS) for path in objects)
        if asked.path == paths.LEASES:
            return not (self._may("hold") or any(path.startswith(_HOLDS) for path in objects))
        if asked.path == _RUNS:
            return len(self.runs) == 1
        name = (
            asked.path.rpartition("/")[2]
            if asked.verb == "GET"
            else asked.body.get("field_selector", "").rpartition("=")[2]
        )
        if f"machine/{name}" not in objects or self._may("crash") or self._may("hang"):
            return False
        if next_events(objects.get(machine_path(name))):
            return False
        node = objects.get(node_path(name))
        if node is None or self._may_lose(name):
            return False
        if not (objects[f"machine/{name}"].content["up"] and node_rules.ready(node.content)):
            return False
        return not any(name in other.plan.nodes for other in self.runs if not other.over and other.plan is not run.plan)

    def _carry_out(self, place: Place, run: str) -> tuple[Objects, Answer]:
        asked = place.asked
        assert asked is not None
        if asked.verb == "USER":
            return judge.tasks_end(self.objects, asked, run), OK
        if asked.verb == "DRAIN":
            return self._changed(f"machine/{asked.path}", drained=True), OK
        if asked.verb == "REBOOT":
            return self._reboot(asked.path, asked.body)
        if asked.verb == "POWER":
            return self._power(asked.path, asked.body["wanted"])
        before = self.objects
        objects, answer = api.perform(before, asked)
        if asked.verb == "DELETE" and objects is not before and asked.path.startswith(_NODES):
            objects = self._deleted(name := asked.path.removeprefix(_NODES))
            judge.must(not objects[f"machine/{name}"].content["powered"], f"{name} is deleted, and its machine is on")
        elif asked.path.startswith(_NODES) and objects is not before:
            node = objects[asked.path].content
            if node_rules.unschedulable(before[asked.path].content) and not node_rules.unschedulable(node):
                # After the uncordon by a run, the node gets pods again. What people uncordon is their own decision.
                objects = api.write(
                    objects,
                    machine := f"machine/{node_rules.name(node)}",
                    {**objects[machine].content, "drained": False},
                )
        if asked.path.startswith(HOSTS) and host.has_key(objects[asked.path]) and not host.has_key(before[asked.path]):
            judge.power_off(before, asked.path.removeprefix(HOSTS))
        if asked.verb == "POST" and answer.kind == "object" and asked.path == _RUNS:
            # A new run started just now, so all other signs of life are older.
            path = f"{_RUNS}/{asked.body['metadata']['name']}"
            spec = {**objects[path].content["spec"], "acquireTime": to_text(START - timedelta(seconds=1))}
            objects = api.write(objects, path, {**objects[path].content, "spec": spec})
            answer = Answer("object", (objects[path],))
            for other in self.runs:
                # Guards do not compare when they began.
                if not isinstance(other.plan, GuardPlan) and other.leases(before) and self._age(before, other) == 0:
                    objects = self._aged(objects, other, _AGES[1])
        return objects, answer

    def _reboot(self, name: str, body: Mapping[str, Any]) -> tuple[Objects, Answer]:
        node, machine = self.objects[node_path(name)].content, self.objects[f"machine/{name}"].content
        if not machine["up"]:
            return self.objects, Answer("no connection")
        if node_rules.boot_id(node) != body["boot_id"]:
            return self.objects, Answer("other boot")
        plan = next(run.plan for run in self.runs if run.plan.run == body["run"])
        opts_out = bool(plan.variables.get("opt_outs"))
        objects = judge.reboot(self.objects, name, plan.run, opts_out=opts_out)
        return api.write(objects, f"machine/{name}", {**machine, "up": False, "sent": True}), OK

    def _power(self, name: str, wanted: str) -> tuple[Objects, Answer]:
        """Run a command of the user, which switches a machine on or off, or prints its state."""
        path, objects = f"machine/{name}", self.objects
        if wanted == "off":
            judge.power_off(objects, name)
            objects = self._changed(path, up=False, powered=False)
        elif wanted == "on":
            objects = self._changed(path, powered=True)
        return objects, Answer("on" if objects[path].content["powered"] else "off")

    def _news(self, place: Place) -> Iterator[Answer]:
        """The possible next events of a watch: one for each object that changed since it was read."""
        asked = place.asked
        assert asked is not None
        known: Mapping[str, int] = asked.body["known"]
        present = {item.path: item for item in api.listed(self.objects, asked.path, asked.body)}
        changed = [item for name, item in present.items() if known.get(name) != item.number]
        gone = [name for name in known if name not in present]
        for item in changed:
            yield Answer("event", ("ADDED" if item.path not in known else "MODIFIED", item))
        for name in gone:
            yield Answer("event", ("DELETED", api.by_number(known[name])))
        if changed or gone or asked.body["left"] > _AGES[-1] + 1:
            return
        # This wait ends as soon as another run may be dead, which the Leases show.
        leases = [item.number for item in api.listed(self.objects, _RUNS, {})]
        if leases != asked.body["leases"]:
            yield api.TIME_IS_UP

    def _times_up(self) -> Iterator[Move]:
        """The deadlines of watches pass, if nothing else can happen."""
        for number, run in enumerate(self.runs):
            for which, place in enumerate(run.places):
                if run.status == "awake" and place.asked is not None and place.asked.verb == "WATCH":
                    yield self._answered(number, which, self.objects, api.LONG_AFTER)

    # -- what happens by itself

    def world(self) -> Iterator[Move]:
        """What happens without a request: runs continue, renew their Leases or fall silent, nodes boot, holds end."""
        for number, run in enumerate(self.runs):
            if run.status == "paused":
                awake = run._replace(status="awake")
                yield Move((run.plan.run, " wakes"), partial(self._with_run, number, awake))
            if not run.leases(self.objects):
                continue
            age = self._age(self.objects, run)
            if run.status == "awake" and not run.over and age > 0:
                yield self._event(f"{run.plan.run} gives a sign of life", self._aged(self.objects, run, 0))
            elif (run.over or run.status == "paused") and age < _AGES[-1]:
                older = 100 if age < 100 else 200
                words = f"{run.plan.run} is silent for {older} s"
                yield Move((words,), partial(self._silent, number, older, words))
        for name in names(self.objects):
            yield from self._down(name)
            yield from self._deletion(name)
            yield from self._metal3(name)
        for path in self.objects:
            if path.startswith(_HOLDS):
                yield self._event(f"{path.rpartition('/')[2]} is free", api.write(self.objects, path, None))

    def _silent(self, number: int, seconds: int, words: str) -> State:
        run = self.runs[number]
        objects = self._aged(self.objects, run, seconds)
        if isinstance(run.plan, GuardPlan) and run.status == "paused":
            objects = judge.was_silent(objects, run.plan.run)
        after = self.with_objects(objects, (words,))
        late = after.runs[number]
        return after._with_run(number, late._replace(places=tuple(map(_too_late, late.places))))

    def _down(self, name: str) -> Iterator[Move]:
        machine, node = self.objects[f"machine/{name}"].content, self.objects.get(node_path(name))
        ready = node is not None and node_rules.ready(node.content)
        if ready and not machine["up"]:
            yield self._event(f"{name} is seen to be down", self._ready(name, ready=False))
        # A run that is about to switch the node off checked it at most ten seconds ago, or checks again. So the node
        # does not come back in between.
        if any(_about_to_power_off(place, name) for run in self.runs for place in run.places):
            return
        if not machine["up"] and machine["powered"]:
            yield self._event(f"{name} comes back", self.booted(name))
        elif machine["up"] and node is None:
            yield self._event(f"{name} registers again", self._registered(name, machine["boot"]))
        elif machine["up"] and not ready:
            yield self._event(f"{name} responds again", self._ready(name, ready=True))

    def _deletion(self, name: str) -> Iterator[Move]:
        """The deletion of a node's Machine. The Node goes with it."""
        path = machine_path(name)
        for words, machine in next_events(self.objects.get(path)):
            objects = api.write(self.objects, path, machine)
            if machine is None:
                objects = api.write(api.write(objects, node_path(name), None), f"machine/{name}", None)
            yield self._event(words, objects)

    def _metal3(self, name: str) -> Iterator[Move]:
        """metal3 switches the machine of a host off while the host has a key, and on while it has none."""
        found, machine = self.objects.get(host_path(name)), f"machine/{name}"
        wanted = not host.has_key(found)
        if found is None or self.objects[machine].content["powered"] is wanted:
            return
        change = {"powered": True} if wanted else {"powered": False, "up": False}
        objects = api.write(self._changed(machine, **change), found.path, host.seen(found, powered=wanted))
        yield self._event(f"metal3 switches {name} {'on' if wanted else 'off'}", objects)

    def booted(self, name: str) -> Objects:
        """The objects after a boot of a node."""
        node, machine = self.objects.get(node_path(name)), f"machine/{name}"
        before = node_rules.boot_id(node.content) if node else self.objects[machine].content["boot"]
        boot_id = f"{name}-{int(before.rpartition('-')[2]) + 1}"
        objects = self._ready(name, ready=True, boot_id=boot_id) if node else self._registered(name, boot_id)
        return api.write(objects, machine, {**objects[machine].content, "up": True, "sent": False})

    def _registered(self, name: str, boot_id: str) -> Objects:
        """The objects after a kubelet has registered its Node again."""
        objects = api.write(
            self.objects, node_path(name), _node(name, "", boot_id, hosted=host_path(name) in self.objects)
        )
        version = self.objects[f"machine/{name}"].content["version"]
        node = api.stored(node_path(name), objects[node_path(name)].content, version)
        return {**objects, node_path(name): node}

    def _deleted(self, name: str) -> Objects:
        """The objects without a Node. Its kubelet registers another one, with the same boot ID and a later version."""
        node = self.objects[node_path(name)]
        known = {"boot": node_rules.boot_id(node.content), "version": node.version + 1 if api.versions_grow else 0}
        return api.write(self._changed(f"machine/{name}", **known), node_path(name), None)

    def _ready(self, name: str, *, ready: bool, boot_id: str = "") -> Objects:
        path = node_path(name)
        node = self.objects[path].content
        conditions = api.with_conditions(node["status"]["conditions"], [{"type": "Ready", "status": str(ready)}])
        status = {"conditions": conditions, "nodeInfo": node["status"]["nodeInfo"]}
        if boot_id:
            status["nodeInfo"] = {"bootID": boot_id}
        return api.write(self.objects, path, {**node, "status": status})

    # -- faults

    def faults(self) -> Iterator[Move]:
        for number, run in enumerate(self.runs):
            if run.status == "awake" and not run.over:
                yield from self._faults_of(number, run)
        if self._may("forgotten") and HISTORY in self.objects:
            known = {**self.objects["judge"].content, "forgotten": True}
            left = api.write(api.write(self.objects, HISTORY, None), "judge", known)
            yield self._fault("forgotten", "the history of failovers is deleted", objects=left)
        for name in names(self.objects):
            if self._may("crash") and self.objects[f"machine/{name}"].content["up"]:
                yield self._fault("crash", f"{name} fails", objects=self._changed(f"machine/{name}", up=False))
            if self._may("hang") and self.objects[f"machine/{name}"].content["up"] and node_path(name) in self.objects:
                hung = self._ready(name, ready=False)
                if hung is not self.objects:
                    yield self._fault("hang", f"{name} hangs", objects=hung)
            # After the last check of a run, a hold is too late for the run. Then the node's agent protects the holder.
            lease = hold_path(name)
            at_the_gate = any(
                _is_past_the_gate(place, name)
                or _about_to_release(place, name)
                or (place.asked and (place.asked.verb, place.asked.path) == ("REBOOT", name))
                for run in self.runs
                for place in run.places
            )
            if self._may_lose(name):
                yield from self._losses(name)
            if self._may("hold") and lease not in self.objects and not at_the_gate:
                spec = {"holderIdentity": "a-job", "acquireTime": to_text(START)}
                held = api.write(self.objects, lease, {"metadata": {"name": name, "namespace": "team"}, "spec": spec})
                yield self._fault("hold", f"{name} is held", objects=held)

    def _may_lose(self, name: str) -> bool:
        return self._may("lost") and any(
            isinstance(run.plan, FailoverPlan) and run.plan.node == name for run in self.runs
        )

    def _losses(self, name: str) -> Iterator[Move]:
        """The record of a failover, or its whole Node, is lost. Or the node writes another record."""
        path, machine = node_path(name), f"machine/{name}"
        node = self.objects.get(path)
        if node is None:
            return
        yield self._fault("lost", f"Node {name} is deleted", objects=self._deleted(name))
        record = node_rules.record(node.content, FAILOVER)
        if record is None:
            return
        others: dict[str, Any] = {"is removed": None}
        if self.objects[machine].content["up"]:
            forged = {**record, "phase": "claim", "result": "", "facts": {}}
            others |= {"has the first phase": forged, "has another name": {**forged, "id": f"{name}.other"}}
        for words, other in others.items():
            mark = {FAILOVER: other and json.dumps(other)}
            objects = api.write(self.objects, path, api.merged(node.content, {"metadata": {"annotations": mark}}))
            if objects is not self.objects:
                yield self._fault("lost", f"the record of {name} {words}", objects=objects)

    def _faults_of(self, number: int, run: Run) -> Iterator[Move]:
        if self._may("death"):
            dead = run._replace(status="dead", places=())
            yield self._fault("death", f"{run.plan.run} dies", number, dead)
        if self._may("pause"):
            yield self._fault("pause", f"{run.plan.run} is paused", number, run._replace(status="paused"))
        for which, place in enumerate(run.places):
            asked = place.asked
            if asked is None:
                continue
            if self._may("stuck") and asked.verb in ("DRAIN", "USER", "POWER"):
                yield self._spent("stuck", self._answered(number, which, self.objects, Answer("stuck")))
                if asked.body.get("wanted") in ("on", "off"):
                    # The command reports success, but did nothing.
                    yield self._spent(
                        "stuck", self._answered(number, which, self.objects, Answer(asked.body["wanted"]))
                    )
            yield from self._outages(number, which)

    def _outages(self, number: int, which: int) -> Iterator[Move]:
        """A request gets no answer. If it is a write, it may have been carried out or not."""
        place = self.runs[number].places[which]
        asked = place.asked
        if asked is None or not self._may("outage") or not (asked.writes or asked.verb in ("GET", "LIST")):
            return
        yield self._spent("outage", self._answered(number, which, self.objects, api.UNREACHABLE))
        if asked.writes:
            done = self._carry_out(place, self.runs[number].plan.run)[0]
            if done is not self.objects:
                yield self._spent("outage", self._answered(number, which, done, api.UNREACHABLE, "done, no answer"))

    def _may(self, fault: str) -> bool:
        return self.left[FAULTS.index(fault)] > 0

    def _fault(
        self, fault: str, words: str, number: int = -1, run: Run | None = None, objects: Objects | None = None
    ) -> Move:
        def then() -> State:
            return self._with_run(number, run) if run else self.with_objects(objects or self.objects, (words,))

        return self._spent(fault, Move((words,), then))

    def _spent(self, fault: str, move: Move) -> Move:
        which = FAULTS.index(fault)
        left = (*self.left[:which], self.left[which] - 1, *self.left[which + 1 :])
        return Move(move.parts, lambda: replace(move.after, left=left), fault=True)

    # -- helpers

    def _event(self, words: str, objects: Objects) -> Move:
        return Move((words,), lambda: self.with_objects(objects, (words,)))

    def with_objects(self, objects: Objects, words: tuple[Any, ...], place: Place | None = None) -> State:
        """The state with changed objects, if the change keeps all promises. Programs now remember older versions.

        Raises:
            Broken: The change breaks a promise.
        """
        objects = judge.see(self.objects, objects, words, place)
        runs = self.runs
        for path in self.changed(objects):
            runs = tuple(run._replace(places=tuple(place.aged(path) for place in run.places)) for run in runs)
        return State(objects, runs, self.left)

    def changed(self, objects: Objects) -> list[str]:
        """The paths of the API's objects that differ from ``objects``."""
        return [path for path, item in self.objects.items() if path[0] == "/" and objects.get(path) is not item]

    def _changed(self, path: str, **content: Any) -> Objects:
        return api.write(self.objects, path, {**self.objects[path].content, **content})

    def _age(self, objects: Objects, run: Run) -> int:
        return max(_age(objects[path]) for path in run.leases(objects))

    def _aged(self, objects: Objects, run: Run, age: int) -> Objects:
        for path in run.leases(objects):
            lease = objects[path].content
            objects = api.write(objects, path, {**lease, "spec": {**lease["spec"], "renewTime": _AGO[age]}})
        return objects

    def _with_run(self, number: int, run: Run) -> State:
        before = None
        while before is not run:
            before, run = run, _advanced(run)
            if run.status == "awake":
                places = tuple(self._skip_quiet_requests(run, place) for place in run.places)
                run = run if places == run.places else run._replace(places=places)
        runs = (*self.runs[:number], run, *self.runs[number + 1 :])
        judge.at_work([asked for each in runs for asked in self._tasks(each)])
        return State(self.objects, runs, self.left)

    def _tasks(self, run: Run) -> list[Request]:
        """The tasks for a Machine that a run is in, if it counts as alive."""
        if not isinstance(run.plan, GuardPlan) or run.plan.run in self.objects["judge"].content["late"]:
            return []
        return [place.asked for place in run.places if place.asked is not None and place.asked.verb == "USER"]


def _advanced(run: Run) -> Run:
    """The run in its next stage, if all of its programs have ended; beyond a barrier, if all others wait there."""
    while (
        run.status != "dead"
        and run.places
        and all(place.asked is None or place.asked.verb == "BARRIER" for place in run.places)
    ):
        waiting = [place for place in run.places if place.asked is not None]
        if waiting:
            run = run._replace(places=tuple(place.after(OK) if place.asked else place for place in run.places))
        elif run.stage == "begin":
            begun = run.places[0].value
            if begun is None or not isinstance(run.plan, Plan):
                return run._replace(stage="over", places=())
            places = tuple(first_place(run.plan.host(name, begun)) for name in run.plan.nodes)
            run = run._replace(stage="hosts", begun=begun, places=places)
        elif run.stage == "hosts":
            assert run.begun is not None
            assert isinstance(run.plan, Plan)
            turns = {name: place.value for name, place in zip(run.plan.nodes, run.places, strict=True)}
            run = run._replace(stage="end", turns=turns, places=(first_place(run.plan.end(run.begun, turns)),))
        else:
            run = run._replace(stage="over", places=(), begun=run.begun)
    return run


def _about_to_power_off(place: Place, name: str) -> bool:
    """Whether a run is between its last look at a node and the power-off.

    In between it records the power-off in a ConfigMap.
    """
    asked = place.asked
    if asked is None or not _switches_off(place, name):
        return False
    return asked.verb == "POWER" or (asked.writes and ("/configmaps" in asked.path or asked.path.startswith(HOSTS)))


def _is_past_the_gate(place: Place, name: str) -> bool:
    """Whether a run that switches a node off has asked for its holds, or does so next."""
    while place.asked is not None and _switches_off(place, name):
        if place.asked.path == paths.LEASES:
            return True
        if not place.came:
            break
        place = place.came[0]
    return False


def _switches_off(place: Place, name: str) -> bool:
    options = place.call.params if place.call else {}
    return options.get("power") == "off" and bool(options["name"] == name)


def about_to_reboot(place: Place, name: str) -> bool:
    """Whether a run has read a node in a look, and may send the reboot at once."""
    asked, call = place.asked, place.call
    if asked is None or call is None or call.operation is not reboot or call.params["node"] != name:
        return False
    return asked.verb == "REBOOT" or asked.path == paths.LEASES


def _about_to_release(place: Place, name: str) -> bool:
    """Whether a run has checked a node for the last time, and is about to remove the hook of its Machine."""
    asked = place.asked
    if asked is None or asked.verb != "PATCH" or asked.path != machine_path(name):
        return False
    return None in asked.body["metadata"]["annotations"].values()


def _too_late(place: Place) -> Place:
    """The place after a long pause. A command that the program was about to send comes too late, and does nothing."""
    asked, call = place.asked, place.call
    if asked is None or call is None:
        return place
    if asked.verb == "REBOOT" or asked.body.get("wanted") == "off":
        return place.after(api.LATE)
    # These operations check after a pause how old their last check is.
    checks = call.operation is reboot or {"power", "evidence"} & set(call.params)
    return place.after(api.PAUSED) if checks else place


_AGO = {age: to_text(START - timedelta(seconds=age)) for age in _AGES}

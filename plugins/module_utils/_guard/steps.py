# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for a Machine whose deletion waits for one of our hooks, and take it to work on it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, HoldfastError, InvalidInput, NotFound, Outdated, Unreachable, passing
from .._api.names import MACHINE_GUARD
from .._api.objects import Object
from .._api.runner import Context, Params, Result
from .._api.watch import Changed, Deadline, Follower
from .._budget import claim_rules, claims, runs
from .._capi import find as capi
from .._capi.find import KINDS, MACHINE
from .._capi.hook_info import describe
from .._capi.rules import PRE_TERMINATE, is_deleting, node_of
from . import node as nodes
from . import rules
from .begin_rules import is_refused
from .rules import DEADLINE, Guard, RunOptions, Selection

_DONE = "done"
# Seconds that the state of other runs counts as current.
_GLANCE = 5.0
_SHORTEST = 1.0
# Seconds until a retry, after a webhook or a role of the API forbade a change of the Machine, or after the API server
# of its cluster did not answer.
_RETRY = 60.0


def take_machine(context: Context, params: Params) -> Result:
    """Return which Machine to work on next, and at which point.

    Follow Machines until the deletion of one waits for our hook, and claim this Machine for the run.

    Args:
        context: The clusters.
        params: ``run`` and ``worker``, whose id is never used twice; ``hook``, ``owner`` and what selects Machines;
            ``set_points``: where Machines that lack a hook get one; ``stop``, ``retry_seconds``, ``wait_timeout``.
    """
    for name in ("run", "worker", "owner"):
        if not params[name].strip():
            raise InvalidInput(f"{name} must not be empty.")
    if "/" in params["worker"]:
        raise InvalidInput(f'worker must not contain "/"; it is {params["worker"]}.')
    if params["set_points"] and not (params["machines"] or params["cluster"] or params["selector"]):
        raise InvalidInput("set_points needs machines, selector or cluster: the Machines on which to set hooks.")
    return _GuardStep(context, params).next()


class _GuardStep:
    def __init__(self, context: Context, params: Params) -> None:
        self._context, self._params = context, params
        self._management = context.management
        self._guard = Guard(params["hook"], params["owner"])
        self._guard.key(PRE_TERMINATE)
        templates = tuple((item["kind"], item["name"]) for item in params["templates"])
        self._selection = Selection(frozenset(params["machines"]), params["cluster"], templates)
        self._run_options = RunOptions(params["run"], params["retry_seconds"], params["stop"])
        self._run = rules.run_id(params["run"], params["worker"])
        self._deadline = Deadline(params.get("wait_timeout"))
        self._live: frozenset[str] = frozenset()
        self._glance = self._one_dies = Deadline(0)
        self._known: dict[tuple[str, str], Object] = {}
        # When to retry Machines whose change was refused, and the API server's message.
        self._refused: dict[str, tuple[Deadline, str]] = {}
        # When to retry Machines with a Node after their API server gave no answer, and what to do about it.
        self._unanswered, self._no_answer = Deadline(0), ""

    def next(self) -> Result:
        self._end_earlier_work()
        due = float("inf")
        while True:
            try:
                found = self._follow(Deadline(min(self._deadline.left, due)))
            except Outdated:
                # The API server was unavailable, and no event will arrive: list and decide again.
                if self._deadline.passed:
                    raise
                continue
            if found is not None:
                return found
            if self._deadline.passed or self._context.check_mode:
                return self._empty_result(DEADLINE)
            due = self._due()

    def _follow(self, pause: Deadline) -> Result | None:
        """Return the outcome as soon as there is one; ``None`` when it is time to look again."""
        path = capi.machines_path(self._management, self._params.get("namespace"))
        selector = self._params["selector"]
        for news in Follower(self._management, path, pause, label_selector=selector, keep=_kept):
            if isinstance(news, Changed):
                self._known.pop(_id(news.object), None)
                self._learn([] if news.deleted else [news.object])
            else:
                self._known.clear()
                self._learn(news.items)
            found = self._outcome()
            if found is not None or self._context.check_mode:
                return found
            # The new event may require an earlier look.
            if self._due() < pause.left - _SHORTEST:
                return None
        return None

    def _learn(self, machines: Iterable[Object]) -> None:
        for machine in machines:
            if self._selection.has(machine):
                self._known[_id(machine)] = machine
                self._set_hooks(machine)

    def _set_hooks(self, machine: Object) -> None:
        """Set the hooks that a Machine lacks if it is not being deleted: it may be newer than the start of this run."""
        if self._context.check_mode or not self._selection.gives_hooks_to(machine):
            return
        changes = self._guard.missing(machine, self._params["set_points"])
        if not changes or self._is_postponed(machine):
            return
        metadata = machine["metadata"]
        try:
            found = capi.place(self._management, KINDS[MACHINE], metadata["namespace"], metadata["name"])
            self._known[_id(machine)] = self._management.merge(found.path, KINDS[MACHINE].patch(machine, changes))
            self._refused.pop("/".join(_id(machine)), None)
        except NotFound:
            return
        except Outdated:
            # The API server was unavailable, and no event will arrive.
            raise
        except ApiFailure as error:
            # If another client wrote first, the event of that write will arrive.
            if error.status != 409:
                self._postpone(machine, error)

    def _postpone(self, machine: Object, error: ApiFailure) -> None:
        """Skip a Machine whose change was refused: this does not concern the others."""
        if not is_refused(error):
            raise error
        name = "/".join(_id(machine))
        if name not in self._refused:
            self._context.warn_now(f"Machine {name} can't be changed, and is skipped until it can: {error.message}")
        self._refused[name] = (Deadline(_RETRY), error.message)

    def _is_postponed(self, machine: Object) -> bool:
        until, _message = self._refused.get("/".join(_id(machine)), (Deadline(0), ""))
        return not until.passed

    # -- who is next

    def _outcome(self) -> Result | None:
        now = self._management.now()
        found = self._take(rules.by_age(list(filter(is_deleting, self._known.values()))), now)
        if found is not None:
            return found
        why = rules.why_over(list(self._known.values()), self._selection, self._guard, self._run_options, now)
        return self._empty_result(why) if why else None

    def _take(self, machines: Collection[Object], now: datetime) -> Result | None:
        waiting = [item for item in machines if self._guard.waits_at(item)]
        claimed = [item for item in waiting if rules.claimed_by(item, self._guard.hook)]
        if claimed:
            self._look_at_runs()
        free = [item for item in waiting if rules.may_take(item, self._guard, self._run_options, self._live, now)]
        free = [item for item in free if not self._is_postponed(item) and self._is_within_reach(item)]
        if not free or self._context.check_mode:
            return self._planned(free[0]) if free else None
        # The sign of life comes first: others who see the claim check for it.
        runs.renew(self._management, self._run, self._params.get("holder") or "")
        for machine in free:
            found = self._claim(machine) if self._is_within_reach(machine) else None
            if found is not None:
                return found
        runs.end(self._management, self._run)
        return None

    def _claim(self, seen: Object) -> Result | None:
        """Claim the Machine, unless another run is faster."""
        metadata, guard = seen["metadata"], self._guard
        place = capi.place(self._management, KINDS[MACHINE], metadata["namespace"], metadata["name"])
        machine = self._management.find(place.path)
        now = self._management.now()
        if machine is None or not rules.may_take(machine, guard, self._run_options, self._others(), now):
            return None
        point, before = guard.waits_at(machine), rules.record_of(machine, guard.hook)
        if point is None:
            return None
        try:
            found = self._look_at_node(machine)
        except (Unreachable, ApiFailure) as error:
            if self._context.cluster is self._management or not _is_away(error):
                raise
            self._wait_for_cluster(machine, error)
            return None
        holder, saw_node = self._params.get("holder") or "", found.node is not None
        if rules.is_invalid(machine, guard.hook):
            self._context.warn(
                f"The annotation {MACHINE_GUARD} of Machine {metadata['namespace']}/{metadata['name']} is invalid: "
                "someone changed it, or an early version wrote it. The work starts again, with all tasks."
            )
        uid = metadata["uid"]
        record = rules.begin(before, point, uid=uid, run=self._run, holder=holder, now=now, saw_node=saw_node)
        changes: dict[str, str | None] = {MACHINE_GUARD: rules.written(machine, guard.hook, record)}
        try:
            machine = self._management.merge(place.path, KINDS[MACHINE].patch(machine, changes))
        except Outdated:
            raise
        except (NotFound, ApiFailure) as error:
            if found.node is not None:
                runs.end(self._context.cluster, self._run)
            if isinstance(error, ApiFailure) and error.status not in (404, 409):
                self._postpone(machine, error)
            return None
        if before and not before["result"]:
            # The sign of life of work that died: no other run holds it.
            for cluster in self._clusters if found.node else [self._management]:
                runs.end(cluster, str(before["run"]))
        return self._result(machine, point, found, before, record)

    @property
    def _clusters(self) -> list[Cluster]:
        return list({id(item): item for item in (self._context.cluster, self._management)}.values())

    def _wait_for_cluster(self, machine: Object, error: HoldfastError) -> None:
        """Skip Machines with a Node while the API server of their cluster gives no answer, and serve the others."""
        self._unanswered, self._no_answer = Deadline(_RETRY), rules.no_answer(machine, error.message)
        self._context.warn_now(f"Machine {'/'.join(_id(machine))} waits: {self._no_answer}")

    def _is_within_reach(self, machine: Object) -> bool:
        return self._unanswered.passed or node_of(machine) is None

    def _look_at_node(self, machine: Object) -> nodes.Found:
        found = nodes.look(self._context.cluster, machine)
        if found.node and self._context.cluster is not self._management and not self._context.check_mode:
            # The Node will be claimed, too, and others who see that claim check for a sign of life in its cluster.
            runs.renew(self._context.cluster, self._run, self._params.get("holder") or "")
        return found

    def _end_earlier_work(self) -> None:
        """End what remains of earlier work of this worker: it works on one Machine at a time, and no longer on those.

        Their renewers would keep them alive as long as the playbook lives, and other runs would wait for them.
        """
        worker, _dot, turn = self._params["worker"].rpartition(".")
        if not worker or turn == "1" or self._context.check_mode:
            return
        mine = rules.run_id(self._params["run"], f"{worker}.")
        left = {run.id for run in runs.all_runs(self._management) if _is_turn(run.id, mine)}
        # The workload cluster comes first: what is left there is found by the Lease in the management cluster. A
        # cluster that is being deleted may have lost its API server, and the next turn tries again.
        try:
            # Work that left a sign of life may also have left its claim on a Node.
            for node in list(self._context.cluster.items(paths.NODES)) if left else ():
                claim = claim_rules.claim_of(node)
                if claim is not None and claim.run in left:
                    claims.give_back(self._context.cluster, node_rules.name(node), run=claim.run)
            for cluster in self._clusters:
                for run in left:
                    runs.end(cluster, run)
        except HoldfastError as error:
            self._context.warn_now(f"Earlier work of this worker is not ended yet: {error.message}")

    def _others(self) -> frozenset[str]:
        """Return the live runs without this one. It may have lost the result of the task in which it took a Machine."""
        return runs.live_ids(self._management) - {self._run}

    def _look_at_runs(self) -> None:
        """See which runs live, but not at each of the many events."""
        if self._glance.passed:
            self._live = self._others()
            self._one_dies = Deadline(runs.until_one_may_be_dead(self._management))
            self._glance = Deadline(_GLANCE)

    def _due(self) -> float:
        """Return the seconds until a change that no watch reports: a run is dead, or failed work may be retried."""
        waiting = [item for item in self._known.values() if self._guard.waits_at(item)]
        now = self._management.now()
        times = [self._run_options.seconds_to_retry(item, self._guard, now) for item in waiting]
        times = [left for left in times if left > 0]
        if any(rules.claimed_by(item, self._guard.hook) for item in waiting):
            self._look_at_runs()
            times.append(max(_GLANCE, self._one_dies.left))
        postponed = [*(until for until, _message in self._refused.values()), self._unanswered]
        times += [until.left for until in postponed if not until.passed]
        return max(_SHORTEST, min(times, default=float("inf")))

    # -- results

    def _planned(self, machine: Object) -> Result:
        point = self._guard.waits_at(machine) or ""
        before = rules.record_of(machine, self._guard.hook)
        try:
            found = self._look_at_node(machine)
        except Unreachable:
            # The Machine waits also if the API server of its Cluster does not answer.
            found = nodes.Found(None, rules.NO_NODE, "its cluster does not answer")
        return self._result(machine, point, found, before, before or {})

    def _result(
        self, machine: Object, point: str, found: nodes.Found, before: dict[str, Any] | None, record: dict[str, Any]
    ) -> Result:
        owner = before["run"] if before and not before["result"] else None
        return {
            **self._empty_result(""),
            "changed": True,
            "step": point,
            "machine": describe(machine),
            "node_state": found.state,
            "boot_id": node_rules.boot_id(found.node) if found.node else "",
            "record": record,
            "resumed": rules.resumes(before, point),
            "taken_from": owner if owner != self._run else None,
            "skipped": point == PRE_TERMINATE and self._guard.skipped(machine),
            "leaves_drain": self._guard.leaves_drain(machine),
        }

    def _empty_result(self, why: str) -> Result:
        return {
            "changed": False,
            "step": _DONE,
            "why": why,
            "run": self._run,
            "machine": None,
            "node_state": rules.NO_NODE,
            "boot_id": "",
            "record": None,
            "resumed": False,
            "taken_from": None,
            "skipped": False,
            "leaves_drain": False,
            "left": [describe(item) for item in rules.by_age(list(self._known.values())) if self._guard.holds(item)],
            "unanswered": self._no_answer,
            "at_work": any(rules.claimed_by(item, self._guard.hook) in self._live for item in self._known.values()),
            "refused": [{"machine": name, "detail": message} for name, (_until, message) in self._refused.items()],
            "waited": round(self._deadline.elapsed, 3),
        }


def _is_away(error: HoldfastError) -> bool:
    """Whether an API server, or a proxy in front of it, may answer later."""
    return isinstance(error, Unreachable) or (isinstance(error, ApiFailure) and passing(error.status))


def _kept(machine: Object) -> Object:
    """The Machine without its managed fields, which are half of it."""
    return {**machine, "metadata": {key: value for key, value in machine["metadata"].items() if key != "managedFields"}}


def _is_turn(run: str, prefix: str) -> bool:
    return run.startswith(prefix) and run[len(prefix) :].isdigit()


def _id(machine: Object) -> tuple[str, str]:
    return machine["metadata"]["namespace"], machine["metadata"]["name"]

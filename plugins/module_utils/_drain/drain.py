# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drain: cordon, evict in parallel as budgets allow, wait until pods and volumes are gone."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Callable

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, HoldfastError, NotFound, Refused, TimedOut, Unreachable, passing
from .._api.objects import Object
from .._api.read_node import read_node
from .._api.runner import Context, Params, Result
from .._api.watch import Changed, Deadline, Follower, Listed
from .._budget import claim_rules, lifecycle, runs
from .._budget.lifecycle import Report
from .._budget.lifecycle_rules import DRAIN_FAILED, DRAINS, IS_DRAINED, Change, Work
from .._budget.node_operation import record_phase
from .._budget.node_operation_rules import phase_of, volumes_before
from .._progress.event_rules import waits
from .._shared.bounds import cut, some
from . import cordon, cordon_rules
from .rules import (
    LATER,
    NEVER,
    Budget,
    Options,
    Plan,
    Pod,
    blockers,
    by_namespace,
    check_drain,
    plan,
    read_budget,
    read_pod,
    ready_daemonsets,
)
from .state_rules import Drain
from .volumes import persistent_volumes, wait_until_detached

_PARALLEL = 16
# The budgets of more namespaces are read and watched at once, for the whole cluster.
_NAMESPACES = 8
_LOOK_AGAIN = 10.0
_SHOW_EVERY = 1.0
# Seconds until the next attempt after a refusal that says nothing about a budget.
_ASK_LATER = 5.0
# The cause of each 429 that a budget answers. A webhook may answer 429, too, for example while it moves a virtual
# machine. Source: pkg/registry/core/pod/storage/eviction.go of Kubernetes.
_BY_BUDGET = "DisruptionBudget"
# The API server's messages for refusals because of a budget that do not have status 429.
_BUDGET_TROUBLE = ("more than one poddisruptionbudget", "disruptions allowed is negative", "disruptedpods map too big")

# The API server's message if a precondition names another UID. Source: pkg/registry/core/pod/storage/eviction.go and
# the apiserver's pkg/storage. In other messages, the name of an object may contain "uid".
_OTHER_UID = re.compile(r"\bUID in (the )?precondition\b", re.IGNORECASE)

Event = Callable[[Drain], None]


def drain(context: Context, params: Params) -> Result:
    """Drain one node; see the module of the same name."""
    check_drain(params)
    shown = _Shown(context, params)
    try:
        result = _drain(context, params, shown)
    except Unreachable:
        raise
    except HoldfastError:
        shown.change(DRAIN_FAILED)
        raise
    shown.change(IS_DRAINED)
    return result


def _drain(context: Context, params: Params, shown: _Shown) -> Result:
    cluster, name = context.cluster, params["name"]
    deadline = Deadline(params["timeout"])
    phase, selector = phase_of(params, "drain"), params.get("pod_selector")
    node, pods = read_node(cluster, name), pods_on(cluster, name)
    options = Options(force=params["force"], delete_emptydir=params["delete_emptydir"])
    first = plan(pods_on(cluster, name, selector) if selector else pods, options)
    # A resumed drain no longer sees the pods that an earlier one has evicted.
    volumes = volumes_before(node, params.get("operation") or "") if params["wait_for_volumes"] else set()
    if params["wait_for_volumes"] and not context.check_mode:
        volumes |= persistent_volumes(cluster, first.evict + first.wait, [pod for pod, _why in first.skipped])
    # If the node is not Ready, neither are its pods.
    daemonsets = ready_daemonsets(pods) if node_rules.ready(node) else None
    # Record the phase before anything is refused: a drain that is refused has started, too.
    record_phase(cluster, name, phase, shown.report(DRAINS), daemonsets=daemonsets, volumes=sorted(volumes))
    budgets = budgets_of(cluster, namespaces_of(first))
    deletable = _deletable(cluster, params)
    _refuse(name, first, budgets, deletable, disable_eviction=params["disable_eviction"])
    owner = params.get("owner") or cordon_rules.OWNER
    run = params.get("run") or ""
    # No other run works on a node whose claim this run has, so no other run undoes its cordon during the drain.
    reason = params.get("reason") or "drain"
    # The owner may have cordoned the node before, for a reason of its own.
    earlier = cordon_rules.reason_of(node, owner)
    kept = params.get("reason") or (earlier if earlier is not None else reason)
    before, after = cordon.take(cluster, name, owner, kept, share=bool(run), run=run)
    if phase is None:
        shown.change(DRAINS)
    work = _DrainRun(context, params, deadline, first, volumes=volumes, deletable=deletable)
    try:
        with runs.heartbeat(cluster, run):
            outcome = work.rehearse(budgets) if context.check_mode else work.run()
    except HoldfastError as error:
        # The cordon of a drain that was killed has the same reason.
        if params["uncordon_on_failure"] and cordon_rules.reason_of(before, owner) in (None, reason):
            after = cordon.give_back(cluster, name, owner, run=run)[1]
        error.fields.update(
            changed=before is not after or bool(error.fields.get("evicted")),
            unschedulable=node_rules.unschedulable(after),
        )
        raise
    left = len(outcome["evicted"])
    return {
        "changed": before is not after or left > 0,
        **outcome,
        "diff": {
            "before": {**cordon_rules.shown(node), "pods": sorted(pod.full_name for pod in first.evict + first.wait)},
            "after": {**cordon_rules.shown(after), "pods": []},
        },
    }


def pods_on(cluster: Cluster, node: str, label_selector: str | None = None) -> list[Pod]:
    """The pods bound to a node."""
    items = cluster.items(paths.PODS, field_selector=f"spec.nodeName={node}", label_selector=label_selector or "")
    return [read_pod(item) for item in items]


def namespaces_of(first: Plan) -> set[str]:
    """The namespaces of the pods that have to leave a node. Only their budgets matter."""
    return {pod.namespace for pod in first.evict + first.wait}


def budgets_of(cluster: Cluster, namespaces: Collection[str] | None = None) -> list[Budget]:
    """The PodDisruptionBudgets of some namespaces, or of the whole cluster."""
    if namespaces is None or len(namespaces) > _NAMESPACES:
        return [read_budget(item) for item in cluster.items(paths.POD_DISRUPTION_BUDGETS)]
    return [
        read_budget(item) for name in sorted(namespaces) for item in cluster.items(paths.pod_disruption_budgets(name))
    ]


def _deletable(cluster: Cluster, params: Params) -> frozenset[str]:
    """The pods (UIDs) that may be deleted if a budget keeps refusing their eviction."""
    if params.get("delete_after") is None:
        return frozenset()
    return frozenset(pod.uid for pod in pods_on(cluster, params["name"], params.get("delete_selector")))


def _refuse(
    name: str, first: Plan, budgets: list[Budget], deletable: Collection[str], *, disable_eviction: bool
) -> None:
    if first.refused:
        blocked = [pod.ref(reason=why, pdb=None, verdict=NEVER) for pod, why in first.refused]
        raise Refused(
            f"Node {name} was not drained and nothing was changed: {_sentence(blocked)}.", blocked=blocked, evicted=[]
        )
    if disable_eviction:
        return
    spared = {pod.full_name for pod in first.evict if pod.uid in deletable}
    never = [
        blocker
        for blocker in blockers(first, by_namespace(budgets))
        if blocker["verdict"] == NEVER and f"{blocker['namespace']}/{blocker['name']}" not in spared
    ]
    if never and len(never) == len(first.evict) and not first.wait:
        raise Refused(_never_message(name, never, cordoned=False), blocked=never, evicted=[])


class _Shown:
    """Shows the drain in the lifecycle conditions of the node, as well as it can."""

    def __init__(self, context: Context, params: Params) -> None:
        self._context, self._name = context, params["name"]
        self._wanted = bool(params.get("lifecycle_conditions")) and not context.check_mode
        purpose = f"drain by {params.get('owner') or cordon_rules.OWNER}"
        self._work = Work(purpose, params.get("operation") or "", params.get("run") or "")

    def report(self, change: Change) -> Report | None:
        """The change, to write with the phase."""
        return Report(self._context, change, self._work) if self._wanted else None

    def change(self, change: Change) -> None:
        if self._wanted:
            with suppress(HoldfastError):
                lifecycle.report(self._context, self._name, change, self._work)


class _DrainRun:
    """One running drain: follows pods and budgets, sends evictions, and keeps the state."""

    def __init__(
        self,
        context: Context,
        params: Params,
        deadline: Deadline,
        first: Plan,
        *,
        volumes: Collection[str] = (),
        deletable: frozenset[str] = frozenset(),
    ) -> None:
        self._cluster = context.cluster
        self._warn = context.warn
        self._params = params
        self._name: str = params["name"]
        self._deadline = deadline
        self._first = first
        self._volumes = set(volumes)
        # The pods (UIDs) whose volumes are known.
        self._known = {pod.uid for pod in first.evict + first.wait}
        self._requests = self._cluster.requests
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._followers: list[Follower] = []
        self._pool = ThreadPoolExecutor(max_workers=_PARALLEL)
        self._namespaces: set[str] = set()
        self._all_namespaces = False
        self._named: set[str] = set()
        self._looked = self._told = time.monotonic()
        self._tell = context.tell
        options = Options(force=params["force"], delete_emptydir=params["delete_emptydir"])
        self.state = Drain(
            options, time.monotonic(), deletable=deletable, delete_after=float(params.get("delete_after") or 0)
        )
        self._deleted: list[dict[str, Any]] = []

    def run(self) -> Result:
        """Evict all pods that have to leave, and wait until they and their volumes are gone."""
        try:
            self._follow(paths.PODS, self._on_pods, self._on_pod, read_pod, self._pod_selectors())
            self._follow_budgets(namespaces_of(self._first))
            self._loop()
        finally:
            for follower in self._followers:
                follower.stop()
            self._pool.shutdown(wait=False, cancel_futures=True)
        left = self._wait_for_volumes()
        if left:
            raise self._volumes_left(left)
        return self._outcome()

    def _wait_for_volumes(self) -> dict[str, str]:
        """Wait until the volumes are detached; the VolumeAttachments that are left at the deadline.

        A pod that has come back meanwhile, or that the selector leaves on the node, keeps its volumes attached.
        """
        if not self._volumes:
            return {}
        self._volumes -= self._volumes_in_use()
        self._tell(waits(self._name, "drain", f"{len(self._volumes)} volumes to be detached"))
        left = wait_until_detached(self._cluster, self._name, self._volumes, self._deadline)
        in_use = self._volumes_in_use() if left else set()
        return {name: volume for name, volume in left.items() if volume not in in_use}

    def _await_volumes_of_new_pods(self) -> None:
        """A pod that came while the node was cordoned is evicted, too, and its volumes have to leave with it."""
        new = [entry.pod for uid, entry in self.state.entries.items() if uid not in self._known]
        if not new or not self._params["wait_for_volumes"]:
            return
        self._known.update(pod.uid for pod in new)
        found = persistent_volumes(self._cluster, new, [pod for pod, _why in self.state.skipped.values()])
        if found - self._volumes:
            self._volumes |= found
            self._note(volumes=sorted(found))

    def _volumes_in_use(self) -> set[str]:
        return persistent_volumes(self._cluster, pods_on(self._cluster, self._name), [])

    def rehearse(self, budgets: list[Budget]) -> Result:
        """Find out what would happen: send every eviction as a server-side dry run."""
        if self._params["disable_eviction"]:
            budgets = []
        self.state.all_budgets(budgets)
        self.state.saw_all(self._first.evict + self._first.wait + [skipped[0] for skipped in self._first.skipped], 0.0)
        blocked = blockers(self._first, by_namespace(budgets))
        for pod in self._first.evict:
            self._send(pod)(self.state)
        never = self.state.never()
        stay = {(item["namespace"], item["name"]) for item in never}
        going = [pod for pod in self._first.evict if (pod.namespace, pod.name) not in stay]
        outcome = {**self._outcome(), "evicted": [pod.ref(uid=pod.uid, seconds=0.0) for pod in going]}
        if never:
            later = [item for item in blocked if (item["namespace"], item["name"]) not in stay]
            raise Refused(_never_message(self._name, never, cordoned=False), **outcome, blocked=never + later)
        return {**outcome, "blocked": blocked}

    # -- following ----------------------------------------------------------------------------------------------------

    def _pod_selectors(self) -> dict[str, str]:
        return {
            "field_selector": f"spec.nodeName={self._name}",
            "label_selector": self._params.get("pod_selector") or "",
        }

    def _follow(
        self,
        path: str,
        on_list: Callable[[list[Any]], Event],
        on_change: Callable[[Any, bool], Event],
        keep: Callable[[Object], Any],
        selectors: dict[str, str],
    ) -> None:
        follower = Follower(self._cluster, path, self._deadline, keep=keep, **selectors)
        self._followers.append(follower)
        first = threading.Event()

        def follow() -> None:
            try:
                for news in follower:
                    if isinstance(news, Listed):
                        self._events.put(on_list(news.items))
                        first.set()
                    elif isinstance(news, Changed):
                        self._events.put(on_change(news.object, news.deleted))
            except Exception as error:  # noqa: BLE001 - the drain raises it
                self._events.put(_raising(error))
            finally:
                first.set()

        threading.Thread(target=follow, daemon=True, name=f"follow {path}").start()
        # Also after the deadline: it lists at least once, or it fails.
        first.wait()

    def _on_pods(self, pods: list[Pod]) -> Event:
        return lambda state: state.saw_all(pods, time.monotonic())

    def _on_pod(self, pod: Pod, deleted: bool) -> Event:
        if deleted:
            return lambda state: state.left(pod.uid, time.monotonic())
        return lambda state: state.saw(pod)

    def _follow_budgets(self, namespaces: set[str]) -> None:
        """Follow the budgets of these namespaces, too. There are more if a pod came while the node was cordoned."""
        new = namespaces - self._namespaces
        if not new or self._all_namespaces or self._params["disable_eviction"]:
            return
        self._namespaces |= new
        self._all_namespaces = len(self._namespaces) > _NAMESPACES
        if self._all_namespaces:
            self._follow(paths.POD_DISRUPTION_BUDGETS, partial(self._on_budgets, ""), self._on_budget, read_budget, {})
            return
        for name in sorted(new):
            self._follow(
                paths.pod_disruption_budgets(name), partial(self._on_budgets, name), self._on_budget, read_budget, {}
            )

    def _on_budgets(self, namespace: str, budgets: list[Budget]) -> Event:
        return lambda state: state.all_budgets(budgets, namespace)

    def _on_budget(self, budget: Budget, deleted: bool) -> Event:
        if deleted:
            return lambda state: state.budget_gone(budget.namespace, budget.name)
        return lambda state: state.budget(budget)

    # -- evicting -----------------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        self._take_events(block=False)
        while not self.state.done:
            self._follow_budgets({entry.pod.namespace for entry in self.state.entries.values()})
            self._await_volumes_of_new_pods()
            now = time.monotonic()
            if self._deadline.passed:
                self._look_once_more(now)
                if not self.state.entries:
                    return
                raise self._timed_out()
            if self.state.gives_up(now):
                blocked = self.state.blocked()
                raise Refused(_never_message(self._name, blocked, cordoned=True), **self._outcome(), blocked=blocked)
            chosen = self.state.next_evictions(now)
            if chosen:
                self._keep_to_our_claim(now)
            for pod in chosen:
                self._pool.submit(self._send_and_tell, pod, delete=self._note_deletion(pod))
            self._warn_of_pods_that_never_go()
            self._show(now)
            self._take_events(block=not self.state.done)

    def _look_once_more(self, now: float) -> None:
        """Look at the pods before the drain fails. A watch whose connection broke without a sign shows no news."""
        with suppress(HoldfastError):
            pods = pods_on(self._cluster, self._name, self._params.get("pod_selector"))
            self.state.saw_all(pods, now)

    def _note_deletion(self, pod: Pod) -> bool:
        """Whether the pod is deleted despite its budget. Say and record so before the first request."""
        found = self.state.deletion(pod.uid)
        if found is not None and all(item["uid"] != pod.uid for item in self._deleted):
            deleted = pod.ref(uid=pod.uid, pdb=found.budget, reason=found.reason)
            self._deleted.append(deleted)
            self._warn(
                f"Node {self._name}: pod {pod.full_name} is DELETED: its eviction is still refused "
                f"{self._params['delete_after']} s after the start of the drain "
                f"({found.reason or 'a budget allows none'})."
            )
            self._note(deleted_pods=[pod.full_name])
        return found is not None

    def _note(self, *, volumes: Collection[str] = (), deleted_pods: Collection[str] = ()) -> None:
        """Add names to the record of the operation, so that the next run and the report know them."""
        phase = phase_of(self._params, "drain")
        record_phase(self._cluster, self._name, phase, volumes=volumes, deleted_pods=deleted_pods)

    def _show(self, now: float) -> None:
        """Show which pods are left, at most once a second, because each pod sends many events."""
        if now - self._told >= _SHOW_EVERY:
            self._told = now
            left = self.state.blocked()
            self._tell(waits(self._name, "drain", f"{len(left)} pods: {_sentence(left)}"))

    def _keep_to_our_claim(self, now: float) -> None:
        """Check the claim again from time to time, because the run may have lost it: it was paused, for example."""
        run = self._params.get("run") or ""
        if run and now - self._looked > _LOOK_AGAIN:
            claim_rules.require_claim(read_node(self._cluster, self._name), run)
            self._looked = now

    def _take_events(self, *, block: bool) -> None:
        """Apply the events in the queue; with ``block``, first wait for an event, the next due time or the deadline."""
        try:
            if block:
                due = min(self.state.wake_at() - time.monotonic(), self._deadline.left)
                self._events.get(timeout=max(0.0, due) if due < float("inf") else None)(self.state)
            while True:
                self._events.get_nowait()(self.state)
        except queue.Empty:
            return

    def _warn_of_pods_that_never_go(self) -> None:
        never = {uid: item for uid, item in self.state.never_now().items() if uid not in self._named}
        if never:
            self._named.update(never)
            self._warn(
                f"Node {self._name}: {_sentence(list(never.values()))}. Waiting for the other pods before giving up on "
                "these."
            )

    def _send_and_tell(self, pod: Pod, *, delete: bool) -> None:
        try:
            self._events.put(self._send(pod, delete=delete))
        except Exception as error:  # noqa: BLE001 - the drain raises it
            self._events.put(_raising(error))

    def _send(self, pod: Pod, *, delete: bool = False) -> Event:
        """Ask the API to remove one pod; returns the answer as an event.

        Args:
            delete: Delete it despite its budget, with no less than its own grace period.

        The rules of the drain decide about further attempts, because here 429 is the answer of a budget.
        """
        options: Object = {"preconditions": {"uid": pod.uid}}
        if self._params.get("grace_period") is not None and not delete:
            options["gracePeriodSeconds"] = self._params["grace_period"]
        try:
            if self._params["disable_eviction"] or delete:
                self._cluster.delete(paths.pod(pod.namespace, pod.name), options, patient=False)
            else:
                body = {
                    "apiVersion": "policy/v1",
                    "kind": "Eviction",
                    "metadata": {"name": pod.name, "namespace": pod.namespace},
                    "deleteOptions": options,
                }
                self._cluster.create(paths.eviction(pod.namespace, pod.name), body, patient=False)
        except NotFound:
            return lambda state: state.missing(pod.uid, time.monotonic())
        except ApiFailure as error:
            return _refusal(pod, error)
        except Unreachable as error:
            message = error.message
            return lambda state: state.refused(pod.uid, time.monotonic(), message, retry_after=None, by_budget=False)
        return lambda state: state.accepted(pod.uid, time.monotonic())

    # -- reporting ----------------------------------------------------------------------------------------------------

    def _outcome(self) -> Result:
        return {
            "evicted": [gone.pod.ref(uid=gone.pod.uid, seconds=round(gone.seconds, 3)) for gone in self.state.gone],
            "deleted": self._deleted,
            "left": [pod.ref(uid=pod.uid, reason=why) for pod, why in self.state.skipped.values()],
            "requests": self._cluster.requests - self._requests,
            "duration": round(self._deadline.elapsed, 3),
        }

    def _timed_out(self) -> TimedOut:
        blocked = self.state.blocked()
        return TimedOut(
            f"Node {self._name} was not drained within {self._params['timeout']} s: {_sentence(blocked)}. "
            "Fix what blocks these pods or raise timeout, then run this again: it continues where it stopped.",
            **self._outcome(),
            blocked=blocked,
        )

    def _volumes_left(self, left: dict[str, str]) -> TimedOut:
        blocked = [
            {
                "namespace": None,
                "name": attachment,
                "reason": f"volume {volume} is still attached to the node",
                "pdb": None,
                "verdict": LATER,
            }
            for attachment, volume in sorted(left.items())
        ]
        return TimedOut(
            f"The pods of node {self._name} are gone, but after {self._params['timeout']} s "
            f"{len(left)} VolumeAttachments are not: {', '.join(sorted(left))}. Check the CSI driver's attacher, "
            "raise timeout, or use wait_for_volumes: false.",
            **self._outcome(),
            blocked=blocked,
        )


def _raising(error: Exception) -> Event:
    def fail(state: Drain) -> None:
        raise error

    return fail


def _refusal(pod: Pod, error: ApiFailure) -> Event:
    now = time.monotonic()
    causes = {cause.get("reason") for cause in error.causes}
    trouble = any(words in error.body_message.lower() for words in _BUDGET_TROUBLE)
    by_budget = trouble or _BY_BUDGET in causes
    message = cut("; ".join(cause.get("message", "") for cause in error.causes) or error.body_message, 1000)
    if error.status == 409 and _OTHER_UID.search(error.body_message):
        # Another pod has this name now; the pod to evict is gone.
        return lambda state: state.missing(pod.uid, time.monotonic())
    if error.status == 403 and "NamespaceTerminating" in causes:
        return lambda state: state.refused(pod.uid, now, message, retry_after=_ASK_LATER, by_budget=False)
    # An API server that has just started may answer 401: it says nothing about the pod.
    passes = by_budget or error.status in (401, 409) or passing(error.status)
    pause = error.retry_after or (_ASK_LATER if error.status in (401, 429) and not by_budget else None)
    return lambda state: state.refused(pod.uid, now, message, retry_after=pause, by_budget=by_budget, final=not passes)


def _never_message(name: str, blocked: list[dict[str, Any]], *, cordoned: bool) -> str:
    done = "and what could be evicted is gone" if cordoned else "and nothing was changed"
    return (
        f"Node {name} can't be drained, {done}: {_sentence(blocked)}. Add replicas, change the budget, or remove these "
        "pods by hand."
    )


def _sentence(blocked: list[dict[str, Any]]) -> str:
    return some([f"pod {item['namespace']}/{item['name']}: {item['reason']}" for item in blocked], separator="; ")

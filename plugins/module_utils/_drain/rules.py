# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of a drain: which pods to evict, which stay, which forbid the drain, and what each budget allows.

Plain data in, decisions out. Sources: the drain filters of kubectl, and the eviction handler of the API server
(pkg/registry/core/pod/storage/eviction.go in Kubernetes 1.36).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._api.errors import InvalidInput
from .._api.objects import Object
from .._api.selector import matches
from .._shared.bounds import cut

MIRROR = "kubernetes.io/config.mirror"
_FINISHED = ("Succeeded", "Failed")
# As much as crictl shows. The record on a Node has to be short.
_KEPT_OF_AN_ID = 13

NOW, LATER, NEVER = "now", "later", "never"


@dataclass(frozen=True)
class Options:
    """What the user allows."""

    force: bool = False
    delete_emptydir: bool = False


@dataclass(frozen=True)
class Pod:
    """What a drain needs to know about a pod."""

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    controller: str = ""
    controller_name: str = ""
    mirror: bool = False
    empty_dir: bool = False
    phase: str = "Running"
    ready: bool = True
    terminating: str = ""
    finalizers: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    tolerates_cordon: bool = False
    # Only of a DaemonSet pod: the start of the ID of its first container. Each start of a container gives it a new ID.
    container: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def daemonset(self) -> str:
        """Namespace and name of its DaemonSet, short enough for a record; empty if it has none."""
        return cut(f"{self.namespace}/{self.controller_name}") if self.controller == "DaemonSet" else ""

    @property
    def serves(self) -> bool:
        """Whether it is Ready and not being deleted."""
        return self.ready and not self.terminating

    @property
    def finished(self) -> bool:
        return self.phase in _FINISHED

    def ref(self, **more: Any) -> dict[str, Any]:
        return {"namespace": self.namespace, "name": self.name, **more}


@dataclass(frozen=True)
class Budget:
    """What a drain needs to know about a PodDisruptionBudget."""

    namespace: str
    name: str
    selector: Mapping[str, Any] | None = None
    allowed: int = 0
    healthy: int = 0
    desired: int = 0
    expected: int = 0
    current: bool = True
    always_allow_unhealthy: bool = False
    sync_failure: str = ""

    def covers(self, pod: Pod) -> bool:
        return self.namespace == pod.namespace and matches(self.selector, pod.labels)


@dataclass(frozen=True)
class Verdict:
    """Whether a pod can be evicted: ``now``, ``later`` or ``never``, the budget that says so, and why."""

    verdict: str
    budget: str | None = None
    reason: str = ""


@dataclass
class Plan:
    """What a drain does with each pod of a node; ``skipped`` and ``refused`` have reasons."""

    evict: list[Pod] = field(default_factory=list)
    wait: list[Pod] = field(default_factory=list)
    skipped: list[tuple[Pod, str]] = field(default_factory=list)
    refused: list[tuple[Pod, str]] = field(default_factory=list)


def check_drain(params: Mapping[str, Any]) -> None:
    """Refuse options of a drain that can't work.

    Raises:
        InvalidInput: A time is out of range, or ``delete_selector`` comes without ``delete_after``.
    """
    if params["timeout"] <= 0:
        raise InvalidInput(f"timeout must be positive, it is {params['timeout']}. Without a deadline a drain may hang.")
    after = params.get("delete_after")
    if after is not None and not 0 < after < params["timeout"]:
        raise InvalidInput(
            f"delete_after must be above 0 and below timeout ({params['timeout']}), it is {after}. Pods are evicted "
            "first; disable_eviction deletes them at once."
        )
    if after is None and params.get("delete_selector"):
        raise InvalidInput("delete_selector needs delete_after: after how many seconds these pods are deleted.")
    grace = params.get("grace_period")
    if grace is not None and grace < 0:
        raise InvalidInput(f"grace_period must not be negative, it is {grace}. Omit it to use the pods' own.")


def read_pod(item: Object) -> Pod:
    """Read a Pod object of the API."""
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    owner = next((ref for ref in metadata.get("ownerReferences") or [] if ref.get("controller")), None)
    conditions = status.get("conditions") or []
    volumes = spec.get("volumes") or []
    return Pod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        labels=metadata.get("labels") or {},
        controller=owner["kind"] if owner else "",
        controller_name=owner["name"] if owner else "",
        mirror=MIRROR in (metadata.get("annotations") or {}),
        empty_dir=any("emptyDir" in volume for volume in volumes),
        phase=status.get("phase") or "",
        ready=any(item["type"] == "Ready" and item["status"] == "True" for item in conditions),
        terminating=metadata.get("deletionTimestamp") or "",
        finalizers=tuple(metadata.get("finalizers") or ()),
        claims=tuple(_claims(metadata["name"], volumes)),
        tolerates_cordon=any(_tolerates_cordon(item) for item in spec.get("tolerations") or []),
        container=_container(status) if owner and owner["kind"] == "DaemonSet" else "",
    )


def _container(status: Mapping[str, Any]) -> str:
    """The start of an ID such as ``containerd://8f1d...``; empty if no container has started yet."""
    ids = (item.get("containerID") or "" for item in status.get("containerStatuses") or [])
    return next((found.rpartition("/")[2][:_KEPT_OF_AN_ID] for found in ids if found), "")


def _claims(pod: str, volumes: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for volume in volumes:
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in volume:
            yield f"{pod}-{volume['name']}"


def _tolerates_cordon(toleration: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", "NoSchedule"):
        return False
    return toleration.get("key") in (None, "", "node.kubernetes.io/unschedulable")


def ready_daemonsets(pods: Iterable[Pod]) -> dict[str, str]:
    """The DaemonSets that have a Ready pod among these, and the container of that pod."""
    return dict(sorted((pod.daemonset, pod.container) for pod in pods if pod.daemonset and pod.serves))


def read_budget(item: Object) -> Budget:
    """Read a PodDisruptionBudget object of the API."""
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    failed = next(
        (
            condition
            for condition in status.get("conditions") or []
            if condition.get("type") == "DisruptionAllowed" and condition.get("reason") == "SyncFailed"
        ),
        None,
    )
    return Budget(
        namespace=metadata["namespace"],
        name=metadata["name"],
        selector=spec.get("selector"),
        allowed=status.get("disruptionsAllowed") or 0,
        healthy=status.get("currentHealthy") or 0,
        desired=status.get("desiredHealthy") or 0,
        expected=status.get("expectedPods") or 0,
        current=(status.get("observedGeneration") or 0) >= (metadata.get("generation") or 0),
        always_allow_unhealthy=spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow",
        sync_failure=cut(str(failed.get("message"))) if failed else "",
    )


def plan(pods: Iterable[Pod], options: Options) -> Plan:
    """Divide the pods of a node: evict them, wait for them, leave them, or refuse the drain because of them."""
    result = Plan()
    for pod in pods:
        why_left = stays(pod)
        if why_left:
            result.skipped.append((pod, why_left))
            continue
        whys = forbidden(pod, options)
        if pod.terminating:
            result.wait.append(pod)
        elif whys:
            result.refused.append((pod, "; ".join(whys)))
        else:
            result.evict.append(pod)
    return result


def stays(pod: Pod) -> str:
    """Why a drain leaves this pod on the node; empty if it does not."""
    if pod.mirror:
        return "mirror pod of a static pod"
    if pod.daemonset and not pod.finished:
        return "DaemonSet pod"
    return ""


def forbidden(pod: Pod, options: Options) -> list[str]:
    """What the user has to allow before this pod may be evicted; the checks do not depend on each other."""
    if pod.finished:
        return []
    whys = []
    if not pod.controller and not options.force:
        whys.append("it has no owner that would create it again (force: true deletes it for good)")
    if pod.empty_dir and not options.delete_emptydir:
        whys.append("it has an emptyDir volume whose data would be lost (delete_emptydir: true accepts that)")
    return whys


def verdict(pod: Pod, budgets: Iterable[Budget]) -> Verdict:
    """Whether the budgets allow the eviction of a pod; the API server evicts no pod that has several budgets."""
    if pod.finished or pod.terminating or pod.phase == "Pending":
        return Verdict(NOW)
    covering = [budget for budget in budgets if budget.covers(pod)]
    if not covering:
        return Verdict(NOW)
    if len(covering) > 1:
        names = ", ".join(sorted(budget.name for budget in covering))
        return Verdict(
            NEVER, names, f"{len(covering)} PodDisruptionBudgets cover it ({names}), so the API never evicts it"
        )
    return _verdict_of(covering[0], pod)


def _verdict_of(budget: Budget, pod: Pod) -> Verdict:
    name = budget.name
    # The order is the API server's: it evicts a pod that is not ready even if the budget is still being processed.
    if not pod.ready and (budget.always_allow_unhealthy or (budget.desired > 0 and budget.healthy >= budget.desired)):
        return Verdict(NOW, name)
    if not budget.current:
        return Verdict(LATER, name, f"PodDisruptionBudget {name} is still being processed")
    if budget.allowed > 0:
        return Verdict(NOW, name)
    if budget.sync_failure:
        return Verdict(NEVER, name, f"PodDisruptionBudget {name} can't be computed: {budget.sync_failure}")
    if budget.desired >= budget.expected > 0:
        return Verdict(
            NEVER,
            name,
            f"PodDisruptionBudget {name} wants {budget.desired} of {budget.expected} pods healthy, so it never "
            "allows an eviction",
        )
    return Verdict(
        LATER,
        name,
        f"PodDisruptionBudget {name} allows no eviction now ({budget.healthy} pods healthy, {budget.desired} wanted)",
    )


def by_namespace(budgets: Iterable[Budget]) -> dict[str, list[Budget]]:
    found: dict[str, list[Budget]] = defaultdict(list)
    for budget in budgets:
        found[budget.namespace].append(budget)
    return found


def blockers(plan_: Plan, budgets: Mapping[str, Iterable[Budget]]) -> list[dict[str, Any]]:
    """The pods that can't be evicted now, each with its verdict: ``later`` or ``never``.

    Args:
        budgets: The PodDisruptionBudgets, by namespace.
    """
    found = [pod.ref(reason=why, pdb=None, verdict=NEVER) for pod, why in plan_.refused]
    for pod in plan_.evict:
        allowed = verdict(pod, budgets.get(pod.namespace, ()))
        if allowed.verdict != NOW:
            found.append(pod.ref(reason=allowed.reason, pdb=allowed.budget, verdict=allowed.verdict))
    return found


class Drains:
    """The verdicts of many nodes, from one pass over their pods; keeps no pod that a drain can evict.

    Args:
        budgets: The PodDisruptionBudgets of the pods' namespaces.
        options: What the user allows.
        named: How many blockers of one kind are kept for each node; ``None`` for all.
    """

    def __init__(self, budgets: Iterable[Budget], options: Options, named: int | None = None) -> None:
        self._options, self._named, self._budgets = options, named, by_namespace(budgets)
        self._blockers: dict[str, list[list[dict[str, Any]]]] = defaultdict(lambda: [[], [], []])

    def add(self, item: Object) -> None:
        """Look at a Pod object of the API that is bound to a node."""
        pod = read_pod(item)
        mine = plan([pod], self._options)
        for blocker in blockers(mine, self._budgets):
            # Name pods that the user has to allow first, as a drain does.
            kind = 0 if mine.refused else 1 if blocker["verdict"] == NEVER else 2
            found = self._blockers[item["spec"]["nodeName"]][kind]
            if self._named is None or len(found) < self._named:
                found.append(blocker)

    def of(self, node: str) -> dict[str, Any]:
        """Return the ``verdict`` on the drain of a node, and its ``blockers``, the worst ones first."""
        refused, never, later = self._blockers.get(node) or ([], [], [])
        verdict = NEVER if refused or never else LATER if later else NOW
        return {"verdict": verdict, "blockers": [*refused, *never, *later]}

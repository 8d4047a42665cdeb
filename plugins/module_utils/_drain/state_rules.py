# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a drain: events change it, and it decides which evictions to send next.

It does no I/O and reads no clock: its callers pass events and the time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .rules import LATER, NEVER, NOW, Budget, Options, Pod, Verdict, forbidden, stays, verdict

WAITING, SENT, LEAVING = "waiting", "sent", "leaving"

# Seconds after which an eviction is sent again, in case the watch missed a change of the budget.
ASK_AGAIN = 10.0
# Seconds that an operator has to free a budget after other pods are gone. Only then does "never" count.
SETTLE = 10.0
# How often a controller may create a pod on the node again after its pods have left. A pod that was bound before the
# cordon can arrive late; one with spec.nodeName arrives always.
_RETURNS = 2


@dataclass
class Entry:
    """One pod that has to leave the node."""

    pod: Pod
    state: str = WAITING
    asked: int = 0
    not_before: float = 0.0
    for_budget: bool = True
    deleted: bool = False
    refusal: str = ""
    # When the API accepted its eviction; ``None`` for a pod that something else ends.
    evicted_at: float | None = None


@dataclass
class Gone:
    """A pod that the drain evicted and that is gone; ``seconds`` is the time since its eviction."""

    pod: Pod
    seconds: float


@dataclass
class Drain:
    """State of the drain of one node. All times are seconds on one monotonic clock."""

    options: Options
    started: float
    entries: dict[str, Entry] = field(default_factory=dict)
    budgets: dict[tuple[str, str], Budget] = field(default_factory=dict)
    gone: list[Gone] = field(default_factory=list)
    skipped: dict[str, tuple[Pod, str]] = field(default_factory=dict)
    last_gone: float | None = None
    # Pods (UIDs) that are deleted when their budget has refused them for ``delete_after`` seconds.
    deletable: frozenset[str] = frozenset()
    delete_after: float = 0.0
    # The same budgets by namespace: a cluster has thousands, and only those of the pod's namespace cover it.
    _of_namespace: dict[str, dict[str, Budget]] = field(default_factory=dict)
    _listed: bool = False
    _credit: dict[tuple[str, str], int] = field(default_factory=dict)
    # Pods that left before the answer to their eviction arrived.
    _unanswered: dict[str, Pod] = field(default_factory=dict)
    # How many new pods came, by their controller, since one of its pods has left.
    _returns: dict[tuple[str, str, str], int] = field(default_factory=dict)

    # -- events -------------------------------------------------------------------------------------------------------

    def saw(self, pod: Pod) -> None:
        """A pod is on the node."""
        entry = self.entries.get(pod.uid)
        if entry is not None:
            entry.pod = pod
            if pod.terminating and entry.state == WAITING:
                entry.state = LEAVING
            elif self._only_forbidden(entry) and not forbidden(pod, self.options):
                # A finished pod may always be evicted, because it has nothing left to lose.
                entry.refusal, entry.not_before = "", 0.0
            return
        if pod.uid in self.skipped:
            return
        why = stays(pod) or self._comes_back(pod)
        if why:
            self.skipped[pod.uid] = (pod, why)
            return
        entry = Entry(pod, state=LEAVING if pod.terminating else WAITING)
        whys = forbidden(pod, self.options)
        if whys and not pod.terminating:
            entry.refusal, entry.not_before = "; ".join(whys), float("inf")
        self.entries[pod.uid] = entry

    @staticmethod
    def _only_forbidden(entry: Entry) -> bool:
        return entry.state == WAITING and not entry.asked and entry.not_before == float("inf")

    def _comes_back(self, pod: Pod) -> str:
        """Why a pod would be created on this node again at once, so that the drain would never end; empty if not."""
        if self._listed and pod.tolerates_cordon:
            return "started while the node was drained, and tolerates the cordon"
        owner = _owner(pod)
        if owner not in self._returns:
            return ""
        self._returns[owner] += 1
        return "its controller creates it on this node again" if self._returns[owner] > _RETURNS else ""

    def left(self, uid: str, now: float) -> None:
        """A pod is no longer on the node."""
        self.skipped.pop(uid, None)
        entry = self.entries.pop(uid, None)
        if entry is None:
            return
        self.last_gone = now
        if entry.pod.controller_name:
            self._returns.setdefault(_owner(entry.pod), 0)
        if entry.state == SENT:
            # The watch was faster than the answer. Only the answer tells whether the drain evicted the pod.
            self._unanswered[uid] = entry.pod
        elif entry.evicted_at is not None:
            self.gone.append(Gone(entry.pod, now - entry.evicted_at))

    def missing(self, uid: str, now: float) -> None:
        """The API answered that the pod no longer exists."""
        self._unanswered.pop(uid, None)
        entry = self.entries.get(uid)
        if entry is not None:
            entry.state = LEAVING
            self.left(uid, now)

    def saw_all(self, pods: list[Pod], now: float) -> None:
        """A list of all pods on the node; every other pod has left."""
        present = {pod.uid for pod in pods}
        for uid in [uid for uid in [*self.entries, *self.skipped] if uid not in present]:
            self.left(uid, now)
        for pod in pods:
            self.saw(pod)
        self._listed = True

    def budget(self, budget: Budget) -> None:
        """A budget is new or has changed."""
        key = (budget.namespace, budget.name)
        self.budgets[key] = budget
        self._of_namespace.setdefault(budget.namespace, {})[budget.name] = budget
        self._credit[key] = budget.allowed
        for entry in self._waiting_for(budget):
            if self.verdict(entry).verdict == NOW:
                entry.not_before = 0.0

    def budget_gone(self, namespace: str, name: str) -> None:
        budget = self.budgets.pop((namespace, name), None)
        self._of_namespace.get(namespace, {}).pop(name, None)
        for entry in self._waiting_for(budget) if budget else []:
            entry.not_before = 0.0

    def _waiting_for(self, budget: Budget) -> list[Entry]:
        return [
            entry
            for entry in self.entries.values()
            if entry.state == WAITING
            and entry.for_budget
            and entry.not_before < float("inf")
            and budget.covers(entry.pod)
        ]

    def all_budgets(self, budgets: list[Budget], namespace: str = "") -> None:
        """A list of all budgets of a namespace, or of the cluster; every other budget there is gone."""
        present = {(budget.namespace, budget.name) for budget in budgets}
        for key in [key for key in self.budgets if key not in present and namespace in ("", key[0])]:
            self.budget_gone(*key)
        for budget in budgets:
            self.budget(budget)

    def accepted(self, uid: str, now: float) -> None:
        """The API evicted the pod, and its grace period has started."""
        departed = self._unanswered.pop(uid, None)
        if departed is not None:
            self.gone.append(Gone(departed, 0.0))
        entry = self.entries.get(uid)
        if entry is not None:
            entry.state, entry.evicted_at, entry.refusal = LEAVING, now, ""

    def refused(
        self, uid: str, now: float, why: str, *, retry_after: float | None, by_budget: bool, final: bool = False
    ) -> None:
        """The API did not evict the pod.

        Args:
            retry_after: Seconds that the server asks the client to wait.
            by_budget: A budget refused it, so try again when the budget changes.
            final: No later attempt can succeed.
        """
        self._unanswered.pop(uid, None)
        entry = self.entries.get(uid)
        if entry is None:
            return
        if entry.pod.terminating:
            # Something else deleted the pod while the request was under way.
            entry.state = LEAVING
            return
        entry.state, entry.refusal, entry.for_budget = WAITING, why, by_budget
        entry.not_before = float("inf") if final else now + self._pause(entry, retry_after)

    def _pause(self, entry: Entry, retry_after: float | None) -> float:
        if retry_after:
            return retry_after
        if not entry.for_budget:
            return 1.0
        # A change of the budget may arrive before this answer and make it out of date.
        allowed = self.verdict(entry).verdict == NOW and self._credit_of(entry) > 0
        return min(ASK_AGAIN, 0.1 * 2**entry.asked) if allowed else ASK_AGAIN

    # -- what to do ---------------------------------------------------------------------------------------------------

    def next_evictions(self, now: float) -> list[Pod]:
        """Pods to send an eviction for; they count as sent from now on.

        At any time, a budget gets no more requests than it allows evictions, so that few requests are refused. A pod
        still gets a request if its budget says never, or seems full for a long time: the API decides.
        """
        chosen = []
        for entry in self.entries.values():
            if entry.state != WAITING:
                continue
            if not entry.deleted and self._deletion_at(entry) <= now:
                entry.deleted, entry.not_before = True, now
            if entry.not_before > now:
                continue
            if not entry.deleted and entry.not_before == 0.0 and self._held_back(entry):
                entry.not_before = now + ASK_AGAIN
                continue
            key = (entry.pod.namespace, self.verdict(entry).budget or "")
            if key in self._credit and entry.pod.ready:
                self._credit[key] -= 1
            entry.state = SENT
            entry.asked += 1
            chosen.append(entry.pod)
        return chosen

    def deletion(self, uid: str) -> Verdict | None:
        """What its budget says about a pod that is deleted despite it; ``None`` for a pod that is evicted."""
        entry = self.entries.get(uid)
        return self.verdict(entry) if entry is not None and entry.deleted else None

    def _deletion_at(self, entry: Entry) -> float:
        """When a pod is deleted. Only a refusal of its eviction by a budget leads to that."""
        refused = entry.asked and entry.for_budget and entry.not_before < float("inf")
        return self.started + self.delete_after if refused and self._is_deletable(entry) else float("inf")

    def _is_deletable(self, entry: Entry) -> bool:
        return entry.pod.uid in self.deletable

    def _held_back(self, entry: Entry) -> bool:
        found = self.verdict(entry)
        full = found.verdict == NOW and found.budget is not None and entry.pod.ready and self._credit_of(entry) <= 0
        return found.verdict == LATER or full

    def _credit_of(self, entry: Entry) -> int:
        return self._credit.get((entry.pod.namespace, self.verdict(entry).budget or ""), 0)

    def wake_at(self) -> float:
        """The time at which something is due even without an event; infinity if nothing is due."""
        waiting = [entry for entry in self.entries.values() if entry.state == WAITING]
        waits = [entry.not_before for entry in waiting]
        waits += [self._deletion_at(entry) for entry in waiting if not entry.deleted]
        if self.last_gone is not None and self._only_never():
            waits.append(self.last_gone + SETTLE)
        return min(waits, default=float("inf"))

    @property
    def done(self) -> bool:
        """Whether no pod is left that has to leave. Before the first list, this is unknown."""
        return self._listed and not self.entries and not self._unanswered

    def gives_up(self, now: float) -> bool:
        """Whether no remaining pod can be evicted, and the time to settle after other pods left has passed."""
        if not self._only_never():
            return False
        return self.last_gone is None or now >= self.last_gone + SETTLE

    def _only_never(self) -> bool:
        return bool(self.entries) and all(self._is_never(entry) for entry in self.entries.values())

    def _is_never(self, entry: Entry) -> bool:
        answered = entry.asked or entry.not_before == float("inf")
        return entry.state == WAITING and bool(answered) and self._can_never_go(entry)

    def _can_never_go(self, entry: Entry) -> bool:
        if entry.not_before == float("inf"):
            return True
        return self.verdict(entry).verdict == NEVER and not self._is_deletable(entry)

    # -- what to say --------------------------------------------------------------------------------------------------

    def verdict(self, entry: Entry) -> Verdict:
        return verdict(entry.pod, self._of_namespace.get(entry.pod.namespace, {}).values())

    def blocked(self) -> list[dict[str, Any]]:
        """Every pod that is still on the node, with the reason."""
        return [self._why(entry) for entry in self.entries.values()]

    def _why(self, entry: Entry) -> dict[str, Any]:
        pod = entry.pod
        if entry.state == LEAVING:
            reason = "is terminating"
            if pod.terminating:
                # deletionTimestamp is the end of the grace period, not its start.
                reason += f" (its grace period ends at {pod.terminating})"
            if pod.finalizers:
                reason += f" and waits for its finalizers {', '.join(pod.finalizers)}"
            return pod.ref(reason=reason, pdb=None, verdict=LATER)
        if entry.not_before == float("inf"):
            return pod.ref(reason=entry.refusal, pdb=self.verdict(entry).budget, verdict=NEVER)
        found = self.verdict(entry)
        reason = found.reason or entry.refusal or "the API server has not answered its eviction yet"
        return pod.ref(reason=reason, pdb=found.budget, verdict=NEVER if found.verdict == NEVER else LATER)

    def never_now(self) -> dict[str, dict[str, Any]]:
        """Pods (by UID) that can never be evicted, so that the user gets a warning before the deadline."""
        found = {uid: self._why(entry) for uid, entry in self.entries.items() if entry.state != LEAVING}
        return {uid: item for uid, item in found.items() if item["verdict"] == NEVER}

    def never(self) -> list[dict[str, Any]]:
        """Pods that the drain can't remove, if no budget changes."""
        found = (entry for entry in self.entries.values() if entry.state == WAITING and self._can_never_go(entry))
        return [self._why(entry) for entry in found]


def _owner(pod: Pod) -> tuple[str, str, str]:
    return pod.namespace, pod.controller, pod.controller_name

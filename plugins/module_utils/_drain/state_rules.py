# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The course of a drain: from what happened to which evictions to send next.

No I/O and no clock of its own: events and the time come in, decisions go out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .rules import LATER, NEVER, NOW, Budget, Options, Pod, Verdict, forbidden, stays, verdict

WAITING, SENT, LEAVING = "waiting", "sent", "leaving"

# A budget whose watch we missed is asked again after this long.
ASK_AGAIN = 10.0
# An operator that frees a budget when other pods are gone gets this long to do so before "never" is believed.
SETTLE = 10.0


@dataclass
class Entry:
    """One pod that has to go."""

    pod: Pod
    state: str = WAITING
    asked: int = 0
    not_before: float = 0.0
    for_budget: bool = True
    refusal: str = ""
    evicted_at: float | None = None
    ours: bool = False


@dataclass
class Gone:
    """A pod that we evicted and that has left."""

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
    _listed: bool = False
    _credit: dict[tuple[str, str], int] = field(default_factory=dict)
    # Pods that left before the answer to their eviction came.
    _unanswered: dict[str, Pod] = field(default_factory=dict)

    # -- what happened ----------------------------------------------------------------------------------------------

    def saw(self, pod: Pod, now: float) -> None:
        """A pod is on the node."""
        entry = self.entries.get(pod.uid)
        if entry is not None:
            entry.pod = pod
            if pod.terminating and entry.state == WAITING:
                entry.state = LEAVING
            elif self._only_forbidden(entry) and not forbidden(pod, self.options):
                # A pod that has finished has nothing left to lose.
                entry.refusal, entry.not_before = "", 0.0
            return
        if pod.uid in self.skipped:
            return
        why = stays(pod)
        if not why and self._comes_back(pod):
            why = "came while the node was drained and tolerates the cordon"
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

    def _comes_back(self, pod: Pod) -> bool:
        # To evict what is made again here at once would never end.
        return self._listed and pod.tolerates_cordon

    def left(self, uid: str, now: float) -> None:
        """A pod is not on the node any more."""
        self.skipped.pop(uid, None)
        entry = self.entries.pop(uid, None)
        if entry is None:
            return
        self.last_gone = now
        if entry.state == SENT:
            # The watch was faster than the answer, and only the answer tells whether it was our doing.
            self._unanswered[uid] = entry.pod
        elif entry.ours:
            since = entry.evicted_at if entry.evicted_at is not None else now
            self.gone.append(Gone(entry.pod, now - since))

    def missing(self, uid: str, now: float) -> None:
        """The API answered that there is no such pod any more."""
        self._unanswered.pop(uid, None)
        entry = self.entries.get(uid)
        if entry is not None:
            entry.state = LEAVING
            self.left(uid, now)

    def saw_all(self, pods: list[Pod], now: float) -> None:
        """These and no others are on the node."""
        present = {pod.uid for pod in pods}
        for uid in [uid for uid in [*self.entries, *self.skipped] if uid not in present]:
            self.left(uid, now)
        for pod in pods:
            self.saw(pod, now)
        self._listed = True

    def budget(self, budget: Budget) -> None:
        """A budget is new or has changed."""
        key = (budget.namespace, budget.name)
        self.budgets[key] = budget
        self._credit[key] = budget.allowed
        for entry in self._waiting_for(budget):
            if self.verdict(entry).verdict == NOW:
                entry.not_before = 0.0

    def budget_gone(self, namespace: str, name: str) -> None:
        budget = self.budgets.pop((namespace, name), None)
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

    def all_budgets(self, budgets: list[Budget]) -> None:
        present = {(budget.namespace, budget.name) for budget in budgets}
        for namespace, name in [key for key in self.budgets if key not in present]:
            self.budget_gone(namespace, name)
        for budget in budgets:
            self.budget(budget)

    def accepted(self, uid: str, now: float) -> None:
        """The API evicted the pod; it leaves as soon as its grace period lets it."""
        departed = self._unanswered.pop(uid, None)
        if departed is not None:
            self.gone.append(Gone(departed, 0.0))
        entry = self.entries.get(uid)
        if entry is not None:
            entry.state, entry.ours, entry.evicted_at, entry.refusal = LEAVING, True, now, ""

    def refused(
        self, uid: str, now: float, why: str, *, retry_after: float | None, by_budget: bool, final: bool = False
    ) -> None:
        """The API did not evict the pod.

        Args:
            retry_after: Seconds that the server asked us to wait.
            by_budget: A budget refused it, so a change of the budget makes a new try worthwhile.
            final: No later try can go through.
        """
        self._unanswered.pop(uid, None)
        entry = self.entries.get(uid)
        if entry is None:
            return
        if entry.pod.terminating:
            # Somebody else ended it while our request was under way.
            entry.state = LEAVING
            return
        entry.state, entry.refusal, entry.for_budget = WAITING, why, by_budget
        entry.not_before = float("inf") if final else now + self._pause(entry, retry_after)

    def _pause(self, entry: Entry, retry_after: float | None) -> float:
        if retry_after:
            return retry_after
        if not entry.for_budget:
            return 1.0
        # News of the budget may have come before the answer that it makes out of date.
        allowed = self.verdict(entry).verdict == NOW and self._credit_of(entry) > 0
        return min(ASK_AGAIN, 0.1 * 2**entry.asked) if allowed else ASK_AGAIN

    # -- what to do ---------------------------------------------------------------------------------------------------

    def next_evictions(self, now: float) -> list[Pod]:
        """Pods to send an eviction for; they count as sent from here on.

        A budget is asked for no more pods at a time than it allows, so that few requests are refused. Each pod whose
        budget says never, and each whose budget seems full for long, is asked for all the same: the API decides.
        """
        chosen = []
        for entry in self.entries.values():
            if entry.state != WAITING or entry.not_before > now:
                continue
            if entry.not_before == 0.0 and self._held_back(entry):
                entry.not_before = now + ASK_AGAIN
                continue
            key = (entry.pod.namespace, self.verdict(entry).budget or "")
            if key in self._credit and entry.pod.ready:
                self._credit[key] -= 1
            entry.state = SENT
            entry.asked += 1
            chosen.append(entry.pod)
        return chosen

    def _held_back(self, entry: Entry) -> bool:
        found = self.verdict(entry)
        full = found.verdict == NOW and found.budget is not None and entry.pod.ready and self._credit_of(entry) <= 0
        return found.verdict == LATER or full

    def _credit_of(self, entry: Entry) -> int:
        return self._credit.get((entry.pod.namespace, self.verdict(entry).budget or ""), 0)

    def wake_at(self) -> float:
        """When something may be due without any event; infinity if nothing is."""
        waits = [entry.not_before for entry in self.entries.values() if entry.state == WAITING]
        if self.last_gone is not None and self._only_never():
            waits.append(self.last_gone + SETTLE)
        return min(waits, default=float("inf"))

    @property
    def done(self) -> bool:
        return not self.entries and not self._unanswered

    def hopeless(self, now: float) -> bool:
        """Nothing moves any more, and what is left may never be evicted."""
        if not self._only_never():
            return False
        return self.last_gone is None or now >= self.last_gone + SETTLE

    def _only_never(self) -> bool:
        return bool(self.entries) and all(self._is_never(entry) for entry in self.entries.values())

    def _is_never(self, entry: Entry) -> bool:
        if entry.state != WAITING or not (entry.asked or entry.not_before == float("inf")):
            return False
        return entry.not_before == float("inf") or self.verdict(entry).verdict == NEVER

    # -- what to say --------------------------------------------------------------------------------------------------

    def verdict(self, entry: Entry) -> Verdict:
        return verdict(entry.pod, self.budgets.values())

    def blocked(self) -> list[dict[str, Any]]:
        """Every pod that is left, with the reason."""
        return [self._why(entry) for entry in self.entries.values()]

    def _why(self, entry: Entry) -> dict[str, Any]:
        pod = entry.pod
        if entry.state == LEAVING:
            reason = "is terminating"
            if pod.terminating:
                # The API writes the end of the grace period here, not the beginning.
                reason += f" (its grace period ends at {pod.terminating})"
            if pod.finalizers:
                reason += f" and waits for its finalizers {', '.join(pod.finalizers)}"
            return pod.ref(reason=reason, pdb=None, verdict=LATER)
        if entry.not_before == float("inf"):
            return pod.ref(reason=entry.refusal, pdb=self.verdict(entry).budget, verdict=NEVER)
        found = self.verdict(entry)
        reason = found.reason or entry.refusal or "its eviction was not answered yet"
        return pod.ref(reason=reason, pdb=found.budget, verdict=NEVER if found.verdict == NEVER else LATER)

    def never_now(self) -> dict[str, dict[str, Any]]:
        """Pods (by UID) whose budget says never, for a word to the user before the deadline."""
        found = {uid: self._why(entry) for uid, entry in self.entries.items() if entry.state != LEAVING}
        return {uid: item for uid, item in found.items() if item["verdict"] == NEVER}

    def denied(self) -> list[dict[str, Any]]:
        """Pods that may not be evicted whatever their budgets say."""
        return [self._why(entry) for entry in self.entries.values() if entry.not_before == float("inf")]

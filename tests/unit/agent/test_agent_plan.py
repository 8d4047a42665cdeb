# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the agent does in which order, whatever comes and whatever fails: a node, an API server and a disk in memory."""

from __future__ import annotations

from examples import share
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from holdfast_agent.condition import ALLOWED, Condition
from holdfast_agent.holds import Hold, ordered
from holdfast_agent.plan import (
    Facts,
    Lock,
    Mask,
    Publish,
    Store,
    Unlock,
    Unmask,
    next_act,
    secured,
    wanted_condition,
)

UNITS = frozenset({"reboot.target", "systemd-reboot.service"})
HOLDS = [Hold(f"ns-{number}", holder, f"2026-01-0{number}T00:00:00.000000Z") for number in (1, 2, 3) for holder in "ab"]
# One Lease whose holder changes again and again.
RESTLESS = [Hold("ns-0", f"x{number}", "2020-01-01T00:00:00.000000Z") for number in range(20)]
KEYS = {hold.entry: hold.key for hold in (*HOLDS, *RESTLESS)}


def sets_of_holds():
    """What may stand at one time: one Lease in each namespace."""
    return st.lists(st.sampled_from(HOLDS), unique_by=lambda hold: hold.namespace, max_size=3).map(ordered)


class Node(RuleBasedStateMachine):
    """A node, with all that outlives the agent's process."""

    def __init__(self):
        super().__init__()
        self.leases = ()
        self.condition = None
        self.locks = set()
        self.masks = set()
        self.own_masks = set()
        self.not_masked = set()
        self.disk = ()
        self.enforcement = "strict"
        self.under_way = None
        self.booting = False
        self.boot(written=False)

    def boot(self, *, written):
        """The agent starts; it knows what is on disk and what PID 1 kept."""
        if written and self.under_way:
            self.condition = self.under_way.condition
        self.under_way = None
        self.facts = Facts(
            enforcement=self.enforcement,
            units=UNITS,
            holds=self.disk,
            stored=self.disk,
            masked=frozenset(self.masks),
            own_masks=frozenset(self.own_masks),
        )
        self.facts.adopt(frozenset(self.locks))

    def act(self, act, *, fails=False):
        facts = self.facts
        if isinstance(act, Lock):
            for number, hold in enumerate(act.holds):
                if fails and number % 2 == 0:
                    facts.failed_locks[hold.key] = "no"
                else:
                    self.locks.add(hold.key)
                    self.check()
            facts.locks = frozenset(self.locks)
        elif isinstance(act, Mask):
            if fails:
                facts.failed_masks.update(dict.fromkeys(act.units, "no"))
                self.not_masked |= act.units
            else:
                self.own_masks |= act.units
                self.masks |= act.units
            facts.masked, facts.own_masks = frozenset(self.masks), frozenset(self.own_masks)
        elif isinstance(act, Store):
            if fails:
                facts.store_failed = "full"
            else:
                self.disk = facts.stored = act.holds
        elif isinstance(act, Publish):
            facts.publishing, self.under_way = True, act
            facts.named |= act.named
        elif isinstance(act, Unlock):
            # One after the other, and looked at after each.
            for key in act.keys:
                self.locks.discard(key)
                self.check()
            facts.locks = frozenset(self.locks)
        elif isinstance(act, Unmask):
            self.masks -= act.units
            self.own_masks -= act.units
            facts.masked, facts.own_masks = frozenset(self.masks), frozenset(self.own_masks)

    @rule(holds=sets_of_holds())
    def news(self, holds):
        self.leases = holds
        if not self.facts.shutting_down:
            self.facts.holds, self.facts.synced = holds, True
            self.calm()

    @rule(fails=st.booleans())
    def one_act(self, fails):
        act = next_act(self.facts)
        if act is not None:
            assert not self.facts.shutting_down
            self.act(act, fails=fails)

    @precondition(lambda self: self.under_way)
    @rule(outcome=st.sampled_from(["done", "away", "answer lost", "node gone"]))
    def answer(self, outcome):
        act, self.under_way = self.under_way, None
        self.facts.publishing = False
        if outcome in {"done", "answer lost"}:
            self.condition = act.condition
        if outcome == "node gone":
            self.condition, self.facts.named = None, frozenset()
        if outcome == "done":
            self.facts.published, self.facts.named = act.condition, act.named
        else:
            self.facts.published, self.facts.publish_waits = None, True

    @rule()
    def calm(self):
        self.facts.failed_locks.clear()
        self.facts.failed_masks.clear()
        self.facts.store_failed, self.facts.publish_waits = "", False

    @rule(enforcement=st.sampled_from(["strict", "strict", "inhibitor", "observe"]), written=st.booleans())
    def restart(self, enforcement, written):
        self.enforcement = enforcement
        self.boot(written=written)

    @precondition(lambda self: self.enforcement != "observe")
    @rule(written=st.booleans())
    def loss_of_power(self, written):
        self.locks.clear()
        self.masks.clear()
        self.own_masks.clear()
        self.boot(written=written)
        # The kubelet waits until this is done, and so do the readers of the condition.
        self.booting = True
        while isinstance(act := next_act(self.facts), (Lock, Mask)):
            self.act(act)
        self.booting = False

    @rule(active=st.booleans())
    def shutdown(self, active):
        self.facts.shutting_down = active
        if not active:
            self.news(self.leases)

    @invariant()
    def check(self):
        if self.booting:
            return
        named = set(self.condition.reason.split(",")) if self.condition and self.condition.status == "True" else set()
        # An answer under way may be a yes already.
        if self.under_way and self.under_way.condition.status == "True":
            named |= set(self.under_way.condition.reason.split(","))
        keys = {KEYS[entry] for entry in named}
        assert keys <= self.locks, "the condition names a hold that is not locked"
        assert keys <= {hold.key for hold in self.disk}, "the condition names a hold that a loss of power would forget"
        standing = {hold.key for hold in self.facts.holds}
        if self.enforcement != "observe":
            assert self.facts.locks & standing <= self.locks, "the lock of a hold that stands was let go"
        if keys & standing and self.enforcement == "strict" and self.facts.published == self.condition:
            assert self.masks | self.not_masked >= UNITS, "confirmed before it was masked"

    def rest(self):
        """Act until there is nothing to do before an answer."""
        for _count in range(20):
            act = next_act(self.facts)
            if act is None:
                return
            self.act(act)
            self.check()
        raise AssertionError("it comes to no end")

    @precondition(lambda self: not self.facts.shutting_down)
    @rule(
        holds=sets_of_holds(), changes=st.integers(1, len(RESTLESS)), outcome=st.sampled_from(["done", "answer lost"])
    )
    def a_lease_changes_faster_than_the_server_answers(self, holds, changes, outcome):
        if not self.facts.synced:
            self.news(holds)
        before = self.facts.named
        for restless in RESTLESS[:changes]:
            self.news(ordered((restless, *holds)))
            self.rest()
            keys = {hold.key for hold in self.facts.holds}
            # At most one write began: it names what stood then.
            assert len(self.facts.named - before - {hold.key for hold in holds}) <= 1
            assert self.locks <= self.facts.named | keys, "locks that nobody needs are left"
            assert {hold.key for hold in self.disk} <= self.facts.named | keys, "holds that nobody needs are on disk"
        if self.under_way:
            self.answer(outcome)
            self.rest()

    @precondition(lambda self: not self.facts.shutting_down and self.enforcement != "observe")
    @rule(holds=sets_of_holds().filter(len))
    def others_are_confirmed_by_the_second_answer(self, holds):
        numbers = iter(RESTLESS)
        for _answers in range(2):
            self.news(ordered((next(numbers), *holds)))
            self.rest()
            if self.under_way:
                self.answer("done")
            self.news(ordered((next(numbers), *holds)))
            self.rest()
        assert {hold.entry for hold in holds} <= set(self.condition.reason.split(","))

    @rule(holds=sets_of_holds())
    def all_goes_well(self, holds):
        """From wherever it is, the agent gets to what is right."""
        self.facts.shutting_down = False
        if self.under_way:
            self.answer("done")
        self.news(holds)
        for _count in range(50):
            act = next_act(self.facts)
            if act is None:
                break
            self.act(act)
            self.check()
            if self.under_way:
                self.answer("done")
                self.check()
        else:
            raise AssertionError("it comes to no end")
        observed = self.enforcement == "observe"
        assert self.locks == (set() if observed else {hold.key for hold in holds})
        assert self.own_masks == (UNITS if holds and self.enforcement == "strict" else set())
        assert self.disk == holds
        expected = ",".join(hold.entry for hold in holds)
        if not holds:
            assert self.condition == ALLOWED
        elif observed:
            assert (self.condition.status, self.condition.reason) == ("False", "ObserveOnly")
        else:
            assert self.condition == Condition("True", expected, "kubelet inhibited node shutdown")


def test_whatever_comes_and_whatever_fails():
    run_state_machine_as_test(Node, settings=settings(max_examples=share(0.4), stateful_step_count=25))


def facts(**more):
    return Facts(enforcement="strict", units=UNITS, **{"synced": True, **more})


FIRST, SECOND = HOLDS[0], HOLDS[2]


class Course:
    """Acts in order, each done at once."""

    def __init__(self, found):
        self.facts = found
        self.acts = []

    def run(self):
        while (act := next_act(self.facts)) is not None:
            self.acts.append(act)
            found = self.facts
            if isinstance(act, Lock):
                found.locks |= {hold.key for hold in act.holds}
            elif isinstance(act, Mask):
                found.masked = found.own_masks = act.units
            elif isinstance(act, Store):
                found.stored = act.holds
            elif isinstance(act, Publish):
                found.published, found.named = act.condition, act.named
            elif isinstance(act, Unlock):
                found.locks -= act.keys
            elif isinstance(act, Unmask):
                found.masked = found.own_masks = frozenset()
        return [type(act) for act in self.acts]


def test_a_hold_is_locked_masked_and_on_disk_before_it_is_confirmed():
    assert Course(facts(holds=(FIRST,))).run() == [Lock, Mask, Store, Publish]


def test_a_release_is_published_before_lock_and_masks_are_removed():
    held = facts(
        locks=frozenset({FIRST.key}),
        masked=UNITS,
        own_masks=UNITS,
        stored=(FIRST,),
        published=Condition("True", FIRST.entry, ""),
        named=frozenset({FIRST.key}),
    )
    assert Course(held).run() == [Publish, Unlock, Unmask, Store]


def test_a_new_holder_is_locked_before_the_old_lock_goes():
    changed = facts(holds=(SECOND,), masked=UNITS, own_masks=UNITS, stored=(FIRST,))
    changed.adopt(frozenset({FIRST.key}))
    assert Course(changed).run() == [Lock, Store, Publish, Unlock, Store]


def test_an_old_lock_stays_while_the_new_one_can_not_be_taken():
    changed = facts(holds=(SECOND,), locks=frozenset({FIRST.key}), masked=UNITS, stored=(FIRST, SECOND))
    changed.failed_locks[SECOND.key] = "logind is down"
    acts = Course(changed).run()
    assert acts == [Publish]
    assert changed.published.status == "False"
    assert "logind is down" in changed.published.message


def test_nothing_is_published_or_released_before_the_api_answers():
    left = facts(synced=False, holds=(FIRST,), stored=(FIRST,), locks=frozenset({SECOND.key}))
    assert Course(left).run() == [Lock, Mask]


def test_a_condition_that_fits_releases_nothing_before_the_api_answers():
    left = facts(synced=False, locks=frozenset({FIRST.key}))
    left.published = wanted_condition(left)
    assert next_act(left) is None
    left.synced = True
    assert next_act(left) == Unlock(frozenset({FIRST.key}))


def test_what_can_not_be_published_is_not_released_unless_the_server_refuses_it_for_good():
    left = facts(stored=(FIRST,), publish_waits=True)
    left.adopt(frozenset({FIRST.key}))
    assert next_act(left) is None
    left.named = frozenset()
    assert next_act(left) == Unlock(frozenset({FIRST.key}))


def test_a_holder_that_the_condition_never_named_leaves_at_once():
    changed = facts(holds=(RESTLESS[1],), masked=UNITS, own_masks=UNITS, publishing=True, stored=(FIRST, RESTLESS[0]))
    changed.locks = frozenset({FIRST.key, RESTLESS[0].key})
    # The condition named the first hold, and no write under way names the second.
    changed.named = frozenset({FIRST.key})
    assert Course(changed).run() == [Lock, Store, Unlock]
    assert changed.locks == {FIRST.key, RESTLESS[1].key}
    assert changed.stored == ordered((FIRST, RESTLESS[1]))


def test_a_lock_that_fails_does_not_keep_the_locks_of_others():
    changed = facts(holds=(FIRST, SECOND), masked=UNITS, own_masks=UNITS, stored=(FIRST, SECOND))
    changed.locks = frozenset({FIRST.key, RESTLESS[0].key})
    changed.failed_locks[SECOND.key] = "too many locks"
    changed.published = wanted_condition(changed)
    assert next_act(changed) == Unlock(frozenset({RESTLESS[0].key}))


def test_what_is_not_on_disk_is_not_named():
    found = facts(holds=(FIRST, SECOND), locks=frozenset({FIRST.key, SECOND.key}), stored=(FIRST,), store_failed="full")
    assert secured(found) == {FIRST.key}
    assert wanted_condition(found).reason == FIRST.entry
    assert "full" in wanted_condition(found).message


def test_what_is_not_locked_is_not_named():
    found = facts(holds=(FIRST, SECOND), locks=frozenset({FIRST.key}), stored=(FIRST, SECOND))
    found.failed_locks[SECOND.key] = "no"
    assert secured(found) == {FIRST.key}
    assert wanted_condition(found).reason == FIRST.entry


def test_masks_of_others_and_of_a_shorter_list_of_targets():
    shorter = facts(
        holds=(FIRST,),
        locks=frozenset({FIRST.key}),
        stored=(FIRST,),
        masked=UNITS | {"halt.target"},
        own_masks=frozenset({"halt.target"}),
    )
    shorter.published = wanted_condition(shorter)
    assert next_act(shorter) == Unmask(frozenset({"halt.target"}))


def test_an_overridden_mask_is_named():
    found = facts(holds=(FIRST,), locks=frozenset({FIRST.key}), stored=(FIRST,), masked=UNITS - {"reboot.target"})
    found.failed_masks["reboot.target"] = "a file beats it"
    (act,) = [next_act(found)]
    assert isinstance(act, Publish)
    assert act.condition.status == "True"
    assert act.condition.message == "kubelet inhibited node shutdown; not masked: reboot.target (a file beats it)"

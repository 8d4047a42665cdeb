# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of the journey of a guard: a table of examples, and what holds for all facts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import journey_rules as rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard.journey_rules import (
    Facts,
    Failure,
    File,
    Settings,
    Work,
    next_step,
)

BEFORE, AFTER = "pre-drain", "pre-terminate"
BACKUP, WIPE = File("/srv/backup.yml", "backup.yml"), File("/srv/wipe.yml", "wipe.yml")
SETTINGS = Settings(files={BEFORE: (BACKUP,), AFTER: (WIPE,)}, wait_for_replacement=True)
STATES = ("none", "gone", "ready", "not_ready", "unreachable", "off", "foreign")


def course(facts, states=(), limit=60):
    """The steps of one work; each look finds the next of the states, and then always the last one."""
    found, states = [], list(states)
    while True:
        step = next_step(facts)
        found.append(f"{step.name} {step.act}".strip() if step.name == rules.LOOK else step.name)
        assert len(found) < limit, found
        if step.name in (rules.CONTINUE, rules.DONE, rules.STOP, rules.TAKE):
            return found
        facts = after(facts, step, states)


def after(facts, step, states):
    """What the journey and the role make of a step that succeeds."""
    work = facts.work
    if step.name == rules.LOOK:
        work = work.has_begun(step.act, states.pop(0) if states else work.state)
    elif step.name in (rules.CLAIM, rules.UNCLAIM):
        work = work.is_claimed(claimed=step.name == rules.CLAIM)
    elif step.name == rules.DONE_FILE:
        work = work.file_is_done()
    elif step.name in (rules.FENCE, rules.TASKS, rules.DRAIN):
        work = work.is_asked(step)
    elif step.name == rules.AWAIT_HOLDERS:
        work = work.is_past(work.begun)
    elif step.name in (rules.AWAIT_REPLACEMENT, rules.AWAIT_VOLUMES):
        work = work.is_past(rules.REPLACEMENT if step.name == rules.AWAIT_REPLACEMENT else rules.VOLUMES)
    elif step.name in (rules.RELEASE, rules.KEEP):
        work = replace(work, result="released" if step.name == rules.RELEASE else "failed")
    elif step.name == rules.FREE_HOST:
        work = work.is_past(rules.FREE_HOST)
    elif step.name == rules.SWEEP:
        return replace(facts, swept=True)
    elif step.name == rules.PAUSE:
        return replace(facts, failure=None, again=True)
    return replace(facts, work=work)


def short(steps):
    """The steps without the looks before them."""
    return [step for step in steps if not step.startswith(rules.LOOK)]


class TestCourse:
    def test_before_the_drain(self):
        assert course(Facts(SETTINGS, work=Work(BEFORE, "n"))) == [
            "claim",
            "look replacement",
            "await_replacement",
            "look hold",
            "await_holders",
            "look tasks",
            "tasks",
            "done_file",
            "look hold again",
            "await_holders",
            "look drain",
            "drain",
            "look release",
            "release",
            "continue",
        ]

    def test_before_the_end(self):
        assert course(Facts(SETTINGS, work=Work(AFTER, "n"))) == [
            "claim",
            "look replacement",
            "await_replacement",
            "look hold",
            "await_holders",
            "look tasks",
            "tasks",
            "done_file",
            "look volumes",
            "await_volumes",
            "look release",
            "release",
            "free_host",
            "continue",
        ]

    def test_a_drain_that_is_not_for_a_guard_is_left_out(self):
        steps = course(Facts(SETTINGS, work=Work(BEFORE, "n", leaves_drain=True)))
        assert "drain" not in steps
        assert steps[-2:] == ["release", "continue"]

    def test_a_silent_node_is_fenced_before_anything_else(self):
        steps = course(Facts(SETTINGS, work=Work(BEFORE, "n", state="unreachable")), ["unreachable", "off"])
        assert steps[:5] == ["look fence", "fence", "look fenced", "claim", "look replacement"]
        assert "await_holders" not in steps, "a machine that is off interrupts nobody"
        assert "drain" not in steps

    @pytest.mark.parametrize("before", ["tasks", "hold again", "drain", "release"])
    def test_one_that_falls_silent_later_is_fenced(self, before):
        facts, steps = Facts(SETTINGS, work=Work(BEFORE, "n")), []
        while (step := next_step(facts)).act != before:
            facts = after(facts, step, [])
        steps = course(facts, ["unreachable", "unreachable", "off"])
        assert steps[:6] == [f"look {before}", "unclaim", "look fence", "fence", "look fenced", "claim"]
        assert steps[-2:] == ["release", "continue"]

    def test_one_that_is_back_is_not_fenced(self):
        steps = course(Facts(SETTINGS, work=Work(BEFORE, "n", state="unreachable")), ["ready"])
        assert steps[:2] == ["look fence", "claim"]
        assert "fence" not in steps

    def test_without_proof_it_stops(self):
        facts = Facts(SETTINGS, work=Work(BEFORE, "n", state="unreachable"))
        assert course(facts) == ["look fence", "fence", "look fenced", "stop"]

    def test_without_a_way_to_fence_it_stops(self):
        settings = replace(SETTINGS, unreachable="keep")
        facts = Facts(settings, work=Work(BEFORE, "n", state="unreachable"))
        assert course(facts) == ["stop"]
        assert "machine_guard_unreachable is keep" in next_step(facts).why

    def test_the_key_of_a_fenced_host_is_removed_at_the_end(self):
        steps = course(Facts(SETTINGS, work=Work(AFTER, "n", state="off")))
        assert steps[-3:] == ["release", "free_host", "continue"]
        assert "free_host" not in course(Facts(SETTINGS, work=Work(BEFORE, "n", state="off")))

    @pytest.mark.parametrize("state", ["ready", "gone"])
    def test_the_key_of_a_host_is_removed_too_if_the_node_no_longer_shows_the_failover(self, state):
        known = Facts(SETTINGS, work=Work(AFTER, "n", state=state))
        assert course(known)[-3:] == ["release", "free_host", "continue"]
        without = replace(known, settings=replace(SETTINGS, unreachable="keep"))
        assert "free_host" not in course(without)

    def test_a_machine_without_a_node(self):
        steps = course(Facts(SETTINGS, work=Work(AFTER, state="none")))
        assert short(steps) == ["await_replacement", "tasks", "done_file", "release", "continue"]

    def test_a_node_object_that_is_gone_may_still_be_held(self):
        steps = course(Facts(SETTINGS, work=Work(AFTER, "n", state="gone")))
        assert short(steps)[:2] == ["await_replacement", "await_holders"]

    def test_what_is_switched_off_is_left_out(self):
        settings = Settings(unreachable="keep", override_holds=True, drain=False, check_volumes=False)
        for point in (BEFORE, AFTER):
            assert short(course(Facts(settings, work=Work(point, "n")))) == ["claim", "release", "continue"]

    def test_a_machine_is_taken_and_the_role_asks_again(self):
        assert course(Facts(SETTINGS, work=Work(BEFORE, "n"), again=True)) == ["continue"]


class TestFiles:
    def run(self, work, **settings):
        facts, found = Facts(replace(SETTINGS, **settings), work=work), []
        while (step := next_step(facts)).name != rules.CONTINUE:
            if step.name == rules.TASKS:
                found.append((step.at, step.file.name))
            facts = after(facts, step, [])
        return found

    def test_each_once(self):
        files = {BEFORE: (BACKUP, WIPE)}
        assert self.run(Work(BEFORE, "n"), files=files) == [(BEFORE, "backup.yml"), (BEFORE, "wipe.yml")]

    def test_the_node_is_looked_at_before_each(self):
        steps = course(Facts(replace(SETTINGS, files={BEFORE: (BACKUP, WIPE)}), work=Work(BEFORE, "n")))
        assert [steps[number - 1] for number, step in enumerate(steps) if step == "tasks"] == ["look tasks"] * 2

    def test_what_is_done_is_not_done_again(self):
        files, done = {BEFORE: (BACKUP, WIPE)}, {BEFORE: ("backup.yml",)}
        assert self.run(Work(BEFORE, "n", done=done), files=files) == [(BEFORE, "wipe.yml")]

    def test_a_point_that_was_skipped_is_made_up_for(self):
        work = Work(AFTER, state="none", skipped=True)
        assert self.run(work) == [(AFTER, "wipe.yml")]
        assert self.run(work, make_up=True) == [(BEFORE, "backup.yml"), (AFTER, "wipe.yml")]
        assert self.run(replace(work, skipped=False), make_up=True) == [(AFTER, "wipe.yml")]


class TestWithoutAMachine:
    def test_first_keys_of_earlier_runs_are_removed(self):
        assert course(Facts(SETTINGS)) == ["sweep", "take"]
        assert course(Facts(replace(SETTINGS, unreachable="keep"))) == ["take"]

    @pytest.mark.parametrize(
        ("stop", "turn", "step"),
        [("deadline", 0, "take"), ("deadline", 1, "done"), ("idle", 1, "done"), ("never", 9, "take")],
    )
    def test_the_first_turn_looks_however_little_time_there_is(self, stop, turn, step):
        facts = Facts(replace(SETTINGS, stop=stop), swept=True, over=True, turn=turn)
        assert next_step(facts).name == step

    def test_there_is_nothing_more_to_do(self):
        assert next_step(Facts(SETTINGS, swept=True, why="idle")) == rules.Step("done", why="idle")


class TestFailure:
    def test_the_hook_stays_and_the_worker_continues(self):
        assert course(Facts(SETTINGS, work=Work(BEFORE, "n"), failure=Failure())) == ["keep", "continue"]

    def test_a_release_that_is_known_is_not_taken_back(self):
        facts = Facts(SETTINGS, work=Work(BEFORE, "n", result="released"), failure=Failure())
        assert course(facts) == ["continue"]

    @pytest.mark.parametrize(
        ("failure", "troubles", "over", "stop", "name", "seconds"),
        [
            (Failure("api_unreachable"), 1, False, "deadline", "pause", 10),
            (Failure("api_unreachable"), 6, False, "deadline", "pause", 60),
            (Failure("api_unreachable"), 6, True, "deadline", "done", 0),
            (Failure("api_unreachable"), 6, True, "never", "pause", 60),
            (Failure("api", 503), 9, False, "idle", "pause", 60),
            (Failure("api", 429), 9, False, "idle", "pause", 60),
            (Failure("api", 403), 5, False, "idle", "pause", 10),
            (Failure("api", 403), 6, False, "idle", "done", 0),
            (Failure("invalid_input"), 1, False, "never", "done", 0),
            (Failure("not_found"), 1, False, "never", "done", 0),
            (Failure(""), 1, False, "never", "pause", 10),
        ],
    )
    def test_the_search_for_machines_fails(self, failure, troubles, over, stop, name, seconds):  # noqa: PLR0917
        facts = Facts(replace(SETTINGS, stop=stop), turn=1, over=over, failure=failure, troubles=troubles)
        step = next_step(facts)
        assert (step.name, step.seconds) == (name, seconds)
        if name == "pause":
            assert course(facts) == ["pause", "continue"]


class TestWhy:
    """What the user reads."""

    def test_why_a_worker_ends(self):
        over = Facts(SETTINGS, swept=True, over=True, turn=1)
        assert next_step(over).why == "deadline"
        assert next_step(replace(over, failure=Failure("invalid_input"))).why == "failed"

    def test_why_a_silent_node_stops_the_work(self):
        work = Work(BEFORE, "n", state="unreachable")
        kept = next_step(Facts(replace(SETTINGS, unreachable="keep"), work=work))
        assert (kept.name, kept.why.startswith("Node n gives no sign of life")) == ("stop", True)
        fenced = next_step(Facts(SETTINGS, work=replace(work, begun="fenced")))
        assert fenced.name == "stop"
        assert fenced.why.startswith("Node n was failed over, but nothing proves that it is off.")
        assert all("holdfast.kubernetes.recover again" in step.why for step in (kept, fenced))

    @pytest.mark.parametrize(
        ("work", "settings", "detail"),
        [
            (Work(AFTER, result="removed"), SETTINGS, "someone else removed the hook"),
            (Work(AFTER, result="released", skipped=True), SETTINGS, "whose tasks did not run"),
            (Work(AFTER, result="released", skipped=True), replace(SETTINGS, make_up=True), "whose tasks ran later"),
            (Work(AFTER, result="released", skipped=True), replace(SETTINGS, files={AFTER: (WIPE,)}), ""),
            (Work(AFTER, result="released"), SETTINGS, ""),
        ],
    )
    def test_what_the_report_says(self, work, settings, detail):
        found = rules.detail_of(work, settings)
        assert detail in found
        assert bool(detail) == bool(found)

    def test_a_failure_names_its_task_and_is_short(self):
        assert rules.failure_text("Back up", 7) == "Back up: 7"
        assert rules.failure_text("t" * 300, "m" * 900) == f"{'t' * 200}: {'m' * 500}"

    def test_both_waits_for_holders_are_one_phase(self):
        assert [rules.phase_of(act) for act in (rules.HOLD, rules.HOLD_AGAIN, rules.VOLUMES)] == [
            "hold",
            "hold",
            "volumes",
        ]


@pytest.mark.parametrize(
    ("stop", "left", "seconds"), [("never", -5, 600), ("deadline", 900, 600), ("idle", 60, 60), ("deadline", -5, 0)]
)
def test_the_release_of_a_host_is_waited_for_no_longer_than_the_run_lasts(stop, left, seconds):
    assert rules.host_patience(stop, 600, left) == seconds


def test_what_was_asked_is_forgotten_when_it_is_done():
    """The next look is for the next act."""
    step = rules.Step("tasks", file=BACKUP, at=BEFORE)
    done = Work(BEFORE, "n", begun="tasks").is_asked(step).file_is_done()
    assert (done.asked, done.file, done.at, done.done) == ("", "", "", {BEFORE: ("backup.yml",)})
    past = Work(BEFORE, "n", begun="hold", asked="tasks").is_past("hold")
    assert (past.begun, past.asked, past.past) == ("", "", ("hold",))
    assert Work(BEFORE, "n", begun="fenced").is_claimed(claimed=True).begun == ""
    assert Work(BEFORE, "n", asked="fence").has_begun("fenced", "off").asked == ""


SOME_SETTINGS = st.builds(
    Settings,
    stop=st.sampled_from(["deadline", "idle", "never"]),
    unreachable=st.sampled_from(["fence", "keep"]),
    override_holds=st.booleans(),
    wait_for_replacement=st.booleans(),
    drain=st.booleans(),
    check_volumes=st.booleans(),
    make_up=st.booleans(),
    files=st.fixed_dictionaries({BEFORE: st.sampled_from([(), (BACKUP,)]), AFTER: st.sampled_from([(), (WIPE,)])}),
)
SOME_WORK = st.builds(
    Work,
    point=st.sampled_from([BEFORE, AFTER]),
    node=st.just("n"),
    state=st.sampled_from(STATES),
    skipped=st.booleans(),
    leaves_drain=st.booleans(),
)


class TestProperties:
    @given(SOME_SETTINGS, SOME_WORK, st.lists(st.sampled_from(STATES), max_size=30))
    def test_every_course_keeps_the_promises(self, settings, work, states):
        """Whatever each look finds: no release of a silent Node, none before the work is done, none without a look."""
        facts, states = Facts(settings, work=work), list(states)
        files, waited, last = [], False, None
        for _step in range(200):
            step, state, known = next_step(facts), facts.work.state, facts.work
            if step.name in (rules.CONTINUE, rules.STOP):
                break
            if step.name == rules.TASKS:
                files.append((step.at, step.file.name))
                assert state != "unreachable"
            if step.name in (rules.TASKS, rules.DRAIN, rules.RELEASE, rules.AWAIT_HOLDERS):
                assert known.claimed or state not in ("ready", "not_ready", "off")
                assert last.name in (rules.LOOK, rules.DONE_FILE, rules.CLAIM), last
            if step.name == rules.FENCE:
                assert state == "unreachable"
                assert not known.claimed
                assert settings.unreachable == "fence"
            waited |= step.name == rules.AWAIT_HOLDERS
            if step.name == rules.RELEASE:
                assert state != "unreachable"
                assert known.begun == rules.RELEASING
                held = state in ("ready", "not_ready", "gone") and not settings.override_holds
                assert waited or not held
                drains = known.point == BEFORE and settings.drain and state in ("ready", "not_ready")
                assert rules.DRAIN in known.past or not drains or known.leaves_drain
                assert rules.VOLUMES in known.past or known.point == BEFORE or not settings.check_volumes
                own = [(known.point, file.name) for file in settings.files[known.point]]
                assert set(own) <= set(files)
            last, facts = step, after(facts, step, states)
        else:
            pytest.fail("it does not end")
        assert len(files) == len(set(files)), "no file runs twice"

    @given(SOME_SETTINGS, SOME_WORK)
    def test_a_failure_always_keeps_the_hook(self, settings, work):
        assert course(Facts(settings, work=work, failure=Failure())) == ["keep", "continue"]


def test_every_step_has_one_meaning():
    assert not set(rules.ACTS) & set(rules.ANSWERS)

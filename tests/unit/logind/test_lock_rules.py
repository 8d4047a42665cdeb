# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks by hand: what is refused, and that a lock in another's place leaves no gap, wherever a module dies."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind import lock_holder, lock_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.inhibitor_rules import AGENT, Inhibitor
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.lock_rules import (
    Lock,
    Slot,
    plan,
    units,
    wanted,
)
from ansible_collections.holdfast.kubernetes.plugins.modules import inhibitor_lock as module

NAME = "backup"
LOCKS = st.builds(
    Lock,
    st.just(NAME),
    st.sampled_from([("shutdown",), ("shutdown", "sleep")]),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["block", "delay"]),
)


def want(name=NAME, what=("shutdown",), why="because", mode="block", version=252):
    return wanted(name, what, why, mode, version)


def listed(lock, pid=7):
    return Inhibitor(":".join(lock.what), lock.name, lock.why, lock.mode, 0, pid, "2026-01-02T03:04:05Z")


class TestRefused:
    @pytest.mark.parametrize(
        "name",
        [
            "",
            " ",
            "a b",
            "a/b",
            "a@b",
            "a:2",
            "-a",
            ".",
            "..",
            ".a",
            "a\n",
            "é",
            "a\\x2d",
            "a" * 201,
            "a%n",
            "a$",
            "a\0",
        ],
    )
    def test_names_that_no_unit_has(self, name):
        with pytest.raises(InvalidInput, match="unit"):
            want(name=name)

    def test_the_name_of_the_agent(self):
        """Other paths of the collection pass by its locks, because the holds behind them were judged."""
        with pytest.raises(InvalidInput, match="node agent"):
            want(name=AGENT)

    @pytest.mark.parametrize("what", [(), ("reboot",), ("shutdown", ""), ("shutdown:sleep",), ("Shutdown",)])
    def test_what_logind_does_not_know(self, what):
        with pytest.raises(InvalidInput, match="logind knows shutdown, sleep"):
            want(what=what)

    def test_what_this_systemd_does_not_know(self):
        with pytest.raises(InvalidInput, match="since 248; this node has 247"):
            want(what=("handle-reboot-key",), version=247)
        assert want(what=("handle-reboot-key",), version=248)

    @pytest.mark.parametrize("what", [item for item in lock_rules.WHAT if item not in ("shutdown", "sleep")])
    def test_what_can_not_be_delayed(self, what):
        with pytest.raises(InvalidInput, match="delays only shutdown and sleep"):
            want(what=("shutdown", what), mode="delay")
        assert want(what=("shutdown", what), mode="block")

    @pytest.mark.parametrize("mode", ["", "block-weak", "Block", "delay "])
    def test_modes(self, mode):
        with pytest.raises(InvalidInput, match="one of block, delay"):
            want(mode=mode)

    @pytest.mark.parametrize(
        "why", ["", " ", "\t\n", "a\nb", "a\x00b", "a\x7fb", "a\x9bb", "a\ud800", "a\\", "\\a", "a" * 1025]
    )
    def test_why(self, why):
        with pytest.raises(InvalidInput, match="why"):
            want(why=why)

    def test_units_of_others(self):
        first, second = units(NAME)
        for unit in (first, second):
            slots = [
                Slot(name, ours=False if name == unit else None, state="loaded, active") for name in (first, second)
            ]
            for lock in (want(), None):
                with pytest.raises(Refused, match=f"{unit}.*loaded, active") as refused:
                    plan(slots, lock)
                assert refused.value.fields == {"unit": unit}


class TestWanted:
    def test_as_logind_lists_it(self):
        lock = want(what=("sleep", "shutdown", "sleep"), why="  it costs $5 ")

        assert (lock.what, lock.why) == (("shutdown", "sleep"), "it costs $5")
        assert lock.is_held_by(listed(lock))
        assert lock.is_held_by(Inhibitor("sleep:shutdown", NAME, "it costs $5", "block", 0, 7))

    def test_the_longest_that_fit(self):
        assert want(name="a" * 200, why="b" * 1024)

    def test_all_that_can_be_delayed(self):
        assert want(what=("shutdown", "sleep"), mode="delay").mode == "delay"

    def test_results_show_the_same_before_and_after_the_start(self):
        lock = want(what=("sleep", "shutdown"))
        after = lock_rules.describe(listed(lock), "backup.service")
        before = lock_rules.predict(lock, "backup.service")

        assert (after["pid"], before["pid"]) == (7, None)
        assert lock_rules.lasting(after) == {
            "who": NAME,
            "what": ["shutdown", "sleep"],
            "why": "because",
            "mode": "block",
            "unit": "backup.service",
        }
        assert lock_rules.lasting(before) == lock_rules.lasting(after)
        assert lock_rules.lasting(None) is None

    @pytest.mark.parametrize(
        "other",
        [{"what": ("shutdown", "sleep")}, {"why": "another"}, {"mode": "delay"}, {"name": "other"}],
    )
    def test_anything_else_is_another_lock(self, other):
        assert not want().is_held_by(listed(want(**other)))
        assert not want().is_held_by(None)

    @given(st.text(max_size=1100))
    def test_what_is_accepted_can_be_listed(self, why):
        try:
            lock = want(why=why)
        except InvalidInput:
            return
        assert lock.why == why.strip() == lock.why.encode().decode()
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\\]", lock.why)

    @given(st.from_regex(r"\A[A-Za-z0-9_.:@\\-]{1,210}\Z"))
    def test_names_make_units(self, name):
        try:
            lock_rules.check_name(name)
        except InvalidInput:
            return
        for unit in units(name):
            assert re.fullmatch(r"[A-Za-z0-9:_.-]+\.service", unit)
            assert len(unit) + len(".d") <= 255

    @given(st.lists(st.text("ab2.-_", min_size=1, max_size=4), unique=True, min_size=2))
    def test_no_two_names_share_a_unit(self, names):
        assert len({unit for name in names for unit in units(name)}) == 2 * len(names)

    def test_the_options_are_those_of_the_rules(self):
        options = module.SPEC["argument_spec"]

        assert tuple(options["what"]["choices"]) == lock_rules.WHAT
        assert tuple(options["mode"]["choices"]) == lock_rules.MODES


class Node:
    """What plans do to a node, one act after the other; modules may die after any."""

    def __init__(self, locks):
        self.units = dict(zip(units(NAME), locks))

    def slots(self):
        # A unit without a lock is one that was started just now, or whose process was.
        return [
            Slot(unit) if lock is None else Slot(unit, ours=True, lock=None if lock == "empty" else listed(lock, pid))
            for pid, (unit, lock) in enumerate(self.units.items(), 1)
        ]

    def acts(self, wish):
        found = plan(self.slots(), wish)
        yield from ((unit, None) for unit in found.clear)
        if found.start:
            assert self.units[found.start] is None or found.start in found.clear
            yield found.start, "empty"
            yield found.start, wish
        yield from ((unit, None) for unit in found.release)

    @property
    def held(self):
        return [lock for lock in self.units.values() if lock not in (None, "empty")]


@given(
    st.tuples(*[st.one_of(st.none(), st.just("empty"), LOCKS)] * 2),
    st.lists(st.tuples(LOCKS, st.integers(0, 5)), max_size=4),
    LOCKS,
)
def test_never_without_a_lock_and_one_in_the_end(before, killed, wish):
    """Modules that die at any act, each with another wish, then one that ends."""
    node = Node(before)
    held = bool(node.held)
    for last, count in [*killed, (wish, 99)]:
        for unit, lock in list(node.acts(last))[:count]:
            node.units[unit] = lock
            assert not held or node.held, "a gap"
            held = bool(node.held)

    assert node.held == [wish]
    assert "empty" not in node.units.values()
    assert not plan(node.slots(), wish).changes
    assert node.units[plan(node.slots(), wish).holder] == wish


@given(st.tuples(*[st.one_of(st.none(), st.just("empty"), LOCKS)] * 2))
def test_a_release_removes_all(before):
    node = Node(before)
    for unit, lock in list(node.acts(None)):
        node.units[unit] = lock

    assert set(node.units.values()) == {None}
    assert not plan(node.slots(), None).changes


class TestHolder:
    TEXT = Path(lock_holder.__file__).read_text()

    def test_no_character_that_systemd_spoils(self):
        assert not re.search(r"[$;]", self.TEXT)
        assert self.TEXT.isascii()

    def test_needs_nothing_but_python_and_dbus(self):
        found = {
            name
            for item in ast.walk(ast.parse(self.TEXT))
            if isinstance(item, (ast.Import, ast.ImportFrom))
            for name in ([alias.name for alias in item.names] if isinstance(item, ast.Import) else [item.module])
        }

        assert found == {"__future__", "array", "dbus", "json", "os", "socket"}

    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def test_what_is_asked_for_is_plain(self, why):
        assert re.fullmatch("[0-9a-f]+", lock_holder.encode("shutdown", NAME, why, "block"))

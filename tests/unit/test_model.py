# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model: random histories, every history of a small scope, and the role's own YAML."""

from __future__ import annotations

import json
import shutil
from functools import partial
from random import Random

import pytest
from examples import share
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from model import api
from model.__main__ import scope_of
from model.after import forget
from model.api import NOT_FOUND, Answer
from model.explore import explore
from model.failover import COMMAND, METAL3
from model.fleet import FAULTS, Scope
from model.machine import Machine
from model.plan import CLOSED, check_plan, check_plans
from model.programs import Call, Program, first_place
from model.role import ROLE, Plan, UnknownTask
from model.walk import walk

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import journey_rules


def one_node(path=ROLE, **faults):
    return Scope((Plan("run-1", ("alfa",), {}, path),), {"alfa": "a", "bravo": "b"}, faults).begin()


def test_no_promise_is_broken():
    # What fails is made shorter by `make model`: it takes minutes.
    phases = [Phase.reuse, Phase.generate]
    how = settings(max_examples=share(0.1), stateful_step_count=25, phases=phases, report_multiple_bugs=False)
    run_state_machine_as_test(Machine, settings=how)


@pytest.mark.parametrize(
    "several",
    [
        {"runs": 1, "failovers": 1},
        {"runs": 2, "failovers": 1},
        {"failovers": 1, "deletions": 1, "recoveries": 1, "nodes": 1},
        {"failovers": 1, "deletions": 1, "recoveries": 1, "nodes": 1, "ways": (METAL3,)},
        {"failovers": 1, "deletions": 1, "recoveries": 1, "nodes": 1, "ways": (METAL3, COMMAND)},
        {"runs": 1, "guards": 1},
        {"guards": 2},
    ],
    ids=str,
)
def test_random_histories_of_several_runs_keep_all_promises(several):
    # If Node and history are both gone, no record says how the machine was switched off.
    left_out = {"forgotten"} if several.get("deletions") else {"lost", "forgotten"}
    faults = [fault for fault in FAULTS if fault not in left_out]
    scope = scope_of(**{"runs": 0, "nodes": 3, **several}, faults=faults)
    for number in range(share(0.1)):
        words, broken = walk(scope, Random(number))
        assert not broken, "\n".join((*words, broken))


@pytest.mark.parametrize("fault", ["death", "pause", "outage", "crash", "hold", "stuck"])
def test_every_history_of_one_run_keeps_all_promises(fault):
    found = explore(one_node(**{fault: 1}))

    assert not found.broken, found
    assert (found.whole, found.ends > 0) == (True, True)


@pytest.mark.long
@pytest.mark.parametrize("faults", [("death",), ("pause", "hold")])
def test_in_every_state_a_plan_says_what_a_run_does(faults):
    found = explore(one_node(**dict.fromkeys(faults, 1)), check=check_plans)
    assert not found.broken, str(found)
    assert found.whole


@pytest.mark.parametrize("settings", [{"when": "required"}, {"windows": CLOSED}], ids=str)
def test_while_a_node_is_held_a_plan_says_what_a_run_does(settings):
    found = explore(one_node(hold=1), check=partial(check_plan, name="alfa", **settings))
    assert not found.broken, str(found)


def test_a_plan_that_forgets_the_holds_is_found(monkeypatch):
    monkeypatch.setattr(journey_rules, "plan_of", lambda *_given: journey_rules.Verdict("now", ""))
    forget()
    found = explore(one_node(hold=1), check=partial(check_plan, name="alfa"))
    forget()
    assert found.broken.startswith("a plan of alfa says now (), and a run ends: waits for leases (")


def reached(first):
    """What can come about: the objects, with what each program asks for."""
    seen, new, found = {first.key}, [first], set()
    while new:
        state = new.pop()
        objects = frozenset((path, json.dumps(item.content, sort_keys=True)) for path, item in state.objects.items())
        found.add((objects, state.left, *(str(place.asked) for run in state.runs for place in run.places)))
        for after in [move.after for move in state.moves()]:
            if after.key not in seen:
                seen.add(after.key)
                new.append(after)
    return found, len(seen)


def test_what_a_program_has_forgotten_makes_no_difference(monkeypatch):
    few = reached(one_node(death=1))
    monkeypatch.setattr(api, "versions_grow", True)
    many = reached(one_node(death=1))

    assert few[0] == many[0]
    assert few[1] < many[1]


def test_what_is_left_of_a_loop_makes_a_difference():
    def look(context, _params):
        for node in context.cluster.items(paths.NODES):
            context.cluster.find(paths.node(node["metadata"]["name"]))
        return {}

    first = first_place(Program("look", lambda: (call for call in [Call("Look", look)])))
    alfa, bravo = (api.stored(paths.node(name), {"metadata": {"name": name}}, 0) for name in ("alfa", "bravo"))
    one, two = first.after(Answer("list", (alfa,))), first.after(Answer("list", (alfa, bravo)))

    assert one is not two
    assert one.asked is two.asked
    assert one.after(NOT_FOUND).asked is None
    assert two.after(NOT_FOUND).asked is api.request("GET", bravo.path)


@pytest.fixture
def role(tmp_path):
    """A copy of the role, and a change of its file."""
    path = tmp_path / "rolling_reboot"
    shutil.copytree(ROLE, path)

    def changed(change):
        file = path / "tasks/node.yml"
        file.write_text(change(file.read_text()))
        return path

    return changed


def drain_later(text):
    """The file of the role with its drain after the reboot."""
    begin, end = text.index("    - name: Drain\n"), text.index("    - name: Run your tasks before the reboot\n")
    after = text.index("    - name: Put back a node that a hold refused\n")
    return text[:begin] + text[end:after] + text[begin:end] + text[after:]


def test_a_drain_after_the_reboot_breaks_a_promise(role):
    found = explore(one_node(role(drain_later)))

    assert "promise 4: alfa is rebooted, and was not drained" in found.broken
    assert "Cordon: PATCH nodes/alfa" in found.history[-2]


def test_a_random_history_that_breaks_a_promise_is_found(role):
    scope = Scope((Plan("run-1", ("alfa",), {}, role(drain_later)),), {"alfa": "a", "bravo": "b"})

    words, broken = walk(scope, Random(1))

    assert "promise 4: alfa is rebooted, and was not drained" in broken
    assert "Cordon: PATCH nodes/alfa" in "".join(words)


def test_a_task_that_the_model_does_not_know_is_named(role):
    path = role(
        lambda text: text.replace(
            "    - name: Cordon\n", "    - name: Ring\n      acme.bell.ring:\n\n    - name: Cordon\n"
        )
    )

    with pytest.raises(UnknownTask, match=r"node.yml: .* acme.bell.ring of the task 'Ring'. Add it to _SILENT"):
        explore(one_node(path))

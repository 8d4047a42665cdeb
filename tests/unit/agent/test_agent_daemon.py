# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent as a whole, on a logind, a systemd, a GLib loop and an API server in memory."""

from __future__ import annotations

import contextlib
import heapq
import importlib
import itertools
import json
import os
import select
import sys
import tempfile
import types
from pathlib import Path

import pytest
from examples import share
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast_agent.condition import ALLOWED
from holdfast_agent.config import Config

UNITS = {"reboot.target", "systemd-reboot.service"}
SINCE = "2026-01-02T03:04:05.000000Z"


class BusError(Exception):
    """What dbus-python raises."""

    def __init__(self, message, name="org.freedesktop.DBus.Error.Failed"):
        super().__init__(message)
        self._name = name

    def get_dbus_name(self):
        return self._name

    def get_dbus_message(self):
        return str(self)


class Loop:
    """GLib as far as the agent uses it. Time passes only when a test says so."""

    PRIORITY_DEFAULT = 0

    def __init__(self):
        self.now = 0
        self._number = itertools.count(1)
        self._timers = []
        self._removed = set()

    def idle_add(self, call, **_priority):
        return self._add(0, call)

    def timeout_add_seconds(self, seconds, call):
        return self._add(seconds, call)

    def timeout_add(self, milliseconds, call):
        return self._add(milliseconds / 1000, call)

    def source_remove(self, number):
        self._removed.add(number)

    def _add(self, seconds, call):
        number = next(self._number)
        heapq.heappush(self._timers, (self.now + seconds, number, seconds, call))
        return number

    def run(self, seconds=0):
        end = self.now + seconds
        while self._timers and self._timers[0][0] <= end:
            self.now, number, period, call = heapq.heappop(self._timers)
            if number not in self._removed and call():
                heapq.heappush(self._timers, (self.now + period, number, period, call))
        self.now = end


class Machine:
    """logind and systemd behind the bus."""

    def __init__(self):
        self.locks = []
        self.files = set()
        self.overridden = set()
        self.aliases = {}
        self.shutdown = self.going_down = False
        self.broken = set()
        self.hangs = False
        self.calls = []
        self.most_calls = 10000
        self.signals = {}
        self.owner_changed = []

    # -- the bus

    def get_object(self, *_name, **_options):
        return self

    def add_signal_receiver(self, call, signal_name, **_match):
        self.signals[signal_name] = call

    def watch_name_owner(self, _name, call):
        self.owner_changed.append(call)

    def __getattr__(self, method):
        """The methods of D-Bus, which have names in capitals."""
        if not method[0].isupper():
            raise AttributeError(method)

        def call(*arguments, **_options):
            self.calls.append(method)
            # Ends a test whose agent does not come to rest.
            assert len(self.calls) < self.most_calls
            if method in self.broken:
                raise BusError(f"{method} is broken")
            if self.hangs and method == "Inhibit":
                raise BusError("logind does not answer", "org.freedesktop.DBus.Error.NoReply")
            return getattr(self, f"_{method}", lambda *_arguments: None)(*arguments)

        return call

    # -- logind

    def _Inhibit(self, _what, _who, why, _mode):  # noqa: N802
        mine, theirs = os.pipe()
        self.locks.append((why, mine))
        return types.SimpleNamespace(take=lambda: theirs)

    def _ListInhibitors(self):  # noqa: N802
        return [("shutdown", "holdfast", why, "block", 0, 1) for why in self.locked]

    def _Get(self, *_property):  # noqa: N802
        return self.shutdown

    @property
    def locked(self):
        """What the locks say whose descriptor is open."""
        return [why for why, descriptor in self.locks if not select.select([descriptor], [], [], 0)[0]]

    # -- systemd

    def _MaskUnitFiles(self, units, *_flags):  # noqa: N802
        self.files |= set(units)

    def _UnmaskUnitFiles(self, units, *_flags):  # noqa: N802
        self.files -= set(units)

    def _ListUnitsByNames(self, units):  # noqa: N802
        masked = self.files - self.overridden
        job = (7, "start", "/job") if self.going_down else (0, "", "/")
        rest = ("inactive", "dead", "", "/unit", *job)
        return [(self.aliases.get(unit, unit), "", "masked" if unit in masked else "loaded", *rest) for unit in units]


class Node:
    """A node, its agent, and what the API server gets."""

    def __init__(self, folder, loop, modules):
        self.folder = folder
        self.loop = loop
        self.modules = modules
        self.machine = Machine()
        self.written = []
        self.events = []
        # None: the API server does not answer yet.
        self.outcome = ("done", "")
        self.unanswered = []
        self.seconds = []
        self.status = ""
        self.ready = False
        self.config = Config(
            "worker-1", masked_targets=("reboot",), alert_timeout=0, textfile=str(folder / "agent.prom")
        )

    def start(self, supervisor):
        state = self.modules["store"].State(self.folder, self.folder)
        self.agent = self.modules["daemon"].Agent(self.config, self.machine, supervisor, state)
        self.agent.start()
        self.loop.run()

    def news(self, *holders, namespace="shop", others=()):
        """What the thread that watches reports; the loop runs later."""
        hold = self.modules["holds"].Hold
        self.watcher._on_holds(tuple([hold(namespace, holder, SINCE) for holder in holders] + list(others)))

    def hold(self, *holders, **more):
        self.news(*holders, **more)
        self.loop.run()

    def answer(self, kind="done"):
        """The API server answers to what waits."""
        waiting, self.unanswered = self.unanswered, []
        for done in waiting:
            done(self.modules["publisher"].Outcome(kind))
        self.loop.run()

    def away(self, error):
        self.watcher._on_error(error)
        self.loop.run()

    @property
    def stored(self):
        path = self.folder / "holds.json"
        return [item["holder"] for item in json.loads(path.read_text())] if path.exists() else []

    @property
    def metrics(self):
        lines = (self.folder / "agent.prom").read_text().splitlines()
        return {name: value for name, _space, value in (line.rpartition(" ") for line in lines)}


@contextlib.contextmanager
def simulated(folder):
    """A node whose agent is not started yet."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield from _simulated(folder, monkeypatch)


def _simulated(folder, monkeypatch):
    loop = Loop()
    before = set(sys.modules)
    bus = types.SimpleNamespace(DBusException=BusError, Interface=lambda found, _name: found)
    glib = types.SimpleNamespace(DBusGMainLoop=None)
    for name, module in {
        "gi": types.ModuleType("gi"),
        "gi.repository": types.SimpleNamespace(GLib=loop),
        "dbus": bus,
        "dbus.mainloop": types.ModuleType("dbus.mainloop"),
        "dbus.mainloop.glib": glib,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    names = ("daemon", "executor", "holds", "loop", "publisher", "store", "units", "watch")
    modules = {name: importlib.import_module(f"holdfast_agent.{name}") for name in names}
    node = Node(folder, loop, modules)

    def condition(_publisher, wanted, done):
        node.written.append(wanted)
        node.seconds.append(loop.now)
        if node.outcome is None:
            node.unanswered.append(done)
            return
        done(modules["publisher"].Outcome(*node.outcome))

    def event(_publisher, hold, done):
        node.events.append(hold.holder)
        done(modules["publisher"].Outcome("done"))

    monkeypatch.setattr(modules["executor"], "time", types.SimpleNamespace(monotonic=lambda: loop.now))
    monkeypatch.setattr(modules["publisher"].Publisher, "start", lambda _publisher: None)
    monkeypatch.setattr(modules["publisher"].Publisher, "condition", condition)
    monkeypatch.setattr(modules["publisher"].Publisher, "event", event)
    monkeypatch.setattr(modules["watch"].Watcher, "start", lambda watcher: setattr(node, "watcher", watcher))
    monkeypatch.setattr(modules["units"].Units, "has_file", lambda _units, unit: unit in node.machine.files)
    yield node
    for name in set(sys.modules) - before:
        if name.startswith("holdfast_agent."):
            del sys.modules[name]
    for _why, descriptor in node.machine.locks:
        with contextlib.suppress(OSError):
            os.close(descriptor)


@pytest.fixture
def node(tmp_path):
    with simulated(tmp_path) as found:
        yield found


class Supervisor:
    """PID 1, which keeps nothing."""

    watchdog_seconds = None

    def __init__(self, node):
        self._node = node

    def ready(self):
        self._node.ready = True
        return True

    def status(self, text):
        self._node.status = text

    def alive(self):
        pass

    def barrier(self):
        pass

    def keep(self, _name, _descriptor):
        pass

    def forget(self, _name):
        pass


@pytest.fixture
def started(node):
    node.start(Supervisor(node))
    return node


def test_a_logind_that_hangs_delays_the_masks_by_one_lock_only(started):
    """Each lock may take 10 s to time out, and tenants choose how many holds there are."""
    started.machine.hangs = True
    started.machine.calls.clear()
    started.hold(*"abcdefgh")
    before_the_masks = started.machine.calls[: started.machine.calls.index("MaskUnitFiles")]
    assert before_the_masks.count("Inhibit") == 1
    assert started.written[-1].status == "False"

    started.machine.hangs = False
    started.loop.run(60)
    assert len(started.machine.locked) == 8


def test_a_hold_is_locked_masked_stored_and_confirmed_and_its_release_undoes_that(started):
    started.hold("a")

    assert started.machine.locked == ["shop/a"]
    assert started.machine.files == UNITS
    assert started.stored == ["a"]
    assert (started.written[-1].status, started.written[-1].reason) == ("True", "shop/a")
    assert started.status == "1 holds: shop/a; 1 locks; API up"
    assert started.metrics["holdfast_agent_locks"] == "1"
    assert started.ready

    started.hold()

    assert started.written[-1] == ALLOWED
    assert (started.machine.locked, started.machine.files, started.stored) == ([], set(), [])
    assert started.status == "no holds; 0 locks; API up"


def test_the_holds_on_disk_are_locked_before_the_api_server_answers(node):
    item = {"namespace": "shop", "holder": "a", "acquired": SINCE}
    (node.folder / "holds.json").write_text(json.dumps([item]))
    node.start(Supervisor(node))

    assert (node.machine.locked, node.machine.files, node.written) == (["shop/a"], UNITS, [])
    assert node.ready


def test_nothing_is_released_while_the_api_server_is_away(started):
    started.hold("a")
    started.away("no route")

    assert started.machine.locked == ["shop/a"]
    assert started.status.endswith("API away")
    assert started.metrics["holdfast_agent_api_up"] == "0"

    started.away("")

    assert started.status.endswith("API up")


def test_a_lock_that_fails_is_reported_and_taken_with_the_next_try(started):
    started.machine.broken = {"Inhibit"}
    started.hold("a")

    assert started.written[-1].reason == "InhibitorFailed"
    assert "Inhibit is broken" in started.written[-1].message
    assert started.metrics["holdfast_agent_failed_locks"] == "1"

    started.machine.broken = set()
    started.loop.run(1)

    assert started.written[-1].status == "True"
    assert started.machine.locked == ["shop/a"]


def test_a_lock_that_logind_lost_is_taken_again_before_it_is_named(started):
    started.hold("a")
    started.machine.locks.clear()
    for call in started.machine.owner_changed:
        call(":1.2")

    assert started.machine.locked == ["shop/a"]
    assert started.written[-1].status == "True"


def test_masks_that_fail_are_tried_again_and_named(started):
    started.machine.broken = {"MaskUnitFiles"}
    started.hold("a")

    assert started.written[-1].status == "True"
    assert "not masked: reboot.target (MaskUnitFiles is broken)" in started.written[-1].message

    started.machine.broken = set()
    started.loop.run(1)

    assert started.machine.files == UNITS
    assert started.written[-1].message == "kubelet inhibited node shutdown"


def test_a_mask_that_a_file_overrides_is_named_and_not_tried_again(started):
    started.machine.overridden = {"reboot.target"}
    started.hold("a")
    tries = started.machine.calls.count("MaskUnitFiles")
    started.loop.run(60)

    assert "not masked: reboot.target (a file" in started.written[-1].message
    assert started.machine.calls.count("MaskUnitFiles") == tries


def test_a_mask_that_a_person_removed_is_restored(started):
    started.hold("a")
    started.machine.files.clear()
    started.machine.signals["UnitFilesChanged"]()

    assert started.machine.files == UNITS


def test_a_mask_that_can_not_be_removed_is_tried_again(started):
    started.hold("a")
    started.machine.broken = {"UnmaskUnitFiles"}
    started.hold()

    assert started.machine.files == UNITS

    started.machine.broken = set()
    started.loop.run(1)

    assert started.machine.files == set()


def test_a_condition_that_is_not_written_releases_nothing_and_is_written_again(started):
    started.hold("a")
    started.outcome = ("away", "no answer")
    started.hold()

    assert started.machine.locked == ["shop/a"]

    started.outcome = ("done", "")
    started.loop.run(1)

    assert started.machine.locked == []


def test_pauses_between_tries_grow_to_half_a_minute(started, monkeypatch):
    monkeypatch.setattr("random.uniform", lambda _least, most: most)
    started.machine.broken = {"Inhibit"}
    started.hold("a")
    for seconds in (1, 2, 4, 8, 16, 30, 30):
        tries = started.machine.calls.count("Inhibit")
        started.loop.run(seconds - 1)
        assert started.machine.calls.count("Inhibit") == tries
        started.loop.run(1)
        assert started.machine.calls.count("Inhibit") == tries + 1


def test_a_lock_that_logind_does_not_list_is_not_named(started):
    started.machine._ListInhibitors = list
    started.hold("a")

    assert started.written[-1].reason == "InhibitorFailed"
    assert "logind does not list it" in started.written[-1].message


def test_leases_are_ignored_during_a_shutdown_until_it_is_cancelled(started):
    started.machine.shutdown = True
    started.machine.signals["PrepareForShutdown"](True)
    started.hold("a")
    started.loop.run(400)

    assert started.machine.locked == []
    assert started.status.endswith("a shutdown is under way")

    started.machine.shutdown = False
    started.machine.signals["PrepareForShutdown"](False)
    started.loop.run()

    assert started.machine.locked == ["shop/a"]


def test_a_shutdown_of_which_logind_does_not_know(started):
    """SIGRTMIN+5 goes to PID 1. The units of the masks have jobs by then: a mask would stop the shutdown halfway."""
    started.machine.going_down = True
    started.hold("a")

    assert (started.machine.locked, started.machine.files, started.written) == ([], set(), [])
    assert started.status.endswith("a shutdown is under way")

    started.machine.going_down = False
    started.loop.run(400)

    assert started.machine.locked == ["shop/a"]
    assert started.written[-1].status == "True"


@pytest.mark.parametrize("call", ["Inhibit", "MaskUnitFiles", "ListInhibitors"])
def test_a_hold_is_not_confirmed_if_a_shutdown_begins_first(started, call):
    machine, act = started.machine, getattr(started.machine, f"_{call}")

    def meanwhile(*arguments):
        machine.going_down = True
        return act(*arguments)

    setattr(machine, f"_{call}", meanwhile)
    started.hold("a")

    assert machine.going_down
    assert started.written == []


@pytest.mark.parametrize("notices", ["logind starts", "heartbeat", "second heartbeat"])
def test_a_logind_that_has_lost_a_shutdown_does_not_say_so(started, notices):
    started.hold("b")
    machine = started.machine
    machine.shutdown = True
    machine.signals["PrepareForShutdown"](True)
    started.hold("a")
    assert machine.locked == ["shop/b"]

    machine.shutdown = False
    if notices == "logind starts":
        for call in machine.owner_changed:
            call(":1.2")
        started.loop.run()
    else:
        machine.broken = {"Get"} if notices == "second heartbeat" else set()
        started.loop.run(400)
        machine.broken = set()
        started.loop.run(400)

    assert machine.locked == ["shop/a"]
    assert started.written[-1].status == "True"
    assert started.stored == ["a"]


def test_a_unit_that_is_an_alias_is_masked_all_the_same(started):
    started.machine.aliases = {"reboot.target": "kexec.target"}
    started.hold("a")
    assert started.written[-1].status == "True"

    started.machine.overridden = {"reboot.target"}
    started.machine.signals["UnitFilesChanged"]()
    started.loop.run()
    assert "not masked: reboot.target" in started.written[-1].message


def test_a_full_disk_confirms_nothing_until_it_has_room(started, monkeypatch):
    def full(*_arguments):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(started.modules["store"].State, "write_holds", full)
        started.hold("a")

        assert started.written[-1].reason == "InhibitorFailed"
        assert "no space left" in started.written[-1].message

    started.loop.run(1)

    assert started.written[-1].status == "True"


def test_the_heartbeat_writes_the_condition_again_and_finds_removed_masks(started):
    started.hold("a")
    count = len(started.written)
    started.machine.files.clear()
    started.loop.run(300)

    assert len(started.written) == count + 1
    assert started.machine.files == UNITS


def test_a_hold_that_lasts_too_long_makes_one_event(node):
    node.config = Config("worker-1", masked_targets=("reboot",), alert_timeout=1, textfile=node.config.textfile)
    node.start(Supervisor(node))
    node.hold("a")
    node.hold("a")

    assert node.events == ["a"]


def test_a_lease_whose_holder_changes_all_the_time_makes_one_event(node, caplog):
    node.config = Config("worker-1", masked_targets=("reboot",), alert_timeout=3600, textfile=node.config.textfile)
    node.start(Supervisor(node))
    for number in range(100):
        node.hold(f"x{number}")

    assert node.events == ["x0"]
    assert caplog.text.count("gets no Event yet") == 1

    node.hold("y", namespace="bank")

    assert node.events == ["x0", "y"], "another namespace has its own Events"


def test_an_agent_that_can_not_lock_is_ready_after_half_a_minute(node):
    item = {"namespace": "shop", "holder": "a", "acquired": SINCE}
    (node.folder / "holds.json").write_text(json.dumps([item]))
    node.machine.broken = {"Inhibit"}
    node.start(Supervisor(node))

    assert not node.ready
    node.loop.run(30)
    assert node.ready


def test_a_lease_that_changes_faster_than_the_server_answers_keeps_few_locks(started):
    started.hold("x0")
    started.outcome = None
    for number in range(1, 101):
        started.hold(f"x{number}")

        # What the condition names, what the write under way names, and what stands.
        assert set(started.machine.locked) == {"shop/x0", "shop/x1", f"shop/x{number}"}
        assert set(started.stored) == {"x0", "x1", f"x{number}"}
    assert len(started.written) == 2
    started.outcome = ("done", "")
    started.answer()

    assert started.machine.locked == ["shop/x100"]
    assert started.stored == ["x100"]
    assert started.written[-1].reason == "shop/x100"


def test_a_lease_that_changes_all_the_time_does_not_delay_the_hold_of_another(started):
    other = started.modules["holds"].Hold("bank", "alice", SINCE)
    started.outcome = None
    began = len(started.written)
    started.hold("x0")
    for number in range(1, 11):
        started.hold(f"x{number}", others=[other])
    started.answer()
    for number in range(11, 21):
        started.hold(f"x{number}", others=[other])

    # One write was under way when the hold came, and the next one names it.
    assert len(started.written) == began + 2
    assert "bank/alice" in started.written[-1].reason
    started.answer()
    assert len(started.machine.locked) <= 3


def test_each_write_that_fails_keeps_few_locks_however_often_the_lease_changes(started):
    started.outcome = ("away", "503")
    for number in range(100):
        started.hold(f"x{number}")

    # No time has passed, so there was one try.
    assert len(started.machine.locked) == 2
    started.outcome = ("done", "")
    started.loop.run(1)
    assert started.machine.locked == ["shop/x99"]


def test_only_the_newest_of_the_leases_is_looked_at(started):
    calls = len(started.machine.calls)
    for number in range(100):
        started.news(f"x{number}")
    started.loop.run()

    assert started.machine.calls[calls:].count("Inhibit") == 1
    assert started.machine.locked == ["shop/x99"]


def test_news_that_comes_while_older_news_is_handled_is_not_lost(node):
    seen = []

    def see(value):
        seen.append(value)
        if value < 3:
            newest.post(value + 1)

    newest = node.modules["loop"].Newest(see)
    newest.post(0)
    newest.post(1)
    node.loop.run()

    assert seen == [1, 2, 3]


CALLS = st.sampled_from(["Inhibit", "ListInhibitors", "MaskUnitFiles", "UnmaskUnitFiles", "Reload", "ListUnitsByNames"])
OUTCOMES = st.sampled_from([("done", ""), ("away", "503"), ("away", "429", 7.0), ("refused", "404")])
NEWS = st.sampled_from(
    ["hold a", "hold b", "hold both", "release", "a mask is removed", "logind starts", "time passes"]
)


@settings(max_examples=share(0.1), deadline=None)
@given(st.lists(st.tuples(NEWS, st.sets(CALLS), st.sets(st.sampled_from(sorted(UNITS))), OUTCOMES, st.booleans())))
def test_the_agent_comes_to_rest_whatever_fails(steps):
    """Each act of the plan, and the write of the condition, may fail: no act may be repeated without a pause."""
    with (
        tempfile.TemporaryDirectory() as folder,
        simulated(Path(folder)) as node,
        pytest.MonkeyPatch.context() as patch,
    ):
        full = []

        def write(really):
            def written(*arguments):
                if full:
                    raise OSError("no space left")
                return really(*arguments)

            return written

        state = node.modules["store"].State
        for name in ("write_holds", "write_masks"):
            patch.setattr(state, name, write(getattr(state, name)))
        node.start(Supervisor(node))
        machine = node.machine
        for news, broken, overridden, outcome, is_full in steps:
            machine.broken, machine.overridden, node.outcome, full[:] = broken, overridden, outcome, [1] * is_full
            machine.most_calls = len(machine.calls) + 100
            holders = {"hold a": ["a"], "hold b": ["b"], "hold both": ["a", "b"], "release": []}.get(news)
            if holders is not None:
                node.hold(*holders)
            elif news == "a mask is removed":
                machine.files.clear()
                machine.signals.get("UnitFilesChanged", lambda: None)()
            elif news == "logind starts":
                for call in machine.owner_changed:
                    call(":1.2")
            node.loop.run(1 if news == "time passes" else 0)
        machine.broken, machine.overridden, node.outcome, full[:] = set(), set(), ("done", ""), []
        machine.most_calls = len(machine.calls) + 1000
        node.hold()
        node.loop.run(120)
        assert (machine.locked, node.stored, node.written[-1]) == ([], [], ALLOWED)
        assert not node.agent._units.own


def test_the_mask_of_a_node_that_is_gone_is_not_removed_again_and_again(started):
    started.hold("a")
    started.outcome = ("refused", "404")
    started.machine.broken = {"UnmaskUnitFiles"}
    started.machine.most_calls = len(started.machine.calls) + 100
    started.hold()

    assert started.machine.files == UNITS

    started.machine.broken = set()
    started.loop.run(2)

    assert started.machine.files == set()


@pytest.mark.parametrize("outcome", [("away", "503"), ("refused", "404"), ("away", "429", 1.0)])
def test_a_condition_that_is_not_written_is_tried_less_and_less(started, outcome):
    started.outcome = outcome
    began = len(started.seconds)
    started.hold("a")
    started.loop.run(600)
    seconds = started.seconds[began:]

    # Pauses from 15 to 30 s, after those that grow to it.
    assert len(seconds) < 600 / 15 + 8
    assert seconds[-1] - seconds[-2] >= 15

    started.outcome = ("done", "")
    started.loop.run(30)
    assert started.written[-1].status == "True"
    started.outcome = outcome
    again = len(started.seconds)
    started.hold()
    # The first two pauses take 8 s at most: 2 and 4 s, and what the server asks for.
    started.loop.run(10)
    assert len(started.seconds) - again > 2, "a write that succeeded ends the long pauses"


def test_the_pause_that_the_server_asks_for_is_kept_whatever_the_news(started):
    began = len(started.written)
    started.outcome = ("away", "429", 50.0)
    started.hold("a")
    for holder in "bcdef":
        started.hold(holder)
        started.away("no route")
        started.away("")
        started.loop.run(5)

    assert len(started.written) == began + 1
    assert "shop/f" in started.machine.locked, "locks do not wait"

    started.outcome = ("done", "")
    started.loop.run(80)
    assert started.written[-1].reason == "shop/f"

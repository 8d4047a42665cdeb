# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action reboot between the last look and the act, with a node that is told what to answer."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from unit.reboot.memory_cluster import MemoryCluster
from unit.terminal import BEFORE_OUTPUT

from ansible_collections.holdfast.kubernetes.plugins.action import reboot
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import runner
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Held, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import OPERATION
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.gate import Pass
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind import inhibitor_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.once_rules import (
    HELD,
    LATE,
    OTHER_BOOT,
    guarded,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.quorum_rules import CONTROL_PLANE

BOOT, NEXT = "c0ffee00-0000-4000-8000-000000000001", "c0ffee00-0000-4000-8000-000000000002"
OTHER = "c0ffee00-0000-4000-8000-000000000003"
REFUSED = {"rc": 1, "stdout": "", "stderr": "Call to Reboot failed: Access denied"}
CUT = AnsibleConnectionFailure("Shared connection closed.")


class Node:
    """Answers in order: each command with the next of ``answers``; what it is asked is kept in ``seen``."""

    def __init__(self, monkeypatch, **params):
        self.boot_id, self.preparing, self.uptime = BOOT, False, 100.0
        self.before = self.after = ""
        self.answers: list[Any] = []
        self.seen: list[str] = []
        self.retries = 5
        self.gate: list[Any] = []
        self.node: Any = None
        self.reported = ""
        self.action = reboot.ActionModule.__new__(reboot.ActionModule)
        defaults = {"node": "worker-1", "override_holds": False, "msg": "now", "pre_reboot_delay": 0}
        vars(self.action).update(
            _params={**defaults, "inhibitor_timeout": 0, "etcd_selector": None, "run": "4711", **params},
            _run_id="4711",
            _passed=Pass(""),
            _sent=False,
            _boot_id=BOOT,
            _earlier="",
            _after="",
            _phases={},
            _stage=reboot.Deadline(None),
            _tell=self.seen.append,
            _task=SimpleNamespace(args=dict(params), action="holdfast.kubernetes.reboot"),
            _connection=SimpleNamespace(get_option=lambda name: self.retries, set_option=self._set_option),
            _low_level_execute_command=self._execute,
            _execute_module=self._find,
            _context=SimpleNamespace(cluster=None, traffic=dict),
        )
        monkeypatch.setattr(reboot.gate, "check", self._gate)
        monkeypatch.setattr(reboot.time, "sleep", self._sleep)

    def _set_option(self, name, value):
        assert name == "reconnection_retries"
        self.retries = value

    def _sleep(self, seconds):
        self.uptime += seconds

    def _gate(self, *_arguments, **_options):
        self.seen.append("gate")
        answers, self.gate = self.gate[:1], self.gate[1:]
        for refusal in filter(None, answers):
            raise refusal
        return Pass(self.boot_id)

    def _find(self, **options):
        self.seen.append("find")
        return {"files": [{"path": f"/bin/{options['module_args']['patterns'][0]}"}]}

    def _execute(self, command, **_options):
        if command == inhibitor_rules.QUERY:
            self.seen.append("logind")
            if self.boot_id == "gone":
                raise CUT
            array = f"{self.boot_id}\n{self.uptime}\nb {str(self.preparing).lower()}\na(ssssuu) 0\n"
            return {"rc": 0, "stdout": self.before + array + self.after, "stderr": ""}
        if command == "cat /proc/sys/kernel/random/boot_id":
            if self.boot_id == "gone":
                raise CUT
            return {"rc": 0, "stdout": f"{self.before}{self.boot_id}\n", "stderr": ""}
        self.seen.append("act" if self.retries == 0 else f"act with {self.retries} retries")
        self.command = command
        answer = self.answers.pop(0)
        if callable(answer):
            answer = answer(self)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def reboot(self):
        return self.action.perform_reboot({}, {"name": "debian", "version": "12", "family": "debian"})

    @property
    def acts(self):
        return self.seen.count("act")


@pytest.fixture
def node(monkeypatch):
    return Node(monkeypatch)


def node_with(boot_id=BOOT, **record):
    marks = {OPERATION: json.dumps({"id": "kernel", **record})} if record else {}
    return {"metadata": {"name": "worker-1", "annotations": marks}, "status": {"nodeInfo": {"bootID": boot_id}}}


def fine(_node=None):
    return {"rc": 0, "stdout": "", "stderr": ""}


def test_the_gate_is_the_last_thing_before_the_act(node):
    node.answers = [fine()]
    assert node.reboot()["failed"] is False
    assert node.seen == ["find", "logind", "gate", "act"]
    assert node.retries == 5, "the connection keeps its own retries"
    assert "systemctl reboot --message=now" in node.command
    assert (BOOT in node.command, "-lt 130 ]" in node.command) == (True, True)


def test_a_cut_connection_is_a_reboot_if_the_node_goes_down(node):
    def goes(node):
        node.boot_id = "gone"
        return CUT

    node.answers = [goes]
    assert node.reboot()["failed"] is False
    assert (node.acts, node.action._sent) == (1, True)


@pytest.mark.parametrize("sign", ["preparing", "another boot", "gone"])
def test_a_refusal_is_not_believed_of_a_node_that_goes_down(node, sign):
    """The connection sent the command again in the middle of the shutdown, and that was refused."""

    def goes(node):
        node.preparing = sign == "preparing"
        node.boot_id = {"another boot": NEXT, "gone": "gone"}.get(sign, BOOT)
        return REFUSED

    node.answers = [goes]
    assert node.reboot()["failed"] is False
    assert (node.acts, node.action._sent) == (1, True)


def test_a_cut_connection_of_a_node_that_stays_up_is_tried_again_when_the_command_is_too_late(node):
    node.answers = [CUT, fine()]
    assert node.reboot()["failed"] is False
    assert node.acts == 2
    # 30 s after the first look at the earliest, so that the first command can't arrive any more.
    assert node.uptime > 130


def test_a_refusal_by_a_hold_that_goes_again_is_not_a_failure(node):
    node.answers = [REFUSED, REFUSED, fine()]
    assert node.reboot()["failed"] is False
    assert (node.acts, node.seen.count("gate")) == (3, 3)


def test_a_refusal_by_a_hold_that_stays_names_it(node):
    node.answers = [REFUSED]
    node.gate = [None, Held("held by tenant/backup")]
    with pytest.raises(Held, match="tenant/backup"):
        node.reboot()
    assert (node.acts, node.action._sent) == (1, False)


def test_a_refusal_that_stays_is_a_failure(node, monkeypatch):
    monkeypatch.setattr(reboot, "_TRY_FOR", 0)
    node.answers = [REFUSED]
    result = node.reboot()
    assert (result["failed"], node.action._sent) == (True, False)
    assert "Access denied" in result["msg"]


def test_a_command_of_the_user_s_is_run_once(monkeypatch):
    node = Node(monkeypatch, reboot_command="/opt/reset")
    node.answers = [REFUSED]
    assert node.reboot()["failed"] is True
    assert node.acts == 1


def test_a_command_that_came_too_late_is_checked_again(node):
    node.answers = [{"rc": 1, "stdout": LATE, "stderr": ""}, fine()]
    assert node.reboot()["failed"] is False
    assert node.seen[1:] == ["logind", "gate", "act"] * 2


def test_one_that_came_too_late_on_a_node_that_another_run_finished_ends_there(node):
    def paused(node):
        node.boot_id = NEXT
        return {"rc": 1, "stdout": LATE, "stderr": ""}

    node.answers = [paused]
    with pytest.raises(Refused, match="Someone else has rebooted"):
        node.reboot()
    assert node.acts == 1


def test_a_shutdown_that_is_in_progress_counts_as_sent(node):
    """Whatever asked for it: the slot is not given back while the node goes down."""
    node.preparing = True
    with pytest.raises(Refused, match="in progress"):
        node.reboot()
    assert (node.acts, node.action._sent) == (0, True)


@pytest.mark.parametrize("shown", [BOOT, "gone"])
def test_another_boot_time_without_another_boot_id_is_no_reboot(monkeypatch, shown):
    node = Node(monkeypatch, node=None, boot_time_command="uptime -s", test_command="true", connect_timeout=0)
    node.action._connection = SimpleNamespace(get_option=lambda _name: None, set_option=None, reset=None)
    node.boot_id, seen = shown, []

    def sleep(_seconds):
        seen.append(node.action._after)
        node.boot_id = NEXT

    monkeypatch.setattr(reboot.time, "sleep", sleep)
    node.answers = [{"rc": 0, "stdout": "another time", "stderr": ""}] * 2 + [fine()]

    debian = {"name": "debian", "version": "12", "family": "debian"}
    result = node.action.validate_reboot(debian, action_kwargs={"previous_boot_time": "a time"})

    assert (result["rebooted"], node.action._after, seen) == (True, NEXT, [""])


@pytest.mark.parametrize("before", BEFORE_OUTPUT.values(), ids=BEFORE_OUTPUT)
def test_lines_of_sudo_are_no_part_of_the_boot_id(node, before):
    node.before = before
    assert node.action._boot_id_now() == node.action._logind().boot_id == BOOT


@pytest.mark.parametrize("override", [True, False])
def test_masks_without_locks_are_overridden(monkeypatch, override):
    """systemd before 254 forgets the locks of an agent that was stopped."""
    node = Node(monkeypatch, override_holds=override)
    node.after, node.answers = "holdfast: masked\n", [fine()]

    node.reboot()

    assert ("systemctl reboot --force" in node.command) is override


class TestResumed:
    """An earlier run of the operation asked for the reboot and died. Its command may still have its effect."""

    @pytest.fixture
    def node(self, monkeypatch):
        node = Node(monkeypatch, operation="kernel", ready_timeout=60, reboot_timeout=60)
        node.node = node_with(phase="reboot", boot_id_before=BOOT)
        node.action._task.check_mode = False
        node.action._connection.transport = "ssh"
        node.action._connection.reset = lambda: node.seen.append("reset")
        node.recorded = []
        monkeypatch.setattr(reboot, "read_node", lambda *_arguments: node.node)
        monkeypatch.setattr(reboot.BuiltinReboot, "run", lambda *_arguments: node.reboot())
        for module in (reboot, reboot.last_look):
            monkeypatch.setattr(module, "record_phase", lambda *known, **_more: node.recorded.append(known[2].name))
        monkeypatch.setattr(reboot.runs, "heartbeat", lambda *_arguments, **_options: contextlib.nullcontext())

        def back(_cluster, _name, before, _deadline):
            node.seen.append(f"back from {before}")
            return node_with(boot_id=node.reported or node.boot_id)

        monkeypatch.setattr(reboot, "wait_until_back", back)
        return node

    @pytest.mark.parametrize("check_mode", [False, True])
    @pytest.mark.parametrize("others_ready", [True, False])
    def test_the_quorum_of_etcd_is_checked_directly_before_the_reboot(self, node, others_ready, check_mode):
        """It is checked after the wait for block locks. The run may also have been paused."""
        cluster, action = MemoryCluster(), node.action
        action._cluster, node.answers = lambda: cluster, [fine()]
        action._params["etcd_selector"], action._task.check_mode = "component=etcd", check_mode
        for name in ("worker-1", "master-2", "master-3"):
            cluster.node(name, ready=others_ready or name == "worker-1", labels={CONTROL_PLANE: ""})
            cluster.etcd_pod(name)

        result = action._outcome(None, {})

        assert "worker-1 has to stay up" in result.get("msg", "") or others_ready
        assert bool(result.get("failed")) is not others_ready
        assert node.acts == (others_ready and not check_mode)

    def assert_not_repeated(self, node, result):
        assert (result.get("failed"), result["step"], result["rebooted"]) == (None, "rebooted", True)
        assert (node.acts, result["sent"], result["changed"]) == (0, False, False)
        assert (result["boot_id_before"], result["boot_id_after"]) == (BOOT, NEXT)
        assert (f"back from {BOOT}" in node.seen, node.recorded[-1:]) == (True, ["ready"])
        assert "overridden_holds" not in result

    def test_a_node_that_has_rebooted_is_not_rebooted_again(self, node):
        node.boot_id = NEXT
        self.assert_not_repeated(node, node.action._outcome(None, {}))

    def test_a_hold_on_a_node_that_has_rebooted_does_not_count(self, node):
        node.boot_id = NEXT
        node.gate = [Held("held by tenant/backup")]
        self.assert_not_repeated(node, node.action._outcome(None, {}))

    def test_a_node_that_reboots_after_the_first_look_is_not_rebooted_again(self, node):
        def find(**_options):
            node.boot_id = NEXT
            return {"files": [{"path": "/bin/systemctl"}]}

        node.action._execute_module = find
        self.assert_not_repeated(node, node.action._outcome(None, {}))
        assert "gate" in node.seen

    def test_a_node_that_reboots_while_the_api_is_away_is_not_rebooted_again(self, node, monkeypatch):
        def gate(*_arguments, **_options):
            node.boot_id = NEXT
            return Pass(NEXT, overridden=[{"holder": "backup"}])

        monkeypatch.setattr(reboot.gate, "check", gate)
        self.assert_not_repeated(node, node.action._outcome(None, {}))

    @pytest.mark.parametrize("state", ["preparing", "gone"])
    def test_a_reboot_that_is_under_way_is_waited_for(self, node, monkeypatch, state):
        node.preparing, node.boot_id = state == "preparing", "gone" if state == "gone" else BOOT

        def sleep(_seconds):
            node.preparing, node.boot_id = False, NEXT

        monkeypatch.setattr(reboot.time, "sleep", sleep)
        self.assert_not_repeated(node, node.action._outcome(None, {}))
        assert "reset" in node.seen

    def test_a_host_that_stays_away_is_a_failure(self, node, monkeypatch):
        node.boot_id = "gone"
        node.action._params["reboot_timeout"] = 0
        result = node.action._outcome(None, {})
        assert (result["failed"], result["error"], result["sent"]) == (True, "unreachable", False)

    def test_a_node_that_has_not_rebooted_is_rebooted(self, node):
        node.answers = [lambda node: setattr(node, "boot_id", NEXT) or fine()]
        result = node.action._outcome(None, {})
        assert (node.acts, result["sent"], result["changed"], result["boot_id_after"]) == (1, True, True, NEXT)
        assert node.recorded == ["reboot", "ready"]

    def test_another_machine_is_no_proof(self, node):
        node.boot_id, node.reported = OTHER, NEXT
        result = node.action._outcome(None, {})
        assert (result["failed"], result["error"], result["rebooted"]) == (True, "refused", False)
        assert "names another machine" in result["msg"]

    def test_check_mode_writes_nothing(self, node):
        node.action._task.check_mode = True
        node.boot_id = NEXT
        result = node.action._outcome(None, {})
        assert (result.get("failed"), result["changed"], node.recorded) == (None, False, [])

    @pytest.mark.parametrize(("operation", "shown"), [("kernel", "why"), (None, "msg")])
    def test_control_characters_of_others_are_not_shown(self, node, operation, shown):
        node.action._params["operation"] = operation
        node.gate = [Held("held by tenant/backup\x1b[2J\nok: [node-1]")]
        assert node.action._outcome(None, {})[shown] == "held by tenant/backup [2J ok: [node-1]"

    @pytest.mark.parametrize("check_mode", [True, False])
    def test_check_mode_writes_no_lease_of_the_run(self, monkeypatch, check_mode):
        action = reboot.ActionModule.__new__(reboot.ActionModule)
        action._params, action._task = {}, SimpleNamespace(check_mode=check_mode)
        monkeypatch.setattr(runner, "Cluster", lambda _options, dry_run: dry_run)
        assert action._cluster() is check_mode

    @pytest.mark.parametrize("record", [{"phase": "drain"}, {"phase": "ready"}, {"id": "other", "phase": "reboot"}])
    def test_a_record_of_another_phase_or_operation_does_not_count(self, node, record):
        node.node = node_with(boot_id_before=BOOT, **record)
        node.boot_id = NEXT
        node.answers = [lambda node: setattr(node, "boot_id", OTHER) or fine()]
        result = node.action._outcome(None, {})
        assert (node.acts, result["sent"], result["boot_id_before"]) == (1, True, NEXT)


class TestGuard:
    """In a real shell, with the boot ID and the uptime of this machine."""

    @pytest.fixture
    def boot_id(self):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()

    @pytest.fixture
    def uptime(self):
        return int(float(Path("/proc/uptime").read_text().split()[0]))

    def run(self, *arguments, **options):
        done = subprocess.run(
            ["/bin/sh", "-c", guarded("echo done; exit 7", *arguments, **options)],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout.strip()

    @pytest.fixture
    def logind(self, monkeypatch, tmp_path):
        """Let busctl run this command."""

        def answers(command):
            program = tmp_path / "busctl"
            program.write_text(f"#!/bin/sh\n{command}\n")
            program.chmod(0o755)
            monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

        return answers

    def test_in_this_boot_and_in_time(self, boot_id, uptime):
        assert self.run(boot_id, uptime + 600) == (7, "done")

    def test_in_another_boot(self, uptime):
        assert self.run(NEXT, uptime + 600) == (1, OTHER_BOOT)

    def test_too_late(self, boot_id, uptime):
        assert self.run(boot_id, uptime) == (1, LATE)

    @pytest.mark.parametrize(
        ("locks", "held"),
        [
            ([], False),
            ([("shutdown", "holdfast", "shop/db", "block")], True),
            ([("sleep:shutdown", "holdfast", 'a "quoted" \\ why', "block")], True),
            ([("sleep", "systemd", "x", "delay"), ("shutdown", "holdfast", "", "block")], True),
            ([("shutdown", "holdfast", "shop/db", "delay")], False),
            ([("shutdown", "other", "shop/db", "block")], False),
            ([("shutdown", "other", '"shutdown" "holdfast" "x" "block"', "block")], False),
        ],
    )
    def test_held(self, boot_id, uptime, logind, locks, held):
        rows = " ".join(" ".join(json.dumps(word) for word in lock) + " 0 1" for lock in locks)
        logind(f"cat <<'END'\na(ssssuu) {len(locks)} {rows}\nEND")
        assert self.run(boot_id, uptime + 600, unless_held=True) == ((1, HELD) if held else (7, "done"))
        assert self.run(boot_id, uptime + 600) == (7, "done")

    def test_a_logind_that_does_not_answer(self, boot_id, uptime, logind):
        logind("exit 1")
        assert self.run(boot_id, uptime + 600, unless_held=True) == (1, HELD)


def test_overridden_holds_are_recorded_before_the_act(monkeypatch):
    node = Node(monkeypatch, override_holds=True, operation="kernel")
    holds = [{"namespace": "shop", "holder": "db"}]
    monkeypatch.setattr(
        reboot.gate, "check", lambda *_arguments, **_options: node.seen.append("gate") or Pass(BOOT, list(holds))
    )

    def record(*_arguments, overridden_holds):
        node.seen.append(f"record {overridden_holds}")
        holds[:] = [*holds, {"namespace": "shop", "holder": "late"}][:2]

    monkeypatch.setattr(reboot.last_look, "record_phase", record)
    node.action._passed = Pass(BOOT, list(holds))
    node.answers = [fine()]
    node.reboot()
    seen = [what for what in node.seen if what not in ("find", "logind")]
    assert seen == ["record ['shop/db']", "gate", "record ['shop/db', 'shop/late']", "gate", "act"]


def test_the_act_respects_holds_unless_they_are_overridden(monkeypatch):
    for params, respected in (({}, True), ({"override_holds": True}, False), ({"node": None}, False)):
        node = Node(monkeypatch, **params)
        node.answers = [fine()]
        node.reboot()
        assert (HELD in node.command) is respected

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reboot_turn makes of a node's answer to whether it needs a reboot."""

from __future__ import annotations

import signal
import time

import pytest
from unit.terminal import BEFORE_OUTPUT

from ansible_collections.holdfast.kubernetes.plugins.action import reboot_turn
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _answer_within
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._answer_within import answer_within
from lab.patience import PATIENCE


@pytest.fixture
def needed(monkeypatch, checkout):
    """Ask a node that answers with this text."""

    def ask(output, rc=0, stderr=""):
        action = reboot_turn.ActionModule.__new__(reboot_turn.ActionModule)
        folder = checkout / "roles/rolling_reboot/files"
        monkeypatch.setattr(action, "_find_needle", lambda _kind, name: str(folder / name), raising=False)
        monkeypatch.setattr(action, "_compute_environment_string", lambda: "", raising=False)
        answer = {"rc": rc, "stdout": output, "stderr": stderr}
        monkeypatch.setattr(action, "_low_level_execute_command", lambda *_words, **_options: answer, raising=False)
        return action._by_sign("worker-1")

    return ask


def test_a_node_that_accepts_a_connection_and_hangs_is_trouble(monkeypatch):
    action = reboot_turn.ActionModule.__new__(reboot_turn.ActionModule)
    monkeypatch.setattr(reboot_turn, "_ANSWER_WITHIN", 1)
    monkeypatch.setattr(action, "_by_sign", lambda _name: time.sleep(PATIENCE))
    monkeypatch.setattr(action, "_execute_module", lambda **_options: time.sleep(PATIENCE), raising=False)
    action._task_vars = {}

    trouble = action._needed({"name": "worker-1", "settings": {"when": "required"}})["trouble"]
    assert trouble.startswith("Node worker-1 has not said within 1 s whether it needs a reboot.")
    assert action._shutdown({"shutdown_options": {}}) == {"msg": "it has not answered for 1 s"}
    assert signal.alarm(0) == 0


def test_the_removal_of_files_from_a_node_that_hangs_ends(monkeypatch):
    monkeypatch.setattr(_answer_within, "_CLEANUP", 1)

    _answer_within.clean_up(lambda _force: time.sleep(PATIENCE), force=True)


def test_a_shorter_timeout_of_the_task_comes_first(monkeypatch):
    class Timeout(BaseException):
        pass

    def end(_number, _frame):
        raise Timeout

    def hang():
        signal.alarm(1)
        with answer_within(PATIENCE):
            time.sleep(PATIENCE)

    before = signal.signal(signal.SIGALRM, end)
    try:
        with pytest.raises(Timeout):
            hang()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_the_timeout_of_the_task_continues_after_an_answer():
    signal.alarm(PATIENCE)
    with answer_within(PATIENCE - 1):
        pass

    assert signal.alarm(0) > 1


@pytest.mark.parametrize("before", BEFORE_OUTPUT.values(), ids=BEFORE_OUTPUT)
def test_lines_of_sudo_are_no_part_of_the_answer(needed, before):
    assert needed(f"{before}no\r\n") == {"needed": ""}
    assert needed(f"{before}yes: /run/reboot-required\n") == {"needed": "/run/reboot-required"}


@pytest.mark.parametrize(
    ("output", "rc", "stderr", "why"),
    [
        ("unknown: neither", 0, "", "unknown: neither"),
        ("sudo: a warning\nunknown: neither", 0, "", "unknown: neither"),
        ("nothing like it", 0, "", "nothing like it"),
        ("no", 1, "", "no"),
        ("", 1, "sh: not found", "sh: not found"),
        ("", 0, "", "reboot_required.sh exited 0"),
    ],
)
def test_another_answer_is_trouble(needed, output, rc, stderr, why):
    assert why in needed(output, rc, stderr)["trouble"]

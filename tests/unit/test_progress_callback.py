# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of events, and the view on a real terminal and in a pipe."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
from types import SimpleNamespace

import pytest

from ansible_collections.holdfast.kubernetes.plugins.callback import progress
from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress import event_rules as rules
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _live_view, _progress_file, _traffic
from lab.patience import PATIENCE

MESSAGE = "fatal: [n-1]: FAILED! => " + " ".join(f"word-{number}" for number in range(200)) + " the end"
# A run of some nodes. One of them fails. It prints as Ansible's display does.
PROGRAM = """
import sys, threading
from types import SimpleNamespace
from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress import event_rules as rules
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _live_view, _progress_file

shown = threading.Semaphore(0)

def telling(show):
    def tells(*arguments):
        show(*arguments)
        shown.release()
    return tells

_live_view._Screen.draw = telling(_live_view._Screen.draw)
# In one piece, as a line of Ansible's display: print() writes the end of the line on its own.
display = SimpleNamespace(display=telling(lambda line: sys.stdout.write(line + "\\n")), warning=print)
view = _live_view.LiveView(display, table=True)
ansible_task = SimpleNamespace(check_mode=False, no_log=False, resolved_action="x", action="x")
task = _progress_file.Task(ansible_task, {"inventory_hostname": "h"})
nodes = [f"n-{number}" for number in range(int(sys.argv[1]))]
task.tell(rules.ended("reboot_begin", {"hosts": dict(zip(nodes, nodes))}, {"operation": "kernel", "run": "4711"}))
task.tell(rules.budget("workers", 2, ["n-2"]))
task.tell(rules.waits("n-0", "hold", "held by apps/alice"))
task.tell(rules.waits("n-2", "drain", "3 pods"))
assert shown.acquire(timeout=int(sys.argv[3]))
sys.stdout.write(sys.argv[2] + "\\n")
print("Node n-0 is put off", file=sys.stderr)
result = {"name": "n-1", "result": "failed", "detail": "no PodDisruptionBudget allows it"}
task.tell(rules.ended("reboot_finish", {}, {"result": result}))
assert shown.acquire(timeout=int(sys.argv[3]))
view.stop()
view.stop()
print("PLAY RECAP")
"""


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(_traffic, "folder", lambda: str(tmp_path))
    return tmp_path


def a_task(*, no_log=False):
    name = "holdfast.kubernetes.drain"
    return SimpleNamespace(check_mode=False, no_log=no_log, resolved_action=name, action="drain")


@pytest.fixture
def callback():
    """The callback in a play of the collection, with the lines that it prints."""
    found = progress.CallbackModule()
    found.lines = []
    found._display = SimpleNamespace(verbosity=0, display=found.lines.append)
    found._ours = True
    return found


def debugged(*, loop=None, **result):
    task = SimpleNamespace(action="ansible.builtin.debug", loop=loop)
    return SimpleNamespace(task=task, result={"changed": False, **result})


def test_messages_of_a_loop_are_shown_once_each(callback):
    items = [debugged(msg="worker-1 is next", item=1), debugged(msg=["worker-2", "is last"], item=2)]
    for item in items:
        callback.v2_runner_item_on_ok(item)
    callback.v2_runner_on_ok(debugged(loop=[1, 2], msg="All items completed", results=[]))

    assert callback.lines == ["worker-1 is next", "worker-2", "is last"]


def test_without_a_loop_the_message_or_the_variable_is_shown(callback):
    callback.v2_runner_on_ok(debugged(msg="worker-1 is next"))
    callback.v2_runner_on_ok(debugged(results=[], ansible_loop_var="item"))

    assert callback.lines == ["worker-1 is next", '{\n  "results": []\n}']


def test_texts_of_others_can_not_move_the_cursor(callback):
    callback.v2_runner_on_ok(debugged(msg=["worker-1: failed (\x1b]52;c;eA==\x07)", "a\nb\r"]))

    assert callback.lines == ["worker-1: failed ( ]52;c;eA== )", "a\nb "]


def test_without_a_folder_a_task_continues(folder):
    folder.rmdir()
    with _progress_file.telling(a_task(), {}, {"name": "a"}) as task:
        task.outcome = {"changed": True}

    assert _progress_file.Reader().new() == []


def test_check_mode_shows_nothing(folder):
    task = a_task()
    task.check_mode = True
    with _progress_file.telling(task, {}, {"name": "a"}):
        pass

    assert _progress_file.Reader().new() == []


def test_events_are_read_in_order_and_once(folder):
    reader = _progress_file.Reader()
    with _progress_file.telling(a_task(), {"inventory_hostname": "h"}, {"name": "a", "api_key": "hunter2"}) as task:
        for why in ("1 pod", "1 pod", "no pod"):
            task.tell(rules.waits("a", "drain", why))
        task.outcome = {"changed": True}

    found = reader.new()
    assert [(event["kind"], event.get("why")) for event in found] == [
        ("begun", None),
        ("waits", "1 pod"),
        ("waits", "no pod"),
        ("ended", None),
    ]
    assert {event["host"] for event in found} == {"h"}
    assert reader.new() == []
    assert "hunter2" not in _progress_file.path().read_text()


def test_a_task_with_no_log_hides_its_words(folder):
    with _progress_file.telling(a_task(no_log=True), {}, {"name": "a"}) as task:
        task.tell(rules.waits("a", "drain", "hunter2"))
        task.outcome = {"failed": True, "msg": "hunter2"}

    assert "hunter2" not in _progress_file.path().read_text()
    assert [event.get("error") or event.get("why") for event in _progress_file.Reader().new()][1:] == [
        "hidden (no_log)",
        "hidden (no_log)",
    ]


def test_values_of_secret_options_are_hidden(folder):
    with _progress_file.telling(a_task(), {}, {"name": "a"}, {"hunter2"}) as task:
        task.outcome = {"failed": True, "msg": "the token hunter2 is wrong"}

    assert "hunter2" not in _progress_file.path().read_text()
    assert _progress_file.Reader().new()[-1]["error"].startswith("the token ***")


def test_half_a_line_is_read_when_it_is_whole(folder):
    reader = _progress_file.Reader()
    with _progress_file.path().open("a") as file:
        file.write('{"kind": "waits"}\n{"kind": ')
        file.flush()
        assert reader.new() == [{"kind": "waits"}]
        file.write('"ended"}\n')
    assert reader.new() == [{"kind": "ended"}]


def test_torn_line_is_left_out(folder):
    """The disk was full for a moment."""
    with _progress_file.path().open("a") as file:
        file.write('{"kind": "wai{"kind": "lost"}\n7\n{"kind": "ended"}\n')
    assert _progress_file.Reader().new() == [{"kind": "ended"}]


def test_task_that_ends_with_an_exception_shows_its_error(folder):
    with pytest.raises(ValueError, match="boom"), _progress_file.telling(a_task(), {}, {"name": "a"}):
        raise ValueError("boom")

    assert _progress_file.Reader().new()[-1]["error"] == "boom"


def environment(**more):
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in ("NO_COLOR", "ANSIBLE_NOCOLOR", "COLUMNS", "LINES")
    }
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm-256color", **more}


def on_terminal(nodes, columns, rows):
    """Return all that the program wrote to a terminal of this size."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (rows, columns))
    command = [sys.executable, "-c", PROGRAM, str(nodes), MESSAGE, str(PATIENCE)]
    with subprocess.Popen(command, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 65536):
                written += part
        except OSError:
            # The terminal of a process that has ended.
            pass
    os.close(ours)
    return written.decode().replace("\r\n", "\n")


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@pytest.mark.skipif(not _live_view.HAS_RICH, reason="the table needs rich")
@pytest.mark.parametrize(("nodes", "columns", "rows"), [(3, 80, 24), (300, 200, 50)])
def test_terminal_shows_one_table_and_every_message_in_full(nodes, columns, rows):
    written = on_terminal(nodes, columns, rows)
    text = plain(written)

    assert "\x1b[1A" in written, "the table is drawn in place"
    assert MESSAGE in text, "a long line is neither cut nor broken"
    assert "Node n-0 is put off" in text
    last = text[text.rindex("Rolling reboot, operation kernel, run 4711") :].splitlines()
    assert f"0 of {nodes} done, 1 failed, 1 at work, {nodes - 2} left" in last[1]
    assert last[2] == "Group workers: 1 of 2 allowed unavailable: n-2"
    assert "NODE" in last[3]
    assert last[4].split()[:2] == ["n-0", "hold"]
    assert "no PodDisruptionBudget allows it" in last[5]
    # At the end, the table has every node, and the recap comes below it.
    assert last[3 + nodes].split()[0] == f"n-{nodes - 1}"
    assert last[4 + nodes] == "PLAY RECAP"
    # While it was drawn, it was never larger than the screen.
    assert nodes < rows or f"and {nodes - rows + 7} more: " in text


def test_pipe_gets_a_line_for_each_change():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "3", MESSAGE, str(PATIENCE)],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert "\x1b" not in done.stdout
    lines = [line.partition(" ")[2] if line[:2].isdecimal() else line for line in done.stdout.splitlines()]
    assert sorted(lines) == sorted(
        [
            "Rolling reboot, operation kernel, run 4711: 3 nodes",
            "n-0: hold: held by apps/alice",
            "n-2: drain: 3 pods",
            MESSAGE,
            "n-1: failed: no PodDisruptionBudget allows it (0 of 3 done, 1 failed, 1 at work, 1 left)",
            "PLAY RECAP",
        ]
    )

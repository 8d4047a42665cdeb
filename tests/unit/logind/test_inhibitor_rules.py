# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What busctl prints, as it was seen on nodes with systemd 252 and 257."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.terminal import BEFORE_OUTPUT

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import HoldfastError
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.inhibitor_rules import (
    QUERY,
    Inhibitor,
    boot_id,
    parse,
    sentence,
)
from holdfast_agent.store import RUNTIME_DIRECTORY

BOOT = "c0ffee00-0000-4000-8000-000000000001"
KUBELET = '"shutdown" "kubelet" "Kubelet needs time to handle node shutdown" "delay" 0 100'


def answer(array, *ages, preparing="false"):
    return "\n".join([BOOT, "4711.25", f"b {preparing}", array, *ages]) + "\n"


def cescape(text):
    """As systemd's cescape() does it."""
    short = {
        "\a": "a",
        "\b": "b",
        "\f": "f",
        "\n": "n",
        "\r": "r",
        "\t": "t",
        "\v": "v",
        "\\": "\\",
        '"': '"',
        "'": "'",
    }
    escaped = ""
    for byte in text.encode():
        char = chr(byte)
        if char in short:
            escaped += "\\" + short[char]
        elif byte < 32 or byte >= 127:
            escaped += f"\\{byte:03o}"
        else:
            escaped += char
    return escaped


def test_none():
    found = parse(answer("a(ssssuu) 0"))

    assert (found.boot_id, found.preparing_for_shutdown, found.inhibitors) == (BOOT, False, ())


def test_preparing():
    assert parse(answer("a(ssssuu) 0", preparing="true")).preparing_for_shutdown


def test_many_and_which_of_them_block():
    rows = [
        KUBELET,
        '"shutdown:sleep" "backup" "a run" "block" 0 226',
        '"sleep" "lid" "" "block" 1000 5',
        '"handle-power-key:idle" "shutdown" "shutdown" "block" 0 6',
    ]
    found = parse(answer(f"a(ssssuu) {len(rows)} {' '.join(rows)}"))

    assert len(found.inhibitors) == 4
    assert found.blocks() == [Inhibitor("shutdown:sleep", "backup", "a run", "block", 0, 226)]


@pytest.mark.parametrize(
    ("record", "masked"),
    [
        ('["reboot.target", "systemd-reboot.service"]\n', True),
        ('["poweroff.target"]\n', False),
        ("[]\n", False),
        (None, False),
    ],
)
def test_the_agents_own_record_says_whether_it_has_masked_the_reboot(monkeypatch, tmp_path, record, masked):
    """In a real shell. The agent may have masks without locks."""
    if record is not None:
        (tmp_path / "masks.json").write_text(record)
    busctl = tmp_path / "busctl"
    busctl.write_text('#!/bin/sh\n[ $1 = call ] && echo "a(ssssuu) 0" || echo "b false"\n')
    busctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    query = QUERY.replace(str(RUNTIME_DIRECTORY), str(tmp_path))
    assert query != QUERY

    done = subprocess.run(["/bin/sh", "-c", query], capture_output=True, text=True, check=True)

    assert parse(done.stdout).masked is masked


# As systemd 252 writes them, and as later versions do.
NOTES = {
    "1": (r"WHO=it\'s \303\251", r"WHY=\"a\" \\ $b", 1700000000),
    "2": ("WHO=holdfast", "WHY=shop/app ", 1700000001),
    "3": ("WHO=holdfast", r'WHY="shop/b \\303\\251 \\\"\$x\\\""', 1700000002),
}


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_each_lock_of_a_process_has_its_own_time(monkeypatch, tmp_path, ending):
    """In a real shell."""
    for name, (who, why, at) in NOTES.items():
        note = tmp_path / name
        note.write_text(
            f"# This is private data.\nWHAT=shutdown\nMODE=block\nUID=0\nPID=7\n{who}\n{why}\nFIFO=/run/x\n"
        )
        os.utime(note, (at, at))
    held = [(r"it\'s \303\251", r"\"a\" \\ $b"), ("holdfast", "shop/app "), ("holdfast", r"shop/b \303\251 \"$x\"")]
    rows = [f'"shutdown" "{who}" "{why}" "block" 0 7' for who, why in [*held, ("holdfast", "new")]]
    busctl = tmp_path / "bin" / "busctl"
    busctl.parent.mkdir()
    array = f"a(ssssuu) {len(rows)} {' '.join(rows)}"
    busctl.write_text(f"#!/bin/sh\n[ $1 = call ] && cat <<'END' || echo 'b false'\n{array}\nEND\n")
    busctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{busctl.parent}:/usr/bin:/bin")
    query = QUERY.replace("/run/systemd/inhibit", str(tmp_path))
    assert query != QUERY

    done = subprocess.run(["/bin/sh", "-c", query], capture_output=True, text=True, check=True)

    found = parse(done.stdout.replace("\n", ending)).inhibitors
    assert [item.since for item in found] == [f"2023-11-14T22:13:2{second}Z" for second in range(3)] + [None]
    assert (found[2].who, found[2].why) == ("holdfast", 'shop/b é "$x"')


def test_a_lock_stays_the_same_if_its_time_changes():
    lock = Inhibitor("shutdown", "holdfast", "shop/app", "block", 0, 7, "2023-11-14T22:13:20Z")

    assert lock == replace(lock, since=None)
    assert lock != replace(lock, why="shop/b")


def test_a_logind_that_does_not_answer_is_a_failure_of_the_command(monkeypatch, tmp_path):
    busctl = tmp_path / "busctl"
    busctl.write_text("#!/bin/sh\necho 'Connection timed out' >&2\nexit 1\n")
    busctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    done = subprocess.run(["/bin/sh", "-c", QUERY], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (1, "Connection timed out\n")


@pytest.mark.parametrize("before", BEFORE_OUTPUT.values(), ids=BEFORE_OUTPUT)
def test_lines_of_sudo_are_left_out(before):
    note = ["1700000000", "PID=100", "WHO=kubelet", "WHY=Kubelet needs time to handle node shutdown"]
    text = answer(f"a(ssssuu) 1 {KUBELET}", *note, preparing="true")
    expected = parse(text)

    assert parse(before + text) == parse(before + text.replace("\n", "\r\n")) == expected
    assert (expected.boot_id, expected.uptime, expected.inhibitors[0].who) == (BOOT, 4711.25, "kubelet")
    assert parse(before + text.replace("\n", "\r\n")).inhibitors[0].since == "2023-11-14T22:13:20Z"
    assert boot_id(f"{before}{BOOT}\r\n") == BOOT
    assert boot_id(before) == ""


def test_as_printed_by_a_node():
    array = r'a(ssssuu) 2 "shutdown:sleep" "it\'s \"q\" \303\251 \\ x" "a b\\nc" "block" 0 226 ' + KUBELET
    found = parse(answer(array))

    assert (found.inhibitors[0].who, found.inhibitors[0].why) == ('it\'s "q" é \\ x', r"a b\nc")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20), st.text(max_size=5))
def test_any_text_is_read_back(who, why):
    array = f'a(ssssuu) 2 "shutdown" "{cescape(who)}" "{cescape(why)}" "block" 0 7 {KUBELET}'
    found = parse(answer(array))

    assert (found.inhibitors[0].who, found.inhibitors[0].why) == (who, why)
    assert found.inhibitors[1].who == "kubelet"


@pytest.mark.parametrize("note", ["", "1700000000", "1700000000\nPID=100\nWHO=kubelet", "PID=100\nWHO=kubelet\nWHY=x"])
def test_an_age_that_can_not_be_read_is_unknown(note):
    found = parse(answer(f"a(ssssuu) 1 {KUBELET}", note))

    assert found.inhibitors[0].since is None
    assert "an unknown time" in sentence(list(found.inhibitors))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "only one line",
        BOOT,
        answer("as 1 x"),
        answer("a(ssssuu) 2 " + KUBELET),
        answer("a(ssssuu)"),
        answer('a(ssssuu) 1 "shutdown" "x" "y" "block" "root" 1'),
        "Failed to connect to bus: No such file or directory",
    ],
)
def test_an_invalid_answer_names_the_requirements(text):
    with pytest.raises(HoldfastError, match="systemd 239"):
        parse(text)

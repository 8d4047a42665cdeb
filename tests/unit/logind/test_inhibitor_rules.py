# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What busctl prints, as it was seen on nodes with systemd 252 and 257."""

from __future__ import annotations

import subprocess

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
    found = parse(answer(f"a(ssssuu) {len(rows)} {' '.join(rows)}", "1700000000 226"))

    assert len(found.inhibitors) == 4
    assert found.blocks() == [Inhibitor("shutdown:sleep", "backup", "a run", "block", 0, 226, "2023-11-14T22:13:20Z")]


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


def test_a_logind_that_does_not_answer_is_a_failure_of_the_command(monkeypatch, tmp_path):
    busctl = tmp_path / "busctl"
    busctl.write_text("#!/bin/sh\necho 'Connection timed out' >&2\nexit 1\n")
    busctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    done = subprocess.run(["/bin/sh", "-c", QUERY], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (1, "Connection timed out\n")


@pytest.mark.parametrize("before", BEFORE_OUTPUT.values(), ids=BEFORE_OUTPUT)
def test_lines_of_sudo_are_left_out(before):
    text = answer(f"a(ssssuu) 1 {KUBELET}", "1700000000 100", preparing="true")
    expected = parse(text)

    assert parse(before + text) == parse(before + text.replace("\n", "\r\n")) == expected
    assert (expected.boot_id, expected.uptime, expected.inhibitors[0].who) == (BOOT, 4711.25, "kubelet")
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


@pytest.mark.parametrize("age", [" 12", "1700000000 ", "x y", "", "1700000000"])
def test_an_age_that_can_not_be_read_is_unknown(age):
    found = parse(answer(f"a(ssssuu) 1 {KUBELET}", age))

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

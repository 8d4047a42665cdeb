# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files logind reads, and which of them wins. What is expected here is what systemd 252 and 257 answered."""

from __future__ import annotations

import os
from math import inf

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown import logind_files, logind_rules

names = st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=60).map(
    lambda stem: f"{stem}.conf"
)


class Root:
    """A directory that stands for a node's root."""

    def __init__(self, path):
        self.path = path

    def put(self, file, seconds=None):
        path = self.path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("" if seconds is None else f"[Login]\nInhibitDelayMaxSec={seconds}\n")
        return path

    def read(self, version=257):
        return logind_files.read(version, self.path)

    def order(self, version=257):
        return [candidate.seconds for candidate in self.read(version).candidates]


@pytest.fixture
def root(tmp_path):
    return Root(tmp_path)


class TestRead:
    def test_nothing_is_five_seconds(self, root):
        assert root.read() == logind_rules.LogindFiles()
        assert root.read().seconds == 5
        assert root.read().winner is None

    def test_the_last_name_wins_in_whatever_directory_it_is(self, root):
        root.put("usr/lib/systemd/logind.conf.d/zz.conf", 42)
        root.put("etc/systemd/logind.conf.d/99-kubelet.conf", 10)
        root.put("run/systemd/logind.conf.d/a.conf", 7)
        root.put("usr/local/lib/systemd/logind.conf.d/b.conf", 8)
        root.put("etc/systemd/logind.conf", 3)

        assert root.order() == [3, 10, 7, 8, 42]
        assert root.read().winner.file == "/usr/lib/systemd/logind.conf.d/zz.conf"
        assert root.read().drop_ins == ("99-kubelet.conf", "a.conf", "b.conf", "zz.conf")

    def test_names_are_compared_byte_by_byte(self, root):
        for place, name in enumerate(["Z.conf", "a-b.conf", "a.conf", "aé.conf", "a_b.conf"]):
            root.put(f"etc/systemd/logind.conf.d/{name}", place)

        assert root.read().drop_ins == ("Z.conf", "a-b.conf", "a.conf", "a_b.conf", "aé.conf")

    @pytest.mark.parametrize("hider", ["file", "empty", "directory", "link"])
    def test_a_name_in_an_earlier_directory_hides_it(self, root, hider):
        root.put("usr/lib/systemd/logind.conf.d/a.conf", 42)
        path = root.put("etc/systemd/logind.conf.d/a.conf", 41 if hider == "file" else None)
        if hider in ("directory", "link"):
            path.unlink()
            path.mkdir() if hider == "directory" else path.symlink_to("/nonexistent")

        assert root.order() == ([41] if hider == "file" else [])

    def test_a_directory_ends_the_reading(self, root):
        root.put("etc/systemd/logind.conf.d/a.conf", 1)
        (root.path / "etc/systemd/logind.conf.d/b.conf").mkdir()
        root.put("etc/systemd/logind.conf.d/c.conf", 3)

        assert root.order() == [1]

    @pytest.mark.parametrize("name", [".a.conf", "a.conf.bak", "a.conf~", "a.cfg", "README"])
    def test_other_names_are_not_read(self, root, name):
        root.put(f"etc/systemd/logind.conf.d/{name}", 44)

        assert root.order() == []

    def test_the_first_main_file_counts_since_256(self, root):
        root.put("usr/lib/systemd/logind.conf", 51)
        assert (root.order(252), root.order(256)) == ([], [51])

        root.put("run/systemd/logind.conf", 52)
        assert root.order() == [52]

        root.put("etc/systemd/logind.conf")
        assert (root.order(252), root.order()) == ([], [])


class TestDelay:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("[Login]\nInhibitDelayMaxSec=31\n", 31),
            ("[Login]\nInhibitDelayMaxSec=31\nInhibitDelayMaxSec=32", 32),
            ("[Login]\nInhibitDelayMaxSec=31\nInhibitDelayMaxSec=\n", 31),
            ("[Login]\nInhibitDelayMaxSec=31\nInhibitDelayMaxSec=foo\n", 31),
            ("[Login]\nInhibitDelayMaxSec=7 # x\n", None),
            ("[Login]\n#InhibitDelayMaxSec=5\n;InhibitDelayMaxSec=6\n", None),
            ("InhibitDelayMaxSec=10\n", None),
            ("[Foo]\nInhibitDelayMaxSec=11\n [Login]\n  InhibitDelayMaxSec =  12  \n", 12),
            ("[Login]\n[Foo]\nInhibitDelayMaxSec=11\n", None),
            ("[Login]\ninhibitdelaymaxsec=13\n", None),
            ("[Login]\nInhibitDelayMaxSec=\\\n 8\n", 8),
            ("[Login]\nInhibitDelayMaxSec=\\\n# comment\n 9\n", 9),
            ("", None),
        ],
    )
    def test_as_logind_reads_it(self, text, seconds):
        assert logind_rules.delay(text) == seconds

    def test_a_byte_order_mark_is_not_an_obstacle(self, root):
        path = root.put("etc/systemd/logind.conf", 14)
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())

        assert root.order() == [14]


class TestSpan:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("30", 30),
            ("5s", 5),
            ("1min 30s", 90),
            ("1min30s", 90),
            ("1 2", 3),
            ("1.5", 1.5),
            ("+7", 7),
            ("0", 0),
            ("500ms", 0.5),
            ("2 hours", 7200),
            ("1M", 2629800),
            ("1m", 60),
            ("infinity", inf),
        ],
    )
    def test_reads(self, text, seconds):
        assert logind_rules.parse_span(text) == seconds

    @pytest.mark.parametrize("text", ["", " ", "foo", "-3", "3 foo", "s", "infinity 3"])
    def test_refuses(self, text):
        assert logind_rules.parse_span(text) is None


class TestWinningName:
    def test_stays_if_it_wins(self):
        assert logind_files.winning_name([]) == "zz-holdfast.conf"
        assert logind_files.winning_name(["99-kubelet.conf", "unattended-upgrades-logind-maxdelay.conf"]) == (
            "zz-holdfast.conf"
        )

    def test_beats_what_sorts_after_it(self):
        assert logind_files.winning_name(["zzz.conf"]) == "zzz_holdfast.conf"

    def test_our_own_files_do_not_count(self):
        assert logind_files.winning_name(["zzz.conf", "zzz_holdfast.conf", "zz-holdfast.conf"]) == "zzz_holdfast.conf"
        assert logind_files.winning_name(["a.conf", "zzz_holdfast.conf"]) == "zz-holdfast.conf"

    def test_says_when_no_name_can_be_last(self):
        with pytest.raises(Refused, match="Rename") as caught:
            logind_files.winning_name(["z" * 250 + ".conf"])

        assert caught.value.fields == {"file": "z" * 250 + ".conf"}

    @given(st.sets(names, max_size=8))
    def test_is_read_after_all_others(self, others):
        assume(not any(logind_files.is_ours(name) for name in others))

        ours = logind_files.winning_name(others)

        assert max([ours, *others], key=os.fsencode) == ours
        assert ours not in others
        assert logind_files.is_ours(ours)
        assert logind_files.winning_name([*others, ours]) == ours

    def test_logind_reads_it_last(self, root):
        for name in ("99-kubelet.conf", "zzzz~.conf"):
            root.put(f"usr/lib/systemd/logind.conf.d/{name}", 30)
        root.put(f"etc/systemd/logind.conf.d/{logind_files.winning_name(root.read().drop_ins)}", 60)

        assert root.read().seconds == 60

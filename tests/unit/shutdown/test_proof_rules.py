# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node's next shutdown will be graceful, and if not, why."""

from __future__ import annotations

import dataclasses
import json
from math import inf

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.inhibitor_rules import Inhibitor, Logind
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown import proof_rules as proof
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.grace_rules import (
    BY_PRIORITY,
    CRITICAL,
    TOTAL,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.kubelet_rules import Kubelet, Settings
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.logind_rules import Candidate, LogindFiles

CONFIG, WINNER = "/var/lib/kubelet/config.yaml", "/etc/systemd/logind.conf.d/zz-holdfast.conf"
LOCK = Inhibitor("shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay", 0, 77)
BOOTED = 1_700_000_000.0


def values(**said):
    return Settings(said, dict.fromkeys(said, CONFIG), changed=1000.0, changed_file=CONFIG)


GOOD = proof.Snapshot(
    kubelet=Kubelet("kubelet.service", 77, 2000.0, CONFIG),
    settings=values(**{TOTAL: "60s", CRITICAL: "20s"}),
    effective=60.0,
    files=LogindFiles((Candidate(WINNER, 60.0),), ("zz-holdfast.conf",)),
    logind=Logind("boot", False, (LOCK,)),
)
OFF = dataclasses.replace(GOOD, settings=Settings())


def look(snapshot=GOOD, **changes):
    return proof.problems(dataclasses.replace(snapshot, **changes))


def codes(snapshot=GOOD, **changes):
    return [item.problem for item in look(snapshot, **changes)]


def in_effect(snapshot=GOOD, **changes):
    changed = dataclasses.replace(snapshot, **changes)
    return proof.in_effect(changed, proof.problems(changed))


def sets(seconds, file=WINNER):
    return LogindFiles((Candidate("/etc/systemd/logind.conf.d/99-kubelet.conf", 60.0), Candidate(file, seconds)))


def test_nothing_is_wrong():
    assert look() == []
    assert in_effect()
    assert GOOD.needed == 60


def test_off_is_no_problem_and_not_in_effect():
    assert look(OFF, logind=Logind("boot", False, ())) == []
    assert not in_effect(OFF)


class TestTime:
    def test_the_file_that_gives_too_little_is_named(self):
        (found,) = look(effective=30.0, files=sets(30.0, "/etc/systemd/logind.conf.d/zzz.conf"))

        assert found.problem == proof.NEEDS_MORE
        assert found.file == "/etc/systemd/logind.conf.d/zzz.conf"
        assert "needs 60 s" in found.message
        assert "30 s" in found.message
        assert "zzz.conf" in found.message
        assert not in_effect(effective=30.0, files=sets(30.0))

    def test_no_file_at_all(self):
        (found,) = look(effective=5.0, files=LogindFiles())

        assert (found.problem, found.file) == (proof.NEEDS_MORE, None)
        assert "no file sets" in found.message

    @pytest.mark.parametrize(("effective", "enough"), [(59.0, False), (60.0, True), (61.0, True), (inf, True)])
    def test_the_sum_has_to_fit(self, effective, enough):
        assert in_effect(effective=effective, files=sets(effective)) is enough

    def test_files_that_logind_has_not_read(self):
        found = look(effective=5.0)

        assert [item.problem for item in found] == [proof.NEEDS_MORE, proof.NOT_RELOADED]
        assert all("HUP" in item.message and item.file == WINNER for item in found)

    def test_files_that_say_less_than_logind_gives(self):
        assert codes(effective=60.0, files=sets(30.0)) == [proof.NOT_RELOADED]
        assert in_effect(effective=60.0, files=sets(30.0))

    def test_no_limit(self):
        assert codes(effective=inf, files=sets(inf)) == []
        assert codes(effective=60.0, files=sets(inf)) == [proof.NOT_RELOADED]


class TestDelayLock:
    @pytest.mark.parametrize(
        "changes",
        [{"pid": 78}, {"mode": "block"}, {"what": "sleep"}, {"what": "shutdown-x"}],
    )
    def test_only_that_of_the_kubelet_that_runs_counts(self, changes):
        other = dataclasses.replace(LOCK, **changes)

        assert codes(logind=Logind("boot", False, (other,))) == [proof.LOCK_MISSING]
        assert not in_effect(logind=Logind("boot", False, (other,)))

    def test_one_of_several_things_counts(self):
        assert codes(logind=Logind("boot", False, (dataclasses.replace(LOCK, what="sleep:shutdown"),))) == []

    def test_a_missing_lock_in_a_shutdown_is_no_problem(self):
        assert codes(logind=Logind("boot", True, ())) == []


class TestKubelet:
    def test_does_not_run(self):
        found = look(kubelet=Kubelet("kubelet.service", config=CONFIG), logind=Logind("boot", False, ()))

        assert [item.problem for item in found] == [proof.NOT_RUNNING]
        assert not in_effect(kubelet=Kubelet("kubelet.service", config=CONFIG))

    def test_is_part_of_another_program(self):
        assert codes(OFF, kubelet=dataclasses.replace(GOOD.kubelet, known=False)) == [proof.UNKNOWN]

    def test_knows_nothing_of_a_later_change(self):
        changed = dataclasses.replace(GOOD.settings, changed=2001.0)

        (found,) = look(settings=changed)

        assert (found.problem, found.file) == (proof.RESTART_NEEDED, CONFIG)
        assert not in_effect(settings=changed)
        assert codes(OFF, settings=Settings(changed=2001.0)) == [proof.RESTART_NEEDED]


class TestFiles:
    @pytest.mark.parametrize(
        ("said", "reason"),
        [
            ({TOTAL: "60s", BY_PRIORITY: [{"priority": 0, "shutdownGracePeriodSeconds": 60}]}, "both set"),
            ({TOTAL: "20s", CRITICAL: "60s"}, "longer than"),
            ({TOTAL: 60}, "not a string"),
        ],
    )
    def test_values_that_the_kubelet_refuses(self, said, reason):
        found = look(settings=values(**said))

        assert proof.REFUSED in [item.problem for item in found]
        assert any(reason in item.message and item.file == CONFIG for item in found)
        assert not in_effect(settings=values(**said))

    def test_a_file_that_the_kubelet_cannot_use(self):
        settings = dataclasses.replace(GOOD.settings, troubles=(("/x.conf", "can't be read: no"),))

        assert [(item.problem, item.file) for item in look(settings=settings)] == [(proof.UNREADABLE, "/x.conf")]
        assert not in_effect(settings=settings)


class TestLastShutdown:
    def state(self, started, ended):
        return proof.read_state(json.dumps({"startTime": started, "endTime": ended}), BOOTED)

    def test_finished(self):
        last = self.state("2023-11-14T22:00:00.787995461Z", "2023-11-14T22:00:31Z")

        assert last.to_data() == {
            "started": "2023-11-14T22:00:00Z",
            "ended": "2023-11-14T22:00:31Z",
            "finished": True,
            "this_boot": False,
        }
        assert codes(last=last) == []

    def test_not_finished(self):
        last = self.state("2023-11-14T22:00:00+00:00", "0001-01-01T00:00:00Z")

        assert last.to_data()["ended"] is None
        assert codes(last=last) == [proof.UNFINISHED]
        assert in_effect(last=last)

    def test_in_progress_is_no_problem(self):
        last = self.state("2023-11-14T23:00:00Z", "0001-01-01T00:00:00Z")

        assert last.this_boot
        assert codes(last=last, logind=Logind("boot", True, (LOCK,))) == []
        assert codes(last=last) == [proof.UNFINISHED]

    def test_none_yet(self):
        assert self.state("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z") is None
        assert proof.read_state("{}", BOOTED) is None

    @pytest.mark.parametrize("text", ["", "[]", "{", '{"startTime": "soon"}'])
    def test_nonsense(self, text):
        with pytest.raises(ValueError, match=r".+"):
            proof.read_state(text, BOOTED)

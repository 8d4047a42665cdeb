# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signs of life: what a Lease tells of a run, and what keeps it up."""

from __future__ import annotations

import threading
import time
from collections import Counter
from datetime import datetime, timedelta, timezone

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import cluster as api_cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import NotFound, Outdated
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import to_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import run_rules, runs

MADE = "2026-05-04T03:02:01Z"
RENEWED = "2026-05-04T04:02:01.000000Z"
NOW = datetime(2026, 5, 4, 4, 2, 31, tzinfo=timezone.utc)
PATIENCE = 600


def lease(**spec):
    return {"metadata": {"name": "run.4711", "creationTimestamp": MADE}, "spec": {"holderIdentity": "me", **spec}}


def test_a_run_is_as_old_as_its_last_sign_of_life():
    found = run_rules.read(lease(renewTime=RENEWED, acquireTime=RENEWED))

    assert (found.age(NOW), found.alive(NOW), found.began) == (30, True, RENEWED)


@pytest.mark.parametrize("absurd", ["0000-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z", "soon", ""])
def test_an_absurd_sign_of_life_is_that_of_the_beginning(absurd):
    found = run_rules.read(lease(renewTime=absurd, acquireTime=absurd))

    assert (found.renewed, found.began) == (MADE, MADE)
    assert not found.alive(NOW)


@pytest.mark.parametrize(("ahead", "alive"), [(60, True), (90, False), (100, False), (10**9, False)])
def test_a_sign_of_life_of_the_future_is_not_believed(ahead, alive):
    found = run_rules.read(lease(renewTime=to_text(NOW + timedelta(seconds=ahead))))

    assert found.alive(NOW) is alive


class Away:
    """An API server that was unavailable when the first sign of life was sent."""

    def __init__(self):
        self.seconds, self.sent = 0, []

    def now(self):
        self.seconds += 20
        return NOW + timedelta(seconds=self.seconds)

    def merge(self, _path, body, *, patient=True, once=False):
        assert once
        self.sent.append(body["spec"]["renewTime"])
        if len(self.sent) == 1:
            raise Outdated("away", patience=0)
        return body


def test_each_try_has_the_time_of_then():
    cluster = Away()
    runs.touch(cluster, "4711")

    assert cluster.sent == [to_text(NOW + timedelta(seconds=seconds)) for seconds in (20, 40)]


class Gone:
    """An API server from which others take the Lease away again and again."""

    dry_run = False

    def __init__(self, on_touch=None, on_create=None):
        self.calls = {"touch": on_touch, "create": on_create}
        self.made, self.counts, self.touched = [], Counter(), threading.Semaphore(0)

    def now(self):
        return NOW

    def _called(self, what):
        self.counts[what] += 1
        if self.counts[what] == 2 and self.calls[what]:
            self.calls[what]()

    def merge(self, _path, _body, *, patient=True, once=False):
        self._called("touch")
        self.touched.release()
        raise NotFound("gone")

    def find(self, _path):
        return {}

    def create(self, path, _body, *, patient):
        self._called("create")
        self.made.append(path)
        return {}


@pytest.fixture
def _often(monkeypatch):
    monkeypatch.setattr(runs, "RENEW_EVERY", 0.001)


@pytest.mark.usefixtures("_often")
class TestLeaseThatIsGone:
    def test_a_run_that_works_creates_it_again(self):
        cluster = Gone()
        with runs.heartbeat(cluster, "4711"):
            # The run was paused, and others deleted its Lease.
            for _time in range(4):
                assert cluster.touched.acquire(timeout=PATIENCE)

        assert len(cluster.made) > 1

    def test_a_sign_of_life_that_is_late_does_not_create_it(self):
        late, ended = threading.Event(), threading.Event()
        cluster = Gone(on_touch=lambda: late.set() or ended.wait(PATIENCE))
        with runs.heartbeat(cluster, "4711"):
            assert late.wait(PATIENCE)
        before = len(cluster.made)
        ended.set()
        for thread in threading.enumerate():
            if thread.name == "heartbeat 4711":
                thread.join(PATIENCE)

        assert len(cluster.made) == before == 1

    def test_the_end_waits_until_it_is_created(self):
        begun = threading.Event()
        cluster = Gone(on_create=lambda: begun.set() or time.sleep(0.1))
        with runs.heartbeat(cluster, "4711"):
            assert begun.wait(PATIENCE)

        assert len(cluster.made) == cluster.counts["create"] > 1


def test_two_signs_of_life_that_hang_leave_time_for_a_third():
    hangs = sum(api_cluster._SHORT_TIMEOUT)

    assert 2 * (runs.RENEW_EVERY + hangs) + runs.RENEW_EVERY < run_rules.DEAD_AFTER


def test_a_lease_names_its_run():
    named = lease(renewTime=RENEWED)
    named["metadata"]["annotations"] = {"holdfast.dev/run": "Bob@host/1"}
    ended = run_rules.read(lease(holderIdentity=""))

    assert (run_rules.read(named).id, run_rules.read(named).holder, run_rules.read(named).ended) == (
        "Bob@host/1",
        "me",
        False,
    )
    assert (ended.id, ended.holder, ended.ended) == ("4711", "", True)


def test_a_run_is_silent_if_it_gave_no_sign_of_life_since_this_one_began():
    def at(seconds):
        return to_text(NOW - timedelta(seconds=seconds))

    known = [
        run_rules.Run("mine", "me", at(0), began=at(10)),
        run_rules.Run("before", "me", at(11), began=at(60)),
        run_rules.Run("then", "me", at(10), began=at(60)),
        run_rules.Run("since", "me", at(9), began=at(60)),
        run_rules.Run("dead", "me", at(90), began=at(95)),
    ]

    assert run_rules.silent_since("mine", known, NOW) == ["before", "then"]
    assert run_rules.silent_since("unknown", known, NOW) == []

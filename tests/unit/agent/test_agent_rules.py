# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Leases hold, what the condition, the Event and the metrics say, and whose clock counts."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_agent import alerts, metrics
from holdfast_agent.bounds import cut
from holdfast_agent.clock import ServerClock
from holdfast_agent.condition import ALLOWED, Condition, condition_for, of_node, patch_for
from holdfast_agent.hold_rules import forms
from holdfast_agent.holds import Hold, hold_of, key_of, ordered
from holdfast_agent.plan import Facts, wanted_condition

THEN = "2026-01-02T03:04:05.000000Z"
NOW = datetime(2026, 1, 2, 4, 4, 5, tzinfo=timezone.utc)
ONE = Hold("default", "reboot-example", THEN)


def lease(namespace="default", **spec):
    return {"metadata": {"name": "worker-1", "namespace": namespace}, "spec": spec}


def test_holder_and_time_make_a_hold_and_all_else_is_ignored():
    whole = lease(
        holderIdentity="me", acquireTime=THEN, renewTime="2020-01-01T00:00:00.000000Z", leaseDurationSeconds=1
    )
    assert hold_of(whole) == Hold("default", "me", THEN)


@pytest.mark.parametrize(
    "found",
    [
        lease(),
        lease(holderIdentity="me"),
        lease(acquireTime=THEN),
        lease(holderIdentity="", acquireTime=THEN),
        lease(holderIdentity=None, acquireTime=THEN),
        lease("kube-node-lease", holderIdentity="me", acquireTime=THEN),
        lease("holdfast", holderIdentity="me", acquireTime=THEN),
        {"metadata": {"name": "worker-1", "namespace": "default"}},
    ],
)
def test_what_does_not_hold(found):
    assert hold_of(found) is None


def test_namespaces_say_who_may_hold():
    found = lease("apps", holderIdentity="me", acquireTime=THEN)
    assert hold_of(found, ("apps", "default"))
    assert hold_of(found, ("default",)) is None
    assert hold_of(lease("kube-node-lease", holderIdentity="me", acquireTime=THEN), ("kube-node-lease",)) is None


@given(st.text(), st.text())
def test_a_key_can_name_a_descriptor(namespace, holder):
    key = key_of(namespace, holder)
    assert len(key) < 255
    assert key.isascii()
    assert ":" not in key
    assert key != key_of(namespace, holder + "x")


@given(st.text(alphabet=st.characters(), min_size=1))
def test_whatever_a_holder_is_called_dbus_takes_it(holder):
    why = Hold("default", holder, THEN).why
    # Anything else comes back from logind changed once it was restarted.
    assert why.isascii()
    assert why.isprintable()
    assert unquote(why, errors="surrogatepass") == f"default/{holder}"
    assert hold_of(lease(holderIdentity=holder, acquireTime=THEN)).holder == cut(holder)


def test_what_holds_without_a_lock_is_a_failure():
    found = condition_for([ONE], [], ["no lock"])

    assert (found.status, found.reason) == ("False", "InhibitorFailed")
    assert "no lock" in found.message


def test_the_message_without_a_hold():
    assert condition_for([], []) == ALLOWED
    assert Condition("False", "KubeletShutdownAllowed", "kubelet allows shutdown node shutdown") == ALLOWED


def test_the_message_of_one_hold():
    found = condition_for([ONE], [ONE.key])
    assert found == Condition("True", "default/reboot-example", "kubelet inhibited node shutdown")


def test_several_are_named_oldest_first_and_a_comma_in_a_name_is_escaped():
    young = Hold("b", "x,y", "2026-01-02T03:04:07.000000Z")
    old = Hold("z", "old", "2026-01-02T03:04:04.999999Z")
    found = condition_for([young, ONE, old], [young.key, ONE.key, old.key])
    assert found.reason == "z/old,default/reboot-example,b/x%2Cy"


@given(st.lists(st.builds(Hold, st.sampled_from("abc"), st.text(min_size=1), st.sampled_from([THEN, "2026"]))))
def test_nothing_is_named_that_is_not_secured(holds):
    some = {hold.key for hold in holds[::2]}
    found = condition_for(holds, some)
    if found.status == "True":
        assert found.reason == ",".join(hold.entry for hold in ordered(holds) if hold.key in some)
    else:
        assert not some


def test_a_holder_of_any_length_is_named_shortly_everywhere():
    one, other = (hold_of(lease(holderIdentity="x" * 220_000 + end, acquireTime=THEN)) for end in "ab")
    found = condition_for([one, other], [one.key, other.key])
    assert len(found.reason) < 700
    assert len(set(found.reason.split(","))) == 2
    assert one.why != other.why
    assert len(one.why) < 300
    facts = Facts("strict", holds=(one, other), failed_locks={one.key: "no " * 1000})
    assert len(metrics.text(facts, metrics.Moment(NOW, 1, True, NOW))) < 5000
    assert len(wanted_condition(facts).message) < 1000


def test_thousands_of_holds_are_all_confirmed_in_bounds():
    many = [hold_of(lease(f"tenant-{number}", holderIdentity="x" * 300, acquireTime=THEN)) for number in range(3000)]
    found = condition_for(many, [hold.key for hold in many])
    assert len(found.reason) < 120_000
    named = set(found.reason.split(","))
    assert all(named & forms(hold.entry) for hold in many)
    assert "of 3000 holds are named by a hash" in found.message
    text = metrics.text(Facts("strict", holds=tuple(many)), metrics.Moment(NOW, 1, True, NOW))
    assert "holdfast_agent_holds 3000\n" in text
    assert "holdfast_agent_holds_left_out 2750\n" in text
    facts = Facts("strict", holds=tuple(many), failed_locks={hold.key: "too many" for hold in many})
    assert "and 2995 more" in wanted_condition(facts).message
    assert "and 2990 more" in condition_for(many, [], observe=True).message


@pytest.mark.parametrize("absurd", ["0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "yesterday"])
def test_an_absurd_time_counts_as_now_and_not_as_the_oldest(absurd):
    odd = Hold("a", "odd", absurd)
    assert alerts.held_seconds(odd, NOW) == 0
    assert alerts.overdue([odd], NOW, 1) == []
    assert ordered([odd, ONE]) == (ONE, odd)
    assert metrics.text(Facts("strict", holds=(odd,)), metrics.Moment(NOW, 1, True, NOW))


def test_an_agent_that_only_observes_confirms_nothing():
    found = condition_for([ONE], [], observe=True)
    assert (found.status, found.reason) == ("False", "ObserveOnly")
    assert "default/reboot-example" in found.message
    assert condition_for([], [], observe=True) == ALLOWED


def test_the_patch_has_this_condition_alone_and_says_since_when():
    before = {"type": "ShutdownInhibited", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    (same,) = patch_for(ALLOWED, before, "2026-01-02T00:00:00Z")["status"]["conditions"]
    assert same["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert same["lastHeartbeatTime"] == "2026-01-02T00:00:00Z"
    (other,) = patch_for(Condition("True", "a/b", "c"), before, "2026-01-02T00:00:00Z")["status"]["conditions"]
    assert other["lastTransitionTime"] == "2026-01-02T00:00:00Z"
    (first,) = patch_for(ALLOWED, None, "2026-01-02T00:00:00Z")["status"]["conditions"]
    assert first["lastTransitionTime"] == "2026-01-02T00:00:00Z"
    assert of_node({"status": {"conditions": [{"type": "Ready"}, before]}}) == before
    assert of_node({"metadata": {}}) is None


def test_overdue_by_the_time_of_acquiring():
    assert alerts.held_seconds(ONE, NOW) == 3600
    assert alerts.overdue([ONE], NOW, 3599) == [ONE]
    assert alerts.overdue([ONE], NOW, 3600) == []
    assert alerts.overdue([ONE], NOW, 0) == []
    assert alerts.next_due([ONE], NOW, 3700) == 100
    assert alerts.next_due([ONE], NOW, 3500) is None
    assert alerts.next_due([ONE], NOW, 0) is None
    ahead = Hold("default", "fast clock", "2027-01-01T00:00:00.000000Z")
    assert alerts.held_seconds(ahead, NOW) == 0
    assert alerts.held_seconds(Hold("default", "x", "yesterday"), NOW) == 0


def test_one_event_for_one_acquisition():
    again = Hold(ONE.namespace, ONE.holder, "2026-01-03T00:00:00.000000Z")
    first, same, other = (alerts.event(hold, "worker-1", "now", 5)["metadata"]["name"] for hold in (ONE, ONE, again))
    assert first == same
    assert first != other
    event = alerts.event(ONE, "worker-1", "2026-01-02T04:04:05Z", 3600)
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "ShutdownInhibitedTooLong", 1)
    for part in ("default/reboot-example", THEN, "3600 s", "default/worker-1"):
        assert part in event["message"]


def test_metrics_say_what_holds_and_for_how_long():
    odd = Hold("default", 'a "b"\\\n', "2026-01-02T04:04:00.000000Z")
    facts = Facts("strict", holds=(ONE, odd), locks=frozenset({ONE.key}), masked=frozenset({"reboot.target"}))
    facts.failed_locks["x"] = "no"
    text = metrics.text(facts, metrics.Moment(NOW, 3000, True, NOW - timedelta(seconds=5)))
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert "holdfast_agent_holds 2" in lines
    assert 'holdfast_agent_hold_held_seconds{namespace="default",holder="reboot-example"} 3600' in lines
    assert 'holdfast_agent_hold_held_seconds{namespace="default",holder="a \\"b\\"\\\\\\n"} 5' in lines
    assert 'holdfast_agent_hold_overdue{namespace="default",holder="reboot-example"} 1' in lines
    assert "holdfast_agent_locks 1" in lines
    assert "holdfast_agent_failed_locks 1" in lines
    assert "holdfast_agent_masked_units 1" in lines
    assert "holdfast_agent_api_up 1" in lines
    assert f"holdfast_agent_last_sync_timestamp_seconds {NOW.timestamp() - 5:.0f}" in lines
    assert text.endswith("\n")


def test_a_node_whose_clock_is_a_day_wrong_says_the_server_s_time():
    monotonic = [100.0]
    clock = ServerClock(lambda: monotonic[0], lambda: 0.0)
    assert clock.now().year == 1970
    clock.observe("Fri, 02 Jan 2026 03:04:05 GMT", 100.0)
    monotonic[0] += 10
    assert clock.text() == "2026-01-02T03:04:15Z"
    clock.observe(None, 100.0)
    clock.observe("nonsense", 100.0)
    assert clock.text() == "2026-01-02T03:04:15Z"


def test_a_server_whose_clock_is_set_is_followed():
    clock = ServerClock(lambda: 100.0, lambda: 0.0)
    clock.observe("Fri, 02 Jan 2026 03:04:05 GMT", 100.0)
    clock.observe("Fri, 02 Jan 2026 03:04:04 GMT", 100.0)
    assert clock.text() == "2026-01-02T03:04:05Z", "a second less is what the header drops"
    clock.observe("Fri, 02 Jan 2026 02:04:05 GMT", 100.0)
    assert clock.text() == "2026-01-02T02:04:05Z"


def test_answers_that_come_late_set_no_clock_back():
    monotonic = [100.0]
    clock = ServerClock(lambda: monotonic[0], lambda: 0.0)
    clock.observe("Fri, 02 Jan 2026 03:04:05 GMT", 100.0)
    monotonic[0] += 50
    clock.observe("Fri, 02 Jan 2026 03:04:05 GMT", 100.0)
    clock.observe("Fri, 02 Jan 2026 03:04:06 GMT", 101.0)
    assert clock.text() == "2026-01-02T03:04:55Z"

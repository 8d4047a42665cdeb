# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When metal3 acts on a host, and when a host is believed to be off."""

from __future__ import annotations

import copy
import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import host_rules as rules

KEY = "reboot.metal3.io/holdfast"
RECORDS = "holdfast.dev/reboot-keys"
OLDER, BEFORE = "2026-05-04T09:00:00Z", "2026-05-04T09:59:00Z"
SINCE, AFTER = "2026-05-04T10:00:00.700000Z", "2026-05-04T10:00:00Z"


def host(*, powered_on=True, last_updated=BEFORE, annotations=None, spec=None, **status):
    return {
        "metadata": {"namespace": "metal", "name": "h", "annotations": dict(annotations or {})},
        "spec": {"online": True, **(spec or {})},
        "status": {
            "poweredOn": powered_on,
            "operationalStatus": "OK",
            "errorType": "",
            "errorCount": 0,
            "lastUpdated": last_updated,
            "provisioning": {"state": "provisioned"},
            **status,
        },
    }


def keyed(before, **now):
    """The host, to which our key was written when it was as before, and which changed since."""
    written = rules.to_write(before, since=SINCE, node="n", boot_id="b", run="r", overridden=())
    found = copy.deepcopy(before)
    found["metadata"]["annotations"] |= {KEY: "{}", RECORDS: None}
    found["metadata"]["annotations"][RECORDS] = rules.records_with(found, "holdfast", written)
    found["status"] |= now
    return found


def off(found):
    return rules.off(found, "holdfast")


class TestWhyNot:
    def test_a_sound_host(self):
        assert rules.why_not(host()) == ""
        assert rules.why_not(host(provisioning={"state": "externally provisioned"})) == ""

    @pytest.mark.parametrize(
        ("found", "why"),
        [
            (host(annotations={"baremetalhost.metal3.io/paused": ""}), "paused"),
            (host(annotations={"baremetalhost.metal3.io/detached": "true"}), "detached"),
            (host(operationalStatus="detached"), "detached"),
            (host(spec={"online": False}), "online"),
            (host(spec={"online": None}), "online"),
            (host(spec={"disablePowerOff": True}), "disablePowerOff"),
            (host(provisioning={"state": "available"}), '"available"'),
            (host(provisioning={"state": "deprovisioning"}), '"deprovisioning"'),
            (host(provisioning={}), "not known"),
            ({"metadata": {"namespace": "m", "name": "h"}, "spec": {"online": True}}, "not known"),
        ],
    )
    def test_a_host_that_metal3_does_not_act_on(self, found, why):
        assert why in rules.why_not(found)

    def test_being_deleted(self):
        found = host()
        found["metadata"]["deletionTimestamp"] = AFTER
        assert "deleted" in rules.why_not(found)

    def test_all_reasons_are_named(self):
        found = host(annotations={"baremetalhost.metal3.io/paused": ""}, spec={"online": False})
        assert "paused" in rules.why_not(found)
        assert "online" in rules.why_not(found)

    def test_an_error_is_none(self):
        found = host(operationalStatus="error", errorType="power management error", errorMessage="no answer")
        assert rules.why_not(found) == ""
        assert rules.trouble(found) == "power management error: no answer"


class TestOff:
    def test_went_from_true_to_false(self):
        found = off(keyed(host(), poweredOn=False, lastUpdated=AFTER))
        assert (found.proven, found.why) == (True, rules.FELL)

    def test_still_on(self):
        found = off(keyed(host()))
        assert not found.proven
        assert found.datable
        assert found.why == "its status shows poweredOn: true"

    @pytest.mark.parametrize("written", [BEFORE, AFTER, "2026-05-04T10:05:00Z", "", None, "yesterday"])
    def test_off_before(self, written):
        """metal3 saves a status without having read the power, so a newer one dates nothing."""
        found = off(keyed(host(powered_on=False), lastUpdated=written))
        assert not found.proven
        assert not found.datable
        assert "off before" in found.why
        assert "error" not in found.why

    def test_off_before_and_an_error_that_is_gone_now(self):
        sick = {"operationalStatus": "error", "errorType": "registration error"}
        assert not off(keyed(host(powered_on=False, **sick), lastUpdated=AFTER)).datable
        well = {"operationalStatus": "OK", "errorType": "", "lastUpdated": AFTER}
        assert not off(keyed(host(powered_on=False, **sick), **well)).proven

    def test_off_before_and_metal3_could_not_switch_it_on(self):
        dead = {"errorType": "power management error", "errorMessage": "PowerOn operation failed"}
        found = off(keyed(host(powered_on=False, **dead)))
        assert not found.datable, "the wait would never end"
        assert "off before" in found.why
        assert "PowerOn operation failed" in found.why

    @pytest.mark.parametrize("power", [None, "false", 0])
    def test_power_is_unknown(self, power):
        assert not off(keyed(host(), poweredOn=power)).proven
        assert "has no poweredOn" in off(keyed(host(), poweredOn=power)).why

    def test_without_our_key(self):
        found = keyed(host(), poweredOn=False)
        del found["metadata"]["annotations"][KEY]
        assert "not on it" in off(found).why

    def test_a_key_of_others_is_not_ours(self):
        found = keyed(host(), poweredOn=False)
        found["metadata"]["annotations"]["reboot.metal3.io/other"] = found["metadata"]["annotations"].pop(KEY)
        assert not off(found).proven
        assert not rules.off(found, "other").proven

    @pytest.mark.parametrize("record", [None, "", "no json", "[]", "{}", '{"holdfast": 7}', '{"holdfast": {"a": 1}}'])
    def test_an_invalid_record_proves_nothing(self, record):
        found = keyed(host(), poweredOn=False)
        found["metadata"]["annotations"][RECORDS] = record
        assert not off(found).proven
        assert not off(found).datable, "the wait would never end"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("powered_on", "false"),
            ("powered_on", "true"),
            ("powered_on", 1),
            ("powered_on", None),
            ("since", 5),
            ("since", ""),
            ("since", "yesterday"),
            ("consumer", 5),
            ("used_by", 5),
            ("node", 5),
            ("boot_id", []),
            ("run", {}),
            ("overridden", "ns/me"),
            ("overridden", [5]),
            ("overridden", None),
            ("more", ""),
        ],
    )
    def test_a_record_with_a_wrong_type_proves_nothing(self, name, value):
        found = keyed(host(), poweredOn=False, lastUpdated=AFTER)
        kept = json.loads(found["metadata"]["annotations"][RECORDS])
        assert off(found).proven
        kept["holdfast"][name] = value
        found["metadata"]["annotations"][RECORDS] = json.dumps(kept)
        assert rules.written_of(found, "holdfast") is None
        assert not off(found).proven

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just(SINCE),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["since", "powered_on", "consumer", "node", "holdfast"]), inner)
            ),
            max_leaves=10,
        )
    )
    def test_any_record_is_read(self, content):
        found = keyed(host(powered_on=False), lastUpdated=AFTER)
        for kept in (content, {"holdfast": content}):
            found["metadata"]["annotations"][RECORDS] = json.dumps(kept)
            written = rules.written_of(found, "holdfast")
            assert written is None or isinstance(written.powered_on, bool)
            assert written is not None or not off(found).proven

    @pytest.mark.parametrize(
        "how",
        [
            {"errorType": "power management error"},
            {"operationalStatus": "error"},
            {"operationalStatus": "delayed"},
            {"provisioning": {"state": "deprovisioning"}},
        ],
    )
    def test_a_status_that_may_be_old(self, how):
        assert not off(keyed(host(), poweredOn=False, lastUpdated=AFTER, **how)).proven

    @pytest.mark.parametrize("name", [rules.PAUSED, rules.DETACHED])
    def test_a_host_that_metal3_does_not_read(self, name):
        found = keyed(host(), poweredOn=False)
        found["metadata"]["annotations"][name] = ""
        assert not off(found).proven

    def test_a_host_that_is_never_switched_off(self):
        found = keyed(host(), poweredOn=False)
        found["spec"]["disablePowerOff"] = True
        assert not off(found).proven

    def test_a_host_whose_online_became_false_is_off(self):
        found = keyed(host(), poweredOn=False)
        found["spec"]["online"] = False
        assert off(found).proven

    @pytest.mark.parametrize("signs", list(itertools.product([True, False], repeat=4)), ids=str)
    @pytest.mark.parametrize("now", list(itertools.product([True, False], [BEFORE, None, OLDER, AFTER])), ids=str)
    @pytest.mark.parametrize("before", list(itertools.product([True, False], [BEFORE, None])), ids=str)
    def test_never_without_all_of_it(self, before, now, signs):
        key, paused, error, provisioned = signs
        found = keyed(host(powered_on=before[0], last_updated=before[1]), poweredOn=now[0], lastUpdated=now[1])
        if not key:
            del found["metadata"]["annotations"][KEY]
        if paused:
            found["metadata"]["annotations"][rules.PAUSED] = ""
        if error:
            found["status"]["errorType"] = "power management error"
        if not provisioned:
            found["status"]["provisioning"]["state"] = "available"
        sure = key and not paused and not error and provisioned and now[0] is False
        assert off(found).proven == (sure and before[0])


class TestFormer:
    """A key from an earlier use of the host."""

    WRITTEN = rules.Written(SINCE, powered_on=True, node="n", consumer="one", used_by="metal/m-1")

    @pytest.mark.parametrize(
        ("found", "consumer", "former"),
        [
            (host(), "one", False),
            (host(), "", False),
            (host(), "other", True),
            (host(provisioning={"state": "externally provisioned"}), "one", False),
            (host(provisioning={"state": "deprovisioning"}), "one", True),
            (host(provisioning={"state": "available"}), "", True),
            (host(provisioning={"state": "provisioning"}), "other", True),
            (host(provisioning={}), "one", False),
            (host(provisioning={"state": "registering"}), "one", False),
            (host(provisioning={"state": "unmanaged"}), "", False),
            (host(provisioning={"state": "registering"}), "other", True),
        ],
    )
    def test_former(self, found, consumer, former):
        found["spec"]["consumerRef"] = {"name": "m-1" if consumer in ("", "one") else "m-2"}
        assert bool(rules.former_use(found, self.WRITTEN, consumer)) is former
        assert not rules.unclear_use(found, self.WRITTEN, consumer)

    @pytest.mark.parametrize("used_by", ["metal/m-1", ""])
    def test_a_consumer_that_was_moved_or_restored_is_for_a_person(self, used_by):
        """It has its old name and another UID. Earlier versions did not record its name."""
        found, written = host(), replace(self.WRITTEN, used_by=used_by)
        found["spec"]["consumerRef"] = {"namespace": "metal", "name": "m-1"}
        assert rules.former_use(found, written, "other") == ""
        assert "m-1 has another UID" in rules.unclear_use(found, written, "other")

    def test_the_name_of_the_consumer_is_recorded(self):
        found = host(annotations={"reboot.metal3.io/ours": ""})
        found["spec"]["consumerRef"] = {"namespace": "capm3", "name": "m-1"}
        written = rules.to_write(found, since=SINCE, node="n", boot_id="b", run="r", consumer="one", overridden=())
        found["metadata"]["annotations"][RECORDS] = rules.records_with(found, "ours", written)
        assert rules.written_of(found, "ours").used_by == "capm3/m-1"

    def test_of_a_consumer_that_was_not_known(self):
        assert not rules.former_use(host(), rules.Written(SINCE, powered_on=True), "other")


class TestReboot:
    def test_a_host_that_is_on(self):
        assert rules.why_no_reboot(host()) == ""

    def test_a_host_that_is_off(self):
        assert "without a reboot" in rules.why_no_reboot(host(powered_on=False))

    def test_a_host_that_others_keep_off(self):
        assert "reboot.metal3.io/x" in rules.why_no_reboot(host(annotations={"reboot.metal3.io/x": ""}))


def test_records_of_other_keys_stay_and_those_of_removed_keys_go():
    found = host(annotations={"reboot.metal3.io/a": "", "reboot.metal3.io/b": ""})
    first = rules.to_write(found, since=SINCE, node="n", boot_id="b", run="1", overridden=("ns/me",))
    second = rules.to_write(found, since=SINCE, node="n", boot_id="b", run="2", overridden=())
    for key, written in (("a", first), ("b", second), ("", second)):
        found["metadata"]["annotations"][RECORDS] = rules.records_with(found, key, written)
    assert [rules.written_of(found, key) for key in ("a", "b", "")] == [first, second, second]

    del found["metadata"]["annotations"]["reboot.metal3.io/b"]
    kept = json.loads(rules.records_with(found, "a", None))
    assert set(kept) == {""}, "b is gone, and a single reboot may be under way"
    found["metadata"]["annotations"][RECORDS] = json.dumps({"a": kept[""]})
    assert rules.records_with(found, "a", None) is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("metal3://metal/h/machine", ["metal", "h", "machine"]),
        ("metal3://1f2e", ["1f2e"]),
        ("metal3:///metal//h", ["metal", "h"]),
        ("metal3://", []),
        ("aws:///eu/i-1", None),
        ("", None),
    ],
)
def test_the_provider_id_of_a_node(text, parts):
    assert rules.provider_id({"spec": {"providerID": text}}) == (text, parts)


@pytest.mark.parametrize("node", [{}, {"spec": {}}, {"spec": None}])
def test_a_node_without_a_provider_id(node):
    assert rules.provider_id(node) == ("", None)


def test_a_record_with_no_more_than_the_needed_fields_is_read():
    kept = {"holdfast": {"since": SINCE, "powered_on": True}, "": {"powered_on": True}}
    found = host(annotations={RECORDS: json.dumps(kept)})

    assert rules.written_of(found, "holdfast") == rules.Written(SINCE, powered_on=True)
    assert rules.written_of(found, "") is None


def test_our_keys_are_those_with_a_record():
    found = host(annotations={"reboot.metal3.io/ours": "", "reboot.metal3.io/theirs": "", "reboot.metal3.io": ""})
    written = rules.to_write(found, since=SINCE, node="n", boot_id="b", run="r", overridden=())
    for key in ("ours", ""):
        found["metadata"]["annotations"][RECORDS] = rules.records_with(found, key, written)

    assert rules.keys_written(found) == {"ours": written}
    assert rules.keys_written({"metadata": {}}) == {}


def test_a_status_that_is_not_there_says_nothing():
    bare = {"metadata": {"namespace": "metal", "name": "h"}}
    full = host(errorCount=3, last_updated=AFTER)

    assert rules.full_name(bare) == "metal/h"
    assert (rules.error_count(bare), rules.last_updated(bare), rules.state(bare)) == (0, "", "")
    assert (rules.error_count(full), rules.last_updated(full), rules.state(full)) == (3, AFTER, "provisioned")
    assert (rules.powered_on(bare), rules.online(bare), rules.trouble(bare)) == (None, False, "")

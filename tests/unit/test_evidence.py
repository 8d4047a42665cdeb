# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which evidence is good, and what is kept of it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils import _evidence as rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._clock import to_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._errors import HoldfastError, InvalidInput, Refused

NOW = datetime(2026, 5, 4, 10, 0, 0, tzinfo=timezone.utc)
GOOD = {
    "BareMetalHost": {"host": "h", "namespace": "metal", "key": "k", "at": to_text(NOW)},
    "Redfish": {"uri": "https://bmc/redfish/v1/Systems/1"},
    "Command": {"command": "is-off n"},
    "Attestation": {"by": "Ada", "statement": "I pulled the cords.", "at": to_text(NOW)},
}


def check(kind, now=NOW, **more):
    rules.check({"kind": kind, **GOOD[kind], **more}, node="n", boot_id="b", now=now)


def code(kind, **more):
    with pytest.raises(Refused) as refused:
        check(kind, **more)
    return refused.value.fields["why"]


@pytest.mark.parametrize("kind", rules.KINDS)
class TestAll:
    def test_good(self, kind):
        check(kind)
        check(kind, node="n", boot_id="b", at=to_text(NOW - timedelta(seconds=299)))
        check(kind, node="", boot_id="")

    def test_old(self, kind):
        assert code(kind, at=to_text(NOW - timedelta(seconds=301))) == "old"

    def test_from_the_future(self, kind):
        check(kind, at=to_text(NOW + timedelta(seconds=4)))
        assert code(kind, at=to_text(NOW + timedelta(seconds=6))) == "old"

    def test_no_time(self, kind):
        with pytest.raises(InvalidInput, match="no time"):
            check(kind, at="this morning")

    def test_of_another_node(self, kind):
        assert code(kind, node="m") == "other_host"

    def test_of_another_boot(self, kind):
        assert code(kind, boot_id="a") == "new_boot"


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in rules.KINDS for name in GOOD[kind]])
def test_incomplete(kind, name):
    for nothing in (None, ""):
        with pytest.raises(InvalidInput, match=name):
            check(kind, **{name: nothing})


def test_a_command_as_a_list():
    check("Command", command=None, argv=["is-off", "n"])


@given(
    st.sampled_from(rules.KINDS), st.floats(-400, 400), st.sampled_from(["", "n", "m"]), st.sampled_from(["", "b", "a"])
)
def test_good_is_only_what_is_fresh_and_of_this_node_and_boot(kind, age, node, boot_id):
    good = -rules.AHEAD <= round(age, 6) <= rules.FRESH and node != "m" and boot_id != "a"
    try:
        check(kind, at=to_text(NOW - timedelta(seconds=age)), node=node, boot_id=boot_id)
    except HoldfastError:
        # Microseconds are cut off.
        assert not good or abs(age - rules.FRESH) < 1e-5 or abs(age + rules.AHEAD) < 1e-5
    else:
        assert good or abs(age - rules.FRESH) < 1e-5 or abs(age + rules.AHEAD) < 1e-5


@pytest.mark.parametrize(
    "output", ["off", "OFF\n", "Chassis Power is off\n", "Status: OFF", "power=off", "some words\noff\n\n", "n is off."]
)
def test_a_command_that_says_off(output):
    assert rules.off_by_command(0, output)


@pytest.mark.parametrize("status", [1, 2, 124, -9])
def test_and_fails(status):
    assert not rules.off_by_command(status, "off")


@pytest.mark.parametrize(
    "output",
    [
        "",
        "on",
        "Chassis Power is on",
        "off\non",
        "n is not off",
        "not off",
        "office",
        "switch-off",
        "powering off",
        "{}",
    ],
)
def test_a_command_that_does_not(output):
    assert not rules.off_by_command(0, output)


def test_no_credentials_and_no_commands_are_kept():
    for kind, given_ in GOOD.items():
        secret = {"username": "u", "password": "hush", "argv": ["hush"], "command": "--password hush"}
        kept = rules.record(
            {"kind": kind, **secret, **given_, "command": "hush"},
            {"seen": "x"},
            node="n",
            boot_id="b",
            looked_at="t",
            run="r",
        )
        assert "hush" not in str(kept)
        assert (kept["kind"], kept["node"], kept["boot_id"], kept["run"], kept["looked_at"]) == (
            kind,
            "n",
            "b",
            "r",
            "t",
        )
        assert kept["at"]


def test_the_end_of_a_long_output_is_kept():
    assert rules.kept_output(" off \n") == "off"
    long = rules.kept_output("x" * 5000 + "\noff")
    assert long.endswith("off")
    assert len(long) < 1100

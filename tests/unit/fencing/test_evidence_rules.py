# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which evidence is good, and what is kept of it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    HoldfastError,
    InvalidInput,
    Refused,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import to_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import evidence_rules as rules

NOW = datetime(2026, 5, 4, 10, 0, 0, tzinfo=timezone.utc)
GOOD = {
    "BareMetalHost": {"host": "h", "namespace": "metal", "key": "k", "at": to_text(NOW)},
    "Redfish": {"uri": "https://bmc/redfish/v1/Systems/1"},
    "FenceAgent": {"agent": '{"name": "fence_pdu"}'},
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

    def test_the_limits_are_good(self, kind):
        check(kind, at=to_text(NOW - timedelta(seconds=300)))
        check(kind, at=to_text(NOW + timedelta(seconds=5)))

    def test_old(self, kind):
        assert code(kind, at=to_text(NOW - timedelta(seconds=301))) == "old"

    def test_from_the_future(self, kind):
        check(kind, at=to_text(NOW + timedelta(seconds=4)))
        assert code(kind, at=to_text(NOW + timedelta(seconds=6))) == "old"

    def test_no_time(self, kind):
        with pytest.raises(InvalidInput, match="not a time"):
            check(kind, at="this morning")

    def test_of_another_node(self, kind):
        assert code(kind, node="m") == "other_host"

    def test_of_another_boot(self, kind):
        assert code(kind, boot_id="a") == "new_boot"


@pytest.mark.parametrize("kind", rules.KINDS)
@pytest.mark.parametrize(("after", "good"), [(-600, True), (0, True), (5, True), (6, False), (290, False)])
def test_a_statement_that_is_older_than_the_last_sign_of_life(kind, after, good):
    evidence, last = {"kind": kind, **GOOD[kind]}, NOW + timedelta(seconds=after)
    if good or kind != "Attestation":
        rules.check_silent_since(evidence, node="n", last_sign=last)
        return
    with pytest.raises(Refused, match=f"at {to_text(last)}") as refused:
        rules.check_silent_since(evidence, node="n", last_sign=last)
    assert refused.value.fields["why"] == "old"


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
def test_only_recent_evidence_of_this_node_and_boot_is_accepted(kind, age, node, boot_id):
    good = -rules.AHEAD <= round(age, 6) <= rules.FRESH and node != "m" and boot_id != "a"
    try:
        check(kind, at=to_text(NOW - timedelta(seconds=age)), node=node, boot_id=boot_id)
    except HoldfastError:
        # Microseconds are cut off.
        assert not good or abs(age - rules.FRESH) < 1e-5 or abs(age + rules.AHEAD) < 1e-5
    else:
        assert good or abs(age - rules.FRESH) < 1e-5 or abs(age + rules.AHEAD) < 1e-5


@pytest.mark.parametrize(
    "output",
    [
        "off",
        "OFF\n",
        "Chassis Power is off\n",
        "Status: OFF",
        "power=off",
        "some words\noff\n\n",
        "n is off.",
        "Server power status: OFF",
        "Node rack-7.example.com is off",
        "rack-7: power = off",
        "[2] plug 4: Off",
        "power of the machine in rack is off",
    ],
)
def test_a_command_that_says_off(output):
    assert rules.off_by_command(0, output)


@pytest.mark.parametrize("status", [1, 2, 124, -9])
def test_a_command_that_says_off_and_fails(status):
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
        "I can not tell whether it is off",
        "I can't tell if power is off",
        "It isn\u2019t known: off",
        "Power is on, fan is off",
        "Power is on. The fan is off",
        "fan: off",
        "is it off",
        "it is off?",
        "status: unknown or off",
        "power of the machine in this rack is off",
        "error: off",
        "is off",
        ": off",
        "off off",
        "Power Restore Policy : always-off",
    ],
)
def test_a_command_that_does_not(output):
    assert not rules.off_by_command(0, output)


_WORDS = st.sampled_from(["chassis", "Power", "node-7", "state", "status", "of", "[2]", "rack_1.example"])
_DOUBTS = st.sampled_from(["on", "not", "NOT", "unknown", "whether", "can't", "cannot", "fan", "maybe", "isn't", "if"])
_VERDICTS = st.sampled_from([" is off", ": off", "=off", " is OFF.", " : Off"])


@given(st.lists(_WORDS, min_size=1, max_size=4), _VERDICTS, st.text())
def test_a_plain_subject_is_believed(words, verdict, before):
    assert rules.off_by_command(0, f"{before}\n{' '.join(words)}{verdict}\n")


@given(st.lists(_WORDS, max_size=3), _DOUBTS, st.lists(_WORDS, max_size=3), st.sampled_from([*" ,:;-=."]), _VERDICTS)
def test_an_output_with_a_doubt_is_not_believed(words, doubt, more, mark, verdict):
    assert not rules.off_by_command(0, f"{' '.join([*words, doubt])}{mark}{' '.join(more)}{verdict}")


@given(st.text())
def test_only_what_ends_with_off_is_believed(output):
    if rules.off_by_command(0, output):
        assert output.strip().rstrip(".").lower().endswith("off")


# -- of which machine -------------------------------------------------------------------------------------------------

UUIDS = st.uuids().filter(lambda item: item.int not in (0, 2**128 - 1))
UNKNOWN = [
    "",
    "-",
    "12AB",
    "Not Specified",
    str(UUID(int=0)),
    "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
    "03000200-0400-0500-0006-000700080009",
    "00020003-0004-0005-0006-000700080009",
]


def judged(system, of_node, expected=""):
    """Why a system is refused; empty where it is not."""
    try:
        rules.check_system("n", system, uri="https://bmc/1", expected=expected, of_node=of_node)
    except Refused as error:
        return f"{error.fields['why']}: {error.message}"
    return ""


@given(UUIDS, st.sampled_from([str.upper, str.lower, lambda text: text.replace("-", "")]), st.booleans())
def test_the_system_that_the_node_is(one, written, swapped):
    shown = UUID(bytes=one.bytes_le) if swapped else one
    assert not judged(written(str(shown)), str(one))


@given(UUIDS, UUIDS)
def test_a_system_that_it_is_not(one, other):
    same = other.bytes in (one.bytes, one.bytes_le)
    assert judged(str(one), str(other)).startswith("other_host: " if not same else "")
    assert bool(judged(str(one), str(other))) is not same
    assert "nothing proves" not in judged(str(one), str(other))
    assert not judged(str(one), str(other), expected=str(one)), "a person has looked"
    assert bool(judged(str(one), str(one), expected=str(other))) is not same


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_the_system_is_not_identified(unknown):
    known = "0b4dbb52-9b58-4d60-8d43-3f6d4d2f6c53"
    for system, of_node in ((unknown, known), (known, unknown), (unknown, unknown)):
        assert re.match("other_host: .*nothing proves that https://bmc/1.* as uuid", judged(system, of_node))
    assert not judged("12ab", unknown, expected="12AB")
    assert judged(unknown, known, expected=known)


def test_without_a_uuid_no_nodes_are_read():
    def nodes():
        yield pytest.fail("The Nodes were read.")

    rules.check_no_other_node("n", "", nodes())


ONE = UUID("4c4c4544-0042-3510-8053-b9c04f564333")


def node_of(name, *, uuid="", provider_id=""):
    return {
        "metadata": {"name": name},
        "spec": {"providerID": provider_id},
        "status": {"nodeInfo": {"systemUUID": uuid}},
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"uuid": str(ONE)}, {"uuid": str(ONE).upper()}),
        ({"uuid": str(ONE)}, {"uuid": str(UUID(bytes=ONE.bytes_le))}),
        ({"uuid": str(ONE), "provider_id": "a://1"}, {"uuid": str(ONE), "provider_id": "a://2"}),
        ({"provider_id": "metal3://metal/host-3"}, {"provider_id": "metal3://metal/host-3"}),
    ],
    ids=["UUID", "swapped UUID", "UUID and another provider ID", "provider ID"],
)
def test_a_machine_with_two_nodes_is_not_fenced(old, new):
    """Its name has changed, and the kubelet runs as the new Node."""
    stale, other = node_of("old", **old), node_of("new", **new)
    with pytest.raises(Refused, match="Node old and Node new may be the same machine") as refused:
        rules.check_one_node(stale, [stale, node_of("elsewhere"), other])
    assert (refused.value.fields["other"], refused.value.fields["why"]) == ("new", "other_node")
    assert "delete that Node" in refused.value.message


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_what_identifies_no_machine_is_not_compared(unknown):
    rules.check_one_node(node_of("one", uuid=unknown), [node_of("one", uuid=unknown), node_of("two", uuid=unknown)])


@pytest.mark.parametrize("uri", ["https://u:hush@bmc/1", "https://hush@bmc/1", "hush@bmc", "https://u:hush@[bmc/1"])
def test_credentials_in_a_uri_are_refused_and_not_shown(uri):
    with pytest.raises(InvalidInput) as refused:
        check("Redfish", uri=uri)
    assert "hush" not in refused.value.message


@pytest.mark.parametrize("uri", ["bmc/1", "ftp://bmc/1", "https://", "https://[bmc/1"])
def test_invalid_uris(uri):
    with pytest.raises(InvalidInput, match="not a URL"):
        check("Redfish", uri=uri)


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
        assert kept["at"] == given_.get("at", "t")
        assert kept["seen"] == "x"
        assert all(kept[name] == value for name, value in given_.items() if name not in ("command", "agent"))


def test_the_end_of_a_long_output_is_kept():
    assert rules.kept_output(" off \n") == "off"
    long = rules.kept_output("x" * 5000 + "\noff")
    assert long.endswith("off")
    assert len(long) < 1100
    assert rules.kept_output("x" * 1000) == "x" * 1000


class TestStatement:
    """A person's word is about this node, and no other."""

    OTHERS = ("worker-3", "worker-4", "worker-33", "w", "worker-3.example.com")

    @pytest.mark.parametrize(
        "statement",
        [
            "worker-3 is off.",
            "I pulled both cords of worker-3",
            "I pulled the cords of Worker-3.",
            "Both cords of (worker-3) are out; nobody touches it.",
            "worker-3's cords are out",
        ],
    )
    def test_good(self, statement):
        rules.check_statement(statement, "worker-3", self.OTHERS)

    @pytest.mark.parametrize(
        ("statement", "why"),
        [
            ("I pulled both power cords.", "does not name worker-3"),
            ("worker-4 is off", "does not name worker-3, but worker-4"),
            ("worker-33 is off", "does not name worker-3, but worker-33"),
            ("my-worker-3 is off", "does not name worker-3"),
            ("worker-3.example.com is off", "does not name worker-3"),
            ("worker-3-old is off", "does not name worker-3"),
            ("worker-3 and worker-4 are off", "names worker-4"),
            ("worker-3/worker-4 are off", "names worker-4"),
            ("", "does not name worker-3"),
        ],
    )
    def test_refused(self, statement, why):
        with pytest.raises(Refused, match=why) as refused:
            rules.check_statement(statement, "worker-3", self.OTHERS)
        assert refused.value.fields["why"] == "other_node"

    def test_of_many_other_names_five_are_shown(self):
        others = [f"worker-{number}" for number in range(10, 17)]
        with pytest.raises(Refused, match="worker-14, and 2 more"):
            rules.check_statement(" ".join(others), "worker-3", others)


def test_a_uri_without_https():
    uri = "http://bmc/redfish/v1/Systems/1"
    with pytest.raises(InvalidInput, match="is not https"):
        check("Redfish", uri=uri)
    check("Redfish", uri=uri, insecure_http=True)
    with pytest.raises(InvalidInput, match="is not https"):
        rules.check_uri(uri)

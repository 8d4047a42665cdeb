# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a BMC is told, and answers of a BMC that are not as they should be."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.redfish import Bmc
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.redfish_rules import BmcFailure, System

URI = "https://bmc/redfish/v1/Systems/1"


class Pool:
    """The answers of a BMC, and what it was asked."""

    def __init__(self, data, status=200):
        self.answer = SimpleNamespace(status=status, data=data)
        self.asked = []

    def request(self, method, url, **more):
        self.asked.append((method, url, more))
        return self.answer


def bmc(data=b"", **options):
    found = Bmc({"uri": URI, **options})
    found._pool = Pool(data)
    return found


@pytest.mark.parametrize(
    "content",
    [
        {"PowerState": "On", "Actions": ["#ComputerSystem.Reset"]},
        {"PowerState": "On", "Actions": {"#ComputerSystem.Reset": "/redfish/v1"}},
        {"PowerState": "On", "Actions": {"#ComputerSystem.Reset": {"ResetType@Redfish.AllowableValues": 3}}},
        {"PowerState": "On", "Actions": {"#ComputerSystem.Reset": {"target": ["/"]}}},
        {"PowerState": "On", "UUID": 7},
    ],
)
def test_a_part_of_another_type(content):
    with pytest.raises(BmcFailure, match="of an unexpected type"):
        bmc(json.dumps(content).encode()).read()


@pytest.mark.parametrize(
    "data",
    [b"[" * 200_000, b'{"PowerState":' * 200_000, b"\xff", b"1" * 5000, b"[]"],
    ids=["deep list", "deep object", "no text", "long number", "no object"],
)
def test_an_answer_that_is_no_system(data):
    with pytest.raises(BmcFailure, match="did not report its power state"):
        bmc(data).read()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ACTION = JSON | st.fixed_dictionaries(
    {},
    optional={
        "target": JSON | st.just("//[") | st.text().map(f"{URI[11:]}/".__add__),
        "ResetType@Redfish.AllowableValues": JSON,
    },
)
SYSTEM = JSON | st.fixed_dictionaries(
    {},
    optional={
        "PowerState": JSON | st.sampled_from(["On", "Off"]),
        "UUID": JSON,
        "Actions": JSON | st.fixed_dictionaries({}, optional={"#ComputerSystem.Reset": ACTION}),
    },
)


@given(SYSTEM)
def test_every_answer_is_a_system_or_a_failure_of_the_bmc(content):
    asked = bmc(json.dumps(content).encode())
    try:
        found = asked.read()
        asked.reset(found, "Off")
    except BmcFailure:
        return
    assert all(isinstance(text, str) for text in (found.power_state, found.uuid, found.target, *found.resets))
    assert asked._pool.asked[-1][1].startswith(f"{URI}/")


@pytest.mark.parametrize("password", ["plain", "pässword", "密码\N{KEY}", ""])
def test_a_password_is_sent_as_utf_8(password):
    asked = bmc(json.dumps({"PowerState": "On"}).encode(), username="opérateur", password=password)
    asked.read()
    (_method, _url, more) = asked._pool.asked[0]
    kind, sent = more["headers"]["Authorization"].split()
    assert (kind, base64.b64decode(sent).decode()) == ("Basic", f"opérateur:{password}")


def test_a_password_as_ansible_reads_bytes():
    asked = bmc(b"{}", username="u", password=b"p\xe4".decode("utf-8", "surrogateescape"))
    assert base64.b64decode(asked._headers["Authorization"].split()[1]) == b"u:p\xe4"


def test_a_message_has_no_character_of_the_password():
    with pytest.raises(InvalidInput, match="does not exist in UTF-8") as caught:
        bmc(username="u", password="\ud8ab§")
    error = caught.value
    shown = f"{error.message} {error.__cause__!r} {error.__context__!r}"
    assert not [secret for secret in ("ud8ab", "\ud8ab", "§") if secret in shown]


def test_without_a_user():
    assert "Authorization" not in bmc()._headers


def test_a_reset_type_that_is_no_text_allows_nothing():
    action = {"ResetType@Redfish.AllowableValues": [3], "target": f"{URI[11:]}/Actions/ComputerSystem.Reset"}
    asked = bmc(json.dumps({"PowerState": "On", "Actions": {"#ComputerSystem.Reset": action}}).encode())
    with pytest.raises(BmcFailure, match="allows no reset of type ForceOff"):
        asked.reset(asked.read(), "Off")


def test_a_target_that_is_no_url():
    with pytest.raises(BmcFailure, match="does not belong to it"):
        bmc().reset(System(URI, "On", "", "//[", ()), "Off")

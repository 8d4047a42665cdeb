# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a Redfish system is told to change its power, and how."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import redfish_rules as rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.redfish_rules import BmcFailure

OWN = "/redfish/v1/Systems/1"
RESET = f"{OWN}/Actions/ComputerSystem.Reset"


def system(uri=f"https://bmc{OWN}", target=RESET, **more):
    action = {"target": target, **more}
    return rules.read(uri, {"PowerState": "On", "UUID": "u", "Actions": {"#ComputerSystem.Reset": action}})


@pytest.mark.parametrize(
    ("uri", "target", "url"),
    [
        (f"https://bmc{OWN}", RESET, f"https://bmc{RESET}"),
        (f"https://bmc{OWN}/", RESET, f"https://bmc{RESET}"),
        (f"https://bmc:8443{OWN}", f"{RESET}/", f"https://bmc:8443{RESET}/"),
        # A gateway that leaves what BMCs say as it is, and one that does not.
        (f"https://gw/rack-7/bmc{OWN}", RESET, f"https://gw/rack-7/bmc{RESET}"),
        (f"https://gw/rack-7/bmc{OWN}", f"/rack-7/bmc{RESET}", f"https://gw/rack-7/bmc{RESET}"),
        (f"https://gw/redfish/bmc{OWN}", RESET, f"https://gw/redfish/bmc{RESET}"),
        # Its name for itself is no place to send a password to.
        (f"https://gw/rack-7{OWN}", f"http://10.0.0.7{RESET}", f"https://gw/rack-7{RESET}"),
        (f"https://bmc{OWN}", "Actions/ComputerSystem.Reset", f"https://bmc{RESET}"),
    ],
)
def test_where(uri, target, url):
    assert rules.reset_url(system(uri, target)) == url


@pytest.mark.parametrize(
    "target",
    [
        "",
        "/redfish/v1/Systems/2/Actions/ComputerSystem.Reset",
        "/redfish/v1/Systems/10/Actions/ComputerSystem.Reset",
        f"{OWN}/../2/Actions/ComputerSystem.Reset",
        "/elsewhere",
        OWN,
    ],
)
def test_never_at_another_system(target):
    with pytest.raises(BmcFailure, match="power of"):
        rules.reset_url(system(target=target))


def test_without_the_action():
    found = rules.read(f"https://bmc{OWN}", {"PowerState": "Off"})
    assert (found.power_state, found.uuid) == ("Off", "")
    with pytest.raises(BmcFailure, match="names none"):
        rules.reset_url(found)


def test_what_a_system_says_of_itself():
    found = system(**{"ResetType@Redfish.AllowableValues": ["On"]})

    assert found == rules.System(f"https://bmc{OWN}", "On", "u", RESET, ("On",))


def test_an_invalid_system():
    with pytest.raises(BmcFailure, match="has no PowerState"):
        rules.read("https://bmc/redfish/v1", {"Name": "root"})


@pytest.mark.parametrize(
    ("allowed", "off", "on"),
    [
        ([], "ForceOff", "On"),
        (["On", "ForceOn", "ForceOff"], "ForceOff", "On"),
        (["ForceOn", "ForceOff"], "ForceOff", "ForceOn"),
        (["GracefulShutdown"], None, None),
    ],
)
def test_how(allowed, off, on):
    found = system(**{"ResetType@Redfish.AllowableValues": allowed})
    for wanted, kind in ((rules.OFF, off), (rules.ON, on)):
        if kind:
            assert rules.reset_type(found, wanted) == kind
            continue
        with pytest.raises(BmcFailure, match="only GracefulShutdown"):
            rules.reset_type(found, wanted)

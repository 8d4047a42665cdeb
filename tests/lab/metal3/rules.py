# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for metal3's baremetal-operator: what one reconciliation of a BareMetalHost does about power. No I/O.

It follows the order of the real steps, with their oddities. Inspection, provisioning and deprovisioning never end here:
hosts stay in the state that they were given.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from . import conditions
from .provisioner import Provisioner
from .reboot_keys import DETACHED, HARD, PAUSED, REBOOT, SOFT, request

Host = dict[str, Any]
Events = list[tuple[str, str]]

POWER_ERROR = "power management error"
REGISTRATION_ERROR = "registration error"
PROVISIONED = ("provisioned", "externally provisioned")
AVAILABLE = ("available", "ready")
# In these states each reconciliation ends by removing the suffixless key, if what it does was asked for.
_CLEARS = {"inspecting": True, "provisioning": False, "deprovisioning": False}
_CONTINUING = "Continuing with hard poweroff after soft poweroff fails. More details: "
_AT_MOST = 9


@dataclass(frozen=True)
class Outcome:
    """The result of one reconciliation.

    Args:
        status: Saved as it is; None where nothing is saved.
        remove_key: Remove the suffixless key, before the status is saved.
        events: Reason and message of each; recorded only if everything before succeeded.
        after: Seconds until the next reconciliation; None where only a change of the host leads to one.
        trouble: Why this reconciliation failed. Nothing is saved or recorded then, and it is tried again.
    """

    status: Host | None = None
    remove_key: bool = False
    events: Events = field(default_factory=list)
    after: float | None = None
    trouble: str = ""


def look(host: Host, provisioner: Provisioner, chance: float = 0.0) -> Outcome:
    """One reconciliation.

    Args:
        chance: Between 0 and 1: the share of the random part that is taken off a pause after an error.
    """
    if PAUSED in _annotations(host):
        return Outcome()
    outcome = _act(copy.deepcopy(host), provisioner, chance)
    if outcome.trouble:
        return outcome
    # The conditions are always computed, and saved when they changed.
    status = copy.deepcopy(outcome.status if outcome.status is not None else host.get("status") or {})
    before = status.get("conditions") or []
    after = conditions.compute(status, before, power_failure=provisioner.power_failure)
    if outcome.status is None and after == before:
        return outcome
    return replace(outcome, status={**status, "conditions": after})


def _act(host: Host, provisioner: Provisioner, chance: float) -> Outcome:
    status = host.setdefault("status", {})
    times = provisioner.times
    state = (status.get("provisioning") or {}).get("state") or ""
    if provisioner.faults.no_credentials and state not in ("", "unmanaged"):
        message = "The BMC secret does not exist"
        _fail(status, REGISTRATION_ERROR, message)
        return Outcome(status, events=[("BMCCredentialError", message)], after=times.credentials)
    if DETACHED in _annotations(host) and state in (*PROVISIONED, *AVAILABLE):
        changed = status.get("operationalStatus") != "detached"
        status["operationalStatus"] = "detached"
        return Outcome(status if changed else None, after=times.detached)
    if status.get("operationalStatus") == "detached":
        status["operationalStatus"] = "error" if status.get("errorType") else "OK"
        return Outcome(status, after=0)
    if status.get("errorType") == REGISTRATION_ERROR:
        _clear(status)
        return Outcome(status, after=0)
    if state in (*PROVISIONED, *AVAILABLE):
        return _manage_power(host, provisioner, chance)
    if state in _CLEARS:
        return _other_work(host, expect_force=_CLEARS[state])
    return Outcome()


def _other_work(host: Host, *, expect_force: bool) -> Outcome:
    """Only a forced request aborts inspection; the other states clear the key whatever it says."""
    asked = request(_annotations(host), expect_force=True)
    clears = REBOOT in _annotations(host) and (asked.reboot or not expect_force)
    return Outcome(remove_key=clears, events=_complaints(asked.invalid))


def _manage_power(host: Host, provisioner: Provisioner, chance: float) -> Outcome:
    spec, status, times = host["spec"], host["status"], provisioner.times
    # 1. First report what is known of the power, before anything is tried.
    found = provisioner.powered_on()
    if found is not None and found != bool(status.get("poweredOn")):
        status["poweredOn"] = found
        if status.get("operationalStatus") == "error" and status.get("errorType") == POWER_ERROR:
            _clear(status)
        return Outcome(status, after=0)
    powered_on = bool(status.get("poweredOn"))
    # 2. Off was seen: the suffixless key is fulfilled, even if the host was off before.
    if not powered_on and REBOOT in _annotations(host):
        return Outcome(remove_key=True, after=0)
    # 3. and 4. The wanted power, and whether the host already has it.
    provisioned = status["provisioning"]["state"] in PROVISIONED
    asked = request(_annotations(host), expect_force=not provisioned)
    events = _complaints(asked.invalid)
    wanted = bool(spec.get("online")) and not asked.reboot
    if powered_on == wanted:
        return Outcome(events=events, after=times.requeue)
    # 5. Change the power.
    again = status.get("errorType") == POWER_ERROR
    disabled = bool(spec.get("disablePowerOff"))
    mode = asked.mode
    if wanted:
        result = provisioner.power_on(force=again)
    else:
        if status.get("errorCount", 0) > 0:
            mode = HARD
        result = provisioner.power_off(mode, force=again, disabled=disabled)
    if result.trouble:
        return Outcome(trouble=f"failed to change power state: {result.trouble}", after=0)
    events += result.events
    # 6. The machine was rebooted instead of switched off, so the request is done, however it ended.
    if disabled and REBOOT in _annotations(host):
        return Outcome(remove_key=True, events=events, after=0)
    if result.error:
        message = result.error
        if not wanted and mode == SOFT and not again:
            message = _CONTINUING + message
        _fail(status, POWER_ERROR, message)
        events.append(("PowerManagementError", message))
        return Outcome(status, events=events, after=_pause(times.backoff, status["errorCount"], chance))
    if result.dirty:
        return Outcome(status if _clear(status) else None, events=events, after=result.after)
    # Ironic had nothing to do. Only here are the errors forgotten and the specified power reported.
    status["poweredOn"] = bool(spec.get("online"))
    status["errorCount"] = 0
    return Outcome(status, events=events, after=times.requeue)


def _annotations(host: Host) -> Mapping[str, str]:
    found: Mapping[str, str] = host["metadata"].get("annotations") or {}
    return found


def _complaints(values: tuple[str, ...]) -> Events:
    text = "could not parse reboot annotation ({}) - invalid json, assuming soft-reboot"
    return [("InvalidAnnotationValue", text.format(value)) for value in values]


def _fail(status: Host, kind: str, message: str) -> None:
    status["operationalStatus"], status["errorType"], status["errorMessage"] = "error", kind, message
    status["errorCount"] = status.get("errorCount", 0) + 1


def _clear(status: Host) -> bool:
    """Return whether there was an error. Keep the number of errors."""
    before = dict(status)
    status["operationalStatus"], status["errorMessage"] = "OK", ""
    status.pop("errorType", None)
    return status != before


def _pause(first: float, count: int, chance: float) -> float:
    """The pause doubles each time; chance takes up to half of it off."""
    longest: float = first * 2 ** (min(count, _AT_MOST) - 1)
    return longest * (1 - chance / 2)

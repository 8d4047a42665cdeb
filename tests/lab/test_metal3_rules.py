# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's metal3 compared with the real one's behavior, point by point, without I/O: time is a number here."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.metal3 import ironic, reboot_keys, rules, webhook
from lab.metal3.provisioner import Provisioner
from lab.metal3.reboot_keys import DETACHED, PAUSED, REBOOT
from lab.metal3.settings import Faults, Settings, Times, load

KEY = f"{REBOOT}/failover"
OTHER = f"{REBOOT}/other-owner"
HARD = '{"mode": "hard"}'
SOFT = '{"mode": "soft"}'
INVALID = "InvalidAnnotationValue"


class Bench:
    """One host, its node in Ironic and its machine; time passes when the test says so."""

    def __init__(
        self,
        state: str = "provisioned",
        *,
        on: bool = True,
        reported: bool | None = None,
        online: bool = True,
        **faults: Any,
    ) -> None:
        self.now = 0.0
        self.due: float | None = 0.0
        self.times = Times()
        self.faults = Faults(**faults)
        self.powered = on
        self.ends_at: float | None = None
        self.node = ironic.Node(power_state=ironic.ON if on else ironic.OFF)
        self.commands: list[str] = []
        self.events: list[tuple[str, str]] = []
        self.saved = 0
        self.history: list[tuple[float, bool]] = []
        self.host: dict[str, Any] = {
            "metadata": {"name": "host", "annotations": {}},
            "spec": {"online": online},
            "status": {
                "poweredOn": on if reported is None else reported,
                "operationalStatus": "OK",
                "errorCount": 0,
                "errorMessage": "",
                "provisioning": {"state": state, "ID": "1"},
            },
        }
        # The first reconciliation makes the conditions; these tests are not about that.
        self.look()
        self.saved, self.events = 0, []

    # -- what happens outside

    def put(self, key: str, value: str = "") -> Bench:
        self.host["metadata"]["annotations"][key] = value
        self.due = self.now
        return self

    def drop(self, key: str) -> Bench:
        del self.host["metadata"]["annotations"][key]
        self.due = self.now
        return self

    def fails(self, **faults: Any) -> Bench:
        self.faults = Settings("node", faults=self.faults).but(**faults).faults
        return self

    # -- what the controller does

    def conduct(self) -> None:
        if self.ends_at is not None and self.now >= self.ends_at:
            self.powered, self.ends_at = False, None
        command = self.node.advance(self.now, self.powered, self.faults, self.times)
        if command is None:
            return
        self.commands.append(command.value)
        if command is ironic.Command.ON:
            self.powered = True
        elif command is ironic.Command.OFF:
            self.powered, self.ends_at = False, None
        elif command is ironic.Command.SHUT_DOWN:
            self.ends_at = self.now + 10

    def look(self) -> rules.Outcome:
        """One round of the conductor, then one reconciliation of the host; apply its writes."""
        self.conduct()
        provisioner = Provisioner(self.node, self.now, self.faults, self.times)
        before = copy.deepcopy(self.host)
        outcome = rules.look(self.host, provisioner)
        assert self.host == before, "rules change nothing"
        if not outcome.trouble:
            if outcome.remove_key:
                self.drop(REBOOT)
            if outcome.status is not None:
                if outcome.status["poweredOn"] != self.status["poweredOn"]:
                    self.history.append((self.now, outcome.status["poweredOn"]))
                self.host["status"] = outcome.status
                self.saved += 1
            self.events += outcome.events
        return outcome

    def run(self, seconds: float) -> Bench:
        """Reconcile again whenever that is due; while a change is under way the conductor works each second."""
        end = self.now + seconds
        looks = 0
        while self.now <= end:
            while self.due is not None and self.due <= self.now:
                after = self.look().after
                self.due = None if after is None else self.now + after
                looks += 1
                assert looks < 20 * (seconds + 5), "never content"
            quiet = not self.node.target and self.ends_at is None
            self.now = max(self.now + 1, min(end, self.due or end) if quiet else 0)
            self.conduct()
        return self

    # -- what can be seen

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.host["status"]
        return found

    @property
    def keys(self) -> list[str]:
        return sorted(self.host["metadata"]["annotations"])

    @property
    def reasons(self) -> list[str]:
        return [reason for reason, _message in self.events]


# -- keys


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("reboot.metal3.io", True),
        ("reboot.metal3.io/failover", True),
        ("reboot.metal3.io/", True),
        ("reboot.metal3.iox", False),
        ("Reboot.metal3.io", False),
        ("x.reboot.metal3.io/failover", False),
        ("reboot.metal3.io.example/failover", False),
    ],
)
def test_a_key_matches_exactly_or_with_a_suffix_after_a_slash(key: str, expected: bool) -> None:
    assert reboot_keys.is_reboot(key) is expected


# -- values


@pytest.mark.parametrize(
    ("value", "mode", "force", "valid"),
    [
        ("", "soft", False, True),
        ('{"mode":"hard"}', "hard", False, True),
        ('{"mode":"soft"}', "soft", False, True),
        ('{"mode":"hard","force":true}', "hard", True, True),
        ('{"force":true}', "soft", True, True),
        # Any other mode is kept as it is, and counts as soft.
        ('{"mode":"HARD"}', "HARD", False, True),
        ('{"mode":"cold"}', "cold", False, True),
        ('{"mode":""}', "", False, True),
        # A value that is not JSON fills nothing.
        ("hard", "soft", False, False),
        ("{'mode': 'hard'}", "soft", False, False),
        ('{"mode":"hard"', "soft", False, False),
        ('{"mode":"hard"} x', "soft", False, False),
        ('{"mode":NaN}', "soft", False, False),
        # JSON of the wrong type fills the fields that fit.
        ('"hard"', "soft", False, False),
        ("[]", "soft", False, False),
        ("1", "soft", False, False),
        ('{"mode":5}', "soft", False, False),
        ('{"mode":"hard","force":"yes"}', "hard", False, False),
        ('{"mode":"hard","force":1}', "hard", False, False),
        # As Go's decoder does.
        ("null", "soft", False, True),
        ('{"mode":null}', "soft", False, True),
        ('{"Mode":"hard","FORCE":true}', "hard", True, True),
        ('{"mode":"soft","mode":"hard"}', "hard", False, True),
        ('{"mode":"hard","more":[1]}', "hard", False, True),
    ],
)
def test_a_value_is_read_as_far_as_it_can_be(value: str, mode: str, force: bool, valid: bool) -> None:
    assert reboot_keys.parse(value) == reboot_keys.Arguments(mode, force, valid)


@pytest.mark.parametrize("value", ['{"mode":"HARD"}', '{"mode":"cold"}', '{"mode":""}', "", "{}"])
def test_any_other_mode_is_soft(value: str) -> None:
    assert Bench().put(KEY, value).run(1).commands == ["shut down"]


def test_no_json_is_reported_and_still_is_a_soft_reboot() -> None:
    bench = Bench().put(KEY, "hard").run(1)
    assert bench.commands == ["shut down"]
    assert bench.events[0] == (
        INVALID,
        "could not parse reboot annotation (hard) - invalid json, assuming soft-reboot",
    )


def test_what_could_be_read_of_a_bad_value_counts() -> None:
    bench = Bench().put(KEY, '{"mode":"hard","force":"yes"}').run(1)
    assert bench.commands == ["off"]
    assert INVALID in bench.reasons


# -- several keys


def test_any_hard_one_wins() -> None:
    bench = Bench().put(KEY, SOFT).put(OTHER, HARD).put(REBOOT).run(1)
    assert bench.commands == ["off"]


def test_any_key_with_a_suffix_keeps_the_host_off_though_the_one_without_has_gone() -> None:
    bench = Bench().put(KEY, HARD).put(REBOOT).run(300)
    assert (bench.powered, bench.keys) == (False, [KEY])


def test_keys_with_a_suffix_are_never_removed_and_the_host_is_off_until_the_last_is_gone() -> None:
    bench = Bench().put(KEY, HARD).put(OTHER, HARD).run(300)
    assert (bench.powered, bench.keys) == (False, [KEY, OTHER])
    bench.drop(KEY).run(300)
    assert bench.powered is False
    bench.drop(OTHER).run(5)
    assert (bench.powered, bench.status["poweredOn"]) == (True, True)


# -- the webhook


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("", ""),
        ('{"mode":""}', ""),
        ('{"mode":"hard","force":true}', ""),
        ("hard", "failed to unmarshal the data from the reboot.metal3.io annotation"),
        ('{"mode":"HARD"}', 'invalid mode in the reboot.metal3.io annotation, allowed are "hard", "soft" or ""'),
    ],
)
def test_the_webhook_rejects_what_the_controller_would_take(value: str, complaint: str) -> None:
    found = webhook.review(
        {"uid": "1", "object": {"metadata": {"annotations": {KEY: HARD, OTHER: value, "x": "hard"}}}}
    )
    assert found.get("status", {}).get("message", "").startswith(complaint)
    assert found["allowed"] is (complaint == "")


# -- order of steps


def test_a_power_that_differs_is_reported_first_and_nothing_else_is_done() -> None:
    bench = Bench().put(KEY, HARD).put(REBOOT)
    bench.powered = False
    outcome = bench.look()
    assert bench.status["poweredOn"] is False
    assert (bench.keys, bench.commands, outcome.after) == ([REBOOT, KEY], [], 0)


def test_telling_the_power_clears_an_error_of_power_but_not_its_count() -> None:
    bench = Bench()
    bench.status.update(operationalStatus="error", errorType="power management error", errorMessage="x", errorCount=2)
    bench.powered = False
    bench.look()
    assert "errorType" not in bench.status
    assert (bench.status["operationalStatus"], bench.status["errorMessage"], bench.status["errorCount"]) == (
        "OK",
        "",
        2,
    )


def test_telling_the_power_leaves_an_error_of_another_kind() -> None:
    bench = Bench()
    bench.status.update(operationalStatus="error", errorType="servicing error", errorMessage="x")
    bench.powered = False
    bench.look()
    assert bench.status["errorType"] == "servicing error"


def test_the_key_without_a_suffix_goes_when_off_is_seen_before_power_is_back() -> None:
    bench = Bench().put(REBOOT, HARD)
    while REBOOT in bench.keys:
        bench.look()
        bench.now += 1
        assert bench.now < 60
    assert (bench.powered, bench.status["poweredOn"], bench.commands) == (False, False, ["off"])
    bench.run(5)
    assert (bench.powered, bench.commands) == (True, ["off", "on"])
    assert [on for _when, on in bench.history] == [False, True]


def test_a_key_without_a_suffix_on_a_host_that_is_off_goes_at_once_and_nothing_was_rebooted() -> None:
    bench = Bench(on=False, online=False).put(REBOOT, HARD).run(300)
    assert (bench.keys, bench.commands, bench.history) == ([], [], [])


def test_when_all_is_as_wanted_the_next_look_is_after_a_minute() -> None:
    bench = Bench()
    assert (bench.look().after, bench.saved) == (60, 0)


def test_a_change_from_outside_is_noticed_within_a_minute_and_undone() -> None:
    bench = Bench().run(30)
    bench.powered = False
    bench.run(61)
    assert (bench.powered, bench.commands) == (True, ["on"])


def test_nothing_is_saved_while_nothing_changes_so_last_updated_is_no_heartbeat() -> None:
    assert Bench().run(600).saved == 0


def test_off_is_wanted_whatever_online_says_and_afterwards_online_decides() -> None:
    bench = Bench(on=True)
    bench.put(KEY, HARD).run(5)
    bench.host["spec"]["online"] = False
    bench.drop(KEY).run(300)
    assert (bench.powered, bench.commands) == (False, ["off"])


# -- soft and hard


def test_soft_ends_the_machine_and_hard_cuts_its_power() -> None:
    assert Bench().put(KEY, SOFT).run(30).commands == ["shut down"]
    assert Bench().put(KEY, HARD).run(30).commands == ["off"]


def test_an_error_count_above_zero_forces_hard() -> None:
    bench = Bench()
    bench.status["errorCount"] = 1
    assert bench.put(KEY, SOFT).run(1).commands == ["off"]


def test_a_soft_power_off_has_180_seconds_then_fails_and_the_next_try_is_hard() -> None:
    bench = Bench(soft_ignored=True).put(KEY, SOFT).run(178)
    assert (bench.powered, bench.status["errorCount"]) == (True, 0)
    bench.run(8)
    assert bench.status["errorType"] == "power management error"
    assert bench.status["errorMessage"].startswith("Continuing with hard poweroff after soft poweroff fails. ")
    assert (bench.powered, bench.commands, bench.status["errorCount"]) == (True, ["nothing"], 1)
    assert ("PowerManagementError", bench.status["errorMessage"]) in bench.events
    bench.run(125)
    assert (bench.powered, bench.commands) == (False, ["nothing", "off"])
    assert bench.status["operationalStatus"] == "OK"


def test_errors_are_counted_on_after_a_success_so_soft_stays_hard() -> None:
    bench = Bench(soft_ignored=True).put(KEY, SOFT).run(320).drop(KEY).run(60)
    assert (bench.powered, bench.status["errorCount"]) == (True, 1)
    bench.fails(soft_ignored=False).put(KEY, SOFT).run(5)
    assert bench.commands[-1] == "off"


def test_a_bmc_without_soft_power_off_switches_off_hard_at_once() -> None:
    bench = Bench(soft_unsupported=True).put(KEY, SOFT).run(1)
    assert (bench.commands, bench.status["errorCount"]) == (["off"], 0)


@pytest.mark.parametrize(("value", "message"), [(HARD, "Host powered off"), (SOFT, "Host soft powered off")])
def test_the_event_is_sent_when_the_request_is_read_not_when_the_host_is_off(value: str, message: str) -> None:
    bench = Bench(slow=100).put(KEY, value).run(20)
    assert (bench.events, bench.powered, bench.commands) == ([("PowerOff", message)], True, [])


def test_power_that_comes_back_is_reported() -> None:
    bench = Bench().put(REBOOT, HARD).run(10)
    assert bench.events == [("PowerOff", "Host powered off"), ("PowerOn", "Host powered on")]


# -- what goes wrong


def test_a_refusal_is_an_error_and_is_tried_again_after_a_minute_or_two_then_later_and_later() -> None:
    bench = Bench(refused=(ironic.OFF,)).put(KEY, HARD).run(5)
    assert (bench.powered, bench.status["poweredOn"], bench.status["errorCount"]) == (True, True, 1)
    assert bench.status["errorType"] == "power management error"
    bench.run(100)
    assert bench.status["errorCount"] == 1
    bench.run(100)
    assert bench.status["errorCount"] == 2
    assert bench.fails(refused=()).run(300).powered is False


def test_the_pause_after_an_error_is_one_to_two_minutes_doubled_each_time_and_bounded() -> None:
    assert [rules._pause(120, count, 0) for count in (1, 2, 9, 50)] == [120, 240, 30720, 30720]
    assert rules._pause(120, 1, 1) == 60


def test_a_new_try_after_an_error_calls_the_host_ok_before_it_is() -> None:
    bench = Bench(refused=(ironic.OFF,), slow=10).put(KEY, HARD)
    seen = set()
    for _second in range(400):
        bench.run(0)
        seen.add((bench.status["operationalStatus"], bench.powered))
    assert seen == {("OK", True), ("error", True)}


def test_a_flaky_bmc_works_in_the_end() -> None:
    bench = Bench(flaky=2).put(KEY, HARD).run(900)
    assert (bench.powered, bench.status["errorCount"]) == (False, 2)


def test_slow_power_is_waited_for_without_asking_again() -> None:
    bench = Bench(slow=30).put(KEY, HARD).run(25)
    assert (bench.powered, bench.commands, bench.reasons) == (True, [], ["PowerOff"])
    bench.run(20)
    assert (bench.powered, bench.commands, bench.reasons) == (False, ["off"], ["PowerOff"])


def test_a_stale_status_says_on_of_a_host_that_is_off() -> None:
    bench = Bench(stale=True).put(KEY, HARD).run(120)
    assert (bench.powered, bench.status["poweredOn"], bench.history) == (False, True, [])
    assert bench.fails(stale=False).run(5).status["poweredOn"] is False


def test_a_bmc_can_lie() -> None:
    bench = Bench(says="off")
    assert (bench.powered, bench.status["poweredOn"]) == (True, False)


def test_a_bmc_that_does_not_answer_leaves_the_status_and_is_reported() -> None:
    bench = Bench(unreachable=True).put(KEY, HARD).run(10)
    assert (bench.powered, bench.status["poweredOn"], bench.status["errorCount"]) == (True, True, 1)
    manageable = next(item for item in bench.status["conditions"] if item["type"] == "Manageable")
    assert (manageable["status"], manageable["reason"]) == ("False", "PowerFailure")


def test_a_node_that_ironic_is_busy_with_is_asked_again() -> None:
    bench = Bench(locked=2).put(KEY, HARD).run(4)
    assert (bench.commands, bench.reasons) == ([], [])
    assert bench.run(10).commands == ["off"]
    assert bench.reasons == ["PowerOff"]


def test_on_cannot_be_asked_for_while_off_is_under_way() -> None:
    bench = Bench(slow=20).put(KEY, HARD).run(5).drop(KEY).run(10)
    assert bench.commands == []
    # The host is as wanted while it is still on: a minute later metal3 finds that it went off.
    bench.run(70)
    assert (bench.commands, bench.powered) == (["off", "on"], True)


# -- disablePowerOff


def disabled(**faults: Any) -> Bench:
    bench = Bench(**faults)
    bench.host["spec"]["disablePowerOff"] = True
    return bench


@pytest.mark.parametrize(("value", "command"), [(HARD, "reset"), (SOFT, "shut down and on")])
def test_a_host_with_power_off_disabled_is_rebooted_and_the_key_goes_at_once(value: str, command: str) -> None:
    bench = disabled().put(REBOOT, value)
    outcome = bench.look()
    assert (outcome.remove_key, bench.keys) == (True, [])
    bench.run(60)
    assert (bench.commands, bench.history, bench.events) == ([command], [], [])


def test_a_host_with_power_off_disabled_reboots_again_and_again_under_a_key_with_a_suffix() -> None:
    bench = disabled().put(KEY, HARD).run(30)
    assert bench.commands[:3] == ["reset", "reset", "reset"]
    assert (bench.history, bench.keys, bench.status["poweredOn"]) == ([], [KEY], True)


# -- states


@pytest.mark.parametrize("state", ["provisioned", "externally provisioned"])
def test_provisioned_hosts_are_acted_upon(state: str) -> None:
    assert Bench(state).put(KEY, HARD).run(1).commands == ["off"]


@pytest.mark.parametrize("state", ["available", "ready"])
def test_available_hosts_need_force_and_are_else_passed_over_in_silence(state: str) -> None:
    bench = Bench(state).put(KEY, HARD).run(120)
    assert (bench.commands, bench.events, bench.saved) == ([], [], 0)
    assert bench.put(KEY, '{"mode":"hard","force":true}').run(1).commands == ["off"]


def test_among_those_without_force_the_mode_of_none_counts_on_an_available_host() -> None:
    bench = Bench("available").put(OTHER, HARD).put(KEY, '{"mode":"soft","force":true}')
    assert bench.run(1).commands == ["shut down"]


def test_an_available_host_that_is_off_loses_the_key_without_a_suffix_nevertheless() -> None:
    bench = Bench("available", on=False, online=False)
    assert bench.put(REBOOT).run(1).keys == []


def test_online_can_be_changed_on_an_available_host() -> None:
    assert Bench("available", online=False).run(30).powered is False


@pytest.mark.parametrize(
    "state", ["", "unmanaged", "registering", "preparing", "deleting", "powering off before delete"]
)
def test_hosts_in_other_states_are_not_acted_upon(state: str) -> None:
    bench = Bench(state).put(KEY, '{"mode":"hard","force":true}').put(REBOOT, '{"mode":"hard","force":true}').run(300)
    assert (bench.commands, bench.events, bench.keys) == ([], [], [REBOOT, KEY])


@pytest.mark.parametrize(
    ("state", "value", "keys"),
    [
        ("inspecting", "", [REBOOT, KEY]),
        ("inspecting", '{"force":true}', [KEY]),
        ("provisioning", "", [KEY]),
        ("deprovisioning", "", [KEY]),
    ],
)
def test_other_work_clears_the_key_without_a_suffix_alone(state: str, value: str, keys: list[str]) -> None:
    bench = Bench(state).put(KEY, SOFT).put(REBOOT, value).run(5)
    assert (bench.keys, bench.commands) == (keys, [])


def test_bad_credentials_are_an_error_of_another_kind_and_nothing_is_acted_upon() -> None:
    bench = Bench().fails(no_credentials=True).put(KEY, HARD).run(25)
    assert (bench.commands, bench.status["errorType"], bench.reasons[0]) == (
        [],
        "registration error",
        "BMCCredentialError",
    )
    assert bench.fails(no_credentials=False).run(5).commands == ["off"]


# -- paused, detached, online: false


def test_a_paused_host_is_not_checked() -> None:
    bench = Bench().put(PAUSED).put(KEY, HARD).put(REBOOT, "nonsense")
    bench.powered = False
    outcome = bench.look()
    assert (outcome.after, bench.saved, bench.events, bench.status["poweredOn"]) == (None, 0, [], True)
    assert bench.keys == sorted([PAUSED, REBOOT, KEY])


def test_a_detached_host_says_so_once_and_keeps_the_power_it_had_last() -> None:
    bench = Bench().put(DETACHED).put(KEY, HARD)
    bench.powered = False
    assert bench.look().after == 600
    bench.run(1300)
    assert (bench.saved, bench.status["operationalStatus"], bench.status["poweredOn"]) == (1, "detached", True)
    assert (bench.commands, bench.events, bench.keys) == ([], [], sorted([DETACHED, KEY]))
    ready = next(item for item in bench.status["conditions"] if item["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Detached")
    bench.drop(DETACHED).run(5)
    assert (bench.status["operationalStatus"], bench.status["poweredOn"]) == ("OK", False)


def test_a_host_that_is_being_prepared_can_not_be_detached() -> None:
    assert Bench("preparing").put(DETACHED).run(5).status["operationalStatus"] == "OK"


def test_with_online_false_a_reboot_does_nothing_and_loses_the_key_without_a_suffix() -> None:
    bench = Bench(on=False, online=False).put(REBOOT).put(KEY, HARD).run(5)
    assert (bench.keys, bench.commands) == ([KEY], [])
    assert bench.drop(KEY).run(300).powered is False


# -- the status


def test_powered_on_is_false_until_it_was_seen() -> None:
    bench = Bench("preparing", on=True, reported=False).run(120)
    assert (bench.powered, bench.status["poweredOn"]) == (True, False)
    bench.status["provisioning"]["state"], bench.due = "provisioned", bench.now
    assert bench.run(1).status["poweredOn"] is True


def test_the_reported_power_is_that_of_the_specification_if_ironic_had_nothing_to_do() -> None:
    bench = Bench().put(KEY, HARD)
    bench.status["errorCount"] = 3

    class Late(Provisioner):
        def powered_on(self) -> bool | None:
            """The power is not known yet; it is on when the change is requested."""
            return None

    outcome = rules.look(bench.host, Late(ironic.Node(power_state=ironic.OFF), 0.0))
    assert outcome.status is not None
    assert (outcome.status["poweredOn"], outcome.status["errorCount"], outcome.after) == (True, 0, 60)


# -- whatever happens

VALUES = st.sampled_from(["", HARD, SOFT, "hard", '{"mode":"hard","force":true}', '{"mode":"cold"}', "null"])
STATES = st.sampled_from(
    ["provisioned", "externally provisioned", "available", "inspecting", "provisioning", "preparing"]
)
FAULTS = st.fixed_dictionaries(
    {},
    optional={
        "refused": st.sampled_from([True, False]),
        "flaky": st.integers(0, 3),
        "slow": st.integers(0, 30),
        "stale": st.booleans(),
        "soft_ignored": st.booleans(),
        "soft_unsupported": st.booleans(),
        "unreachable": st.booleans(),
        "locked": st.integers(0, 2),
    },
)


@given(STATES, st.dictionaries(st.sampled_from([KEY, OTHER, REBOOT, "of.others/key"]), VALUES), FAULTS, st.booleans())
def test_no_key_but_the_one_without_a_suffix_is_ever_touched(
    state: str, keys: dict[str, str], faults: dict[str, Any], on: bool
) -> None:
    bench = Bench(state, on=on).fails(**faults)
    for key, value in keys.items():
        bench.put(key, value)
    bench.run(400)
    left = bench.host["metadata"]["annotations"]
    assert {key: value for key, value in keys.items() if key != REBOOT}.items() <= left.items()
    assert left.items() <= keys.items()


@given(st.dictionaries(st.sampled_from([KEY, OTHER, REBOOT]), VALUES, min_size=1), FAULTS)
def test_a_host_that_is_asked_off_is_off_once_nothing_is_wrong_any_more(
    keys: dict[str, str], faults: dict[str, Any]
) -> None:
    bench = Bench().fails(**faults)
    for key, value in {**keys, KEY: HARD}.items():
        bench.put(key, value)
    bench.run(100).fails(**{name: type(value)() for name, value in faults.items()}).run(2000)
    assert (bench.powered, bench.status["poweredOn"]) == (False, False)
    for key in bench.keys:
        bench.drop(key)
    bench.run(2000)
    assert (bench.powered, bench.status["poweredOn"]) == (True, True)


# -- settings


def test_settings_come_back_from_their_file(tmp_path: Any) -> None:
    settings = Settings("node-1", Times.quick()).but(refused=True, slow=2.0)
    path = tmp_path / "a.json"
    settings.save(path)
    assert load(path) == settings
    assert load(tmp_path / "b.json") is None
    path.write_text(json.dumps({"node": "n", "times": {"wrong": 1}, "faults": {"refused": []}}))
    with pytest.raises(ValueError, match="wrong"):
        load(path)

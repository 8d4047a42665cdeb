# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the variables of the role rolling_reboot together, before anything changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._api.errors import InvalidInput
from .._budget.policy_rules import policy_of
from .._drain.rules import check_drain
from .._nodes.optout_rules import check_marks
from .turn_rules import NO_GROUP
from .window import read_zone
from .window_rules import read_windows

Settings = Mapping[str, Any]


def problems(settings: Settings) -> list[str]:
    """Return what is wrong with values that have the right types."""
    found = []
    for about, check in _CHECKS.items():
        try:
            check(settings)
        except InvalidInput as error:
            found.append(f"{about}: {error.message}")
    return found


def _need(settings: Settings) -> None:
    if settings["when"] == "command" and not settings.get("when_command"):
        raise InvalidInput("command needs rolling_reboot_when_command, the command that answers.")


def _method(settings: Settings) -> None:
    if settings["method"] == "command" and not settings.get("command_tasks"):
        raise InvalidInput("command needs rolling_reboot_command_tasks, the file of tasks that reboot the node.")


def _numbers(settings: Settings) -> None:
    # Without a wait, nothing would enforce the quorum.
    least = {"hold_attempts": 1, "quorum_timeout": 1, "soak": 0, "window_margin": 0, "window_wait": 0}
    for name, number in least.items():
        if settings[name] < number:
            raise InvalidInput(f"rolling_reboot_{name} must be {number} or more, it is {settings[name]}.")


def _pause(settings: Settings) -> None:
    if settings["pause"] >= settings["slot_timeout"]:
        raise InvalidInput(
            f"it must be less than rolling_reboot_slot_timeout ({settings['slot_timeout']} s), which a "
            f"node waits for its slot. It is {settings['pause']}."
        )


def _budget(settings: Settings) -> None:
    policy = policy_of(settings)
    if settings["control_plane_group"] == NO_GROUP and policy.max_unavailable not in ("0", "1"):
        raise InvalidInput(
            f"rolling_reboot_control_plane_group {NO_GROUP} needs rolling_reboot_max_unavailable 1 or 0, because "
            f"control-plane nodes are rebooted one at a time. It is {settings['max_unavailable']}. Leave "
            "rolling_reboot_control_plane_group out, and they have a group of their own."
        )
    if settings["group"] == settings["control_plane_group"] != NO_GROUP:
        raise InvalidInput(
            f"rolling_reboot_group and rolling_reboot_control_plane_group must differ, both are {settings['group']}. "
            "Leave one of them out, or choose another name."
        )


def _drain(settings: Settings) -> None:
    check_drain({**settings, "timeout": settings["drain_timeout"]})


def _marks(settings: Settings) -> None:
    for name in ("labels", "annotations"):
        check_marks(settings[name], f"rolling_reboot_{name}")


_CHECKS: dict[str, Callable[[Settings], object]] = {
    "rolling_reboot_when": _need,
    "rolling_reboot_method": _method,
    "a number": _numbers,
    "rolling_reboot_pause": _pause,
    "rolling_reboot_windows": lambda settings: read_windows(settings["windows"]),
    "rolling_reboot_window_time_zone": lambda settings: read_zone(settings["window_time_zone"]),
    "the budget (rolling_reboot_max_unavailable and the limits beside it)": _budget,
    "the drain (rolling_reboot_drain_timeout and the options beside it)": _drain,
    "labels and annotations": _marks,
}

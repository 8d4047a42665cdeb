# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that judges whether a node can be rebooted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.plan_rules import judge


def reboot_verdict(
    node: Mapping[str, Any] | None,
    needed: str = "",
    *,
    operation: str = "",
    override_holds: bool = False,
    drain: bool = True,
    blockers: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """See the documentation of the filter."""
    return judge(
        node or None,
        needed=needed,
        done_in=operation,
        override_holds=override_holds,
        drain=drain,
        blockers=blockers,
    )


class FilterModule:
    """Makes the filter known to Ansible."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"reboot_verdict": reboot_verdict}

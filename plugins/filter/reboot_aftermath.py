# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that judges what becomes of a node whose reboot failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.failure_rules import Failure, judge


def reboot_aftermath(
    node: Mapping[str, Any] | None,
    run: str,
    operation: str,
    *,
    error: str = "",
    done: bool = False,
    untouched: bool = False,
    switched_off: bool = False,
    unseen: bool = False,
) -> dict[str, Any]:
    """See the documentation of the filter."""
    failure = Failure(
        run=run,
        operation=operation,
        error=error,
        done=done,
        untouched=untouched,
        switched_off=switched_off,
        unseen=unseen,
    )
    return judge(node or None, failure)


class FilterModule:
    """Makes the filter known to Ansible."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"reboot_aftermath": reboot_aftermath}

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A command for a node that acts at most once: only in the expected boot, and only soon after the last check.

A command can arrive late, if the controller was paused after the check, or twice, if a connection sends it again.
"""

from __future__ import annotations

import shlex

from .._logind.inhibitor_rules import NO_HOLD

# What a node prints if it did nothing.
LATE = "holdfast: too late, nothing was done"
OTHER_BOOT = "holdfast: another boot, nothing was done"
HELD = "holdfast: the node is held, nothing was done"


def guarded(command: str, boot_id: str, until: int, *, unless_held: bool = False) -> str:
    """The guarded command for a POSIX shell.

    Args:
        command: The command to run.
        boot_id: ID of the boot in which to run it.
        until: Uptime of the node in seconds at which the command expires. This clock also runs while the controller
            is paused.
        unless_held: Refuse if the node agent has a lock. Before systemd 257, a lock alone does not stop root.
    """
    free = f"{NO_HOLD} || {{ echo {shlex.quote(HELD)}; exit 1; }}; " if unless_held else ""
    return (
        f'[ "$(cat /proc/sys/kernel/random/boot_id)" = {shlex.quote(boot_id)} ] '
        f"|| {{ echo {shlex.quote(OTHER_BOOT)}; exit 1; }}; "
        f'up=$(cut -d. -f1 /proc/uptime) && [ "$up" -lt {until} ] || {{ echo {shlex.quote(LATE)}; exit 1; }}; '
        f"{free}{command}"
    )

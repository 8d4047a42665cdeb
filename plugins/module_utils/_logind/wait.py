# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait on the node for a state that no signal announces."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], seconds: float, every: float) -> bool:
    """Wait for a condition. Return whether it became true in time.

    It is checked once more after the deadline, because this process may have been suspended.

    Args:
        every: Seconds between two checks.
    """
    end = time.monotonic() + seconds
    late = False
    while not condition():
        if late:
            return False
        time.sleep(every)
        late = time.monotonic() > end
    return True

#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: maintenance_window
short_description: Check whether a maintenance window is open, and wait for one
version_added: 0.1.0
description:
  - Returns whether a maintenance window is open now, until when, and when the next one opens. It uses the API server's
    clock, so that controllers with different clocks agree.
  - If no window is open, the task still succeeds. It fails only for invalid options.
  - Windows that overlap or touch each other count as one.
  - A time of day is the first moment at which the local clock reaches it. If the clock skips this time when daylight saving
    time begins, it is the moment of the change. If the time occurs twice when daylight saving time ends, it is the first one.
options:
  time_zone:
    description:
      - Name of the IANA time zone of O(windows), such as V(Europe/Berlin).
    type: str
    default: UTC
  margin:
    description:
      - A window counts as open only while at least this many seconds of it are left, so that work that starts now ends within
        the window.
    type: int
    default: 0
  wait_timeout:
    description:
      - Maximum number of seconds to wait for a window to open. If the next one opens later, the task returns
        immediately.
      - In check mode, the task does not wait.
    type: int
    default: 0
requirements:
  - For time zones other than UTC, the system's time zone database or the Python package tzdata.
seealso:
  - module: holdfast.kubernetes.reboot_slot
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.windows
  - holdfast.kubernetes.shared.waiting_run
  - holdfast.kubernetes.shared.holder
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: Wait for a window of which at least an hour is left
  holdfast.kubernetes.maintenance_window:
    windows:
      - start: "22:00"
        end: "05:00"
        days: [mon, tue, wed, thu]
      - start: "20:00"
        end: "08:00"
        days: [fri, sat, sun]
    time_zone: Europe/Berlin
    margin: 3600
    wait_timeout: 43200
  register: window

- name: Start nothing outside of a window
  ansible.builtin.assert:
    that: window.open
    fail_msg: "The next maintenance window opens at {{ window.opens }}."
"""

RETURN = r"""
open:
  description: Whether a window is open, with at least O(margin) seconds left.
  type: bool
  returned: success
opens:
  description: When the next window opens; null if one is open, or if every window is shorter than O(margin).
  type: str
  returned: success
  sample: "2026-11-21T21:00:00.000000Z"
closes:
  description: When the open window closes; if none is open, when the next one closes. Null if it never closes,
    or if every window is shorter than O(margin).
  type: str
  returned: success
  sample: "2026-11-22T04:00:00.000000Z"
seconds_left:
  description: Seconds until the open window closes; 0 if none is open, null if it never closes.
  type: int
  returned: success
  sample: 25200
waited:
  description: Seconds waited.
  type: float
  returned: success
option:
  description: The invalid option.
  type: str
  returned: failure because of an invalid option
  sample: windows
entry:
  description: Number of the invalid entry of O(windows); the first is 1.
  type: int
  returned: failure because of an invalid window
error:
  description: What kind of failure it was, for example V(invalid_input), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: invalid_input
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import (
    HOLDER,
    WAITING_RUN,
    WINDOWS,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.window import maintenance_window

OPERATION = maintenance_window
SPEC: dict[str, Any] = {
    "argument_spec": {
        **WINDOWS,
        "time_zone": {"type": "str", "default": "UTC"},
        "margin": {"type": "int", "default": 0},
        "wait_timeout": {"type": "int", "default": 0},
        **WAITING_RUN,
        **HOLDER,
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

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
  - Says whether a maintenance window is open now, until when, and when the next one opens. It uses the API server's
    clock, so that controllers with different clocks agree.
  - If no window is open, the task still succeeds. It fails only for invalid options.
  - Windows that overlap or touch each other count as one.
  - A time of day means the first moment at which the local clock reaches it. If the clock skips this time when daylight
    saving begins, it is the moment of the jump. If the time occurs twice when daylight saving ends, it is the first of
    the two.
options:
  time_zone:
    description:
      - Name of the IANA time zone of O(windows), such as V(Europe/Berlin).
    type: str
    default: UTC
  margin:
    description:
      - Seconds of a window that must be left for it to count as open, so that work that begins now ends within it.
    type: int
    default: 0
  wait_timeout:
    description:
      - Maximum number of seconds to wait for a window to open. If none opens in that time, the task returns
        immediately.
      - In check mode, the task does not wait.
    type: int
    default: 0
requirements:
  - For time zones other than UTC a time zone database, that of the system or the Python package tzdata.
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
- name: Wait for the night, with an hour of it left
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
  description: Whether one is open, with at least O(margin) of it left.
  type: bool
  returned: success
opens:
  description: When the next one opens; null if one is open, or if no window is as long as O(margin).
  type: str
  returned: success
  sample: "2026-11-21T21:00:00.000000Z"
closes:
  description: When the open window closes or, if none is open, when the next one closes; null if it never closes.
  type: str
  returned: success
  sample: "2026-11-22T04:00:00.000000Z"
seconds_left:
  description: Seconds until it closes; 0 when none is open, and null when it never closes.
  type: int
  returned: success
  sample: 25200
waited:
  description: Seconds waited.
  type: float
  returned: success
option:
  description: The option that is wrong.
  type: str
  returned: failure because of one
  sample: windows
entry:
  description: Number of the entry of O(windows) that is wrong; the first is 1.
  type: int
  returned: failure because of one
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

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
short_description: Send an event for each hold that lasts too long
version_added: 0.1.0
description:
  - Sends an event for each Lease that has held a node for longer than O(after).
  - The API does not show whether a task takes long or is stuck, so a person must check the holder.
options:
  after:
    description:
      - Seconds that a hold may last, from its C(acquireTime).
    type: int
    default: 14400
  namespace:
    description:
      - Namespace of the Leases; all by default.
    type: str
  repeat:
    description:
      - Seconds until another event for a hold that still lasts. With V(0) there is only one event.
      - After a restart of ansible-rulebook, this source always sends an event for each hold that still lasts too long.
    type: int
    default: 86400
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
"""

EXAMPLES = r"""

- name: Holds of more than two hours
  hosts: localhost
  sources:
    - holdfast.kubernetes.long_hold:
        after: 7200
  rules:
    - name: Report the hold
      condition: event.hold.node is defined
      action:
        debug:
          msg: "{{ event.hold.holder }} has held {{ event.hold.node }} since {{ event.hold.acquired }}"
"""

import sys
from pathlib import Path
from typing import Any

# ansible-rulebook runs this file by its path and, unlike Ansible, does not make collections importable.
# A checkout may not be in a folder of collections.
_COLLECTIONS = [str(folder) for folder in Path(__file__).absolute().parents][7:8]
sys.path[:0] = [folder for folder in _COLLECTIONS if folder not in sys.path]

from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.long_hold import LongHold
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._event_source import Queue, serve

SPEC: dict[str, Any] = {
    "after": {"type": "int", "default": 14400},
    "namespace": {"type": "str"},
    "repeat": {"type": "int", "default": 86400},
}


async def main(queue: Queue, args: dict[str, Any]) -> None:
    """Entry point for ansible-rulebook."""
    await serve(queue, args, SPEC, LongHold)

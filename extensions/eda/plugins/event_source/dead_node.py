# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
short_description: Send an event for each node that gives no sign of life
version_added: 0.1.0
description:
  - Sends an event for each Node that has given no sign of life for O(after) seconds without interruption.
  - A node counts as long as its condition Ready is Unknown. If it gives a sign of life, boots or renews its Lease in
    between, its time starts again, so this source sends no event for nodes that flap.
  - It sends no event for a node that was failed over and has not come back.
  - A silent node is not proven to be off. The playbook C(holdfast.kubernetes.failover) proves that.
options:
  after:
    description:
      - Seconds without a sign of life.
    type: int
    default: 300
  selector:
    description:
      - Label selector of the Nodes; all by default.
    type: str
  reporting:
    description:
      - Whether a node also counts if its kubelet lives and reports that the node is not Ready (Ready is False).
      - The time of such a node starts when this source sees it, because the time in the report is that of the node's
        own clock.
    type: bool
    default: false
  repeat:
    description:
      - Seconds until another event for a node that is still dead. With V(0) there is only one event.
      - After a restart of ansible-rulebook, this source always sends an event for each node that is still dead.
    type: int
    default: 3600
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
"""

EXAMPLES = r"""

- name: Nodes that are silent for ten minutes
  hosts: localhost
  sources:
    - holdfast.kubernetes.dead_node:
        after: 600
        selector: node-role.kubernetes.io/worker=
  rules:
    - name: Report the node
      condition: event.node.name is defined
      throttle:
        once_within: 10 minutes
        group_by_attributes: [event.key]
      action:
        debug:
          msg: "{{ event.node.name }} has been silent since {{ event.evidence.since }}"
"""

import sys
from pathlib import Path
from typing import Any

# ansible-rulebook runs this file by its path and, unlike Ansible, does not make collections importable.
# A checkout may not be in a folder of collections.
_COLLECTIONS = [str(folder) for folder in Path(__file__).absolute().parents][7:8]
sys.path[:0] = [folder for folder in _COLLECTIONS if folder not in sys.path]

from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.dead_node import DeadNode
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._event_source import Queue, serve

SPEC: dict[str, Any] = {
    "after": {"type": "int", "default": 300},
    "selector": {"type": "str"},
    "reporting": {"type": "bool", "default": False},
    "repeat": {"type": "int", "default": 3600},
}


async def main(queue: Queue, args: dict[str, Any]) -> None:
    """Entry point for ansible-rulebook."""
    await serve(queue, args, SPEC, DeadNode)

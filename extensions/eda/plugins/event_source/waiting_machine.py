# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
short_description: Send an event for each Machine whose deletion waits for one of your hooks
version_added: 0.1.0
description:
  - Sends an event for each Machine whose deletion waits for one of your hooks, one for each hook and point.
  - The event is sent only when Cluster API's controller itself names the hook as one that it waits for.
options:
  hook:
    description:
      - Name of the hooks. O(hook), O(owner) or both are required.
    type: str
  owner:
    description:
      - Owner of the hooks, which is their value.
    type: str
  namespace:
    description:
      - Namespace of the Machines; all by default.
    type: str
  selector:
    description:
      - Label selector of the Machines; all by default.
    type: str
  repeat:
    description:
      - Seconds until another event for a Machine that still waits. With V(0) there is only one event.
      - After a restart of ansible-rulebook, this source always sends an event for each Machine that still waits.
    type: int
    default: 3600
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
"""

EXAMPLES = r"""

- name: Machines that wait for the backup
  hosts: localhost
  sources:
    - holdfast.kubernetes.waiting_machine:
        hook: backup
        namespace: clusters
        management:
          kubeconfig: ~/.kube/management
  rules:
    - name: Before the drain
      condition: event.hook.point == "pre-drain"
      throttle:
        once_within: 10 minutes
        group_by_attributes: [event.key]
      action:
        run_playbook:
          name: my.collection.backup
          extra_vars:
            machine: "{{ event.machine.name }}"
            namespace: "{{ event.machine.namespace }}"
"""

import sys
from pathlib import Path
from typing import Any

# ansible-rulebook runs this file by its path and, unlike Ansible, does not make collections importable.
# A checkout may not be in a folder of collections.
_COLLECTIONS = [str(folder) for folder in Path(__file__).absolute().parents][7:8]
sys.path[:0] = [folder for folder in _COLLECTIONS if folder not in sys.path]

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import management_option
from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.waiting_machine import WaitingMachine
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._event_source import Queue, serve

SPEC: dict[str, Any] = {
    "hook": {"type": "str"},
    "owner": {"type": "str"},
    "namespace": {"type": "str"},
    "selector": {"type": "str"},
    "repeat": {"type": "int", "default": 3600},
    **management_option(),
}


async def main(queue: Queue, args: dict[str, Any]) -> None:
    """Entry point for ansible-rulebook."""
    await serve(queue, args, SPEC, WaitingMachine)

#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: status_info
short_description: Show what all runs in a cluster do
version_added: 0.1.0
description:
  - Shows budgets, the nodes that runs work on with their phases and what they wait for, holds, runs, and what
    M(holdfast.kubernetes.doctor) would clear. It reads all of this from the cluster, so it works while a run is under way
    elsewhere, and after a run died.
  - Changes nothing, and needs only the right to read; see C(docs/rbac_status.yml).
options:
  nodes:
    description:
      - Show only these nodes and their holds.
    type: list
    elements: str
  group:
    description:
      - Show only this group and its nodes.
    type: str
  show:
    description:
      - Prints the status immediately, for people as V(text) or for programs as V(json). With V(none), it is only returned.
    type: str
    choices: [none, text, json]
    default: none
seealso:
  - module: holdfast.kubernetes.doctor
  - module: holdfast.kubernetes.node_info
  - module: holdfast.kubernetes.lease_hold_info
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: Read the status
  holdfast.kubernetes.status_info:
    group: workers
  register: status

- name: Fail if a node has failed
  ansible.builtin.assert:
    that: status.nodes | selectattr('state', 'eq', 'failed') | length == 0

- name: Print the status
  holdfast.kubernetes.status_info:
    show: text
"""

RETURN = r"""
groups:
  description: The budget of each group.
  type: list
  elements: dict
  returned: success
  contains:
    group:
      description: Name of the group.
      type: str
      sample: workers
    allowed:
      description: How many nodes may be unavailable; null if no run has said so yet.
      type: int
      sample: 2
    unavailable:
      description: Nodes that have a slot, are not Ready, or are cordoned.
      type: list
      elements: str
      sample: [worker-2]
nodes:
  description: Nodes that a run works on, waits for, or has left, and Machines whose deletion waits for a run.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: Name of the Node, or namespace and name of the Machine.
      type: str
      sample: worker-2
    state:
      description: V(waiting), V(working), V(done), V(failed), also if its run is dead, or V(queued) if others have cordoned it.
      type: str
      sample: working
    phase:
      description: The phase or the result, for example V(slot), V(hold), V(drain) or V(rebooted).
      type: str
      sample: drain
    seconds:
      description: Seconds since the phase began; null if unknown.
      type: int
      sample: 42
    why:
      description: What it waits for, or the reason of the result.
      type: str
    run:
      description: Id of the run; empty if there is none.
      type: str
      sample: "4711"
holds:
  description: All holds, oldest first; see M(holdfast.kubernetes.lease_hold_info).
  type: list
  elements: dict
  returned: success
runs:
  description: All runs that have left a sign of life.
  type: list
  elements: dict
  returned: success
  contains:
    id:
      description: Id of the run.
      type: str
      sample: "4711"
    holder:
      description: Who it is, for people.
      type: str
      sample: alice@automation-job-4711
    began:
      description: When it began.
      type: str
      sample: "2026-11-21T09:00:00.000000Z"
    last_sign:
      description: Its last sign of life.
      type: str
      sample: "2026-11-21T09:12:00.000000Z"
    silent_seconds:
      description: Seconds since then.
      type: int
      sample: 7
    alive:
      description: Whether it is live.
      type: bool
stale:
  description: What the doctor would clear; see RV(holdfast.kubernetes.doctor#module:findings).
  type: list
  elements: dict
  returned: success
todo:
  description: What a person has to do.
  type: list
  elements: str
  returned: success
lines:
  description: The status for people.
  type: list
  elements: str
  returned: success
stats:
  description: Numbers for the next job of a workflow.
  type: dict
  returned: success
  sample:
    status_working: 1
    status_waiting: 3
    status_failed: 0
    status_done: 2
    status_holds: 1
    status_live_runs: 1
    status_stale: 0
error:
  description: What kind of failure it was, for example V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: api
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._status.status import status_info

OPERATION = status_info
SPEC: dict[str, Any] = {
    "argument_spec": {
        "nodes": {"type": "list", "elements": "str"},
        "group": {"type": "str"},
        "show": {"type": "str", "choices": ["none", "text", "json"], "default": "none"},
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

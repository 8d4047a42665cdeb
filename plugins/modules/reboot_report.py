#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_report
short_description: Report the results of a rolling reboot
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Gathers the results of all nodes. If a host dropped out of the plays, cleans up its node. Counts failures that could not
    be counted before.
  - It does not fail if something is left to do; RV(left) says what. Afterwards, M(holdfast.kubernetes.reboot_end) ends the
    run's part in the operation.
options:
  operation:
    description:
      - Id of the rolling reboot.
    type: str
  run:
    description:
      - Id of the run.
    type: str
  group:
    description:
      - The group whose ledger has the operation.
    type: str
  paused:
    description:
      - Whether the run has paused the NodeHealthChecks.
    type: bool
    default: false
  names:
    description:
      - Names of the hosts that take part. The action plugin makes O(hosts) from them.
    type: list
    elements: str
    default: []
  pattern:
    description:
      - The pattern that selected these hosts, for messages.
    type: str
  limit:
    description:
      - The playbook's C(--limit); blank if there is none. With a limit, only hosts of the play take part.
    type: str
  settings:
    description:
      - The settings of the report and of its notification.
    type: dict
    default: {}
  hosts:
    description:
      - For each host, C(host) is its name, C(turn) the last result of M(holdfast.kubernetes.reboot_turn) or
        M(holdfast.kubernetes.reboot_finish), C(settings) its variables, and C(settings_error) why these are invalid; empty if
        they are valid.
    type: list
    elements: dict
    default: []
  traffic:
    description:
      - For each Node, the number of C(requests) sent and of C(bytes) received. The entry with an empty name is for the run
        itself. The action plugin sets this option.
    type: dict
    default: {}
seealso:
  - module: holdfast.kubernetes.reboot_end
  - module: holdfast.kubernetes.reboot_turn
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.alertmanager
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Gather the results
  holdfast.kubernetes.reboot_report:
    names: "{{ ansible_play_hosts_all }}"
  register: report
"""

RETURN = r"""
nodes:
  description: The result of each node.
  type: list
  elements: dict
  returned: success
summary:
  description: The names of the nodes by result.
  type: dict
  returned: success
api:
  description: The C(requests) of the run's tasks, and the C(bytes) of their answers.
  type: dict
  returned: success
steps:
  description: Which tasks the settings ask for, V(notify) and V(write).
  type: list
  elements: str
  returned: success
stats:
  description: The statistics for the next job of a workflow.
  type: dict
  returned: success
headline:
  description: The summary in one line.
  type: str
  returned: success
lines:
  description: The results as text.
  type: list
  elements: str
  returned: success
left:
  description: What is left to do, as text; empty if there is nothing.
  type: str
  returned: success
done:
  description: The names of the nodes that are done.
  type: list
  elements: str
  returned: success
undone:
  description: The names of the nodes that are not done; none if the name of one of them is unknown.
  type: list
  elements: str
  returned: success
postponed:
  description: Those of them that wait for the next maintenance window.
  type: list
  elements: str
  returned: success
complete:
  description: Whether the operation is complete for all nodes.
  type: bool
  returned: success
operation:
  description: Id of the rolling reboot; blank if no host entered one.
  type: str
  returned: success
run:
  description: Id of the run.
  type: str
  returned: success
group:
  description: The group whose ledger has the operation.
  type: str
  returned: success
error:
  description: What kind of failure it was, for example V(refused), V(held), V(timed_out), V(not_found), V(invalid_input),
    V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: refused
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import ALERTMANAGER
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.report import reboot_report

OPERATION = reboot_report
SPEC: dict[str, Any] = {
    "argument_spec": {
        "operation": {"type": "str"},
        "run": {"type": "str"},
        "group": {"type": "str"},
        "paused": {"type": "bool", "default": False},
        "names": {"type": "list", "elements": "str", "default": []},
        "pattern": {"type": "str"},
        "limit": {"type": "str"},
        "settings": {"type": "dict", "default": {}},
        "hosts": {"type": "list", "elements": "dict", "default": []},
        "traffic": {"type": "dict", "default": {}},
        **ALERTMANAGER,
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

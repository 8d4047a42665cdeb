#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_operation_info
short_description: Show what a rolling reboot has done, over all of its runs
version_added: 0.1.0
description:
  - Reads the ledgers of the groups, and the records on the Nodes. So it also knows the work of other jobs, of the slices of a
    job, and of runs that died.
  - A Node keeps its record until its next rolling reboot, a ledger its last 10 operations.
options:
  operation:
    description:
      - Id of the rolling reboot. By default the one with the latest sign of life.
    type: str
  group:
    description:
      - Read only the ledger of this group. By default the ledgers of all groups.
    type: str
  results:
    description:
      - The artifact C(rolling_reboot_results) of an earlier job. It adds nodes without a record, such as those that needed no
        reboot.
    type: dict
    default: {}
seealso:
  - module: holdfast.kubernetes.node_info
  - module: holdfast.kubernetes.doctor
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: Read the last rolling reboot
  holdfast.kubernetes.reboot_operation_info:
  register: last

- name: Show the result of each node
  ansible.builtin.debug:
    msg: "{{ last.lines }}"
"""

RETURN = r"""
operation:
  description: Id of the rolling reboot; empty if there was none.
  type: str
  returned: success
  sample: reboot-20261121T100234Z
runs:
  description: Ids of its runs that have not ended. A run that died stays until another run of the operation ends.
  type: list
  elements: str
  returned: success
  sample: ["4711"]
nodes:
  description: The result of each node.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: Name of the Node.
      type: str
      sample: node-1
    result:
      description: V(rebooted), V(skipped), V(postponed), V(stopped), V(lost), V(failed), or V(unfinished), if a run still works
        on it, or left it so that the next run tries it again.
      type: str
      sample: rebooted
    detail:
      description: Why.
      type: str
      sample: /run/reboot-required exists
summary:
  description: The names of the nodes by result.
  type: dict
  returned: success
stats:
  description: The same artifacts as from the rolling reboot itself.
  type: dict
  returned: success
lines:
  description: The results as text.
  type: list
  elements: str
  returned: success
why:
  description: Why the rolling reboot has not succeeded; empty if it has, or if there was none.
  type: str
  returned: success
error:
  description: What kind of failure it was, for example V(refused), V(held), V(timed_out), V(not_found), V(invalid_input),
    V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: api_unreachable
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.operation_info import reboot_operation_info

OPERATION = reboot_operation_info
SPEC: dict[str, Any] = {
    "argument_spec": {
        "operation": {"type": "str"},
        "group": {"type": "str"},
        "results": {"type": "dict", "default": {}},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_plan
short_description: Plan what a rolling reboot would do with each of its nodes
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Judges all nodes by the rules of a run. It reads most objects once for all nodes. It prints one line for each node, and a
    total.
  - It changes nothing. Instead of the writes of a run, it sends server-side dry runs.
options:
  settings:
    description:
      - The variables of the role on one of the hosts, as M(holdfast.kubernetes.role_settings) returns them. They name the
        operation.
    type: dict
    required: true
  who:
    description:
      - Who runs this, as M(holdfast.kubernetes.role_settings) returns it.
    type: dict
    required: true
  forks:
    description:
      - How many hosts the run works on at the same time.
    type: int
  names:
    description:
      - Names of the hosts that take part. In the controller, the action plugin makes O(hosts) from them.
    type: list
    elements: str
    default: []
  hosts:
    description:
      - Of each host, C(host) is its name, C(turn) what M(holdfast.kubernetes.reboot_turn) returned for the question to the
        node, C(settings) its variables, and C(settings_error) why these are invalid.
    type: list
    elements: dict
    default: []
  report:
    description:
      - File on the controller to write the plan to, as JSON. The action plugin writes it.
    type: str
    default: ""
  html:
    description:
      - File on the controller to write the plan to, as an HTML page.
    type: str
    default: ""
  metrics_file:
    description:
      - File on the controller that gets the metrics, see M(holdfast.kubernetes.metrics). Only in the controller.
    type: path
seealso:
  - module: holdfast.kubernetes.reboot_turn
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.blockers
  - holdfast.kubernetes.shared.pushgateway
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: Plan the rolling reboot
  holdfast.kubernetes.reboot_plan:
    names: "{{ ansible_play_hosts_all }}"
    settings: "{{ read.settings }}"
    who: "{{ read.who }}"
  run_once: true # noqa: run-once[task]
"""

RETURN = r"""
nodes:
  description: The plan of each node.
  type: list
  elements: dict
  returned: success
summary:
  description: The names of the nodes by result.
  type: dict
  returned: success
api:
  description: The C(requests) of this task, and the C(bytes) of their answers.
  type: dict
  returned: success
stats:
  description: The statistics for the next job of a workflow.
  type: dict
  returned: success
failures:
  description: For each host without a plan, the reason.
  type: dict
  returned: success
error:
  description: What kind of failure it was, for example V(refused), V(invalid_input), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: refused
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import BLOCKERS, PUSHGATEWAY
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.plan import reboot_plan

OPERATION = reboot_plan
SPEC: dict[str, Any] = {
    "argument_spec": {
        "settings": {"type": "dict", "required": True},
        "who": {"type": "dict", "required": True},
        "forks": {"type": "int"},
        "names": {"type": "list", "elements": "str", "default": []},
        "hosts": {"type": "list", "elements": "dict", "default": []},
        "report": {"type": "str", "default": ""},
        "html": {"type": "str", "default": ""},
        "metrics_file": {"type": "path"},
        **PUSHGATEWAY,
        **BLOCKERS,
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: run_report
short_description: Write the report of a run as JSON and as an HTML page
version_added: 0.1.0
description:
  - Makes one HTML page from the JSON report of a rolling reboot, a plan, a failover or a recovery. The page loads nothing. It has
    a timeline of the nodes, the budget, what nodes waited for, failures and what to do about them, the proof of a failover,
    versions and options.
  - The roles call it at the end of a run. With O(kind), the action plugin adds the timeline of the run, its options and the
    versions. Without it, the module makes the page of a report that was written before.
  - Runs on the controller, and sends no request to the cluster.
options:
  content:
    description:
      - The report.
    type: dict
    required: true
  html:
    description:
      - Path on the controller of the page. If it is empty, none is written.
    type: str
    default: ""
  json:
    description:
      - Path on the controller of the JSON. If it is empty, none is written.
    type: str
    default: ""
  kind:
    description:
      - What the run does, for the title. Only the roles of this collection set it.
    type: str
    default: ""
  names:
    description:
      - Names of the hosts that took part in a rolling reboot. The action plugin reads the options of the run from them.
    type: list
    elements: str
    default: []
  settings:
    description:
      - The options of the run for each node, as M(holdfast.kubernetes.role_settings) returns them.
    type: list
    elements: dict
    default: []
author:
  - holdfast.kubernetes contributors (@holdfast)
attributes:
  check_mode:
    support: full
    details:
      - The files are also written in check mode, because a plan has a report, too.
extends_documentation_fragment:
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: Make a page from the report of an earlier run
  holdfast.kubernetes.run_report:
    content: "{{ lookup('ansible.builtin.file', 'report.json') | from_json }}"
    html: report.html
"""

RETURN = r"""
error:
  description: What kind of failure it was, V(not_written).
  type: str
  returned: failure
  sample: not_written
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

SPEC: dict[str, Any] = {
    "argument_spec": {
        "content": {"type": "dict", "required": True},
        "html": {"type": "str", "default": ""},
        "json": {"type": "str", "default": ""},
        "kind": {"type": "str", "default": ""},
        "names": {"type": "list", "elements": "str", "default": []},
        "settings": {"type": "list", "elements": "dict", "default": []},
    },
    "supports_check_mode": True,
}


def main() -> None:
    AnsibleModule(**SPEC).fail_json(msg="The action plugin of this module runs on the controller. Do not delegate it.")


if __name__ == "__main__":
    main()

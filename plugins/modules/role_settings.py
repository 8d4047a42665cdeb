#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: role_settings
short_description: Read the variables of a role of this collection with their types
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - It is the first task of each role, and of each playbook without a role.
  - Reads the argument spec of the role that the task is in, evaluates the role's variables once, and returns typed
    values. The answer of a survey and C(-e NAME=VALUE) are strings, and the string V(false) is true in a condition.
  - Strings are converted to booleans and numbers. A list may be a string with commas, or JSON or YAML; a dictionary may
    be JSON or YAML.
  - A blank value counts as not set.
  - The task fails if a value does not fit, if a required variable is not set, and if an unknown variable begins with
    the role's name. The message names the nearest known variable.
  - Variables with C(no_log) are checked, but are not in the result. No message contains their values.
options:
  entry_point:
    description:
      - Entry point of the argument spec.
    type: str
    default: main
  only:
    description:
      - Full names of the variables to read. By default all of the entry point.
    type: list
    elements: str
    default: []
  known:
    description:
      - More full names that are known, for example those that the role itself sets for the tasks of its user.
    type: list
    elements: str
    default: []
  prefix:
    description:
      - Prefix of the variables of a playbook without a role, without the underscore. The spec is in
        C(playbooks/vars/argument_specs.yml).
    type: str
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: Read the settings
  holdfast.kubernetes.role_settings:
  register: __my_role_read
"""

RETURN = r"""
settings:
  description:
    - Typed values by the name of the variable without the role's name in front. A variable that is not set and has no default
      is left out.
  type: dict
  returned: success
  sample: {max_failed: 0, override_holds: false}
who:
  description: Who runs this.
  type: dict
  returned: success
  contains:
    job:
      description: Id of the AWX job; empty without one.
      type: str
      sample: "4711"
    person:
      description: The user of AWX or of the controller, and the controller's name.
      type: str
      sample: alice@ansible-1
    host:
      description: Name of the controller.
      type: str
      sample: ansible-1
problems:
  description: What is wrong with the variables, one sentence each.
  type: list
  elements: str
  returned: failure because of the variables
  sample: ["rolling_reboot_overide_holds is unknown. Did you mean rolling_reboot_override_holds?"]
error:
  description: What kind of failure it was.
  type: str
  returned: failure because of the variables
  sample: invalid_input
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

SPEC: dict[str, Any] = {
    "argument_spec": {
        "entry_point": {"type": "str", "default": "main"},
        "only": {"type": "list", "elements": "str", "default": []},
        "known": {"type": "list", "elements": "str", "default": []},
        "prefix": {"type": "str"},
    },
    "supports_check_mode": True,
}


def main() -> None:
    module = AnsibleModule(**SPEC)
    module.fail_json(msg="holdfast.kubernetes.role_settings is an action plugin; run it from a playbook.")


if __name__ == "__main__":
    main()

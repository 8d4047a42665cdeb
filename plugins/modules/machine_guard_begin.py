#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_guard_begin
short_description: Start a guard of Machines, and set or remove its hooks
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Refuses settings that can't work before anything is changed.
  - Sets the hooks on the Machines and templates that the settings select, or removes them with C(state=absent). If a hook
    can't hold, or the API server refuses the change of a Machine, the result says so, and the others are done.
  - In check mode, also returns the Machines that wait.
options:
  settings:
    description:
      - Settings of the role P(holdfast.kubernetes.machine_guard#role), as M(holdfast.kubernetes.role_settings) returns
        them.
    type: dict
    required: true
  who:
    description:
      - Who runs this, as M(holdfast.kubernetes.role_settings) returns it.
    type: dict
    required: true
  playbook_dir:
    description:
      - Folder of the playbook. The record of a Machine names files of tasks by their path below it.
    type: str
    required: true
seealso:
  - module: holdfast.kubernetes.machine_guard_step
  - module: holdfast.kubernetes.machine_guard_finish
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Set the hooks
  holdfast.kubernetes.machine_guard_begin:
    settings: "{{ read.settings }}"
    who: "{{ read.who }}"
    playbook_dir: "{{ playbook_dir }}"
  register: begin
"""

RETURN = r"""
steps:
  description: The steps of the role that follow. V(serve), V(plan) and V(report).
  type: list
  elements: str
  returned: success
  sample: [serve, report]
workers:
  description: Numbers of the workers to make.
  type: list
  elements: int
  returned: success
waiting:
  description: In check mode, the Machines that wait, one line each.
  type: list
  elements: str
  returned: success
begun:
  description: What the other modules of the guard have to know about the run.
  type: dict
  returned: success
  contains:
    run:
      description: Id of the run.
      type: str
      sample: ci-7/20261122T090000Z/4711
    ends:
      description: Time after which no more Machines are started, in seconds since 1970.
      type: int
    hooks:
      description: Hooks that could not be set, with C(why).
      type: list
      elements: dict
    refused:
      description: Machines whose hooks the API server refused, with its message.
      type: list
      elements: dict
    unknown:
      description: Names that no Machine has.
      type: list
      elements: str
error:
  description: What kind of failure it was, for example V(invalid_input), V(not_found), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: invalid_input
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard.begin import machine_guard_begin

OPERATION = machine_guard_begin
SPEC: dict[str, Any] = {
    "argument_spec": {
        "settings": {"type": "dict", "required": True},
        "who": {"type": "dict", "required": True},
        "playbook_dir": {"type": "str", "required": True},
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_guard_finish
short_description: Sum up a guard of Machines, and report the Machines that are left
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Records the failure of work whose worker has dropped out of the play.
  - Looks for Machines that are being deleted with a hook of this guard and that no run works on, and writes an Event for
    each that already waits.
options:
  begun:
    description:
      - RV(holdfast.kubernetes.machine_guard_begin#module:begun) of the start of the run.
    type: dict
    required: true
  workers:
    description:
      - RV(holdfast.kubernetes.machine_guard_step#module:kept) of each worker.
    type: list
    elements: dict
    required: true
seealso:
  - module: holdfast.kubernetes.machine_guard_step
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
- name: Sum up
  holdfast.kubernetes.machine_guard_finish:
    begun: "{{ begin.begun }}"
    workers: ["{{ turn.kept }}"]
  register: end
"""

RETURN = r"""
steps:
  description: The steps of the role that follow. V(report) if a report is to be written, and V(fail) if the run failed.
  type: list
  elements: str
  returned: success
summary:
  description: The summary of the report.
  type: dict
  returned: success
report:
  description: The report.
  type: dict
  returned: success
stats:
  description: What the next job of a workflow gets.
  type: dict
  returned: success
lines:
  description: A line about the result of each Machine.
  type: list
  elements: str
  returned: success
why:
  description: Why the run failed; empty if it did not.
  type: str
  returned: success
error:
  description: What kind of failure it was, for example V(refused) if no worker was let in.
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
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard.finish import machine_guard_finish

OPERATION = machine_guard_finish
SPEC: dict[str, Any] = {
    "argument_spec": {
        "begun": {"type": "dict", "required": True},
        "workers": {"type": "list", "elements": "dict", "required": True},
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

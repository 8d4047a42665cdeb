#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_end
short_description: End a rolling reboot
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Leaves the operation. This is the last task of a run. So the next run can resume a run that is killed while it reports,
    and no node is rebooted twice.
  - Fails if the run can't leave the operation, or if O(left) says that something is left to do.
options:
  operation:
    description:
      - Id of the rolling reboot. With a blank value the module leaves none.
    type: str
    required: true
  run:
    description:
      - Id of the run.
    type: str
    required: true
  group:
    description:
      - The group whose ledger has the operation.
    type: str
    required: true
  complete:
    description:
      - Whether the operation is complete for all nodes. Otherwise the next run resumes the operation.
    type: bool
    required: true
  paused:
    description:
      - Whether the run may have paused NodeHealthChecks. Their pause ends, even if O(operation) is blank. Pauses of
        dead runs end, too.
    type: bool
    default: false
  left:
    description:
      - What is left to do, from M(holdfast.kubernetes.reboot_report).
    type: str
    default: ''
seealso:
  - module: holdfast.kubernetes.reboot_begin
  - module: holdfast.kubernetes.reboot_report
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.left
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: End the operation
  holdfast.kubernetes.reboot_end:
    operation: kernel
    run: bastion/20261121T030000Z
    group: default
    complete: true
"""

RETURN = r"""
error:
  description: What kind of failure it was, for example V(left_over) or V(invalid_input).
  type: str
  returned: failure
  sample: left_over
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import LEFT
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.end import reboot_end

OPERATION = reboot_end
SPEC: dict[str, Any] = {
    "argument_spec": {
        "operation": {"type": "str", "required": True},
        "run": {"type": "str", "required": True},
        "group": {"type": "str", "required": True},
        "complete": {"type": "bool", "required": True},
        **LEFT,
        "paused": {"type": "bool", "default": False},
        "left": {"type": "str", "default": ""},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

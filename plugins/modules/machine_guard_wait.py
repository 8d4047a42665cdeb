#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_guard_wait
short_description: Wait for the replacement of a Machine, or until its volumes are gone
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - With O(wait_for=replacement), waits until all other Machines that the MachineDeployment, the MachineSet or the
    KubeadmControlPlane asks for, and that can exist together with this one, have Ready Nodes. It does not wait for a
    Machine that a person created.
  - Cluster API counts Machines that are being deleted. In a rollout, and if more replicas are requested, it creates the
    new Machine beforehand. If a Machine is deleted on its own, Cluster API creates the new one only after the old one
    is gone, so the module can't wait for it.
  - With O(wait_for=volumes), waits until no VolumeAttachment names the Node. Only absence counts. It does not wait for
    volumes of pods that a drain does not move, such as DaemonSet pods.
options:
  wait_for:
    description:
      - What to wait for.
    type: str
    choices: [replacement, volumes]
    required: true
  machine:
    description:
      - Name of the Machine.
    type: str
    required: true
    aliases: [name]
  namespace:
    description:
      - Its namespace.
    type: str
    required: true
  node:
    description:
      - Its Node, for O(wait_for=volumes). Without a Node there are no volumes.
    type: str
  wait_timeout:
    description:
      - Seconds to wait; then the task fails. V(0) checks once.
    type: int
    default: 600
seealso:
  - module: holdfast.kubernetes.machine_guard_step
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.waiting_run
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: Wait until the new Machine is ready
  holdfast.kubernetes.machine_guard_wait:
    wait_for: replacement
    machine: workers-7c9-x2x8k
    namespace: clusters
    wait_timeout: 1800
"""

RETURN = r"""
wanted:
  description: How many other Machines are needed; null if nothing creates a replacement. For O(wait_for=replacement).
  type: int
  returned: success
  sample: 3
ready:
  description: Names of the other Machines whose Nodes are Ready. For O(wait_for=replacement).
  type: list
  elements: str
  returned: success
volume_attachments:
  description: The VolumeAttachments that are left. For O(wait_for=volumes).
  type: list
  elements: str
  returned: success
staying:
  description: VolumeAttachments of pods that a drain does not move. For O(wait_for=volumes).
  type: list
  elements: str
  returned: success
waited:
  description: Seconds waited.
  type: float
  returned: success
error:
  description: What kind of failure it was, for example V(timed_out), V(not_found), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: timed_out
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import WAITING_RUN
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard.wait import machine_guard_wait

OPERATION = machine_guard_wait
SPEC: dict[str, Any] = {
    "argument_spec": {
        "wait_for": {"type": "str", "choices": ["replacement", "volumes"], "required": True},
        "machine": {"type": "str", "required": True, "aliases": ["name"]},
        "namespace": {"type": "str", "required": True},
        "node": {"type": "str"},
        **WAITING_RUN,
        "wait_timeout": {"type": "int", "default": 600},
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

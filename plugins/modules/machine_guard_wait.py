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
  - With O(wait_for=replacement) waits until all other Machines that the MachineDeployment, the MachineSet or the
    KubeadmControlPlane asks for, and that can be there while this one still is, have Nodes that are Ready. For a Machine that a
    person has made nothing is waited for.
  - Cluster API counts Machines that are being deleted. In a rollout, and where more replicas are asked for, the new Machine is made
    beforehand; in the place of one that is deleted by itself it is made only when that is gone, and can't be waited for.
  - With O(wait_for=volumes) waits until no VolumeAttachment names the Node. Only absence counts. Volumes of pods that no drain
    moves, those of DaemonSets for example, are not waited for.
options:
  wait_for:
    description:
      - What is waited for.
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
      - Its Node, for O(wait_for=volumes). Without one there are none.
    type: str
  wait_timeout:
    description:
      - Seconds to wait; then the task fails. V(0) looks once.
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
- name: Wait until the new Machine is there
  holdfast.kubernetes.machine_guard_wait:
    wait_for: replacement
    machine: workers-7c9-x2x8k
    namespace: clusters
    wait_timeout: 1800
"""

RETURN = r"""
wanted:
  description: How many others there must be; null if nothing makes a replacement. For O(wait_for=replacement).
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
  description: Those of pods that no drain moves. For O(wait_for=volumes).
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

#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: deletion_hook_info
short_description: List the deletion hooks of Machines, and the Machines that wait for them
version_added: 0.1.0
description:
  - Lists Machines of Cluster API with their deletion hooks and the progress of their deletion.
  - If there are no such Machines, or no Cluster API, the list is empty.
options:
  machine:
    description:
      - Name of a Machine. By default all.
    type: str
    aliases: [name]
  namespace:
    description:
      - Namespace of the Machines. By default all.
    type: str
  hook:
    description:
      - Only Machines that have a hook of this name, at either point.
    type: str
  selector:
    description:
      - Only Machines with these labels, as a label selector.
    type: str
  wait_for:
    description:
      - V(waiting) waits, by a watch, until the deletion of one of these Machines waits for a hook; with O(hook), for
        this hook.
    type: str
    choices: [none, waiting]
    default: none
  wait_timeout:
    description:
      - Seconds to wait with O(wait_for=waiting). After that, the module lists the Machines as they are.
    type: int
    default: 3600
seealso:
  - module: holdfast.kubernetes.deletion_hook
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: List the Machines that wait for the hook
  holdfast.kubernetes.deletion_hook_info:
    hook: backup
    wait_for: waiting
  register: result

- name: Show their names
  ansible.builtin.debug:
    msg: "{{ result.machines | selectattr('waiting_for', 'eq', 'pre-drain') | map(attribute='name') }}"
"""

RETURN = r"""
machines:
  description: The Machines, by namespace and name.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: Name of the Machine.
      type: str
      sample: workers-7c9-x2x8k
    namespace:
      description: Its namespace.
      type: str
      sample: clusters
    cluster:
      description: Name of its Cluster.
      type: str
      sample: production
    node:
      description: Name of its Node; null if it has none.
      type: str
      sample: node-1
    phase:
      description: Progress of its deletion, as Cluster API reports it. One of V(NotDeleting), V(Deleting),
        V(WaitingForPreDrainHook), V(DrainingNode), V(WaitingForVolumeDetach), V(WaitingForPreTerminateHook),
        V(WaitingForInfrastructureDeletion), V(WaitingForBootstrapDeletion), V(DeletingNode), V(DeletionCompleted).
      type: str
      sample: WaitingForPreDrainHook
    waiting_for:
      description: The point at which its deletion waits for hooks, V(pre-drain) or V(pre-terminate); null if it does
        not wait.
      type: str
      sample: pre-drain
    waiting_since:
      description: When it began to wait there, as Cluster API recorded it; null if it does not wait.
      type: str
      sample: "2026-11-21T09:00:00Z"
    paused:
      description: Whether the Machine or its Cluster is paused. Then Cluster API and the role machine_guard wait.
      type: bool
    hooks:
      description: All its hooks.
      type: list
      elements: dict
      contains:
        point:
          description: Where the deletion waits, V(pre-drain) or V(pre-terminate).
          type: str
          sample: pre-drain
        hook:
          description: Its name; empty for an annotation that is only the prefix.
          type: str
          sample: backup
        owner:
          description: The annotation's value. Hooks of this collection name their owner there.
          type: str
          sample: backup-team
        annotation:
          description: The whole annotation.
          type: str
          sample: pre-drain.delete.hook.machine.cluster.x-k8s.io/backup
waited:
  description: Seconds waited.
  type: float
  returned: success
  sample: 12.5
error:
  description: What kind of failure it was, for example V(invalid_input), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: api_unreachable
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.hook_info import deletion_hook_info

OPERATION = deletion_hook_info
SPEC: dict[str, Any] = {
    "argument_spec": {
        "machine": {"type": "str", "aliases": ["name"]},
        "namespace": {"type": "str"},
        "hook": {"type": "str"},
        "selector": {"type": "str"},
        "wait_for": {"type": "str", "choices": ["none", "waiting"], "default": "none"},
        "wait_timeout": {"type": "int", "default": 3600},
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

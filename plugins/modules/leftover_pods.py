#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: leftover_pods
short_description: Remove the finished pods that a node's shutdown left
version_added: 0.1.0
description:
  - A kubelet that ends pods for a shutdown leaves them as Completed or Failed. This module reports and removes these
    pods.
  - The module removes only pods whose controllers replace them and ignore the old ones, which are the controllers of
    the API groups C(apps) and core. It keeps pods of Jobs and of unknown controllers, because these controllers count
    or may count their pods. It keeps pods without an owner, because only the object says how the pod ended. RV(pods)
    names the kept pods, too.
  - The module ignores static pods, because the kubelet itself starts them again.
options:
  state:
    description:
      - V(absent) removes the pods, V(reported) only reports them.
    type: str
    choices: [absent, reported]
    default: absent
  force:
    description:
      - Whether to remove also the pods that are otherwise kept. Their logs are then lost.
    type: bool
    default: false
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Remove finished pods after a reboot
  holdfast.kubernetes.leftover_pods:
    name: node-1

- name: Only report what a shutdown left
  holdfast.kubernetes.leftover_pods:
    name: node-1
    state: reported
"""

RETURN = r"""
pods:
  description: The pods found, whether removed or not.
  type: list
  elements: dict
  returned: success, and if a removal fails
  contains:
    namespace:
      description: Namespace of the pod.
      type: str
      sample: shop
    name:
      description: Name of the pod.
      type: str
      sample: web-0
    uid:
      description: UID of the pod.
      type: str
      sample: 4f1c2d1e-8d0a-4c0e-9d5b-6d0f3b5e7a11
    phase:
      description: How the pod ended.
      type: str
      sample: Failed
    reason:
      description:
        - V(Terminated) by the shutdown, V(TerminationByKubelet) if it still ended successfully, or V(NodeShutdown) if
          it arrived after the shutdown had begun and was refused.
      type: str
      sample: Terminated
    kept:
      description: Why it is not removed without O(force); null if nothing requires keeping it.
      type: str
      sample: Job backup-29 counts its pods, or may
    removed:
      description: Whether it was removed; in check mode, whether it would be.
      type: bool
      sample: true
error:
  description: What kind of failure it was, for example V(refused), V(held), V(timed_out), V(not_found), V(invalid_input),
    V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: timed_out
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import NODE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.leftovers import leftover_pods

OPERATION = leftover_pods
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "state": {"type": "str", "choices": ["absent", "reported"], "default": "absent"},
        "force": {"type": "bool", "default": False},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

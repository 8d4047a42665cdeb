#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: lease_hold_info
short_description: List who holds which nodes, and wait until a node is free
version_added: 0.1.0
description:
  - Lists the Leases that hold nodes, oldest first.
  - With O(wait_for=free), first waits by a watch until nobody holds the node.
options:
  node:
    description:
      - Name of the Node. By default all.
    type: str
  namespace:
    description:
      - Namespace of the Leases. By default all.
    type: str
  wait_for:
    description:
      - V(free) waits until nobody holds O(node), which it needs.
    type: str
    choices: [none, free]
    default: none
  wait_timeout:
    description:
      - Seconds to wait with O(wait_for=free); then the task fails and names the holders.
    type: int
    default: 3600
seealso:
  - module: holdfast.kubernetes.lease_hold
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: List who holds nodes
  holdfast.kubernetes.lease_hold_info:
  register: result

- name: Wait until nobody holds this one
  holdfast.kubernetes.lease_hold_info:
    node: node-1
    wait_for: free
    wait_timeout: 14400
"""

RETURN = r"""
holds:
  description: The holds.
  type: list
  elements: dict
  returned: success, and failure of a wait
  contains:
    node:
      description: Name of the Node.
      type: str
      sample: node-1
    namespace:
      description: Namespace of the Lease.
      type: str
      sample: payments
    holder:
      description: Who holds the node.
      type: str
      sample: firmware-update
    acquired:
      description: When the hold began, as the holder recorded it.
      type: str
      sample: "2026-11-21T09:00:00.000000Z"
    held_seconds:
      description: Duration of the hold in seconds, by the API server's clock.
      type: int
      sample: 312
    reason:
      description: The reason, if the holder gave one.
      type: str
      sample: flashing the controller
waited:
  description: Seconds waited.
  type: float
  returned: success
  sample: 12.5
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
from ansible_collections.holdfast.kubernetes.plugins.module_utils._holds.leases import lease_hold_info

OPERATION = lease_hold_info
SPEC: dict[str, Any] = {
    "argument_spec": {
        "node": {"type": "str"},
        "namespace": {"type": "str"},
        "wait_for": {"type": "str", "choices": ["none", "free"], "default": "none"},
        "wait_timeout": {"type": "int", "default": 3600},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

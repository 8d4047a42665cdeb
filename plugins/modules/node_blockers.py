#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_blockers
short_description: List the pods and Prometheus alerts that block a reboot of a node, and wait until there are none
version_added: 0.1.0
description:
  - Checks whether pods of the node, or alerts of a Prometheus, block its reboot now, and can wait until nothing blocks.
    It does not check holds, because the reboot itself checks them.
  - Without O(wait_timeout), it checks once and never fails because of a blocker. With O(wait_timeout), it returns as
    soon as nothing blocks, and fails when the time has passed.
  - A Prometheus that can't be reached, or that does not answer with its alerts, is a blocker itself. A Prometheus that
    has just started and has not evaluated its rules is also a blocker, because it knows no alerts yet.
options:
  wait_timeout:
    description:
      - Seconds to wait until nothing blocks.
    type: int
    default: 0
  interval:
    description:
      - Seconds between two requests to the Prometheus during the wait. Pods are watched instead.
    type: int
    default: 15
seealso:
  - module: holdfast.kubernetes.node_info
  - module: holdfast.kubernetes.lease_hold
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.shared.blockers
  - holdfast.kubernetes.shared.waiting_run
  - holdfast.kubernetes.shared.holder
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
attributes:
  check_mode:
    support: full
    details:
      - This module changes nothing. In check mode it looks once and does not wait.
  diff_mode:
    support: N/A
    details:
      - This module changes nothing.
  idempotent:
    support: full
    details:
      - This module changes nothing.
"""

EXAMPLES = r"""
---
- name: Check whether a backup runs on the node, or a critical alert is active anywhere
  holdfast.kubernetes.node_blockers:
    name: node-1
    pods:
      - selector: app=backup
      - selector: app.kubernetes.io/component in (builder, runner)
        namespace: ci
    alerts:
      url: http://prometheus.monitoring.svc:9090
      ignore: ^(Watchdog|RebootRequired|InfoInhibitor)$
      labels:
        severity: critical
  register: result

- name: Wait for an hour until no alert of this node fires
  holdfast.kubernetes.node_blockers:
    name: node-1
    alerts:
      url: https://prometheus.example.com
      token: "{{ prometheus_token }}"
      only: ^(Node|Ceph)
      node_label: node
      firing_only: true
    wait_timeout: 3600
    run: "4711"
"""

RETURN = r"""
blockers:
  description: What blocks; empty if nothing does.
  type: list
  elements: dict
  returned: success, and failure because of them
  contains:
    kind:
      description: V(pod) or V(alert).
      type: str
      sample: alert
    name:
      description: Name of the pod or of the alert. If the Prometheus does not report its alerts, its URL.
      type: str
      sample: NodeFilesystemAlmostOutOfSpace
    namespace:
      description: Namespace of the pod; null for an alert.
      type: str
      sample: ci
    reason:
      description: Why it blocks.
      type: str
      sample: firing since 2026-11-21T09:00:00Z (node=node-1, severity=critical)
waited:
  description: Seconds that it took.
  type: float
  returned: success, and failure because of blockers
  sample: 41.3
node:
  description: The node.
  type: str
  returned: failure because of blockers
  sample: node-1
error:
  description: What kind of failure it was, for example V(timed_out), V(not_found), V(invalid_input), V(api) or
    V(api_unreachable).
  type: str
  returned: failure
  sample: timed_out
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import (
    BLOCKERS,
    HOLDER,
    NODE,
    WAITING_RUN,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.blockers import node_blockers

OPERATION = node_blockers
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        **BLOCKERS,
        "wait_timeout": {"type": "int", "default": 0},
        "interval": {"type": "int", "default": 15},
        **WAITING_RUN,
        **HOLDER,
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

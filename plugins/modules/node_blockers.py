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
    soon as nothing blocks, and fails when the time is over.
  - A Prometheus that can't be reached, or that does not answer with its alerts, is a blocker itself. A Prometheus that
    has just started and has not evaluated its rules is also a blocker, because it knows no alerts yet.
options:
  pods:
    description:
      - Pods that block while they are on the node and have not ended. A pod whose phase is C(Succeeded) or C(Failed)
        has ended.
    type: list
    elements: dict
    suboptions:
      selector:
        description:
          - Label selector of the pods.
        type: str
        required: true
      namespace:
        description:
          - Namespace of the pods. By default all namespaces.
        type: str
  alerts:
    description:
      - Alerts that block. An alert blocks unless one of the suboptions excludes it.
    type: dict
    suboptions:
      url:
        description:
          - Base URL of the Prometheus, or of a server with the same HTTP API (C(/api/v1/alerts) and C(/api/v1/rules))
            below a path.
          - The module does not follow redirects. It uses the proxies of the environment (C(HTTP_PROXY), C(HTTPS_PROXY),
            C(NO_PROXY)).
        type: str
        required: true
      only:
        description:
          - Regular expression. Only alerts whose name has a match block. By default all do.
          - All regular expressions here use Python's syntax and may match anywhere in the name; use C(^) and C($) for
            the whole name. Nested repetitions such as C((a+)+$) can take very long, and no limit applies.
        type: str
      ignore:
        description:
          - Regular expression. Alerts whose name has a match do not block, like those of kured's C(--alert-filter-regexp).
        type: str
      firing_only:
        description:
          - Whether only firing alerts block. By default pending ones do, too.
          - Shortly after its start, a Prometheus reports firing alerts as pending.
        type: bool
        default: false
      labels:
        description:
          - Only alerts with all of these labels block.
        type: dict
      node_label:
        description:
          - Name of a label, for example V(node). Only alerts that have it, with the name of the Node as its value, block.
        type: str
      token:
        description:
          - Bearer token.
        type: str
      username:
        description:
          - User name for basic authentication.
        type: str
      password:
        description:
          - Password for basic authentication.
        type: str
      ca_cert:
        description:
          - File with the certificates of the authorities to trust. By default those of the system.
        type: path
      validate_certs:
        description:
          - Whether the certificate of the server is verified.
        type: bool
        default: true
      timeout:
        description:
          - Seconds to wait for one answer.
        type: int
        default: 10
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
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import HOLDER, NODE, WAITING_RUN
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.blockers import node_blockers

OPERATION = node_blockers
PODS: dict[str, Any] = {
    "selector": {"type": "str", "required": True},
    "namespace": {"type": "str"},
}
ALERTS: dict[str, Any] = {
    "url": {"type": "str", "required": True},
    "only": {"type": "str"},
    "ignore": {"type": "str"},
    "firing_only": {"type": "bool", "default": False},
    "labels": {"type": "dict"},
    "node_label": {"type": "str"},
    "token": {"type": "str", "no_log": True},
    "username": {"type": "str"},
    "password": {"type": "str", "no_log": True},
    "ca_cert": {"type": "path"},
    "validate_certs": {"type": "bool", "default": True},
    "timeout": {"type": "int", "default": 10},
}
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "pods": {"type": "list", "elements": "dict", "options": PODS},
        "alerts": {
            "type": "dict",
            "options": ALERTS,
            "mutually_exclusive": [["token", "username"]],
            "required_together": [["username", "password"]],
        },
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

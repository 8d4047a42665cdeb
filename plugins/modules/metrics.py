#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: metrics
short_description: Publish metrics about reboots, holds and budgets for Prometheus
version_added: 0.1.0
description:
  - Reads holds, slots, records of operations and runs from the cluster, and writes them in Prometheus' text format to a file
    for node_exporter's textfile collector, to a push gateway, or to both.
  - The role P(holdfast.kubernetes.rolling_reboot#role) calls it at the end of a run and of a plan.
  - Works in check mode as well, because it changes nothing in the cluster.
options:
  file:
    description:
      - Path of the file. It is replaced in one step. Its name must end in C(.prom) for the collector to read it.
    type: path
  results:
    description:
      - The entries C(nodes) of a report or a plan. Without them, there is no C(holdfast_reboot_required) and no
        C(holdfast_run_nodes).
    type: list
    elements: dict
    default: []
  operation:
    description:
      - Id of the operation of O(results).
    type: str
  run:
    description:
      - Id of the run of O(results).
    type: str
  best_effort:
    description:
      - Whether the task warns, and does not fail, if the metrics can't be published. Without O(file) and O(pushgateway), it
        then does nothing.
    type: bool
    default: false
author:
  - holdfast.kubernetes contributors (@holdfast)
attributes:
  check_mode:
    support: full
    details:
      - The metrics are also published in check mode, because a plan has metrics, too.
extends_documentation_fragment:
  - holdfast.kubernetes.shared.pushgateway
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.info_module
seealso:
  - module: holdfast.kubernetes.doctor
"""

EXAMPLES = r"""
---
- name: Write metrics for node_exporter
  holdfast.kubernetes.metrics:
    file: /var/lib/prometheus/node-exporter/holdfast.prom

- name: Send metrics to a push gateway
  holdfast.kubernetes.metrics:
    pushgateway:
      url: http://pushgateway.monitoring:9091/metrics/job/holdfast/cluster/production
"""

RETURN = r"""
metrics:
  description: The metrics; empty if they were not published.
  type: str
  returned: success
error:
  description: What kind of failure it was, for example V(not_published), V(invalid_input), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: not_published
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import PUSHGATEWAY
from ansible_collections.holdfast.kubernetes.plugins.module_utils._metrics.publish import metrics

OPERATION = metrics
SPEC: dict[str, Any] = {
    "argument_spec": {
        "file": {"type": "path"},
        "results": {"type": "list", "elements": "dict", "default": []},
        "operation": {"type": "str"},
        "run": {"type": "str"},
        "best_effort": {"type": "bool", "default": False},
        **PUSHGATEWAY,
        **auth_options(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

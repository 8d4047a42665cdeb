#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: failover_step
short_description: Start or resume the failover of a node, and return its next step
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Checks whether a node may be fenced, claims it, and creates the record of its failover in the annotation
    C(holdfast.dev/failover). If another run left a record, it resumes that failover. The role
    P(holdfast.kubernetes.failover#role) then carries out RV(step).
  - It first watches a node that is not Ready for O(confirm_seconds). It refuses a node that is or becomes Ready, shuts
    down, is held, has a slot of a live run, or is claimed by a live run. It also refuses a node while more nodes than
    O(max_unhealthy) are down, if etcd would lose its quorum without the node, and if the node is being recovered and
    still has the taint. It then changes nothing.
  - With O(direction=recover), starts the recovery. If the Node no longer has the record, because someone removed it or
    the Node was deleted and created again, it resumes from the last failover in the ConfigMap C(failovers). It refuses
    a node that someone else has declared out of service, and that was not failed over.
  - In both directions, it refuses a damaged record.
options:
  direction:
    description:
      - Whether to fail the node over or to recover it.
    type: str
    choices: [failover, recover]
    default: failover
  reason:
    description:
      - Why, for people.
    type: str
  fence:
    description:
      - How the node is fenced, for people and for the recovery.
    type: str
  confirm_seconds:
    description:
      - Seconds for which the node must be not Ready, by the API server's clock. This also applies to a failover that
        has failed before.
    type: int
    default: 30
  selector:
    description:
      - Label selector of the Nodes that O(max_unhealthy) counts. All by default.
    type: str
  max_unhealthy:
    description:
      - How many of these Nodes may be not Ready, including this one. A number, or a share such as V(40%), rounded down
        but at least 1. With V(0) nothing is failed over.
    type: str
    default: 40%
  etcd_selector:
    description:
      - Label selector of etcd's pods in the namespace C(kube-system).
    type: str
    default: component=etcd
  quorum_asked:
    description:
      - Whether another check has already confirmed that a member of etcd may go. If true, the module does not check
        etcd's pods.
    type: bool
    default: false
  override_holds:
    description:
      - Fences a node although someone holds it.
    type: bool
    default: false
  claim_timeout:
    description:
      - Seconds to wait until it is known whether the run that has the claim is live. The wait ends earlier when that
        run gives its next sign of life, or counts as dead after 90 seconds.
    type: int
    default: 120
seealso:
  - module: holdfast.kubernetes.failover_record
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.shared.run
  - holdfast.kubernetes.shared.holder
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Start or resume the failover of a node
  holdfast.kubernetes.failover_step:
    name: worker-3
    run: "4711"
    holder: ada@bastion
    fence: metal3
  register: next
"""

RETURN = r"""
step:
  description: The next step. V(fence) means to switch the node off and to prove that it is off. V(taint) means to
    declare it out of service and to wait until its workloads have moved. V(stop) means that the node came back, and
    that the earlier steps must be undone. V(power_on) is the first step of the recovery. V(done) means that there is no
    step left.
  type: str
  returned: success, or if another run has claimed the node that should be failed over
  sample: fence
operation:
  description: Id of the failover; empty if there is none.
  type: str
  returned: success
  sample: worker-3.20261121T090000Z
resumed:
  description: Whether an earlier run started it.
  type: bool
  returned: success
taken_from:
  description: The dead run that had the claim before; null if there was none.
  type: str
  returned: success
record:
  description: The record on the Node; null if there is none. See M(holdfast.kubernetes.failover_record).
  type: dict
  returned: success
facts:
  description: What was recorded for later steps, such as the fencing method and the host.
  type: dict
  returned: success
  sample: {fence: metal3, host: rack-3-unit-7, namespace: metal, key: holdfast-failover}
exists:
  description: Whether the Node exists. If its failover has deleted it, the failover is complete, and
    O(direction=recover) only has to switch its machine on.
  type: bool
  returned: success
boot_id:
  description: The Node's boot ID.
  type: str
  returned: success
boot_id_before:
  description: The boot ID that must have changed when the node is back; empty if the node may never have been off.
  type: str
  returned: success
now:
  description: The time by the API server's clock.
  type: str
  returned: success
  sample: "2026-11-21T09:00:00.000000Z"
waited:
  description: Seconds waited.
  type: float
  returned: success
why:
  description: Why the node was refused, as one word, for example V(ready), V(shutting_down), V(in_slot), V(storm),
    V(quorum), V(recover_first), V(not_ours) or V(broken_record).
  type: str
  returned: refused
  sample: storm
error:
  description: What kind of failure it was, for example V(refused), V(held), V(claimed), V(not_found), V(invalid_input), V(api)
    or V(api_unreachable).
  type: str
  returned: failure
  sample: refused
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import HOLDER, NODE, RUN
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.steps import failover_step

OPERATION = failover_step
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "direction": {"type": "str", "choices": ["failover", "recover"], "default": "failover"},
        **RUN,
        **HOLDER,
        "reason": {"type": "str"},
        "fence": {"type": "str"},
        "confirm_seconds": {"type": "int", "default": 30},
        "selector": {"type": "str"},
        "max_unhealthy": {"type": "str", "default": "40%"},
        "etcd_selector": {"type": "str", "default": "component=etcd"},
        "quorum_asked": {"type": "bool", "default": False},
        "override_holds": {"type": "bool", "default": False},
        "claim_timeout": {"type": "int", "default": 120},
        **auth_options(),
    },
    "supports_check_mode": True,
}


def kept_run(params: dict[str, Any], result: dict[str, Any]) -> str:
    """The run whose Lease is renewed after this task, until the controller ends; empty for none."""
    return params["run"] if result.get("changed") else ""


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

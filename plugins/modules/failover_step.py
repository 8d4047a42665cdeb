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
  - Looks whether a node may be fenced, claims it, and begins the record of its failover in the annotation
    C(holdfast.dev/failover). Where another run left one behind, goes on with that. The role
    P(holdfast.kubernetes.failover#role) then does the step that is in RV(step).
  - A node that is not Ready is watched for O(confirm_seconds) first. Refused is one that is or becomes Ready, shuts down, is
    held, stands in a slot of a run that lives, or is claimed by one; and any, while more nodes are down than
    O(max_unhealthy), or where etcd would lose its quorum with it; and one that is on its way back, under the taint still. Nothing
    is changed then.
  - With O(direction=recover) the way back is begun. Where the record is not on the Node any more, because someone removed it or
    the Node was deleted and made anew, what the ConfigMap C(failovers) keeps of the last failover is resumed. Refused is a
    node that someone else has declared out of service, and that was not failed over.
  - A record that someone broke is refused, in both directions.
options:
  direction:
    description:
      - Whether the node is failed over or brought back.
    type: str
    choices: [failover, recover]
    default: failover
  reason:
    description:
      - Why, for people.
    type: str
  fence:
    description:
      - How the node is to be fenced, for people and for the way back.
    type: str
  confirm_seconds:
    description:
      - Seconds for which the node must be not Ready, by the API server's clock. Of a failover that has failed before, too.
    type: int
    default: 30
  selector:
    description:
      - Label selector of the Nodes that O(max_unhealthy) is about; all by default.
    type: str
  max_unhealthy:
    description:
      - How many of them may be not Ready, this one included. A number, or a share such as V(40%) that is rounded down but is at
        least 1. With 0 nothing is failed over.
    type: str
    default: 40%
  etcd_selector:
    description:
      - Label selector of etcd's pods in the namespace C(kube-system).
    type: str
    default: component=etcd
  quorum_asked:
    description:
      - Whether something else has said that a member of etcd may go, so that its pods are not looked at.
    type: bool
    default: false
  override_holds:
    description:
      - Fences a node although someone holds it.
    type: bool
    default: false
  claim_timeout:
    description:
      - Seconds to wait until it is known whether a run that has the claim lives. It is waited for no longer than until it gives
        its next sign of life, or is dead after 90 seconds.
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
- name: Begin the failover of a node, or go on with it
  holdfast.kubernetes.failover_step:
    name: worker-3
    run: "4711"
    holder: ada@bastion
    fence: metal3
  register: next
"""

RETURN = r"""
step:
  description: What is to be done next. V(fence) means to switch the node off and prove that, V(taint) to declare it out of
    service and see its workloads move. V(stop) means that it came back, so that what was done is to be undone. V(power_on) is
    the first step of the way back. V(done) means that nothing is left to do.
  type: str
  returned: success, or where another run has claimed the node that is to be failed over
  sample: fence
operation:
  description: Id of the failover; empty if there is none.
  type: str
  returned: success
  sample: worker-3.20261121T090000Z
resumed:
  description: Whether a run before has begun it.
  type: bool
  returned: success
taken_from:
  description: The dead run that had the claim before; null if there was none.
  type: str
  returned: success
record:
  description: What stands on the Node; null if there is nothing. See M(holdfast.kubernetes.failover_record).
  type: dict
  returned: success
facts:
  description: What was recorded for later steps, such as the way of fencing and the host.
  type: dict
  returned: success
  sample: {fence: metal3, host: rack-3-unit-7, namespace: metal, key: holdfast-failover}
exists:
  description: Whether the Node exists. Where its own failover has deleted it, that is over, and with O(direction=recover)
    there is only its machine to be switched on.
  type: bool
  returned: success
boot_id:
  description: The Node's boot ID.
  type: str
  returned: success
boot_id_before:
  description: The boot ID that it must not have any more when it is back; empty if it may never have been off.
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
  description: In one word, why it was refused, for example V(ready), V(shutting_down), V(in_slot), V(storm), V(quorum),
    V(recover_first), V(not_ours) or V(broken_record).
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

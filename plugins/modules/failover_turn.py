# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: failover_turn
short_description: Say what is next in the failover of a node or in its recovery, and record what was done
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - With O(done=claim), checks whether a node may be failed over or recovered, and claims it. If another run left a record
    in the annotation C(holdfast.dev/failover) of the Node, it resumes that failover. The role
    P(holdfast.kubernetes.failover#role) then carries out RV(steps), and calls this module after each of them. It records
    the step that is done and the phase that begins, and returns what is next.
  - It checks the node, watches it for C(confirm_seconds) while it is not Ready, and checks it again. It refuses a node that
    is or becomes Ready, shuts down, is held, has a slot of a live run, or is claimed by a live run. It also refuses a node
    while more nodes than C(max_unhealthy) are down, if etcd would lose its quorum without the node, if metal3 would not
    switch its host off, and if the node is being recovered and still has the taint. It then changes nothing.
  - With O(direction=recover), if the Node no longer has the record, because someone removed it or the Node was deleted and
    created again, it resumes from the last failover in the ConfigMap C(failovers) in the namespace C(holdfast). This
    ConfigMap keeps the last 50 failovers, and those whose node is not back. It refuses a node that someone else has
    declared out of service, and that was not failed over. It also refuses a node that has booted since, while metal3
    still keeps the host off that was failed over.
  - In both directions, it refuses a damaged record.
  - With O(failed), leaves a node in order after a failure.
options:
  direction:
    description:
      - Whether to fail the node over or to recover it.
    type: str
    choices: [failover, recover]
    default: failover
  name:
    description:
      - The Node. Needed for O(done=settings) and O(done=claim).
    type: str
  done:
    description:
      - The last step that is done. With V(settings), checks only the variables of one node. With V(nothing), checks the
        nodes together and names the run. With V(claim), starts with a node.
    type: str
    choices: [settings, nothing, claim, cordon, fence, taint, move, power_on, ready, in_service, uncordon]
    default: claim
  turn:
    description:
      - What the last call of this module returned.
    type: dict
    default: {}
  last:
    description:
      - What the step that is done returned.
    type: dict
    default: {}
  failed:
    description:
      - What the task that failed returned.
    type: dict
  task:
    description:
      - Name of the task that failed.
    type: str
  settings:
    description:
      - The variables of the role for this node.
    type: dict
    default: {}
  given:
    description:
      - Names of the secret variables that are set.
    type: list
    elements: str
    default: []
  checked:
    description:
      - What this module returned for each node, for O(done=nothing).
    type: list
    elements: dict
    default: []
  node_name:
    description:
      - The name of the node in its variables, for O(done=settings).
    type: str
  who:
    description:
      - Who runs this, for O(done=nothing).
    type: dict
    default: {}
  inventory_host:
    description:
      - The host of the playbook. Its last answer is kept for a later task that fails before its module runs.
    type: str
  unchecked_redfish_uri:
    description:
      - The URL of the machine at its BMC, for O(done=settings). It may have a password in it.
    type: str
  redfish_uri:
    description:
      - The URL of the machine at its BMC.
    type: str
  quorum_command:
    description:
      - The user's command that says whether a member of etcd may go. The module asks it before the claim, and again
        directly before the node is switched off. If it is given, etcd's pods are not checked.
    type: str
  proof:
    description:
      - Secrets that belong to the evidence.
    type: dict
    default: {}
    suboptions:
      password:
        description:
          - Password at the BMC.
        type: str
      command:
        description:
          - The command that says whether the machine is off.
        type: str
      agent:
        description:
          - The fence agent as JSON text, with C(name), C(plug) and C(options).
        type: str
seealso:
  - module: holdfast.kubernetes.failover_power
  - module: holdfast.kubernetes.out_of_service
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.holder
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Claim the node, or resume what another run left
  holdfast.kubernetes.failover_turn:
    name: worker-3
    settings: "{{ settings }}"
    turn: "{{ turn }}"
  register: turn

- name: Keep new pods away until the node is back in service
  holdfast.kubernetes.cordon:
    name: "{{ turn.node }}"
    owner: failover
    run: "{{ turn.run }}"
  when: "'cordon' in turn.steps"

- name: Look once more, and record how the machine is switched off
  holdfast.kubernetes.failover_turn:
    settings: "{{ settings }}"
    turn: "{{ turn }}"
    done: cordon
  register: turn
"""

RETURN = r"""
step:
  description: V(go) if there is more to do, V(skipped) if nothing is left, V(planned) in check mode, V(ended) otherwise.
  type: str
  returned: success
  sample: go
why:
  description: Why, as text. On failure, one word, for example V(ready), V(shutting_down), V(in_slot), V(storm), V(quorum),
    V(recover_first), V(not_ours) or V(broken_record).
  type: str
  returned: success, or refused
  sample: storm
steps:
  description: The steps of the role that follow now.
  type: list
  elements: str
  returned: success
  sample: [fence]
node:
  description: The Node.
  type: str
  returned: success
run:
  description: Id of this run for this Node.
  type: str
  returned: success
  sample: bastion/20261121T090000Z-17/worker-3
operation:
  description: Id of the failover; empty if there is none.
  type: str
  returned: success
  sample: worker-3.20261121T090000Z
facts:
  description: How the machine is switched off and on.
  type: dict
  returned: success
  sample: {fence: metal3, host: rack-3-unit-7, namespace: metal, key: holdfast-failover, mode: soft}
method:
  description: How the machine is switched.
  type: str
  returned: success
  sample: metal3
bmc:
  description: The machine at its BMC, without a password.
  type: dict
  returned: success
then:
  description: The other ways to switch the machine off, each with C(method), C(facts) and C(bmc), in their order.
  type: list
  elements: dict
  returned: success
evidence:
  description: What proves that the machine is off, without secrets.
  type: dict
  returned: success
progress:
  description: How far this run has come with the node.
  type: dict
  returned: always
report:
  description: The results of the nodes so far.
  type: dict
  returned: always
machines:
  description: What stands for the machine of the node in each way to fence, for O(done=settings).
  type: list
  elements: str
  returned: success
error:
  description: What kind of failure it was, for example V(refused), V(held), V(claimed), V(came_back), V(claim_lost),
    V(timed_out), V(not_found), V(invalid_input), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: refused
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import HOLDER
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.turn import failover_turn

OPERATION = failover_turn
_DONE = (
    "settings",
    "nothing",
    "claim",
    "cordon",
    "fence",
    "taint",
    "move",
    "power_on",
    "ready",
    "in_service",
    "uncordon",
)
_PROOF: dict[str, dict[str, Any]] = {
    "password": {"type": "str", "no_log": True},
    "command": {"type": "str"},
    "agent": {"type": "str", "no_log": True},
}
# They may contain a password.
UNSHOWN = {"proof": ("command",)}
SPEC: dict[str, Any] = {
    "argument_spec": {
        "direction": {"type": "str", "choices": ["failover", "recover"], "default": "failover"},
        "name": {"type": "str"},
        "done": {"type": "str", "choices": list(_DONE), "default": "claim"},
        "turn": {"type": "dict", "default": {}},
        "last": {"type": "dict", "default": {}},
        "failed": {"type": "dict"},
        "task": {"type": "str"},
        "settings": {"type": "dict", "default": {}},
        "given": {"type": "list", "elements": "str", "default": []},
        "checked": {"type": "list", "elements": "dict", "default": []},
        "node_name": {"type": "str"},
        "who": {"type": "dict", "default": {}},
        "inventory_host": {"type": "str"},
        "unchecked_redfish_uri": {"type": "str", "no_log": True},
        "redfish_uri": {"type": "str"},
        "quorum_command": {"type": "str", "no_log": True},
        "proof": {"type": "dict", "default": {}, "options": _PROOF},
        **HOLDER,
        **auth_options(),
        **management_option(),
    },
    "required_if": [("done", "settings", ("name",)), ("done", "claim", ("name",))],
    "supports_check_mode": True,
}


def kept_run(params: dict[str, Any], result: dict[str, Any]) -> str:
    """The run whose Lease is renewed after this task, until the controller ends; empty for none."""
    begun = params["done"] == "claim" and params["failed"] is None and result["step"] == "go"
    return str(result["run"]) if begun else ""


def main() -> None:
    run_module(OPERATION, SPEC, UNSHOWN)


if __name__ == "__main__":
    main()

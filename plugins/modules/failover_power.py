#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: failover_power
short_description: Switch the machine of a node off or on during its failover
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Switches the machine of a node off or on over Redfish, by a fence agent of ClusterLabs, or by a command of the user.
    With O(method=metal3), it keeps the BareMetalHost off by a reboot annotation;
    M(holdfast.kubernetes.reboot_annotation) lets it go again.
  - Before O(power=off) it checks that the run has the claim, that the node is not Ready and has not booted since the
    failover began, and that nobody holds it. It then records the phase and acts, all in one operation. If the run
    pauses in between for more than 10 seconds, it checks again.
  - Over Redfish it reads the system at O(bmc.uri), verifies that it is the machine of the node, sends the reset to the
    target that the system names, and reads the system until it reports that it is off. It keeps the path prefix of a
    gateway.
  - With a fence agent it first checks that the agent knows the plug and reports its power state. It sends C(off), which must
    end with 0, and then asks for C(status) until that reports the machine off.
  - If O(method) fails before anything was sent, because of its BMC, agent or host, it tries the ways of O(then).
options:
  power:
    description:
      - The power state to set.
    type: str
    choices: ["off", "on"]
    required: true
  method:
    description:
      - How to switch the power.
    type: str
    choices: [metal3, redfish, fence_agent, command]
    required: true
  operation:
    description:
      - Id of the failover. Needed for O(power=off).
    type: str
  run:
    description:
      - Id of the run, which must have the claim. Needed for O(power=off). Without a Node there is no claim.
    type: str
  facts:
    description:
      - What later steps, another run, or people need to know. The module records it before it acts.
      - With O(method=metal3), C(host), C(namespace), C(key) and C(mode) name the host, the key and how to switch it off.
    type: dict
  then:
    description:
      - Other ways to switch the machine off, each with C(method), C(facts) and C(bmc), in their order.
    type: list
    elements: dict
    default: []
  attempts:
    description:
      - Ways that were left out before, each with C(method) and C(why). They are recorded.
    type: list
    elements: dict
    default: []
  soft_timeout:
    description:
      - Seconds for a soft power-off before it becomes a hard one, for O(method=metal3).
    type: int
    default: 120
  timeout:
    description:
      - Seconds until the machine must be off or on, or the command must end.
    type: int
    default: 300
  confirm_seconds:
    description:
      - Seconds that the node must stay not Ready before it is switched off, if its condition Ready has changed since the
        failover recorded it.
    type: int
    default: 30
  override_holds:
    description:
      - Switches a node off although it is held. The holds are recorded.
    type: bool
    default: false
  bmc:
    description:
      - The machine at its BMC, for O(method=redfish).
    type: dict
    suboptions:
      uri:
        description:
          - URL of the system, as V(https://BMC/redfish/v1/Systems/ID), without user and password.
        type: str
        required: true
      uuid:
        description:
          - UUID that the system must have. By default it must be the C(systemUUID) of the Node.
          - The task refuses a UUID that is the C(systemUUID) of another Node.
        type: str
      username:
        description:
          - User at the BMC.
        type: str
      password:
        description:
          - Password at the BMC.
        type: str
      validate_certs:
        description:
          - Whether the BMC's certificate is verified.
        type: bool
        default: true
      ca_cert:
        description:
          - Path of the CA certificate that the BMC is verified with.
        type: path
      insecure_http:
        description:
          - Allows a O(bmc.uri) that is not https. User and password then cross the network as plain text.
        type: bool
        default: false
  bmc_password:
    description:
      - Password at the BMC, if O(bmc) does not have it.
    type: str
  command:
    description:
      - The command of the user. The module splits it into words as a shell does, but runs it without a shell, on the
        host where this task runs.
      - In its environment, E(HOLDFAST_NODE) is the Node's name. With O(power=off), E(HOLDFAST_BOOT_ID) is its boot ID,
        and E(HOLDFAST_DEADLINE) is the time until which the check of the node counts, in seconds of C(/proc/uptime). A
        command that does not switch the machine off immediately compares the time again.
    type: str
  agent:
    description:
      - The fence agent as JSON text, with C(name), C(plug) and C(options). It runs where this task runs, and gets its options
        on its standard input.
    type: str
  command_name:
    description:
      - Name of the variable that has the command, for messages.
    type: str
seealso:
  - module: holdfast.kubernetes.failover_turn
  - module: holdfast.kubernetes.reboot_annotation
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.node
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Switch the machine off
  holdfast.kubernetes.failover_power:
    name: worker-3
    power: "off"
    method: redfish
    operation: worker-3.20261121T090000Z
    run: "4711"
    bmc:
      uri: https://bmc-7.example.com/redfish/v1/Systems/1
      username: admin
      password: "{{ bmc_password }}"
"""

RETURN = r"""
sent:
  description: Whether a request to change the power was sent, or may have been sent. False for a machine that is
    already off.
  type: bool
  returned: success, and most failures
  sample: true
method:
  description: The way that was used.
  type: str
  returned: success, and most failures
  sample: redfish
facts:
  description: What was recorded about it. C(attempts) are the ways that failed before.
  type: dict
  returned: success, and most failures
power_state:
  description: The last power state that the BMC or the fence agent reported; null with O(method=command).
  type: str
  returned: success
  sample: "Off"
uuid:
  description: UUID of the system; null with O(method=command).
  type: str
  returned: success
  sample: 38947555-7742-3448-3784-823347823834
output:
  description: The last output of a failed command or of a BMC. It is not recorded, because it may contain secrets.
  type: str
  returned: failure of the command or the BMC
error:
  description: What kind of failure it was, for example V(came_back), V(held), V(claim_lost), V(refused), V(timed_out), V(bmc),
    V(command), V(not_found), V(invalid_input), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: came_back
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import NODE
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.power import failover_power

OPERATION = failover_power
_BMC: dict[str, dict[str, Any]] = {
    "uri": {"type": "str", "required": True},
    "uuid": {"type": "str"},
    "username": {"type": "str"},
    "password": {"type": "str", "no_log": True},
    "validate_certs": {"type": "bool", "default": True},
    "ca_cert": {"type": "path"},
    "insecure_http": {"type": "bool", "default": False},
}
SPEC: dict[str, Any] = {
    "argument_spec": {
        **NODE,
        "power": {"type": "str", "choices": ["off", "on"], "required": True},
        "method": {"type": "str", "choices": ["metal3", "redfish", "fence_agent", "command"], "required": True},
        "operation": {"type": "str"},
        "run": {"type": "str"},
        "facts": {"type": "dict"},
        "timeout": {"type": "int", "default": 300},
        "confirm_seconds": {"type": "int", "default": 30},
        "override_holds": {"type": "bool", "default": False},
        "bmc": {"type": "dict", "options": _BMC},
        "bmc_password": {"type": "str", "no_log": True},
        "then": {"type": "list", "elements": "dict", "default": []},
        "attempts": {"type": "list", "elements": "dict", "default": []},
        "soft_timeout": {"type": "int", "default": 120},
        "agent": {"type": "str", "no_log": True},
        "command": {"type": "str", "no_log": True},
        "command_name": {"type": "str"},
        **auth_options(),
        **management_option(),
    },
    "required_if": [
        ("power", "off", ("operation", "run")),
        ("method", "metal3", ("facts", "run")),
        ("method", "redfish", ("bmc",)),
        ("method", "fence_agent", ("agent",)),
        ("method", "command", ("command",)),
    ],
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

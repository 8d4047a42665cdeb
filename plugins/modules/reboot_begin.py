#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_begin
short_description: Begin a rolling reboot, or resume one
version_added: 0.1.0
description:
  - Only the roles of this collection call this module; its options may change in any release.
  - Names the run, enters the operation of its group, and chooses the hosts that go first and the host that goes last.
  - The Lease of the run is renewed from then on, until the controller ends.
options:
  settings:
    description:
      - The variables of the role, as M(holdfast.kubernetes.role_settings) returns them.
    type: dict
    required: true
  who:
    description:
      - Who runs this, as M(holdfast.kubernetes.role_settings) returns it.
    type: dict
    required: true
  play:
    description:
      - V(only) is the role without the playbook.
    type: str
    choices: [begin, only]
    default: only
  inventory_host:
    description:
      - Name of this host in the inventory.
    type: str
    required: true
  hosts:
    description:
      - The Node of each host of the play, in the play's order.
    type: dict
    default: {}
  forks:
    description:
      - How many hosts the run works on at the same time.
    type: int
seealso:
  - module: holdfast.kubernetes.reboot_turn
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.alertmanager
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.change_module
"""

EXAMPLES = r"""
---
- name: Begin the operation
  holdfast.kubernetes.reboot_begin:
    settings: "{{ read.settings }}"
    who: "{{ read.who }}"
    inventory_host: "{{ inventory_hostname }}"
  register: begun
"""

RETURN = r"""
operation:
  description: Id of the operation.
  type: str
  returned: success
  sample: reboot-20261121T030000Z
adopted:
  description: Whether another run started it.
  type: bool
  returned: success
run:
  description: Id of the run.
  type: str
  returned: success
holder:
  description: Who runs it.
  type: str
  returned: success
group:
  description: The group whose ledger has the operation.
  type: str
  returned: success
began:
  description: When the run began, as a time of the API server.
  type: str
  returned: success
resumes:
  description: The hosts whose nodes an earlier run of the operation may have left in the middle of their reboot. They come
    before all others.
  type: list
  elements: str
  returned: success
hosts:
  description: All hosts of the run, in the order of the play, one in each line.
  type: str
  returned: success
own_host:
  description: The host of the node on which the controller runs; empty if there is none.
  type: str
  returned: success
paused:
  description: Whether the run has paused the NodeHealthChecks.
  type: bool
  returned: success
canaries:
  description: The hosts that go first.
  type: list
  elements: str
  returned: success
canary_nodes:
  description: The names of their Nodes.
  type: list
  elements: str
  returned: success
error:
  description: What kind of failure it was, for example V(refused), V(held), V(timed_out), V(not_found), V(invalid_input),
    V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: refused
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import ALERTMANAGER
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.begin import reboot_begin

OPERATION = reboot_begin
SPEC: dict[str, Any] = {
    "argument_spec": {
        "settings": {"type": "dict", "required": True},
        "who": {"type": "dict", "required": True},
        "play": {"type": "str", "choices": ["begin", "only"], "default": "only"},
        "inventory_host": {"type": "str", "required": True},
        "hosts": {"type": "dict", "default": {}},
        "forks": {"type": "int"},
        **ALERTMANAGER,
        **auth_options(),
    },
    "supports_check_mode": True,
}
RUN_LASTS = True


def kept_run(params: dict[str, Any], result: dict[str, Any]) -> str:
    """The run whose Lease is renewed after this task, until the controller ends."""
    return str(result["run"])


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot
short_description: Reboot a node that is free of holds, and prove that it happened
version_added: 0.1.0
description:
  - Reboots a host over its own connection as M(ansible.builtin.reboot) does, and uses its code.
  - Before the reboot, it checks the holds of the Node and block locks of logind that others hold, and checks them again
    directly before the act.
  - Reboots only while the boot ID is still the one seen first and no shutdown is in progress.
  - The command itself checks the boot ID, the locks of the node agent, and that the last look was at most 30 s ago by the node's
    uptime. A command that arrives late, from a paused controller, or twice, over a connection that repeats it, does nothing.
  - With O(operation), a reboot that an earlier run of the operation requested is not repeated. If it is under way, the module
    waits up to O(reboot_timeout) until the host answers. If it has happened, the module only waits until the Node is Ready.
  - If a hold appears after the last check, the node refuses the reboot, and the module checks the holds again. If the hold is
    still there, the task stops. If it is gone, the module repeats the command, for up to 60 s. It does not repeat your own
    O(reboot_command).
  - Success is a new boot ID over the connection and, with O(node), the same in the API with the Node Ready.
  - A host that can't be reached is an ordinary failure, so that C(rescue) and C(always) run.
options:
  node:
    description:
      - Name of the Node. Without it and O(run), the module does not use the API.
    type: str
  inhibitor_timeout:
    description:
      - Seconds to wait for foreign block locks on shutdown to be released.
    type: int
    default: 0
  etcd_selector:
    description:
      - Label selector of etcd's pods in the namespace C(kube-system). With it, the module checks after the wait of O(inhibitor_timeout),
        and again directly before the reboot, that etcd keeps its quorum without O(node), and fails if it does not.
      - Only for a control-plane node whose etcd runs in pods.
    type: str
  ready_timeout:
    description:
      - Seconds until the Node must be Ready with a new boot ID, after the host answers again.
    type: int
    default: 900
  override_holds:
    description:
      - Reboots a node although it is held, which interrupts the holder. The holds are in the result.
      - Where the node agent keeps a lock or its masks for a hold, V(systemctl reboot --force) is used, because they refuse
        all other commands. Then O(pre_reboot_delay) and O(msg) have no effect. O(reboot_command) overrides this.
    type: bool
    default: false
  pre_reboot_delay:
    description:
      - Seconds to wait before the reboot, rounded down to minutes. With a minute or more, C(shutdown) plans the reboot,
        and a hold that comes meanwhile prevents it only if the node agent has the enforcement C(strict).
    type: int
    default: 0
  post_reboot_delay:
    description:
      - Seconds to wait after the reboot command before the host is asked again.
    type: int
    default: 0
  reboot_timeout:
    description:
      - Seconds that the host may take to answer with a new boot ID.
    type: int
    default: 600
  connect_timeout:
    description:
      - Seconds for one attempt to connect.
    type: int
  test_command:
    description:
      - Command that must succeed on the host after the reboot.
    type: str
    default: whoami
  msg:
    description:
      - Message to users of the host.
    type: str
    default: Reboot initiated by Ansible
  search_paths:
    description:
      - Where to look for the reboot command.
    type: list
    elements: str
    default: [/sbin, /bin, /usr/sbin, /usr/bin, /usr/local/sbin]
  boot_time_command:
    description:
      - Command whose output changes with a reboot, asked in addition to the boot ID.
    type: str
    default: cat /proc/sys/kernel/random/boot_id
  reboot_command:
    description:
      - Command that reboots the host. By default C(systemctl reboot), or C(shutdown -r) with a O(pre_reboot_delay) of a
        minute or more.
    type: str
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.shared.claimant
  - holdfast.kubernetes.shared.phase
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
attributes:
  check_mode:
    support: full
    details:
      - The module checks holds, locks and boot IDs, and fails if they would prevent the reboot.
  diff_mode:
    support: none
  idempotent:
    support: none
    details:
      - Reboots at every run, unless it resumes the reboot of an earlier run of O(operation).
seealso:
  - module: ansible.builtin.reboot
  - module: holdfast.kubernetes.node_ready
"""

EXAMPLES = r"""
---
- name: Reboot the node that this host is
  holdfast.kubernetes.reboot:
    node: "{{ inventory_hostname }}"
    inhibitor_timeout: 600
"""

RETURN = r"""
step:
  description: V(rebooted), or V(held) if a hold refuses the reboot. With O(operation), the task does not fail then.
  type: str
  returned: with O(operation)
why:
  description: Why a hold refuses the reboot.
  type: str
  returned: if it is held
rebooted:
  description: Whether the boot ID has changed, also by a reboot that an earlier run requested.
  type: bool
  returned: always
boot_id_before:
  description: Boot ID before.
  type: str
  returned: always
  sample: 0b4dbb52-9b58-4d60-8d43-3f6d4d2f6c53
boot_id_after:
  description: Boot ID after; null if the host did not come back.
  type: str
  returned: always
  sample: 5b1f2a90-2f4d-4a58-9f6e-0f5c4f1f0a77
elapsed:
  description: Duration in seconds.
  type: float
  returned: always
  sample: 23.4
phases:
  description: Seconds until inhibitors were gone (C(inhibitors)), until the host answered (C(reboot)) and until the Node was
    Ready (C(ready)). What was not waited for is missing.
  type: dict
  returned: always
  sample: {inhibitors: 0.4, reboot: 16.1, ready: 5.2}
inhibitors:
  description: Block locks of others that prevented the reboot.
  type: list
  elements: dict
  returned: failure because of them
holds:
  description: Holds that prevented the reboot.
  type: list
  elements: dict
  returned: failure because of them
shutdown_inhibited:
  description: The holders, as V(namespace/holder), that the Node's condition C(ShutdownInhibited) named.
  type: list
  elements: str
  returned: failure because of a hold
sent:
  description: Whether the node was told to reboot, or may have been. If the task failed after that, the node may be
    off.
  type: bool
  returned: always
overridden_holds:
  description: Holds that were overridden.
  type: list
  elements: dict
  returned: when there were any
error:
  description: What kind of failure it was, for example V(refused), V(held), V(timed_out), V(not_found), V(invalid_input),
    V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: timed_out
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.shared_options import CLAIMANT, PHASE

SPEC: dict[str, Any] = {
    "argument_spec": {
        "node": {"type": "str"},
        "inhibitor_timeout": {"type": "int", "default": 0},
        "etcd_selector": {"type": "str"},
        "ready_timeout": {"type": "int", "default": 900},
        "override_holds": {"type": "bool", "default": False},
        **CLAIMANT,
        **PHASE,
        "pre_reboot_delay": {"type": "int", "default": 0},
        "post_reboot_delay": {"type": "int", "default": 0},
        "reboot_timeout": {"type": "int", "default": 600},
        "connect_timeout": {"type": "int"},
        "test_command": {"type": "str", "default": "whoami"},
        "msg": {"type": "str", "default": "Reboot initiated by Ansible"},
        "search_paths": {
            "type": "list",
            "elements": "str",
            "default": ["/sbin", "/bin", "/usr/sbin", "/usr/bin", "/usr/local/sbin"],
        },
        "boot_time_command": {"type": "str", "default": "cat /proc/sys/kernel/random/boot_id"},
        "reboot_command": {"type": "str"},
        **auth_options(),
    },
    "required_by": {"etcd_selector": ["node"]},
    "supports_check_mode": True,
}


def main() -> None:
    module = AnsibleModule(**SPEC)
    module.fail_json(msg="holdfast.kubernetes.reboot is an action plugin; run it from a playbook or with ansible.")


if __name__ == "__main__":
    main()

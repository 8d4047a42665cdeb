#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: inhibitor_lock
short_description: Take a logind inhibitor lock that outlives the task, or release it
version_added: 0.1.0
description:
  - Takes a lock of systemd-logind on the host that the task runs on, for example against shutdown.
  - A transient systemd unit holds the lock. The lock outlives the task, the connection and C(systemctl daemon-reload),
    and survives when its process is killed.
  - It does not survive a reboot. If you need it after a reboot, run the task again after each boot.
  - If the options of a lock change, the module replaces the lock. It takes the new lock before it releases the old one.
  - C(present) returns once logind lists the lock, C(absent) once logind no longer lists it.
  - The lock is not a hold of a Node. Kubernetes does not know it, but M(holdfast.kubernetes.reboot) waits for it, or
    refuses, as for any block lock.
options:
  name:
    description:
      - Name of the lock, unique on the node. logind lists it as the holder (C(who)), and it is part of the unit's name.
      - ASCII letters, digits, C(_), C(-) and C(.), at most 200 characters. V(holdfast) is reserved for the node agent.
    type: str
    required: true
  what:
    description:
      - What the lock inhibits.
      - V(handle-reboot-key) needs systemd 248.
    type: list
    elements: str
    choices:
      - shutdown
      - sleep
      - idle
      - handle-power-key
      - handle-reboot-key
      - handle-suspend-key
      - handle-hibernate-key
      - handle-lid-switch
    default: [shutdown]
  why:
    description:
      - The reason, for people. One line of at most 1024 characters, without a backslash.
      - logind garbles characters other than ASCII when it restarts. The next run of the task corrects them.
      - With O(state=absent), it is required but ignored.
    type: str
    required: true
  mode:
    description:
      - V(block) refuses the actions in O(what) until the lock is released. Up to systemd 256, only clients that check
        the locks refuse root, such as C(systemctl --check-inhibitors=yes) and M(holdfast.kubernetes.reboot).
      - V(delay) delays them, for at most C(InhibitDelayMaxSec) of logind. Only for V(shutdown) and V(sleep).
    type: str
    choices: [block, delay]
    default: block
  state:
    description:
      - V(present) takes the lock, V(absent) releases it.
    type: str
    choices: [present, absent]
    default: present
notes:
  - Runs on the host itself, as root, and needs no Kubernetes. It is not in the action group of the other modules.
  - If the Python that Ansible uses has no dbus, and the distribution's Python has it, the module uses that Python.
requirements:
  - systemd 239 or later with systemd-logind, on the host
  - python3-dbus (Debian, Ubuntu, RHEL and its derivatives have a package of this name), on the host
seealso:
  - module: holdfast.kubernetes.inhibitor_lock_info
  - module: holdfast.kubernetes.lease_hold
  - name: Inhibitor locks
    description: What logind's locks are.
    link: https://systemd.io/INHIBITOR_LOCKS/
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.attributes
attributes:
  check_mode:
    support: full
    details:
      - Examines the node and fails as a real run would, except for problems that only logind finds when it is asked for
        a lock.
  diff_mode:
    support: full
  idempotent:
    support: full
  platform:
    description: What the host needs.
    support: full
    platforms: posix
    details:
      - Linux with systemd.
"""

EXAMPLES = r"""
---
- name: Keep the host up while its firmware is written
  holdfast.kubernetes.inhibitor_lock:
    name: firmware
    why: writes the storage controller's firmware

- name: Release it
  holdfast.kubernetes.inhibitor_lock:
    name: firmware
    why: it is written
    state: absent

- name: Delay a shutdown or a suspend as long as logind allows
  holdfast.kubernetes.inhibitor_lock:
    name: flush
    what: [shutdown, sleep]
    why: flushes its caches
    mode: delay
"""

RETURN = r"""
lock:
  description: The lock as logind lists it; null if there is none. In check mode, it lacks the values that only a real
    lock has.
  type: dict
  returned: success
  contains:
    what:
      description: What the lock inhibits.
      type: list
      elements: str
      sample: [shutdown]
    who:
      description: The holder, which is O(name).
      type: str
      sample: firmware
    why:
      description: Why.
      type: str
      sample: writes the storage controller's firmware
    mode:
      description: V(block) or V(delay).
      type: str
      sample: block
    uid:
      description: User that holds it.
      type: int
      sample: 0
    pid:
      description: Process that holds it.
      type: int
      sample: 4711
    since:
      description: When it was taken, by the node's clock.
      type: str
      sample: "2026-11-21T09:00:00Z"
    unit:
      description: Unit that holds it.
      type: str
      sample: holdfast-lock-firmware.service
unit:
  description: Unit that holds the lock; null if there is none. A lock of one name exists once, in one of two units. The
    second unit has V(:2) in its name and is used when a lock replaces another.
  type: str
  returned: success
  sample: holdfast-lock-firmware.service
error:
  description: What kind of failure it was, for example V(invalid_input), V(refused), V(timed_out), V(missing_library) or
    V(dbus).
  type: str
  returned: failure
  sample: refused
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.lock import inhibitor_lock
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.runner import run_module

OPERATION = inhibitor_lock
SPEC: dict[str, Any] = {
    "argument_spec": {
        "name": {"type": "str", "required": True},
        "what": {
            "type": "list",
            "elements": "str",
            "choices": [
                "shutdown",
                "sleep",
                "idle",
                "handle-power-key",
                "handle-reboot-key",
                "handle-suspend-key",
                "handle-hibernate-key",
                "handle-lid-switch",
            ],
            "default": ["shutdown"],
        },
        "why": {"type": "str", "required": True},
        "mode": {"type": "str", "choices": ["block", "delay"], "default": "block"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

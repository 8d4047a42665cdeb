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
  - The lock is held by a transient unit of systemd. It outlives the task, the connection and C(systemctl daemon-reload),
    and is kept where its process is killed.
  - It does not outlive a boot. Make the task part of what runs after a boot if it has to.
  - A lock that is to say something else is replaced. The new one is there before the old one goes.
  - C(present) returns once logind lists the lock, C(absent) once it does not any more.
  - No hold of a Node. Kubernetes knows nothing of it, while M(holdfast.kubernetes.reboot) waits for it, or refuses, as
    for any block lock.
options:
  name:
    description:
      - Name of the lock, one of a kind on the node. logind lists it as the holder (C(who)), and the unit is named after it.
      - Letters of ASCII, digits, C(_), C(-) and C(.), at most 200 characters. V(holdfast) is the node agent's.
    type: str
    required: true
  what:
    description:
      - What is inhibited.
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
      - Why, for people who wonder. One line of at most 1024 characters, without a backslash.
      - What is not ASCII is garbled by logind when it is restarted. The next run of the task puts it right.
      - Required, and not looked at, with O(state=absent).
    type: str
    required: true
  mode:
    description:
      - V(block) refuses what is inhibited until the lock is let go. Up to systemd 256 root is refused only by clients
        that ask, such as C(systemctl --check-inhibitors=yes) and M(holdfast.kubernetes.reboot).
      - V(delay) delays it, for at most C(InhibitDelayMaxSec) of logind. Only for V(shutdown) and V(sleep).
    type: str
    choices: [block, delay]
    default: block
  state:
    description:
      - V(present) takes the lock, V(absent) lets it go.
    type: str
    choices: [present, absent]
    default: present
notes:
  - Runs on the host itself, as root, and needs no Kubernetes. It is no part of the action group of the other modules.
  - If the Python that Ansible uses has no dbus, and the distribution's Python has it, the module uses that Python.
requirements:
  - systemd 239 or later with systemd-logind, on the host
  - python3-dbus (Debian, Ubuntu, RHEL and its kin have a package of this name), on the host
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
      - Looks at the node and refuses what would be refused, but for what only logind knows once it is asked for a lock.
  diff_mode:
    support: full
  idempotent:
    support: full
  platform:
    description: What the host must be.
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

- name: Let it go
  holdfast.kubernetes.inhibitor_lock:
    name: firmware
    why: it is written
    state: absent

- name: Have a shutdown, or a suspend, wait as long as logind allows
  holdfast.kubernetes.inhibitor_lock:
    name: flush
    what: [shutdown, sleep]
    why: flushes its caches
    mode: delay
"""

RETURN = r"""
lock:
  description: The lock as logind lists it; null if there is none. In check mode without what only a real lock has.
  type: dict
  returned: success
  contains:
    what:
      description: What is inhibited.
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
      description: Since when, by the node's clock.
      type: str
      sample: "2026-11-21T09:00:00Z"
    unit:
      description: Unit that holds it.
      type: str
      sample: holdfast-lock-firmware.service
unit:
  description: Unit that holds the lock; null if there is none. One lock of a name is there at a time, in one of two
    units, the second of which has V(:2) in its name and is used where a lock takes the place of another.
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

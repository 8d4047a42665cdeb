#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: inhibitor_lock_info
short_description: List the logind inhibitor locks on a node
version_added: 0.1.0
description:
  - Lists the locks of systemd-logind on the host that the task runs on, no matter who holds them, and says whether they
    block a shutdown.
notes:
  - Runs on the host itself and needs no Kubernetes. It is not in the action group of the other modules.
  - If the Python that Ansible uses has no dbus, and the distribution's Python has it, the module uses that Python.
requirements:
  - systemd 239 or later with systemd-logind, on the host
  - python3-dbus (Debian, Ubuntu, RHEL and its derivatives have a package of this name), on the host
seealso:
  - module: holdfast.kubernetes.inhibitor_lock
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.info_module
attributes:
  platform:
    description: What the host needs.
    support: full
    platforms: posix
    details:
      - Linux with systemd.
"""

EXAMPLES = r"""
---
- name: List the locks on this host
  holdfast.kubernetes.inhibitor_lock_info:
  register: result

- name: Name the locks that block a shutdown
  ansible.builtin.debug:
    msg: "{{ item.who }}: {{ item.why }} (since {{ item.since }})"
  loop: "{{ result.locks | selectattr('mode', 'eq', 'block') | selectattr('what', 'contains', 'shutdown') }}"
"""

RETURN = r"""
locks:
  description: The locks.
  type: list
  elements: dict
  returned: success
  contains:
    what:
      description: What the lock inhibits.
      type: list
      elements: str
      sample: [shutdown]
    who:
      description: The holder, as it calls itself.
      type: str
      sample: kubelet
    why:
      description: Why, as the holder says.
      type: str
      sample: Kubelet needs time to handle node shutdown
    mode:
      description: V(block), V(delay) or, with systemd 257 and later, V(block-weak).
      type: str
      sample: delay
    uid:
      description: User that holds it.
      type: int
      sample: 0
    pid:
      description: Process that took it.
      type: int
      sample: 734
    since:
      description: When it was taken, by the host's clock; null if it is unknown. Only root can find it out.
      type: str
      sample: "2026-11-21T09:00:00Z"
    unit:
      description: Unit that the process belongs to; null if there is none.
      type: str
      sample: kubelet.service
inhibit_delay_max:
  description: Maximum number of seconds that delay locks delay (C(InhibitDelayMaxSec)).
  type: float
  returned: success
  sample: 5.0
preparing_for_shutdown:
  description: Whether a shutdown is in progress.
  type: bool
  returned: success
shutdown_blocked:
  description: Whether there is a block lock on shutdown.
  type: bool
  returned: success
systemd_version:
  description: Version of systemd.
  type: int
  returned: success
  sample: 257
error:
  description: What kind of failure it was, V(missing_library) or V(dbus).
  type: str
  returned: failure
  sample: missing_library
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.lock import inhibitor_lock_info
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.runner import run_module

OPERATION = inhibitor_lock_info
SPEC: dict[str, Any] = {"argument_spec": {}, "supports_check_mode": True}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

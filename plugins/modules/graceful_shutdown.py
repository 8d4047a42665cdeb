#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: graceful_shutdown
short_description: Set how long pods have when their node shuts down, for the kubelet and for logind
version_added: 0.1.0
description:
  - Sets how long the kubelet of the host that the task runs on takes to end its pods when the host is shut down, and has
    logind wait as long. One without the other is of no use.
  - "The kubelet's side: C(shutdownGracePeriod) and C(shutdownGracePeriodCriticalPods), or
    C(shutdownGracePeriodByPodPriority). Where the kubelet has a directory of drop-ins (C(--config-dir)), a drop-in
    C(zz-holdfast.conf) there says all three, so that it beats whatever other files say. Else they are set in its
    configuration file, in which every other byte stays as it is."
  - "logind's side: a drop-in in C(/etc/systemd/logind.conf.d) sets C(InhibitDelayMaxSec) to the sum that the kubelet needs
    and 5 s more, or to what the other files there say if that is longer. It has a name that sorts after that of every
    other drop-in, C(zz-holdfast.conf) if possible."
  - logind is told to read its files again, by SIGHUP as the kubelet does it, and keeps its locks. That it gives this time
    now, and that no lock went, is looked at.
  - The kubelet is not restarted. RV(restart_needed) says whether it must be. The role
    P(holdfast.kubernetes.graceful_shutdown#role) does that, and proves that all is in effect.
options:
  total:
    description:
      - Seconds for all pods together. The kubelet ends those that are not critical first.
      - With neither this nor O(by_priority), or with V(0), the feature is switched off.
    type: int
  critical:
    description:
      - Seconds of O(total) that are kept for critical pods, those of priority 2000000000 and more, which the classes
        V(system-cluster-critical) and V(system-node-critical) have. At most O(total).
    type: int
  by_priority:
    description:
      - Groups of pods by their priority, which are ended one after the other, the lowest priority first. Instead of
        O(total) and O(critical).
      - A pod belongs to the group with the largest priority that is not above its own.
    type: list
    elements: dict
    suboptions:
      priority:
        description:
          - The lowest priority of the group.
        type: int
        required: true
      seconds:
        description:
          - Seconds that its pods have.
        type: int
        required: true
  kubelet_unit:
    description:
      - Unit of systemd that runs the kubelet.
    type: str
    default: kubelet.service
  kubelet_config:
    description:
      - The kubelet's configuration file. Without it, the one that the kubelet was started with (C(--config)).
    type: path
  kubelet_config_dir:
    description:
      - The kubelet's directory of drop-ins. Without it, the one that the kubelet was started with (C(--config-dir)).
    type: path
  state:
    description:
      - V(present) sets the times.
      - V(absent) sets both sides back. The kubelet's settings become what they were before this module, byte for byte;
        what others changed since stays.
      - V(previous) undoes the last change of this module since the last boot, for a kubelet that does not start with it.
    type: str
    choices: [present, absent, previous]
    default: present
notes:
  - Runs on the host itself, as root, and needs no Kubernetes API. It is no part of the action group of the other modules.
  - What was there before is kept in C(/var/lib/holdfast/graceful_shutdown.json) until O(state=absent).
  - If the Python that Ansible uses has no dbus, and the distribution's Python has it, the module uses that Python.
requirements:
  - systemd 239 or later with systemd-logind, on the host
  - python3-dbus and python3-yaml (python3-pyyaml with RHEL and its kin), on the host
seealso:
  - module: holdfast.kubernetes.graceful_shutdown_info
  - module: holdfast.kubernetes.graceful_shutdown_fit
  - name: Graceful node shutdown
    description: How the kubelet does it.
    link: https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.attributes
attributes:
  check_mode:
    support: full
    details:
      - Looks at the node and refuses what would be refused, but for what only logind knows once it has read its files.
  diff_mode:
    support: full
    details:
      - Each file before and after. A kubelet's configuration may contain secrets of its own.
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
- name: Give pods 60 s, of which the last 20 are for critical ones
  holdfast.kubernetes.graceful_shutdown:
    total: 60
    critical: 20
  register: result

- name: Restart the kubelet if it has to know
  ansible.builtin.systemd_service:
    name: kubelet.service
    state: restarted
  when: result.restart_needed

- name: End databases after what uses them
  holdfast.kubernetes.graceful_shutdown:
    by_priority:
      - {priority: 0, seconds: 30}
      - {priority: 100000, seconds: 60}
      - {priority: 2000000000, seconds: 20}

- name: Have everything as it was before
  holdfast.kubernetes.graceful_shutdown:
    state: absent
"""

RETURN = r"""
restart_needed:
  description: Whether the kubelet must be restarted, because its configuration is younger than it is, or because it should
    hold its delay lock and does not.
  type: bool
  returned: success
files:
  description: Files that were changed; in check mode, that would be.
  type: list
  elements: dict
  returned: success
  contains:
    path:
      description: The file.
      type: str
      sample: /var/lib/kubelet/config.yaml
    change:
      description: V(created), V(changed) or V(removed).
      type: str
      sample: changed
needed:
  description: Seconds that the kubelet needs, the sum of all groups; null unless O(state=present).
  type: int
  returned: success
  sample: 60
inhibit_delay_max:
  description: Seconds that logind gives now, or would give in check mode; null if there is no limit.
  type: float
  returned: success
  sample: 65.0
error:
  description: What kind of failure it was, for example V(invalid_input), V(refused), V(timed_out), V(missing_library) or
    V(dbus).
  type: str
  returned: failure
  sample: invalid_input
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.configure import graceful_shutdown

OPERATION = graceful_shutdown
SPEC: dict[str, Any] = {
    "argument_spec": {
        "total": {"type": "int"},
        "critical": {"type": "int"},
        "by_priority": {
            "type": "list",
            "elements": "dict",
            "options": {
                "priority": {"type": "int", "required": True},
                "seconds": {"type": "int", "required": True},
            },
        },
        "kubelet_unit": {"type": "str", "default": "kubelet.service"},
        "kubelet_config": {"type": "path"},
        "kubelet_config_dir": {"type": "path"},
        "state": {"type": "str", "choices": ["present", "absent", "previous"], "default": "present"},
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

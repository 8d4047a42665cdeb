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
  - Sets how many seconds the kubelet of this host gives its pods when the host shuts down, and makes logind wait for
    the same time. Both settings are needed.
  - "The kubelet's side: C(shutdownGracePeriod) and C(shutdownGracePeriodCriticalPods), or
    C(shutdownGracePeriodByPodPriority). If the kubelet has a directory of drop-ins (C(--config-dir)), the drop-in
    C(zz-holdfast.conf) in it sets all three, so that it overrides all other files. Otherwise the module sets them in
    the kubelet's configuration file and keeps every other byte of it."
  - "logind's side: a drop-in in C(/etc/systemd/logind.conf.d) sets C(InhibitDelayMaxSec) to the sum that the kubelet
    needs plus 5 s, or to the value of the other files there if that is longer. The name of the drop-in sorts after all
    other drop-ins; it is C(zz-holdfast.conf) if possible."
  - The module makes logind read its files again with SIGHUP, as the kubelet does, which keeps logind's locks. It then
    verifies that logind gives this time and that no lock is lost.
  - The module does not restart the kubelet. RV(restart_needed) says whether a restart is needed. The role
    P(holdfast.kubernetes.graceful_shutdown#role) restarts the kubelet, and proves that everything is in effect.
options:
  total:
    description:
      - Seconds for all pods together. The kubelet ends those that are not critical first.
      - Without this and without O(by_priority), or with V(0), graceful shutdown is switched off.
    type: int
  critical:
    description:
      - Seconds of O(total) that are reserved for critical pods, which have a priority of 2000000000 or more, as the
        classes V(system-cluster-critical) and V(system-node-critical) set it. At most O(total).
    type: int
  by_priority:
    description:
      - Groups of pods by priority. The kubelet ends the groups one after the other, the lowest priority first. Replaces
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
      - systemd unit that runs the kubelet.
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
      - V(absent) restores both sides. The kubelet's settings are again what they were before this module, byte for
        byte; later changes by others stay.
      - V(previous) undoes the last change of this module since the last boot, and earlier changes after which the kubelet
        has not started, for a kubelet that does not start with them.
    type: str
    choices: [present, absent, previous]
    default: present
notes:
  - Runs on the host itself, as root, and needs no Kubernetes API. It is not in the action group of the other modules.
  - The module keeps the earlier settings in C(/var/lib/holdfast/graceful_shutdown.json) until O(state=absent).
  - If the Python that Ansible uses has no dbus, and the distribution's Python has it, the module uses that Python.
requirements:
  - systemd 239 or later with systemd-logind, on the host
  - python3-dbus and python3-yaml (python3-pyyaml with RHEL and its derivatives), on the host
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
      - Examines the node and fails as a real run would, except for problems that only logind finds when it reads its
        files.
  diff_mode:
    support: full
    details:
      - Shows each file before and after. A kubelet's configuration may contain secrets.
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
- name: Give pods 60 s, the last 20 s of them to critical pods
  holdfast.kubernetes.graceful_shutdown:
    total: 60
    critical: 20
  register: result

- name: Restart the kubelet if needed
  ansible.builtin.systemd_service:
    name: kubelet.service
    state: restarted
  when: result.restart_needed

- name: End databases after their clients
  holdfast.kubernetes.graceful_shutdown:
    by_priority:
      - {priority: 0, seconds: 30}
      - {priority: 100000, seconds: 60}
      - {priority: 2000000000, seconds: 20}

- name: Restore the earlier settings
  holdfast.kubernetes.graceful_shutdown:
    state: absent
"""

RETURN = r"""
restart_needed:
  description: Whether the kubelet must be restarted, because its configuration changed after its start, because it has
    not started since this module changed it, or because its delay lock is missing.
  type: bool
  returned: success
files:
  description: Files that were changed; in check mode, files that would be changed.
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
  description: Seconds that logind gives now, or in check mode would give; null if there is no limit.
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

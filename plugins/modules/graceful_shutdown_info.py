#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: graceful_shutdown_info
short_description: Prove that a node's next shutdown will be graceful
version_added: 0.1.0
description:
  - A kubelet ends pods in order when its node shuts down, if logind gives it the time. If logind does not, nothing
    reports it. This module compares the time that the kubelet needs with the time that logind gives, checks the
    kubelet's delay lock, and reads whether the last shutdown finished.
  - It reads the files that the running kubelet was started with and those that logind reads, and names the file that
    causes a problem.
  - It changes nothing, and does not fail if something is missing; RV(problems) says what is wrong.
notes:
  - Runs on the host itself and needs no Kubernetes API. It is not in the action group of the other modules.
  - If the Python that Ansible uses has no dbus, and the distribution's Python has it, the module uses that Python.
  - A kubelet takes its lock some seconds after its start. If it started less than 30 seconds ago, the module waits for
    the lock.
  - The module does not read feature gates. A kubelet whose gate GracefulNodeShutdown is off has no delay lock, which
    the module reports.
requirements:
  - systemd 239 or later with systemd-logind, on the host
  - python3-dbus and python3-yaml (python3-pyyaml with RHEL and its derivatives), on the host
options:
  kubelet_unit:
    description:
      - systemd unit that runs the kubelet, as its main process or as a child of it.
    type: str
    default: kubelet.service
  kubelet_config:
    description:
      - The kubelet's configuration file. Without it, the one that the running kubelet was started with (C(--config)).
      - If the kubelet is a part of another program, this or O(kubelet_config_dir) is needed.
    type: path
  kubelet_config_dir:
    description:
      - The kubelet's directory of drop-ins. Without it, the one that the running kubelet was started with
        (C(--config-dir)).
    type: path
  kubelet_root_dir:
    description:
      - The kubelet's state directory. Without it, the one that the running kubelet was started with (C(--root-dir)),
        which is V(/var/lib/kubelet) by default.
    type: path
seealso:
  - module: holdfast.kubernetes.graceful_shutdown_fit
  - module: holdfast.kubernetes.inhibitor_lock_info
  - name: Graceful node shutdown
    description: How the kubelet does it.
    link: https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/
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
- name: Check whether this node will shut down gracefully
  holdfast.kubernetes.graceful_shutdown_info:
  register: result

- name: Stop if it will not
  ansible.builtin.assert:
    that: result.in_effect
    fail_msg: "{{ result.problems | map(attribute='message') | join(' ') }}"

- name: Look at a node whose kubelet is part of another program
  holdfast.kubernetes.graceful_shutdown_info:
    kubelet_unit: k3s-agent.service
    kubelet_config_dir: /var/lib/rancher/k3s/agent/etc/kubelet.conf.d
"""

RETURN = r"""
enabled:
  description: Whether the kubelet's files switch graceful shutdown on.
  type: bool
  returned: success
in_effect:
  description:
    - Whether graceful shutdown is on, and a shutdown that begins now gives every group of pods its time.
    - Of all RV(problems), only V(logind_not_reloaded), V(last_shutdown_unfinished) and V(last_shutdown_unreadable)
      leave it true.
  type: bool
  returned: success
kubelet:
  description: The kubelet and its needs.
  type: dict
  returned: success
  contains:
    unit:
      description: Its unit.
      type: str
      sample: kubelet.service
    active:
      description: Whether it runs.
      type: bool
    config:
      description: Its configuration file; null if it has none.
      type: str
      sample: /var/lib/kubelet/config.yaml
    config_dir:
      description: Its directory of drop-ins; null if it has none.
      type: str
    drop_ins:
      description: The drop-ins that it reads, in the order in which they are merged.
      type: list
      elements: str
    set_by:
      description: For each of the three settings that is set, the file that sets it.
      type: dict
      sample: {shutdownGracePeriod: /var/lib/kubelet/config.yaml}
    groups:
      description: Groups of pods, from the lowest priority up; empty if the feature is off.
      type: list
      elements: dict
      sample: [{priority: 0, seconds: 40}, {priority: 2000000000, seconds: 20}]
    needed:
      description: Seconds that a shutdown may take, the sum of all groups.
      type: int
      sample: 60
    restart_needed:
      description: Whether a file or directory was changed after the kubelet started. If the kubelet is a part of another
        program, such as K3s, which writes drop-ins at each start, only its main file and the drop-in of the module
        M(holdfast.kubernetes.graceful_shutdown) count.
      type: bool
logind:
  description: What logind gives.
  type: dict
  returned: success
  contains:
    inhibit_delay_max:
      description: Maximum number of seconds that it delays a shutdown (C(InhibitDelayMaxUSec)); null if there is
        no limit.
      type: float
      sample: 60.0
    configured:
      description: Seconds that its files configure; null if they configure no limit.
      type: float
      sample: 60.0
    file:
      description: The file that wins; null if none sets it.
      type: str
      sample: /etc/systemd/logind.conf.d/zz-holdfast.conf
    candidates:
      description: All files that set it, in the order in which they are read.
      type: list
      elements: dict
      sample: [{file: /etc/systemd/logind.conf.d/99-kubelet.conf, seconds: 30.0}]
delay_lock:
  description: The running kubelet's delay lock on shutdown; null if it has none.
  type: dict
  returned: success
  sample: {who: kubelet, why: Kubelet needs time to handle node shutdown, pid: 734, since: "2026-11-21T09:00:00Z"}
last_shutdown:
  description: The last shutdown that the kubelet noticed; null if it never noticed one.
  type: dict
  returned: success
  contains:
    started:
      description: When the kubelet noticed it, by the node's clock.
      type: str
      sample: "2026-11-21T09:00:00Z"
    ended:
      description: When the kubelet had ended the pods; null if it never did.
      type: str
      sample: "2026-11-21T09:00:31Z"
    finished:
      description: Whether the kubelet ended all pods.
      type: bool
    this_boot:
      description: Whether the node has not booted since, so that the shutdown was cancelled or is in progress.
      type: bool
problems:
  description: What is wrong; empty if nothing is.
  type: list
  elements: dict
  returned: success
  contains:
    problem:
      description:
        - V(kubelet_needs_more), because logind gives less time than the kubelet needs.
        - V(delay_lock_missing), so that logind does not wait for the kubelet.
        - V(kubelet_not_running).
        - V(kubelet_unknown), because the unit runs another program, and the options do not name the kubelet's files.
        - V(restart_needed), because the kubelet's files were changed after it started.
        - V(configuration_refused), because the kubelet does not start with these values, for example both forms at
          once.
        - V(configuration_unreadable), because one of its files can't be read.
        - V(logind_not_reloaded), because logind does not use the value of its files.
        - V(last_shutdown_unfinished), because the power or the time ran out before all pods were ended.
        - V(last_shutdown_unreadable), because the kubelet's record of it is broken.
      type: str
      sample: kubelet_needs_more
    message:
      description: The object, the cause and the way out.
      type: str
    file:
      description: The file that causes the problem; null if none does.
      type: str
      sample: /etc/systemd/logind.conf.d/zzz-unattended-upgrades.conf
error:
  description: What kind of failure it was, V(missing_library) or V(dbus).
  type: str
  returned: failure
  sample: missing_library
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.info import graceful_shutdown_info

OPERATION = graceful_shutdown_info
SPEC: dict[str, Any] = {
    "argument_spec": {
        "kubelet_unit": {"type": "str", "default": "kubelet.service"},
        "kubelet_config": {"type": "path"},
        "kubelet_config_dir": {"type": "path"},
        "kubelet_root_dir": {"type": "path"},
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

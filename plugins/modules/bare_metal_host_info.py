#!/usr/bin/python
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bare_metal_host_info
short_description: List BareMetalHosts, their nodes, and whether reboot annotations act on them
version_added: 0.1.0
description:
  - Describes the BareMetalHosts of the management cluster and their reboot annotations. For each host, says whether
    metal3 acts on a reboot annotation, and if not, why.
  - The Node's Machine and Metal3Machine, or the Node's provider ID, say which host belongs to a Node.
  - The result omits objects that do not exist. A missing object, or a management cluster without metal3, is not a
    failure.
options:
  bare_metal_host:
    description:
      - Name of the BareMetalHost. Without it and without O(node), all are described.
    type: str
  node:
    description:
      - Name of the Node whose host is described.
    type: str
  host:
    description:
      - The URL of the API server, as in all modules. A value that is not a URL counts as O(bare_metal_host).
      - Falls back on the environment variable E(K8S_AUTH_HOST).
    type: str
  namespace:
    description:
      - Namespace of the BareMetalHost; any by default.
    type: str
seealso:
  - module: holdfast.kubernetes.reboot_annotation
author:
  - holdfast.kubernetes contributors (@holdfast)
extends_documentation_fragment:
  - holdfast.kubernetes.auth
  - holdfast.kubernetes.auth.management
  - holdfast.kubernetes.attributes
  - holdfast.kubernetes.attributes.actiongroup_all
  - holdfast.kubernetes.attributes.info_module
"""

EXAMPLES = r"""
---
- name: Look at the host of a node
  holdfast.kubernetes.bare_metal_host_info:
    node: worker-1
    management:
      kubeconfig: ~/.kube/management
  register: found

- name: Continue only if the host can be fenced
  ansible.builtin.assert:
    that: found.hosts and found.hosts[0].acts
    fail_msg: "{{ (found.hosts | first | default({})).why_not | default('There is no such host.') }}"
"""

RETURN = r"""
hosts:
  description: The hosts, by namespace and name.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: Name of the BareMetalHost.
      type: str
      sample: rack-3-unit-7
    namespace:
      description: Its namespace.
      type: str
      sample: metal
    node:
      description: Name of the host's Node; null if it is not known.
      type: str
      sample: worker-1
    powered_on:
      description: The power state that metal3 saw last; null if it never read one.
      type: bool
      sample: true
    online:
      description: Whether the host should be on when no reboot annotation keeps it off.
      type: bool
      sample: true
    state:
      description: Its provisioning state.
      type: str
      sample: provisioned
    trouble:
      description: The error that its status shows; empty if there is none.
      type: str
      sample: "power management error: the BMC did not answer"
    last_updated:
      description: When metal3 wrote the status last, by its own clock.
      type: str
      sample: "2026-11-21T09:00:00Z"
    keys:
      description: The reboot annotations on the host, from any writer.
      type: list
      elements: dict
      contains:
        annotation:
          description: Name of the annotation.
          type: str
          sample: reboot.metal3.io/holdfast
        key:
          description: The part after the slash; empty for the annotation without one.
          type: str
          sample: holdfast
        value:
          description: Its value, byte for byte.
          type: str
          sample: '{"mode": "hard"}'
        mode:
          description: The mode that metal3 reads from the value. metal3 reads an invalid value as V(soft).
          type: str
          sample: hard
        force:
          description: Whether it also applies to a host that is not provisioned.
          type: bool
          sample: false
        valid:
          description: Whether metal3's webhook accepts it.
          type: bool
          sample: true
        ours:
          description: Whether M(holdfast.kubernetes.reboot_annotation) wrote it.
          type: bool
          sample: true
        since:
          description: When M(holdfast.kubernetes.reboot_annotation) wrote it, by the API server's clock; null if
            RV(hosts[].keys[].ours) is false.
          type: str
          sample: "2026-11-21T08:59:31.000000Z"
        run:
          description: Id of the run that wrote it; null if RV(hosts[].keys[].ours) is false.
          type: str
          sample: "4711"
        proves_off:
          description: Whether the key and the host's status prove that the host is off.
          type: bool
          sample: false
        why:
          description: Why this is, or is not, proven.
          type: str
          sample: its status says poweredOn
    effective_mode:
      description: The mode that results from all annotations together. One V(hard), or an earlier error, makes it hard.
        Null if there is none.
      type: str
      sample: hard
    acts:
      description: Whether metal3 acts on a reboot annotation.
      type: bool
      sample: false
    why_not:
      description: Why metal3 does not act; empty if it does.
      type: str
      sample: it is paused (annotation baremetalhost.metal3.io/paused)
error:
  description: What kind of failure it was, for example V(refused), V(api) or V(api_unreachable).
  type: str
  returned: failure
  sample: api_unreachable
"""

from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import (
    auth_options,
    management_option,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_module
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing.host_info import bare_metal_host_info

OPERATION = bare_metal_host_info
SPEC: dict[str, Any] = {
    "argument_spec": {
        "bare_metal_host": {"type": "str"},
        "node": {"type": "str"},
        "namespace": {"type": "str"},
        **auth_options(),
        **management_option(),
    },
    "supports_check_mode": True,
}


def main() -> None:
    run_module(OPERATION, SPEC)


if __name__ == "__main__":
    main()

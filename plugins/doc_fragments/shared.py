# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """Options that several modules share. ``module_utils/_api/shared_options.py`` has their argument specs."""

    NODE = r"""
options:
  name:
    description:
      - Name of the Node.
    type: str
    required: true
"""

    RUN = r"""
options:
  run:
    description:
      - Id of the run.
    type: str
    required: true
"""

    CLAIMANT = r"""
options:
  run:
    description:
      - Id of the run that works on the node. If set, this run must have claimed the node. If not set, no run may have
        claimed it. See M(holdfast.kubernetes.node_claim).
    type: str
"""

    PHASE = r"""
options:
  operation:
    description:
      - Id of the rolling reboot that this is a part of. If set, the task records its phase on the Node before it acts.
        Needs O(run).
    type: str
"""

    LEFT = r"""
options:
  done:
    description:
      - The names of the nodes that are done. Without them, nothing is left of the operation if O(complete) is set.
    type: list
    elements: str
  undone:
    description:
      - The names of the nodes that are not done, if they are known. A later run that does these nodes completes the
        operation.
    type: list
    elements: str
    default: []
  postponed:
    description:
      - Those of O(undone) that wait for the next maintenance window, which is no failure.
    type: list
    elements: str
    default: []
"""

    BUDGET = r"""
options:
  selector:
    description:
      - Label selector of the group's Nodes. By default all Nodes.
    type: str
  max_unavailable:
    description:
      - How many nodes of the group may be unavailable, as a number or as a share of all its nodes such as V(10%), rounded
        down but at least 1.
      - With V(0), this request gets no slot.
    type: str
    default: "1"
  topology_key:
    description:
      - Label that names a node's domain, for example V(topology.kubernetes.io/zone). Nodes without it form one domain.
    type: str
  max_unavailable_per_domain:
    description:
      - How many nodes of one domain may be unavailable.
    type: int
  max_domains:
    description:
      - How many domains may have unavailable nodes at the same time. With V(1), one domain follows the other.
    type: int
  max_failed:
    description:
      - How many nodes may fail in this operation before no node gets a slot any more.
    type: int
    default: 0
  count_others:
    description:
      - Whether nodes of the group that are not Ready, or were cordoned by others, fill the budget too.
    type: bool
    default: true
  unhealthy_grace:
    description:
      - Seconds that the nodes that fill the budget, and that no run works on, must stay unchanged before the task
        gives up its wait for a slot. After an outage of the API, many Nodes are not Ready for a short time.
    type: int
    default: 300
"""

    WINDOWS = r"""
options:
  windows:
    description:
      - The windows of a week. Without windows, one is always open.
    type: list
    elements: dict
    default: []
    suboptions:
      days:
        description:
          - Days on which it starts, as C(mon) or C(Monday), in any case. By default every day.
        type: list
        elements: str
      start:
        description:
          - Time of day at which it starts, such as C("22:00"). Always needed.
          - Write it in quotes. YAML reads C(22:00) without quotes as a number, which the task refuses.
        type: str
      end:
        description:
          - Time of day at which it ends, at most C("24:00"). Always needed.
          - A time that is not after O(windows[].start) is on the next day.
        type: str
"""

    BLOCKERS = r"""
options:
  pods:
    description:
      - Pods that block while they are on the node and have not ended. A pod whose phase is C(Succeeded) or C(Failed)
        has ended.
    type: list
    elements: dict
    suboptions:
      selector:
        description:
          - Label selector of the pods.
        type: str
        required: true
      namespace:
        description:
          - Namespace of the pods. By default all namespaces.
        type: str
  alerts:
    description:
      - Alerts that block. An alert blocks unless one of the suboptions excludes it.
    type: dict
    suboptions:
      url:
        description:
          - Base URL of the Prometheus, or of a server with the same HTTP API (C(/api/v1/alerts) and C(/api/v1/rules))
            below a path.
          - The module does not follow redirects. It uses the proxies of the environment (C(HTTP_PROXY), C(HTTPS_PROXY),
            C(NO_PROXY)).
        type: str
        required: true
      only:
        description:
          - Regular expression. Only alerts whose name has a match block. By default all do.
          - All regular expressions here use Python's syntax and may match anywhere in the name; use C(^) and C($) for
            the whole name. Nested repetitions such as C((a+)+$) can take very long, and no limit applies.
        type: str
      ignore:
        description:
          - Regular expression. Alerts whose name has a match do not block, like those of kured's C(--alert-filter-regexp).
        type: str
      firing_only:
        description:
          - Whether only firing alerts block. By default pending ones do, too.
          - Shortly after its start, a Prometheus reports firing alerts as pending.
        type: bool
        default: false
      labels:
        description:
          - Only alerts with all of these labels block.
        type: dict
      node_label:
        description:
          - Name of a label, for example V(node). Only alerts that have it, with the name of the Node as its value, block.
        type: str
      token:
        description:
          - Bearer token.
        type: str
      username:
        description:
          - User name for basic authentication.
        type: str
      password:
        description:
          - Password for basic authentication.
        type: str
      ca_cert:
        description:
          - File with the certificates of the authorities to trust. By default the system's certificates.
        type: path
      validate_certs:
        description:
          - Whether the certificate of the server is verified.
        type: bool
        default: true
      timeout:
        description:
          - Seconds to wait for one answer.
        type: int
        default: 10
"""

    ALERTMANAGER = r"""
options:
  alertmanager:
    description:
      - Silences the alerts of a node in this Alertmanager while the run has its claim. If the Alertmanager does not answer,
        there is a warning, and the node is rebooted without silences.
    type: dict
    suboptions:
      url:
        description:
          - Base URL of the Alertmanager, below which C(/api/v2/silences) is. A proxy of the environment is used.
        type: str
        required: true
      matchers:
        description:
          - Alerts to silence. Each entry makes one silence, and has its matchers in Alertmanager's syntax, separated by commas.
          - By default C(node="NAME") and C(instance=~"NAME(:[0-9]+)?"), with the name of the Node.
        type: list
        elements: str
      expires_after:
        description:
          - Seconds after which a silence ends by itself, at least 10. While the run lives, it is extended five times in this time.
        type: int
        default: 300
      token:
        description:
          - Bearer token.
        type: str
      username:
        description:
          - User name for basic authentication.
        type: str
      password:
        description:
          - Password for basic authentication.
        type: str
      ca_cert:
        description:
          - File with the certificates of the authorities to trust. By default the system's certificates.
        type: path
      validate_certs:
        description:
          - Whether the certificate of the server is verified.
        type: bool
        default: true
      timeout:
        description:
          - Seconds to wait for one answer.
        type: int
        default: 5
"""

    PUSHGATEWAY = r"""
options:
  pushgateway:
    description:
      - The push gateway that gets the metrics.
    type: dict
    suboptions:
      url:
        description:
          - Base URL of the push gateway. The metrics go to C(/metrics/job/holdfast), unless the URL names a job, for example
            V(http://gateway:9091/metrics/job/holdfast/cluster/production).
        type: str
        required: true
      token:
        description:
          - Bearer token.
        type: str
      username:
        description:
          - User name for basic authentication.
        type: str
      password:
        description:
          - Password for basic authentication.
        type: str
      ca_cert:
        description:
          - File with the certificates of the authorities to trust. By default the system's certificates.
        type: path
      validate_certs:
        description:
          - Whether the certificate of the server is verified.
        type: bool
        default: true
      timeout:
        description:
          - Seconds to wait for one answer.
        type: int
        default: 10
"""

    WAITING_RUN = r"""
options:
  run:
    description:
      - Id of the run that waits. Its Lease is renewed during the wait, so that the run counts as live.
    type: str
"""

    HOLDER = r"""
options:
  holder:
    description:
      - Who the run is, for people, for example V(alice@bastion) or the number of the AWX job.
    type: str
"""

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the Node on which this process runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.objects import Object
from . import own_pod_rules
from .own_pod_rules import Traces

_ROOT = Path("/")
_ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"


def controller_node(cluster: Cluster) -> str | None:
    """The name of the Node; ``None`` if this process does not run on a Node of the cluster, or if that is unknown.

    Its own pod proves it. Without one, the boot ID of its kernel does, if exactly one Node reports it. Nodes that are
    containers, as in kind, share a kernel. With one such Node, a process outside of it is taken for one on it.
    """
    traces = own_traces()
    pods = (pod for pod in _candidates(cluster, traces) if own_pod_rules.evidence(pod, traces))
    pod = next(pods, None)
    node = str((pod.get("spec") or {}).get("nodeName") or "") if pod else ""
    return node or _node_of_kernel(cluster, traces.boot_id) or None


def own_traces() -> Traces:
    """What this process knows about its pod."""
    token = own_pod_rules.claims_of_token(_read(f"{_ACCOUNT}/token"))
    uid = token.get("uid") or own_pod_rules.uid_of_mounts(_read("proc/self/mountinfo"))
    name = token.get("pod") or ""
    if not name and (uid or os.environ.get("KUBERNETES_SERVICE_HOST")):
        name = socket.gethostname()
    return Traces(
        uid=uid,
        pod=name,
        namespace=token.get("namespace") or _read(f"{_ACCOUNT}/namespace"),
        addresses=own_pod_rules.addresses(_read("proc/net/fib_trie"), _read("proc/net/if_inet6")),
        boot_id=_read("proc/sys/kernel/random/boot_id"),
    )


def _read(path: str) -> str:
    try:
        return (_ROOT / path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _candidates(cluster: Cluster, traces: Traces) -> Iterator[Object]:
    """Pods that this process may run in: pods of its name and, if its UID is known, pods that have its addresses.

    The host name differs from the pod's name if the pod uses the host's network, sets its own host name, or has a very
    long name. Then only the addresses lead to the pod, and the UID proves it.
    """
    if traces.pod:
        collection = paths.namespaced("api/v1", traces.namespace, "pods") if traces.namespace else paths.PODS
        yield from cluster.items(collection, field_selector=f"metadata.name={traces.pod}")
    if traces.uid:
        for address in sorted(traces.addresses):
            yield from cluster.items(paths.PODS, field_selector=f"status.podIP={address}")


def _node_of_kernel(cluster: Cluster, boot_id: str) -> str:
    """The only Node with the boot ID of this process's kernel; empty if there is none, or more than one."""
    if not boot_id:
        return ""
    found = [node_rules.name(node) for node in cluster.items(paths.NODES) if node_rules.boot_id(node) == boot_id]
    return found[0] if len(found) == 1 else ""

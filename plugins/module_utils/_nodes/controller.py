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
from .._api.runner import Context, Params, Result
from . import own_pod_rules
from .own_pod_rules import Traces

_ROOT = Path("/")
_ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"


def controller_node_info(context: Context, params: Params) -> Result:
    """Find the Node; see the module of the same name."""
    traces = own_traces(params.get("pod") or "", params.get("namespace") or "")
    pod, evidence = _own_pod_of(context.cluster, traces)
    node = str((pod.get("spec") or {}).get("nodeName") or "") if pod else ""
    if not node:
        node = _node_of_kernel(context.cluster, traces.boot_id)
        evidence = "boot_id" if node else ""
    return {
        "changed": False,
        "node": node or None,
        "pod": pod["metadata"]["name"] if pod else None,
        "namespace": pod["metadata"]["namespace"] if pod else None,
        "evidence": evidence or None,
    }


def own_traces(pod: str = "", namespace: str = "") -> Traces:
    """What this process knows about its pod; arguments take precedence over what it finds."""
    token = own_pod_rules.claims_of_token(_read(f"{_ACCOUNT}/token"))
    uid = token.get("uid") or own_pod_rules.uid_of_mounts(_read("proc/self/mountinfo"))
    name = pod or token.get("pod") or ""
    if not name and (uid or os.environ.get("KUBERNETES_SERVICE_HOST")):
        name = socket.gethostname()
    return Traces(
        uid=uid,
        pod=name,
        namespace=namespace or token.get("namespace") or _read(f"{_ACCOUNT}/namespace"),
        addresses=own_pod_rules.addresses(_read("proc/net/fib_trie"), _read("proc/net/if_inet6")),
        boot_id=_read("proc/sys/kernel/random/boot_id"),
    )


def _read(path: str) -> str:
    try:
        return (_ROOT / path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _own_pod_of(cluster: Cluster, traces: Traces) -> tuple[Object | None, str]:
    for pod in _candidates(cluster, traces):
        found = own_pod_rules.evidence(pod, traces)
        if found:
            return pod, found
    return None, ""


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

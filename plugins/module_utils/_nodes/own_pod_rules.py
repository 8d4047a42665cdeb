# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the pod that a process runs in: what the system shows about it, and how to find it in the API.

A name proves nothing, because another cluster may have a pod of the same name. A UID is proof, because it is unique.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from dataclasses import dataclass
from typing import Any

from .._api.objects import Object

# The kubelet mounts these into every container from the pod's directory on the node. Its path has the pod's UID.
_MOUNTED_BY_KUBELET = ("/etc/hosts", "/dev/termination-log")
_POD_DIRECTORY = re.compile(r"/pods/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/")
_LOCAL_ADDRESS = re.compile(r"\|-- (\S+)\n\s+/32 host LOCAL")


@dataclass(frozen=True)
class Traces:
    """What a process knows about its own pod; unknown values are empty.

    Attributes:
        uid: The pod's UID.
        pod: Its name.
        namespace: Its namespace.
        addresses: IP addresses of the network namespace, without loopback and link-local addresses.
        boot_id: Boot ID of the kernel, which is also the node's, even in nested containers.
    """

    uid: str = ""
    pod: str = ""
    namespace: str = ""
    addresses: frozenset[str] = frozenset()
    boot_id: str = ""


def uid_of_mounts(mountinfo: str) -> str:
    """The pod's UID from ``/proc/self/mountinfo``; empty if no kubelet mounted anything."""
    for line in mountinfo.splitlines():
        fields = line.split()
        found = _POD_DIRECTORY.search(fields[3]) if len(fields) > 4 and fields[4] in _MOUNTED_BY_KUBELET else None
        if found:
            return found[1]
    return ""


def claims_of_token(token: str) -> dict[str, str]:
    """``namespace``, ``pod`` and ``uid`` from the token of the pod's service account, if the token has them."""
    try:
        payload = token.strip().split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["kubernetes.io"]
        pod, uid = claims["pod"].get("name"), claims["pod"].get("uid")
        found = {"namespace": claims.get("namespace"), "pod": pod, "uid": uid}
    except (IndexError, KeyError, TypeError, ValueError, AttributeError):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str) and value}


def addresses(fib_trie: str, if_inet6: str) -> frozenset[str]:
    """Addresses from ``/proc/net/fib_trie`` and ``/proc/net/if_inet6``, in the format of the API."""
    numbers = [line.split()[0] for line in if_inet6.splitlines() if line.strip()]
    try:
        known = [
            *(ipaddress.ip_address(text) for text in _LOCAL_ADDRESS.findall(fib_trie)),
            *(ipaddress.IPv6Address(int(number, 16)) for number in numbers),
        ]
    except ValueError:
        return frozenset()
    return frozenset(str(item) for item in known if not item.is_loopback and not item.is_link_local)


def evidence(pod: Object, traces: Traces) -> str:
    """What proves that the process runs in a pod of the API: ``uid`` or ``address``; empty if nothing does.

    The name together with an address counts only if the UID is unknown.
    """
    if traces.uid:
        return "uid" if pod["metadata"].get("uid") == traces.uid else ""
    if traces.pod != pod["metadata"]["name"]:
        return ""
    return "address" if traces.addresses & _addresses_of(pod) else ""


def _addresses_of(pod: Object) -> set[str]:
    status: dict[str, Any] = pod.get("status") or {}
    return {str(item.get("ip")) for item in status.get("podIPs") or []}

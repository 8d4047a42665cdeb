# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of the API resources that this collection uses."""

from __future__ import annotations

from urllib.parse import quote

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
LEASES = "/apis/coordination.k8s.io/v1/leases"
POD_DISRUPTION_BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
VOLUME_ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
PERSISTENT_VOLUMES = "/api/v1/persistentvolumes"


def namespaced(group_version: str, namespace: str, resource: str) -> str:
    """Path of a namespaced collection, for example ``namespaced("api/v1", "default", "pods")``."""
    return f"/{group_version}/namespaces/{quote(namespace, safe='')}/{resource}"


def one(collection: str, name: str) -> str:
    """Path of the object of this name in a collection, for example ``one(NODES, "node-1")``."""
    return f"{collection}/{quote(name, safe='')}"


def node(name: str) -> str:
    return one(NODES, name)


def lease(namespace: str, name: str) -> str:
    return one(leases(namespace), name)


def leases(namespace: str) -> str:
    return namespaced("apis/coordination.k8s.io/v1", namespace, "leases")


def config_maps(namespace: str) -> str:
    return namespaced("api/v1", namespace, "configmaps")


def pod(namespace: str, name: str) -> str:
    return one(namespaced("api/v1", namespace, "pods"), name)


def pod_disruption_budgets(namespace: str) -> str:
    return namespaced("apis/policy/v1", namespace, "poddisruptionbudgets")


def eviction(namespace: str, name: str) -> str:
    return pod(namespace, name) + "/eviction"


def persistent_volume_claim(namespace: str, name: str) -> str:
    return one(namespaced("api/v1", namespace, "persistentvolumeclaims"), name)

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of Cluster API for nodes of the lab, as plain data: a Cluster, its Machines, their infrastructure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .cluster_api import CONTROL_PLANE, GROUP, INFRASTRUCTURE, MACHINE_KIND, TEMPLATE_KIND

CLUSTER_LABEL = f"{GROUP}/cluster-name"
PROVISIONED = {"status": {"initialization": {"provisioned": True}}}


def provider_id(node: str) -> str:
    """The provider ID by which a Machine finds its Node."""
    return f"lab://{node}"


def cluster(name: str) -> dict[str, Any]:
    """A Cluster that already runs: Cluster API makes nothing for it."""
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}},
    }


def access(name: str, kubeconfig: str) -> dict[str, Any]:
    """The Secret with which Cluster API reaches the workload cluster."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-kubeconfig", "labels": {CLUSTER_LABEL: name}},
        "type": f"{GROUP}/secret",
        "stringData": {"value": kubeconfig},
    }


def lab_machine(name: str, node: str) -> dict[str, Any]:
    """The infrastructure object of a Machine; Cluster API uses it once its status is PROVISIONED."""
    return {
        "apiVersion": f"{INFRASTRUCTURE}/v1",
        "kind": MACHINE_KIND,
        "metadata": {"name": name},
        "spec": {"providerID": provider_id(node)},
    }


def machine(
    name: str,
    cluster_name: str,
    *,
    control_plane: bool = False,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A Machine whose infrastructure is the lab machine of the same name."""
    labels = {CLUSTER_LABEL: cluster_name, **({CONTROL_PLANE: ""} if control_plane else {})}
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "Machine",
        "metadata": {"name": name, "labels": labels, "annotations": dict(annotations or {})},
        "spec": {**_machine_spec(cluster_name, MACHINE_KIND, name), **spec},
    }


def template(name: str) -> dict[str, Any]:
    """The template from which a MachineSet makes lab machines."""
    return {
        "apiVersion": f"{INFRASTRUCTURE}/v1",
        "kind": TEMPLATE_KIND,
        "metadata": {"name": name},
        "spec": {"template": {"spec": {}}},
    }


def workers(kind: str, name: str, cluster_name: str, replicas: int) -> dict[str, Any]:
    """A MachineDeployment or a MachineSet that uses the template of the same name."""
    labels = {CLUSTER_LABEL: cluster_name, "pool": name}
    # Set here because no webhook of Cluster API runs that would set it.
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": kind,
        "metadata": {"name": name, "labels": {CLUSTER_LABEL: cluster_name}},
        "spec": {
            "clusterName": cluster_name,
            "replicas": replicas,
            **({"rollout": {"strategy": rolling}} if kind == "MachineDeployment" else {}),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _machine_spec(cluster_name, TEMPLATE_KIND, name)},
        },
    }


def control_plane(name: str) -> dict[str, Any]:
    """A KubeadmControlPlane, on which no controller acts."""
    reference = {"apiGroup": INFRASTRUCTURE, "kind": TEMPLATE_KIND, "name": name}
    return {
        "apiVersion": f"controlplane.{GROUP}/v1beta2",
        "kind": "KubeadmControlPlane",
        "metadata": {"name": name},
        "spec": {
            "version": "v1.36.3",
            "machineTemplate": {"spec": {"infrastructureRef": reference}},
            "kubeadmConfigSpec": {"format": "cloud-config"},
        },
    }


def _machine_spec(cluster_name: str, kind: str, name: str) -> dict[str, Any]:
    return {
        "clusterName": cluster_name,
        # The nodes need nothing installed: they run already.
        "bootstrap": {"dataSecretName": "none"},
        "infrastructureRef": {"apiGroup": INFRASTRUCTURE, "kind": kind, "name": name},
    }

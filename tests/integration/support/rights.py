# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ServiceAccount with exactly the rights in docs/rbac.yml, under names of a test's own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure

DOCUMENTED = Path(__file__).resolve().parents[3] / "docs/rbac.yml"
READ_ONLY = DOCUMENTED.with_name("rbac_status.yml")
_RBAC = "apis/rbac.authorization.k8s.io/v1"


def of_machines(rule: dict[str, Any]) -> bool:
    """Whether a rule is about objects that may be in a management cluster."""
    return any(group.rpartition(".")[0] for group in rule["apiGroups"] if group.endswith(("metal3.io", "x-k8s.io")))


class Account:
    """The documented objects in one cluster.

    Args:
        name: Replaces the documented name, so that several tests can have the objects.
        wanted: Selects rules of the ClusterRole.
        documented: The file with the objects.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        wanted: Callable[[dict[str, Any]], bool] = lambda rule: True,
        documented: Path = DOCUMENTED,
    ) -> None:
        self._cluster = cluster
        self.objects: list[str] = []
        for item in yaml.safe_load(documented.read_text())["items"]:
            if item["kind"] == "ServiceAccount":
                self._account = self._make(_named(item, name))
            elif item["kind"] == "Namespace":
                self._make(item)
            else:
                self.objects.append(self._make(_named(item, name, wanted)))
        self.objects.append(self._account)

    def kubeconfig(self, admin: Path, folder: Path) -> Path:
        """A kubeconfig with only the account's token.

        Args:
            admin: The cluster's own kubeconfig, for the server's address.
        """
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        }
        token = self._cluster.create(f"{self._account}/token", request)["status"]["token"]
        config = yaml.safe_load(admin.read_text())
        config["users"] = [{**user, "user": {"token": token}} for user in config["users"]]
        path = folder / f"{admin.parent.name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        return path

    def _make(self, item: dict[str, Any]) -> str:
        namespace = item["metadata"].get("namespace", "")
        plural = f"{item['kind'].lower()}s"
        version = "api/v1" if item["apiVersion"] == "v1" else _RBAC
        collection = paths.namespaced(version, namespace, plural) if namespace else f"/{version}/{plural}"
        try:
            self._cluster.create(collection, item)
        except ApiFailure as error:
            # All tests share the namespace.
            if error.status != 409 or item["kind"] != "Namespace":
                raise
        return paths.one(collection, item["metadata"]["name"])


def _named(
    item: dict[str, Any], name: str, wanted: Callable[[dict[str, Any]], bool] = lambda rule: True
) -> dict[str, Any]:
    found = copy.deepcopy(item)
    found["metadata"]["name"] = name
    if item["kind"] == "ClusterRole":
        found["rules"] = [rule for rule in item["rules"] if wanted(rule)]
    if item["kind"].endswith("Binding"):
        found["roleRef"]["name"] = name
        found["subjects"] = [{**subject, "name": name} for subject in item["subjects"]]
    return found

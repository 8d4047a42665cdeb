# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cluster API with its own controller: its Machines are nodes of the lab, and their deletion is real."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from integration.support.turns import TESTS, turn

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.objects import Object
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import (
    Changed,
    Deadline,
    Follower,
    wait_for,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.rules import is_paused
from lab import Lab, kwok, machines
from lab.cluster_api import GROUP, INFRASTRUCTURE, ClusterApi
from lab.patience import PATIENCE

NAME = "capi"
PRE_DRAIN = f"pre-drain.delete.hook.machine.{GROUP}"
PRE_TERMINATE = f"pre-terminate.delete.hook.machine.{GROUP}"
_GROUPS = {
    "labmachines": f"{INFRASTRUCTURE}/v1",
    "labmachinetemplates": f"{INFRASTRUCTURE}/v1",
    "kubeadmcontrolplanes": f"controlplane.{GROUP}/v1beta2",
    "secrets": "v1",
}


@contextlib.contextmanager
def controlled(lab: Lab) -> Iterator[ClusterApi]:
    """Run Cluster API's controller; end it afterwards unless it ran before. No other test has Machines meanwhile."""
    with turn(lab, "machines"):
        api = ClusterApi(lab)
        before = api.is_up
        # A fixture of a module has no turn yet. A test marked `alone` may stop the API server.
        with turn(lab, TESTS, shared=True):
            api.up()
        try:
            yield api
        finally:
            if not before:
                with turn(lab, TESTS, shared=True):
                    api.down()


@contextlib.contextmanager
def silent(api: ClusterApi) -> Iterator[None]:
    """Stop Cluster API's controller (SIGSTOP), so that what a test writes stays."""
    pid = api.process.pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Fleet:
    """A Cluster of Cluster API in the namespace of a world; its workload cluster is the lab itself."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.cluster: Cluster = world.cluster
        self.namespace: str = world.namespace
        world.has_other_kinds()
        self._create("clusters", machines.cluster(NAME))
        with open(world.kubeconfig, encoding="utf-8") as file:  # noqa: PTH123 - as the world has it
            self._create("secrets", machines.access(NAME, file.read()))
        # Without one, Cluster API drains nothing: it assumes that the whole cluster is being deleted.
        self._create("labmachines", machines.lab_machine("control-plane", "none"))
        self._create("machines", machines.machine("control-plane", NAME, control_plane=True))
        self._infrastructure = Infrastructure(self)

    def close(self) -> None:
        """Release everything that a test may have left waiting; the rest goes with the namespace."""
        self._infrastructure.stop()
        # First what would make Machines again, or put the hooks of its template on them again.
        for resource in ("machinedeployments", "machinesets", "machines"):
            self.cluster.delete(self.path(resource))
        for item in list(self.cluster.items(self.path("machines"))):
            for key in item["metadata"].get("annotations") or {}:
                if key.startswith((PRE_DRAIN, PRE_TERMINATE)):
                    self.annotate(item["metadata"]["name"], {key: None})

    # -- objects

    def path(self, resource: str, version: str = "v1beta2") -> str:
        group = _GROUPS.get(resource, f"{GROUP}/{version}")
        return paths.namespaced(f"apis/{group}" if "/" in group else f"api/{group}", self.namespace, resource)

    def _create(self, resource: str, body: Object) -> Object:
        return self.cluster.create(self.path(resource), body)

    def machine(self, node: str, *, annotations: Mapping[str, str] | None = None, **spec: Any) -> str:
        """Make the Machine of a node of the lab; return its name when it is Running."""
        name = f"m-{node}"
        self.world.cluster.merge(paths.node(node), {"spec": {"providerID": machines.provider_id(node)}})
        self.unbound(name, node, annotations=annotations, **spec)
        self.until(name, running)
        return name

    def unbound(self, name: str, node: str = "no-such-node", **more: Any) -> str:
        """Make a Machine whose Node does not exist (yet)."""
        self._create("labmachines", machines.lab_machine(name, node))
        self._create("machines", machines.machine(name, NAME, **more))
        return name

    def workers(self, name: str, replicas: int, kind: str = "MachineDeployment") -> None:
        """Make Machines from a template, each on a new simulated node; return when all are Running."""
        self._create("labmachinetemplates", machines.template(name))
        self._create(f"{kind.lower()}s", machines.workers(kind, name, NAME, replicas))
        self.until_running(name, replicas)

    def until_running(self, pool: str, count: int) -> list[str]:
        """The names of the Machines of a pool, as soon as this many exist and all of them are Running."""
        known: dict[str, Object] = {}
        for news in Follower(self.cluster, self.path("machines"), Deadline(PATIENCE), label_selector=f"pool={pool}"):
            if isinstance(news, Changed):
                known.pop(news.object["metadata"]["name"], None)
            else:
                known.clear()
            for item in [news.object] if isinstance(news, Changed) else news.items:
                if not (isinstance(news, Changed) and news.deleted):
                    known[item["metadata"]["name"]] = item
            if len(known) == count and all(running(item) for item in known.values()):
                return sorted(known)
        raise AssertionError({name: item.get("status") for name, item in known.items()})

    def scale(self, name: str, replicas: int) -> None:
        self.cluster.merge(paths.one(self.path("machinedeployments"), name), {"spec": {"replicas": replicas}})

    @contextlib.contextmanager
    def paused(self, name: str) -> Iterator[None]:
        """Pause the Cluster, and wait until Cluster API shows that on a Machine.

        From then on, it writes neither the Machine nor its Node.
        """
        cluster = paths.one(self.path("clusters"), NAME)
        self.cluster.merge(cluster, {"spec": {"paused": True}})
        try:
            self.until(name, is_paused)
            yield
        finally:
            self.cluster.merge(cluster, {"spec": {"paused": False}})

    # -- looking and acting

    def get(self, name: str, version: str = "v1beta2") -> Object:
        return self.cluster.get(paths.one(self.path("machines", version), name))

    def until(self, name: str, condition: Any) -> Object | None:
        found = wait_for(self.cluster, self.path("machines"), name, condition, Deadline(PATIENCE))
        assert condition(found), found
        return found

    def until_reason(self, name: str, reason: str) -> Object:
        """The Machine, as soon as its deletion has this reason."""
        found = self.until(name, lambda item: item is not None and deleting(item) == reason)
        assert found
        return found

    def until_gone(self, name: str) -> None:
        self.until(name, lambda item: item is None)

    def annotate(self, name: str, annotations: Mapping[str, str | None]) -> None:
        with contextlib.suppress(NotFound):
            path = paths.one(self.path("machines"), name)
            self.cluster.merge(path, {"metadata": {"annotations": dict(annotations)}})

    def hooks(self, name: str) -> dict[str, str]:
        """All hooks of a Machine, with their values."""
        found = self.get(name)["metadata"].get("annotations") or {}
        return {key: value for key, value in found.items() if key.startswith((PRE_DRAIN, PRE_TERMINATE))}

    def delete(self, name: str) -> None:
        # Until Cluster API has added its finalizer, the API server removes a Machine at once.
        self.until(name, lambda item: item is None or bool(item["metadata"].get("finalizers")))
        self.cluster.delete(paths.one(self.path("machines"), name))

    def control_plane(self, **metadata: Any) -> str:
        """Give the Cluster a control plane object, on which no controller acts; return its path."""
        body = machines.control_plane(NAME)
        body["metadata"] |= metadata
        self._create("kubeadmcontrolplanes", body)
        reference = {"apiGroup": f"controlplane.{GROUP}", "kind": body["kind"], "name": NAME}
        path = paths.one(self.path("clusters"), NAME)
        self.cluster.merge(path, {"spec": {"controlPlaneRef": reference}})
        return paths.one(self.path("kubeadmcontrolplanes"), NAME)

    def delete_cluster(self) -> None:
        self.cluster.delete(paths.one(self.path("clusters"), NAME))


class Infrastructure:
    """Plays the provider: reports machines as provisioned, and makes simulated nodes for those without one."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._follower = Follower(fleet.cluster, fleet.path("labmachines"), Deadline(None))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._follower.stop()
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        for news in self._follower:
            for item in [news.object] if isinstance(news, Changed) else news.items:
                if not (item.get("status") or (isinstance(news, Changed) and news.deleted)):
                    # A test that ends removes its objects in the meantime.
                    with contextlib.suppress(NotFound, ApiFailure):
                        self._provision(item)

    def _provision(self, item: Object) -> None:
        fleet, name = self._fleet, item["metadata"]["name"]
        path = paths.one(fleet.path("labmachines"), name)
        if not (item.get("spec") or {}).get("providerID"):
            node = kwok.node(name, fleet.world.pool)
            node["spec"] = {"providerID": machines.provider_id(name)}
            fleet.world.made.objects.append(paths.node(name))
            fleet.cluster.create(paths.NODES, node)
            fleet.cluster.merge(path, {"spec": {"providerID": machines.provider_id(name)}})
        fleet.cluster.merge(f"{path}/status", machines.PROVISIONED)


def running(item: Object | None) -> bool:
    """Whether a Machine is Running, with its Node."""
    status = (item or {}).get("status") or {}
    return status.get("phase") == "Running" and bool((status.get("nodeRef") or {}).get("name"))


def deleting(item: Object) -> str:
    """Cluster API's own reason for how far the deletion is."""
    conditions = (item.get("status") or {}).get("conditions") or []
    return next((found["reason"] for found in conditions if found["type"] == "Deleting"), "")

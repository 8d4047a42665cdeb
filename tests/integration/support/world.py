# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One test's own part of the cluster: a namespace, simulated nodes, workloads, and modules that run in this process."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timezone
from types import ModuleType
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.objects import Object
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Operation, run_operation
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import (
    Changed,
    Deadline,
    Follower,
    Listed,
    retry_conflicts,
    wait_for,
)
from lab import kwok
from lab.patience import PATIENCE

IMAGE = "localhost/lab/app:1"
# The audit records of all failovers.
AUDIT = paths.one(paths.config_maps("holdfast"), "failovers")

_VERSIONS = ("resourceVersion", "managedFields")
_TTL = "node.alpha.kubernetes.io/ttl"
# They follow a cordon and the conditions, each a little later.
_CONTROLLERS_TAINTS = {f"node.kubernetes.io/{what}" for what in ("unschedulable", "not-ready", "unreachable")}

_GROUP_VERSIONS = {
    "deployments": "apis/apps/v1",
    "statefulsets": "apis/apps/v1",
    "daemonsets": "apis/apps/v1",
    "poddisruptionbudgets": "apis/policy/v1",
    "leases": "apis/coordination.k8s.io/v1",
}


class Made:
    """The objects that a test made in the cluster, to remove them together: one by one it would take long."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.namespaces: list[str] = []
        self.objects: list[str] = []
        # Namespaces with other kinds than most tests make.
        self.whole: set[str] = set()

    def remove(self) -> None:
        """Remove workloads, then pods, then the rest: in this order no object is made again, and nothing waits."""
        with ThreadPoolExecutor(max_workers=16) as pool:
            list(pool.map(self._empty, self.namespaces))
            list(pool.map(self._delete, self.objects))
        # The product keeps only so many records, and drops those of failovers that ended first.
        records = (self.cluster.find(AUDIT) or {}).get("data") or {}
        mine = {key: None for key in records if key.startswith(tuple(f"{name}-" for name in self.namespaces))}
        if mine:
            self.cluster.merge(AUDIT, {"data": mine})

    def _empty(self, namespace: str) -> None:
        for resource in ("deployments", "statefulsets", "daemonsets"):
            self._delete(_path(namespace, resource))
        self._delete(_path(namespace, "pods"), gracePeriodSeconds=0)
        if namespace in self.whole:
            self._delete(f"/api/v1/namespaces/{namespace}")
            return
        # An empty namespace harms no test. To delete it costs a hundred requests: one or two for each kind that exists.
        for resource in ("poddisruptionbudgets", "leases"):
            self._delete(_path(namespace, resource))

    def _delete(self, path: str, **options: Any) -> None:
        with contextlib.suppress(ApiFailure, NotFound):
            self.cluster.delete(path, {"apiVersion": "v1", "kind": "DeleteOptions", **options})


def _path(namespace: str, resource: str) -> str:
    return paths.namespaced(_GROUP_VERSIONS.get(resource, "api/v1"), namespace, resource)


def make_namespace(cluster: Cluster, made: Made) -> str:
    name = f"test-{secrets.token_hex(5)}"
    cluster.create("/api/v1/namespaces", {"metadata": {"name": name}})
    made.namespaces.append(name)
    accounts = paths.namespaced("api/v1", name, "serviceaccounts")
    assert wait_for(cluster, accounts, "default", lambda item: item is not None, Deadline(PATIENCE))
    return name


class Recorder:
    """Everything that a watch delivered, in the order of the API server."""

    def __init__(self, cluster: Cluster, path: str, **selectors: str) -> None:
        self.changes: list[Changed] = []
        self._news = threading.Condition()
        self._follower = Follower(cluster, path, Deadline(None), **selectors)
        self._listed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._listed.wait(PATIENCE)

    def _run(self) -> None:
        for news in self._follower:
            with self._news:
                if isinstance(news, Listed):
                    self.changes += [Changed("ADDED", item) for item in news.items]
                    self._listed.set()
                else:
                    self.changes.append(news)
                self._news.notify_all()

    def until(self, condition: Callable[[list[Changed]], Any]) -> Any:
        """Wait until the events so far fulfil a condition; return its value."""
        with self._news:
            assert self._news.wait_for(lambda: condition(self.changes), PATIENCE), "not seen in time"
            return condition(self.changes)

    def stop(self) -> None:
        self._follower.stop()


class World:
    """One namespace with nodes of its own, and what tests make in it."""

    def __init__(self, cluster: Cluster, namespace: str, made: Made, kubeconfig: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.made = made
        self.kubeconfig = kubeconfig
        self.pool = {"pool": namespace}
        # What operations told the live view.
        self.told: list[dict[str, Any]] = []
        self._recorders: list[Recorder] = []
        self._open = contextlib.ExitStack()
        self._threads = ThreadPoolExecutor(max_workers=32)
        self._count = 0

    def until_closed(self, context: contextlib.AbstractContextManager[Any]) -> Any:
        """Enter a context that lasts until the end of the test."""
        return self._open.enter_context(context)

    def close(self) -> None:
        self._open.close()
        for recorder in self._recorders:
            recorder.stop()
        self._threads.shutdown(wait=True, cancel_futures=True)

    # -- nodes

    def nodes(self, count: int = 1, *, closed: bool = False) -> list[str]:
        """Make simulated nodes, wait until they are Ready; with ``closed`` they take no pods until they are opened."""
        names = [f"{self.namespace}-{self._count + number}" for number in range(1, count + 1)]
        self._count += count
        for name in names:
            node = kwok.node(name, self.pool)
            if closed:
                node["spec"] = {"unschedulable": True}
            self.cluster.create(paths.NODES, node)
            self.made.objects.append(paths.node(name))
        for name in names:
            # The taints that the controller manager puts on a new node and removes again come a little later.
            self.until(paths.NODES, name, lambda item: item is not None and settled(item, closed=closed))
        return names

    def open(self, name: str) -> None:
        self.cluster.merge(paths.node(name), {"spec": {"unschedulable": None}})
        # The scheduler follows the taint, which the controller manager removes.
        self.until(paths.NODES, name, lambda item: item is not None and untainted(item))

    def node(self, name: str) -> Object:
        return self.cluster.get(paths.node(name))

    def cordoned(self, name: str) -> bool:
        return bool(self.node(name)["spec"].get("unschedulable"))

    def set_condition(self, name: str, kind: str, status: str, reason: str, **more: str) -> None:
        """Set a condition as the kubelet or an agent would."""

        def attempt() -> None:
            node = self.node(name)
            others = [item for item in node["status"].get("conditions") or [] if item["type"] != kind]
            mine = {"type": kind, "status": status, "reason": reason, "message": "by a test", **more}
            if (kind, status) == ("Ready", "True"):
                # Without a new sign of life, the controller manager sets it back to Unknown.
                mine.setdefault("lastHeartbeatTime", f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}")
            self.cluster.merge(
                f"{paths.node(name)}/status",
                {
                    "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
                    "status": {"conditions": [*others, mine]},
                },
            )

        retry_conflicts(attempt)

    # -- objects

    def path(self, resource: str) -> str:
        if resource == "persistentvolumeclaims":
            self.has_other_kinds()
        return _path(self.namespace, resource)

    def has_other_kinds(self) -> None:
        """Let the namespace be deleted after the test, with all that is in it."""
        self.made.whole.add(self.namespace)

    def create(self, resource: str, name: str, body: Object) -> Object:
        metadata = {"name": name, **body.pop("metadata", {})}
        return self.cluster.create(self.path(resource), {"metadata": metadata, **body})

    def get(self, resource: str, name: str) -> Object:
        return self.cluster.get(paths.one(self.path(resource), name))

    def delete(self, resource: str, name: str) -> None:
        self.cluster.delete(paths.one(self.path(resource), name))

    def until(self, path: str, name: str, condition: Callable[[Object | None], bool]) -> Object | None:
        found = wait_for(self.cluster, path, name, condition, Deadline(PATIENCE))
        assert condition(found), found
        return found

    def template(self, app: str, *, slow: dict[str, str] | None = None, **spec: Any) -> Object:
        """A pod; ``slow`` says how long the simulated pod takes to be ready and to end."""
        delays = {f"pod-{what}.stage.kwok.x-k8s.io/delay": delay for what, delay in (slow or {}).items()}
        container = {
            "name": "app",
            "image": IMAGE,
            "imagePullPolicy": "Never",
            # It ends as soon as it is told to.
            "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"],
        }
        return {
            "metadata": {"labels": {"app": app}, "annotations": delays},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 30, **spec},
        }

    def workload(self, kind: str, app: str, replicas: int, *, ready_: int | None = None, **more: Any) -> None:
        """Make a Deployment or StatefulSet on this world's nodes; wait until its pods are ready."""
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": app}},
            "template": self.template(app, **{"nodeSelector": self.pool, **more}),
        }
        if kind == "statefulsets":
            spec |= {"serviceName": app, "podManagementPolicy": "Parallel"}
        self.create(kind, app, {"spec": spec})
        wanted = replicas if ready_ is None else ready_
        self.until(
            self.path(kind),
            app,
            lambda item: bool(item) and item["status"].get("readyReplicas", 0) == wanted,  # type: ignore[index]
        )

    def pod(self, name: str, node: str, app: str | None = None, **more: Any) -> Object:
        """Make a pod without a controller; wait until it is ready."""
        metadata = more.pop("metadata", {})
        wait = more.pop("wait", True)
        template = self.template(app or name, **{"nodeName": node, **more})
        template["metadata"] = {"labels": {"app": app or name}, **template["metadata"], **metadata}
        made = self.create("pods", name, template)
        if wait:
            made = self.until(self.path("pods"), name, lambda item: item is not None and ready(item)) or made
        return made

    def owned(self, name: str, node: str, app: str | None = None, **more: Any) -> Object:
        """Make a pod whose ownerReference names a controller that never makes it again."""
        holder = self.create("configmaps", f"owner-{name}", {})
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "controller": True, "name": f"owner-{name}"}
        metadata = {"ownerReferences": [{**reference, "uid": holder["metadata"]["uid"]}], **more.pop("metadata", {})}
        return self.pod(name, node, app, metadata=metadata, **more)

    def unready(self, name: str) -> None:
        self.set_pod(name, ready_="False")

    def set_pod(self, name: str, *, ready_: str = "True", phase: str = "Running") -> Object:
        conditions = [{"type": kind, "status": ready_} for kind in ("Ready", "ContainersReady", "Initialized")]
        return self.cluster.merge(
            paths.pod(self.namespace, name) + "/status", {"status": {"phase": phase, "conditions": conditions}}
        )

    def budget(self, name: str, app: str, until: Callable[[Object], bool] = lambda status: True, **spec: Any) -> None:
        """Make a PodDisruptionBudget; wait until its controller has counted, and as told."""
        self.create("poddisruptionbudgets", name, {"spec": {"selector": {"matchLabels": {"app": app}}, **spec}})
        self.until_budget(name, until)

    def until_budget(self, name: str, condition: Callable[[Object], bool]) -> None:
        self.until(
            self.path("poddisruptionbudgets"),
            name,
            lambda item: (
                item is not None
                and item.get("status", {}).get("observedGeneration") == item["metadata"]["generation"]
                and condition(item["status"])
            ),
        )

    def pods(self, node: str | None = None) -> dict[str, Object]:
        """The pods of the namespace by name."""
        items = self.cluster.items(self.path("pods"), field_selector=f"spec.nodeName={node}" if node else "")
        return {item["metadata"]["name"]: item for item in items}

    def record(self, path: str, **selectors: str) -> Recorder:
        recorder = Recorder(self.cluster, path, **selectors)
        self._recorders.append(recorder)
        return recorder

    # -- running

    def run(self, module: ModuleType | Operation, *, check_mode: bool = False, **options: Any) -> dict[str, Any]:
        """Run an operation in this process: a module's with validated options, or another one with all its options."""
        operation: Operation = getattr(module, "OPERATION", module)
        spec = getattr(module, "SPEC", None)
        params = {"kubeconfig": self.kubeconfig, **options}
        if spec:
            validation = ArgumentSpecValidator(spec["argument_spec"]).validate(params)
            assert not validation.error_messages, validation.error_messages
            params = validation.validated_parameters
        warnings: list[str] = []
        result = run_operation(
            operation,
            params,
            check_mode=check_mode,
            warn=warnings.append,
            tell=self.told.append,
        )
        return {**result, "warnings": warnings}

    def start(self, module: ModuleType | Operation, **options: Any) -> Future[dict[str, Any]]:
        """As run(), in the background."""
        return self._threads.submit(self.run, module, **options)

    def snapshot(self, *names: str) -> dict[str, Any]:
        """Everything of this world with its resourceVersion, and the records of these nodes."""
        found: dict[str, Any] = {}
        for resource in ("pods", "poddisruptionbudgets", "leases"):
            for item in self.cluster.items(self.path(resource)):
                found[f"{resource}/{item['metadata']['name']}"] = item["metadata"]["resourceVersion"]
        return found | {name: self.kept(name) for name in names}

    def kept(self, name: str) -> dict[str, Any]:
        """A node without what changes by itself."""
        node = self.node(name)
        metadata = {key: value for key, value in node["metadata"].items() if key not in _VERSIONS}
        # The controller manager changes it with the size of the cluster.
        metadata["annotations"] = {key: value for key, value in metadata["annotations"].items() if key != _TTL}
        taints = [item for item in node["spec"].get("taints") or [] if item["key"] not in _CONTROLLERS_TAINTS]
        return {"metadata": metadata, "spec": {**node["spec"], "taints": taints}}


def ready(item: Object) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or []
    return any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)


def settled(node: Object, *, closed: bool = False) -> bool:
    known = _TTL in node["metadata"].get("annotations", {})
    return ready(node) and known and (closed or untainted(node))


def untainted(node: Object) -> bool:
    return not node["spec"].get("taints")

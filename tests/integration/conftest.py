# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real API server for every test: the lab's. Nodes are simulated, unless a test is marked `nodes`."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from integration.sharing import Sharing, nodes_of
from integration.turns import node_turns, turn

from ansible_collections.holdfast.kubernetes.plugins.module_utils import _paths as paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._cluster import Cluster, Object
from ansible_collections.holdfast.kubernetes.plugins.module_utils._errors import ApiFailure, NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._face import execute
from ansible_collections.holdfast.kubernetes.plugins.module_utils._watch import (
    Changed,
    Deadline,
    Follower,
    Listed,
    retry_conflicts,
    wait_for,
)
from lab import Lab, kwok

CHECKOUT = Path(__file__).resolve().parents[2]
# A busy machine is no failure: what waits this long waits in vain.
PATIENCE = 60
IMAGE = "localhost/lab/app:1"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before ``-m`` chooses among them."""
    for item in items:
        parameters = item.nodeid.partition("[")[2]
        if any(node in parameters for mark in item.iter_markers("long_on") for node in mark.args):
            item.add_marker(pytest.mark.long)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Sharing:
    return Sharing(config, log)


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The lab; started where none is up, and then taken down again."""
    found = Lab.default()
    if found.is_up:
        yield found
        return
    found.up(3, 0)
    yield found
    found.down()


@pytest.fixture(autouse=True)
def _turns(request: pytest.FixtureRequest, lab: Lab) -> Iterator[None]:
    """A real node is for one test at a time, and while one marked ``alone`` spoils what all share, no other runs."""
    marks = {mark.name for mark in request.node.iter_markers()}
    names = nodes_of(request.node.nodeid) if "nodes" in marks else ()
    with turn(lab, "tests", shared="alone" not in marks), node_turns(lab, names):
        yield


@pytest.fixture(scope="session")
def kubeconfig(lab: Lab) -> str:
    return str(lab.kubeconfig)


@pytest.fixture(scope="session")
def cluster(kubeconfig: str) -> Cluster:
    return Cluster({"kubeconfig": kubeconfig})


class Made:
    """What a test made in the cluster, to be removed together: one by one it would take long."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.namespaces: list[str] = []
        self.objects: list[str] = []

    def remove(self) -> None:
        """Workloads, then pods, then the rest: in this order nothing is made again, and nothing waits."""
        with ThreadPoolExecutor(max_workers=16) as pool:
            list(pool.map(self._empty, self.namespaces))
            list(pool.map(self._delete, self.objects))

    def _empty(self, namespace: str) -> None:
        for kind in ("deployments", "statefulsets", "daemonsets"):
            self._delete(paths.namespaced("apis/apps/v1", namespace, kind))
        self._delete(paths.namespaced("api/v1", namespace, "pods"), gracePeriodSeconds=0)
        self._delete(f"/api/v1/namespaces/{namespace}")

    def _delete(self, path: str, **options: Any) -> None:
        with contextlib.suppress(ApiFailure, NotFound):
            self.cluster.delete(path, {"apiVersion": "v1", "kind": "DeleteOptions", **options})


@pytest.fixture(scope="session")
def _sweeper() -> Iterator[ThreadPoolExecutor]:
    """Removes behind the tests' backs: a node that is left costs the API server a renewal of its Lease all the time."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield pool


@pytest.fixture
def made(cluster: Cluster, _sweeper: ThreadPoolExecutor) -> Iterator[Made]:
    found = Made(cluster)
    yield found
    _sweeper.submit(found.remove)


@pytest.fixture
def namespace(cluster: Cluster, made: Made) -> str:
    """A namespace of the test's own, in which pods can be made."""
    return make_namespace(cluster, made)


def make_namespace(cluster: Cluster, made: Made) -> str:
    name = f"test-{secrets.token_hex(3)}"
    cluster.create("/api/v1/namespaces", {"metadata": {"name": name}})
    made.namespaces.append(name)
    accounts = paths.namespaced("api/v1", name, "serviceaccounts")
    assert wait_for(cluster, accounts, "default", lambda item: item is not None, Deadline(PATIENCE))
    return name


class Recorder:
    """Everything that a watch told, in the order of the API server."""

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
        """Wait until what was told so far fulfils a condition; what it returned."""
        with self._news:
            assert self._news.wait_for(lambda: condition(self.changes), PATIENCE), "waited in vain"
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
        self._recorders: list[Recorder] = []
        self._threads = ThreadPoolExecutor(max_workers=32)
        self._count = 0

    def close(self) -> None:
        for recorder in self._recorders:
            recorder.stop()
        self._threads.shutdown(wait=True, cancel_futures=True)

    # -- nodes

    def nodes(self, count: int = 1, *, closed: bool = False) -> list[str]:
        """Make simulated nodes, Ready; with ``closed`` they take no pods until they are opened."""
        names = [f"{self.namespace}-{self._count + number}" for number in range(1, count + 1)]
        self._count += count
        for name in names:
            node = kwok.node(name, self.pool)
            if closed:
                node["spec"] = {"unschedulable": True}
            self.cluster.create(paths.NODES, node)
            self.made.objects.append(paths.node(name))
        for name in names:
            # What the controller manager puts on a new node, and takes off again, comes a little later.
            self.until(paths.NODES, name, lambda item: item is not None and settled(item, closed=closed))
        return names

    def open(self, name: str) -> None:
        self.cluster.merge(paths.node(name), {"spec": {"unschedulable": None}})
        # The scheduler goes by the taint, which the controller manager takes off.
        self.until(paths.NODES, name, lambda item: item is not None and untainted(item))

    def node(self, name: str) -> Object:
        return self.cluster.get(paths.node(name))

    def cordoned(self, name: str) -> bool:
        return bool(self.node(name)["spec"].get("unschedulable"))

    def set_condition(self, name: str, kind: str, status: str, reason: str) -> None:
        """As the kubelet or an agent would."""

        def attempt() -> None:
            node = self.node(name)
            others = [item for item in node["status"].get("conditions") or [] if item["type"] != kind]
            mine = {"type": kind, "status": status, "reason": reason, "message": "by a test"}
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
        group_versions = {
            "deployments": "apis/apps/v1",
            "statefulsets": "apis/apps/v1",
            "daemonsets": "apis/apps/v1",
            "poddisruptionbudgets": "apis/policy/v1",
            "leases": "apis/coordination.k8s.io/v1",
        }
        return paths.namespaced(group_versions.get(resource, "api/v1"), self.namespace, resource)

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
        """A pod; ``slow`` says how long the simulated one takes to be ready and to end."""
        delays = {f"pod-{what}.stage.kwok.x-k8s.io/delay": delay for what, delay in (slow or {}).items()}
        container = {
            "name": "app",
            "image": IMAGE,
            "imagePullPolicy": "Never",
            # Ends as soon as it is told to.
            "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"],
        }
        return {
            "metadata": {"labels": {"app": app}, "annotations": delays},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 30, **spec},
        }

    def workload(self, kind: str, app: str, replicas: int, *, ready_: int | None = None, **more: Any) -> None:
        """A Deployment or StatefulSet on this world's nodes; waits until its pods are ready."""
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
        """A pod without a controller, ready."""
        metadata = more.pop("metadata", {})
        wait = more.pop("wait", True)
        template = self.template(app or name, **{"nodeName": node, **more})
        template["metadata"] = {"labels": {"app": app or name}, **template["metadata"], **metadata}
        made = self.create("pods", name, template)
        if wait:
            made = self.until(self.path("pods"), name, lambda item: item is not None and ready(item)) or made
        return made

    def owned(self, name: str, node: str, app: str | None = None, **more: Any) -> Object:
        """A pod whose controller looks after it but never makes it again: it does not exist any more for the API."""
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
        """A PodDisruptionBudget; waits until its controller has counted, and as told."""
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

    def run(self, module: ModuleType, *, check_mode: bool = False, **options: Any) -> dict[str, Any]:
        """Run a module's operation in this process, with validated options."""
        spec = module.SPEC["argument_spec"]
        validation = ArgumentSpecValidator(spec).validate({"kubeconfig": self.kubeconfig, **options})
        assert not validation.error_messages, validation.error_messages
        warnings: list[str] = []
        result = execute(module.OPERATION, validation.validated_parameters, check_mode=check_mode, warn=warnings.append)
        return {**result, "warnings": warnings}

    def start(self, module: ModuleType, **options: Any) -> Future[dict[str, Any]]:
        """The same, in the background."""
        return self._threads.submit(self.run, module, **options)

    def snapshot(self, *names: str) -> dict[str, Any]:
        """Everything of this world with its resourceVersion, and these nodes without what changes by itself."""
        found: dict[str, Any] = {}
        for resource in ("pods", "poddisruptionbudgets", "leases"):
            for item in self.cluster.items(self.path(resource)):
                found[f"{resource}/{item['metadata']['name']}"] = item["metadata"]["resourceVersion"]
        for name in names:
            node = copy.deepcopy(self.node(name))
            found[name] = {"metadata": node["metadata"], "spec": node["spec"]}
        return found


def ready(item: Object) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or []
    return any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)


def settled(node: Object, *, closed: bool = False) -> bool:
    known = "node.alpha.kubernetes.io/ttl" in node["metadata"].get("annotations", {})
    return ready(node) and known and (closed or untainted(node))


def untainted(node: Object) -> bool:
    return not node["spec"].get("taints")


@pytest.fixture
def world(cluster: Cluster, namespace: str, made: Made, kubeconfig: str) -> Iterator[World]:
    found = World(cluster, namespace, made, kubeconfig)
    yield found
    found.close()


@pytest.fixture
def nodes(world: World) -> Callable[..., list[str]]:
    """Makes simulated nodes of the test's own."""
    return world.nodes


@pytest.fixture
def run_module(world: World) -> Callable[..., dict[str, Any]]:
    return world.run


class Ansible:
    """Runs plays in a real ansible-playbook."""

    def __init__(self, folder: Path, lab: Lab) -> None:
        self.folder = folder
        self.lab = lab

    def environment(self, **more: str) -> dict[str, str]:
        own = ("K8S_AUTH_", "KUBECONFIG", "ANSIBLE_")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(own)}
        collections = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or str(CHECKOUT / "build/collections")
        return {
            **kept,
            "ANSIBLE_COLLECTIONS_PATH": collections,
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
            "ANSIBLE_RETRY_FILES_ENABLED": "False",
            "ANSIBLE_HOME": str(self.folder / "home"),
            **more,
        }

    def command(self, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).parent / program), *arguments],
            cwd=self.folder,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def tasks(
        self, tasks: list[dict[str, Any]], *arguments: str, hosts: str = "localhost", **environment: str
    ) -> tuple[list[dict[str, Any]], str]:
        """Run tasks on one host; the result of each, and all that was printed. Failures are results, too."""
        registered = [f"result_{number}" for number in range(len(tasks))]
        results = self.folder / "results.json"
        steps = [
            {**task, "register": name, "ignore_errors": True} for task, name in zip(tasks, registered, strict=True)
        ]
        content = "{{ [" + ", ".join(registered) + "] | to_json }}"
        keep = {"ansible.builtin.copy": {"content": content, "dest": str(results), "mode": "0600"}}
        play = {
            "hosts": hosts,
            "gather_facts": False,
            "tasks": [*steps, {**keep, "delegate_to": "localhost", "check_mode": False, "no_log": True}],
        }
        book = self.folder / "play.yml"
        book.write_text(yaml.safe_dump([play], sort_keys=False))
        done = self.command("ansible-playbook", *arguments, str(book), **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(results.read_text()), done.stdout + done.stderr


@pytest.fixture
def ansible(tmp_path: Path, lab: Lab) -> Ansible:
    return Ansible(tmp_path, lab)


Stage = Callable[[], tuple[World, Ansible]]
AT_ONCE = 6


@pytest.fixture(scope="session")
def stage(cluster: Cluster, kubeconfig: str, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Makes worlds, for tests that need more than one."""
    made = Made(cluster)
    worlds: list[World] = []

    def make() -> tuple[World, Ansible]:
        world = World(cluster, make_namespace(cluster, made), made, kubeconfig)
        worlds.append(world)
        return world, Ansible(tmp_path_factory.mktemp(world.namespace), lab)

    yield make
    for world in worlds:
        world.close()
    made.remove()


@pytest.fixture(scope="session")
def _together(request: pytest.FixtureRequest, stage: Stage) -> Iterator[dict[str, Future[Any]]]:
    """What becomes of every chosen test that is marked ``together``, by its id: several are played at once.

    Each of them waits 90 s until a run counts as dead. One after the other they would take half an hour; all at once,
    two cores would be so busy that nodes are given up whose Leases can't be renewed in time.
    """
    marked = {item: item.get_closest_marker("together") for item in request.session.items}
    chosen = {item: mark.kwargs["by"] for item, mark in marked.items() if mark}
    pool = ThreadPoolExecutor(max_workers=AT_ONCE)
    yield {
        item.nodeid: pool.submit(play, stage, **(item.callspec.params if hasattr(item, "callspec") else {}))
        for item, play in chosen.items()
    }
    pool.shutdown(wait=True, cancel_futures=True)


@pytest.fixture
def outcome(request: pytest.FixtureRequest, _together: dict[str, Future[Any]]) -> Callable[[], Any]:
    """Gives what the function that the mark ``together`` names returned for this test, or raises what it raised."""
    return _together[request.node.nodeid].result

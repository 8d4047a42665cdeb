# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BareMetalHosts that switch the lab's nodes: the kinds, the objects, and the lab's metal3 that acts on them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from integration.support.turns import turn

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.objects import Object
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline, retry_conflicts, wait_for
from ansible_collections.holdfast.kubernetes.plugins.modules import bare_metal_host_info, reboot_annotation
from lab import Lab
from lab.management import Management
from lab.metal3.controller import hosts_path
from lab.metal3.settings import Settings, Times, path_of
from lab.metal3.switches import Switch, switch
from lab.metal3.webhook import configuration, serving
from lab.paths import CHECKOUT
from lab.patience import PATIENCE

BASE = "reboot.metal3.io"
# A busy machine takes long to shut down, and must not be switched off hard for that.
PATIENT = replace(Times.quick(), soft_timeout=float(PATIENCE))
_KINDS = CHECKOUT / "tests/lab/metal3/crds"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def install(cluster: Cluster, *kinds: str) -> None:
    """Install missing kinds, by the names of their files. They stay: they disturb nothing."""
    for kind in kinds or ("baremetalhosts", "metal3machines"):
        definition = yaml.safe_load((_KINDS / f"{kind}.yaml").read_text())
        try:
            cluster.create(_CRDS, definition)
        except ApiFailure as error:
            if error.status != 409:
                raise
        name = definition["metadata"]["name"]
        assert _established(wait_for(cluster, _CRDS, name, _established, Deadline(PATIENCE)))


@contextlib.contextmanager
def management(lab: Lab, world: Any) -> Iterator[tuple[Cluster, Path]]:
    """A separate cluster for hosts and Machines, for one test at a time; it has the namespace of the world.

    It has no garbage collection, so objects stay until the lab goes.
    """
    with turn(lab, "management"):
        plane = Management(lab)
        plane.start()
        try:
            cluster = Cluster({"kubeconfig": str(plane.kubeconfig)})
            cluster.create("/api/v1/namespaces", {"metadata": {"name": world.namespace}})
            install(cluster, "baremetalhosts", "metal3machines", "machines")
            yield cluster, plane.kubeconfig
        finally:
            plane.stop()


@contextlib.contextmanager
def webhook(hosts: Hosts, folder: Path) -> Iterator[None]:
    """metal3's validating webhook, for the hosts of one namespace."""
    collection = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    pki = hosts.lab.paths.pki
    with serving(pki, folder) as port:
        made = hosts.cluster.create(collection, configuration(hosts.namespace, port, (pki / "ca.crt").read_bytes()))
        try:
            yield
        finally:
            hosts.cluster.delete(paths.one(collection, made["metadata"]["name"]))


class Host:
    """One BareMetalHost, and its machine."""

    def __init__(self, cluster: Cluster, path: str, *, settings: Settings, file: Path, machine: Switch) -> None:
        self.cluster = cluster
        self.path = path
        self.collection, _slash, self.name = path.rpartition("/")
        self.namespace = path.split("/")[5]
        self._file = file
        self._machine = machine
        self._settings = settings

    @property
    def node(self) -> str:
        return self._settings.node

    def faults(self, **faults: Any) -> None:
        """Set what goes wrong from now on; without faults, all works again: see ``lab.metal3.settings.Faults``."""
        self._settings = self._settings.but(**faults)
        self._settings.save(self._file)

    def get(self) -> Object:
        return self.cluster.get(self.path)

    @property
    def status(self) -> Object:
        found: Object = self.get()["status"]
        return found

    @property
    def annotations(self) -> dict[str, str]:
        return self.get()["metadata"].get("annotations") or {}

    @property
    def powered(self) -> bool:
        """The machine's real power."""
        return self._machine.powered()

    @property
    def commands(self) -> list[str]:
        """The commands that its management controller got so far."""
        with contextlib.suppress(FileNotFoundError):
            return self._file.with_suffix(".commands").read_text().splitlines()
        return []

    @property
    def events(self) -> list[tuple[str, str]]:
        """Reason and message of each event, by time; the order within one second is arbitrary."""
        found = self.cluster.items(
            paths.namespaced("api/v1", self.namespace, "events"), field_selector=f"involvedObject.name={self.name}"
        )
        sent = sorted((item["metadata"]["creationTimestamp"], item["reason"], item["message"]) for item in found)
        return [(reason, message) for _when, reason, message in sent]

    def annotate(self, annotations: dict[str, str | None]) -> None:
        self.cluster.merge(self.path, {"metadata": {"annotations": annotations}})

    def set(self, **spec: Any) -> None:
        """Change the specification."""
        self.cluster.merge(self.path, {"spec": spec})

    def tell(self, **status: Any) -> None:
        """Change the status in place of metal3; with the fault ``stale`` it stays so."""

        def attempt() -> None:
            host = self.get()
            host["status"].update(status)
            self.cluster.replace(f"{self.path}/status", host)

        retry_conflicts(attempt)

    def until(self, condition: Callable[[Object], bool]) -> Object:
        """Wait until the object fulfils a condition."""
        found = wait_for(
            self.cluster,
            self.collection,
            self.name,
            lambda item: item is not None and condition(item),
            Deadline(PATIENCE),
        )
        assert found is not None
        assert condition(found), found
        return found

    def until_reported(self, *, on: bool) -> Object:
        """Wait until the status has this power."""
        return self.until(lambda host: host["status"]["poweredOn"] is on)

    def cut(self) -> None:
        """Cut the power: neither metal3 nor the machine notices."""
        self._machine.off()

    def switch_on(self) -> None:
        self._machine.on()


@contextlib.contextmanager
def bound(world: Any, lab: Lab, folder: Path, management: tuple[Cluster, Path] | None = None) -> Iterator[Hosts]:
    """The hosts of a test; see ``Hosts``."""
    found = Hosts(world, lab, folder, management)
    try:
        yield found
    finally:
        found.close()


class Hosts:
    """The hosts of one namespace, with their own metal3, which a test can stop.

    Args:
        world: Its namespace holds the hosts, its cluster the nodes.
        folder: For settings and the log of metal3; a test's ``tmp_path``.
        management: The cluster of the hosts, where it is another one, and its kubeconfig. It has the namespace.
    """

    def __init__(self, world: Any, lab: Lab, folder: Path, management: tuple[Cluster, Path] | None = None) -> None:
        self.lab = lab
        self.workload: Cluster = world.cluster
        self.cluster, self.kubeconfig = management or (world.cluster, Path(lab.kubeconfig))
        self.namespace: str = world.namespace
        world.has_other_kinds()
        self.hosts: list[Host] = []
        self._folder = folder / "metal3"
        self._folder.mkdir()
        self._process: subprocess.Popen[bytes] | None = None
        install(self.cluster)

    def close(self) -> None:
        """Switch real machines on again; simulated ones are removed with their test."""
        self.stop()
        for host in self.hosts:
            with contextlib.suppress(NotFound):
                self.cluster.delete(host.path)
            if host.node in self.lab.nodes:
                host.switch_on()
        self.lab.wait_ready({host.node for host in self.hosts} & {*self.lab.nodes})

    def add(
        self,
        node: str,
        *,
        name: str | None = None,
        state: str = "provisioned",
        annotations: dict[str, str] | None = None,
        times: Times | None = None,
        status: Object | None = None,
        **spec: Any,
    ) -> Host:
        """Make the host of a node, as metal3 would have left it; faults come later, by ``Host.faults``.

        Args:
            times: How long metal3 takes; short by default, but a machine has all the time it needs to shut down.
            status: Replaces the status that follows from the state and the machine's power.
            spec: ``online``, ``disablePowerOff`` and so on.
        """
        name = name or f"host-{node}"
        settings = Settings(node, times or PATIENT)
        path = paths.one(hosts_path(self.namespace), name)
        host = Host(
            self.cluster,
            path,
            settings=settings,
            file=path_of(self._folder, self.namespace, name),
            machine=switch(self.lab, self.workload, node),
        )
        host.faults()
        made = self.cluster.create(
            host.collection,
            {
                "apiVersion": "metal3.io/v1alpha1",
                "kind": "BareMetalHost",
                "metadata": {"name": name, "annotations": annotations or {}},
                "spec": {"online": True, **spec},
            },
        )
        made["status"] = {
            "poweredOn": host.powered,
            "operationalStatus": "OK",
            "errorCount": 0,
            "errorMessage": "",
            "provisioning": {"state": state, "ID": made["metadata"]["uid"]},
            **(status or {}),
        }
        self.cluster.replace(f"{host.path}/status", made)
        self.hosts.append(host)
        return host

    def chain(self, host: Host, *, namespace: str | None = None, cluster: str = "lab", another_of: str = "") -> None:
        """Make the link from the Node to the host: a Machine (see ``machines.installed``) and its Metal3Machine.

        Args:
            another_of: The name of a Node of this cluster. The Machine then belongs to the Node of the same name in
                another Cluster, and the Node here has no reference to it.
        """
        namespace = namespace or self.namespace
        node = another_of or host.node
        name = f"m-{host.node}"
        infrastructure = paths.namespaced("apis/infrastructure.cluster.x-k8s.io/v1beta2", namespace, "metal3machines")
        collection = paths.namespaced("apis/cluster.x-k8s.io/v1beta2", namespace, "machines")
        provider = f"metal3://{self.namespace}/{host.name}/{name}"
        reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": name}
        machine = self.cluster.create(
            collection,
            {
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "kind": "Machine",
                "metadata": {"name": name},
                "spec": {"clusterName": cluster, "providerID": provider, "infrastructureRef": reference},
                "status": {"nodeRef": {"name": node}},
            },
        )
        self.cluster.merge(f"{paths.one(collection, name)}/status", {"status": {"nodeRef": {"name": node}}})
        uid = machine["metadata"]["uid"]
        owner = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name, "uid": uid}
        marks = {"metal3.io/BareMetalHost": f"{self.namespace}/{host.name}"}
        self.cluster.create(
            infrastructure,
            {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
                "kind": "Metal3Machine",
                "metadata": {"name": name, "annotations": marks, "ownerReferences": [owner]},
                "spec": {"providerID": provider},
            },
        )
        host.set(consumerRef={"kind": "Metal3Machine", "name": name, "namespace": namespace})
        if not another_of:
            marks = {"machine": name, "cluster-namespace": namespace, "cluster-name": cluster}
            annotations = {f"cluster.x-k8s.io/{key}": value for key, value in marks.items()}
            self.workload.merge(paths.node(host.node), {"metadata": {"annotations": annotations}})

    def start(self) -> None:
        """Start metal3, unless it runs."""
        if self._process:
            return
        words = ["--namespace", self.namespace, "--settings", self._folder, "--kubeconfig", self.kubeconfig]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                # It ends when the tests are killed.
                ["setpriv", "--pdeathsig=KILL", sys.executable, "-m", "lab", "metal3", *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(self.lab),
            )

    def stop(self) -> None:
        """Stop metal3 and its Ironic."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text()


def environment(lab: Lab) -> dict[str, str]:
    """The environment for programs of the lab that use the collection's own client."""
    return {
        **os.environ,
        "HOLDFAST_LAB": str(lab.paths.root),
        "HOLDFAST_LAB_CACHE": str(lab.paths.cache),
        "PYTHONPATH": f"{CHECKOUT / 'tests'}:{CHECKOUT / 'build/collections'}",
    }


def wait(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> None:
    """Wait for what no API reports: the power of a machine."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not seen in time: {what}"
        time.sleep(0.1)


def _established(item: Object | None) -> bool:
    conditions = ((item or {}).get("status") or {}).get("conditions") or []
    return any(found["type"] == "Established" and found["status"] == "True" for found in conditions)


class Fenced:
    """One simulated node and its host, which the node's provider ID names."""

    def __init__(self, world, hosts, **more):
        self.world, self.hosts = world, hosts
        (self.node,) = world.nodes()
        self.host = hosts.add(self.node, **more)
        provider = f"metal3://{self.host.namespace}/{self.host.name}/m"
        world.cluster.merge(paths.node(self.node), {"spec": {"providerID": provider}})

    def run(self, state="present", *, key="ours", check_mode=False, **more):
        options = {"wait_timeout": PATIENCE, **({"key": key} if key else {}), **more}
        return self.world.run(reboot_annotation, check_mode=check_mode, node=self.node, state=state, **options)

    @property
    def keys(self):
        return {name: value for name, value in self.host.annotations.items() if name.startswith(BASE)}

    @property
    def boot_id(self):
        return self.world.node(self.node)["status"]["nodeInfo"]["bootID"]

    def info(self):
        (found,) = self.world.run(bare_metal_host_info, node=self.node)["hosts"]
        return found

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab as a whole."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import host, image, inventory, kwok, network, parts, programs, rootfs, trees
from .cgroups import Cgroup
from .commands import direct_environment, run
from .control_plane import ControlPlane
from .errors import LabError
from .locks import locked
from .network import Network
from .node import Node, existing
from .paths import Paths
from .patience import PATIENCE
from .progress import say, step


class Lab:
    """A cluster of your own. Every method may be called again, and leaves the lab as one call does."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths

    @classmethod
    def default(cls) -> Lab:
        """The lab of this checkout, or the one that HOLDFAST_LAB names."""
        return cls(Paths.default())

    # What tests use.

    @property
    def kubeconfig(self) -> Path:
        return self.paths.kubeconfig

    @property
    def inventory(self) -> Path:
        return self.paths.inventory

    @property
    def bin(self) -> Path:
        return self.paths.bin

    @property
    def nodes(self) -> list[str]:
        """The names of the real nodes."""
        return [node.name for node in existing(self.paths, self.network)]

    @property
    def simulated(self) -> list[str]:
        """The names of the simulated nodes, as the cluster knows them."""
        return self.kubectl("get", "nodes", "-l", kwok.LABEL, "-o", "jsonpath={.items[*].metadata.name}").split()

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as the cluster's administrator; return its standard output."""
        kubectl = [str(self.bin / "kubectl"), f"--kubeconfig={self.kubeconfig}"]
        return run([*kubectl, *arguments], stdin=stdin, env=direct_environment())

    def ssh(self, name: str, command: str) -> str:
        """Run a command on a real node, as root."""
        return self.node(name).ssh(command)

    def node(self, name: str) -> Node:
        for node in existing(self.paths, self.network):
            if node.name == name:
                return node
        raise LabError(f"there is no node {name} here, only {', '.join(self.nodes) or 'none'}")

    def power_on(self, name: str) -> None:
        """Switch a real node on; it is Ready some seconds later."""
        with self._lock():
            self.node(name).power_on()

    def power_off(self, name: str) -> None:
        """Switch a real node off hard."""
        with self._lock():
            self.node(name).power_off()

    def powered(self, name: str) -> bool:
        return self.node(name).powered

    def start_apiserver(self) -> None:
        with self._lock():
            self._control_plane().start_apiserver()

    def stop_apiserver(self) -> None:
        with self._lock():
            self._control_plane().stop_apiserver()

    def simulate(self, names: Sequence[str], labels: Mapping[str, str] | None = None) -> None:
        """Make simulated nodes with these names, and wait until they are Ready."""
        if not names:
            return
        self.start_kwok()
        present = set(names) & set(self.simulated)
        # kwok does not write the status of a node. A node that is no longer Ready stays so.
        self._delete_simulated(sorted(present - set(self.ready())))
        missing = sorted(set(names) - set(self.simulated))
        for start in range(0, len(missing), 500):
            batch = missing[start : start + 500]
            self.kubectl("create", "-f", "-", stdin=kwok.manifest(batch, labels or {}))
        self.wait_ready(names)
        self.write_inventory()

    def unsimulate(self, names: Iterable[str] | None = None, prefix: str | None = None) -> None:
        """Remove simulated nodes: these, those with a prefix, or all."""
        found = self.simulated
        wanted = found if names is None else sorted(set(names) & set(found))
        if prefix is not None:
            wanted = [name for name in wanted if kwok.belongs(name, prefix)]
        self._delete_simulated(wanted)
        self.write_inventory()

    def start_kwok(self) -> None:
        """Start kwok, which plays the kubelets of simulated nodes; build it at the first call."""
        if self._control_plane().process("kwok").pid() is not None:
            return
        with self._lock():
            self.provide([programs.KWOK])
            self._control_plane().start_kwok()

    def boot_id(self, name: str) -> str:
        """The bootID that the cluster has of a node."""
        return self.kubectl("get", "node", name, "-o", "jsonpath={.status.nodeInfo.bootID}")

    def ready(self) -> dict[str, str]:
        """Every node that is Ready, with the bootID that it reports."""
        listed: dict[str, Any] = json.loads(self.kubectl("get", "nodes", "-o", "json"))
        return {
            item["metadata"]["name"]: item["status"]["nodeInfo"]["bootID"]
            for item in listed["items"]
            for condition in item["status"].get("conditions", [])
            if (condition["type"], condition["status"]) == ("Ready", "True")
        }

    def wait_ready(self, names: Iterable[str], timeout: float = PATIENCE) -> None:
        """Wait until all are Ready; real nodes in their present boot, because an earlier report may remain."""
        wanted = set(names)
        real = [node for node in existing(self.paths, self.network) if node.name in wanted]
        boots = {node.name: node.wait_boot_id(timeout) for node in real}

        def missing() -> list[str]:
            ready = self.ready()
            return sorted(name for name in wanted if not ready.get(name) or ready[name] != boots.get(name, ready[name]))

        _wait(lambda: not missing(), timeout, lambda: f"not ready: {', '.join(missing())}")

    # The life of the lab.

    @property
    def network(self) -> Network:
        found = network.owned(self.paths.root)
        if not found:
            raise LabError("the lab is not up; start it with: make lab")
        return found[0]

    @property
    def is_up(self) -> bool:
        return bool(network.owned(self.paths.root)) and self.paths.kubeconfig.exists()

    def setup(self, nodes: int, simulated: int, more: Sequence[programs.Module] = ()) -> None:
        """Install and build what is missing for this many nodes, and for programs that the lab may start later."""
        host.check()
        with self._lock():
            self._setup(nodes, simulated, more)

    def up(self, nodes: int, simulated: int) -> None:
        """Start what does not run, and adjust the number of nodes."""
        host.check()
        with self._lock():
            self._setup(nodes, simulated)
            begin = time.monotonic()
            with step("control plane"):
                plane = self._start()
            if nodes:
                host.raise_limits()
            self._scale(plane, nodes)
        with step(f"{simulated} simulated nodes", quiet_below=0.5):
            wanted = kwok.names(simulated)
            self.unsimulate([name for name in self.simulated if kwok.belongs(name, kwok.PREFIX) and name not in wanted])
            if self.simulated:
                self.start_kwok()
            self.simulate(wanted)
        self.write_inventory()
        say(f"lab: up after {time.monotonic() - begin:.1f} s")

    def down(self) -> None:
        """Remove everything, whatever state it is in. Keep the cache of what was built."""
        host.check()
        with self._lock():
            found = self._networks()
            for net in found:
                # Nothing needs a graceful end, and the cgroup also has processes without a record on disk.
                everything = Cgroup(net.cgroup)
                everything.kill()
                everything.remove()
            trees.remove(self.paths.root)
            for net in found:
                # Last, because it tells another run of this command that something is left.
                net.down()

    def write_inventory(self) -> None:
        inventory.write(self.paths, existing(self.paths, self.network), sorted(self.simulated, key=_natural))

    def _networks(self) -> list[Network]:
        """Also a network whose bridge was removed, as long as no other lab has it."""
        found = network.owned(self.paths.root)
        if not found and self.paths.state.exists():
            remembered = Network(json.loads(self.paths.state.read_text())["index"])
            found = [remembered] if remembered.free else []
        return found

    @contextlib.contextmanager
    def building(self) -> Iterator[None]:
        """Lock out builds of other labs: several may share a cache."""
        with locked(self.paths.cache / "lab.lock"):
            yield

    def provide(self, modules: Sequence[programs.Module], nodes: int = 0) -> None:
        """Put the programs of these modules into ``bin``, and have the root file systems of this many nodes."""
        cache = self.paths.cache
        with self.building():
            # Errors that no build can solve come first, before minutes of work.
            programs.check(cache, modules)
            parts.make(parts.packages(), parts.trees(cache, rootfs.suites(nodes)), parts.modules(cache, modules))
            self.paths.make()
            programs.install(modules, cache, self.bin)

    def _setup(self, nodes: int, simulated: int, more: Sequence[programs.Module] = ()) -> None:
        self.provide([programs.KUBERNETES, *([programs.KWOK] if simulated else []), *more], nodes)
        image.make(self.paths.node_bin / "app.tar")
        programs.place(self.bin / "kubelet", self.paths.node_bin / "kubelet")
        if not self.paths.ssh_key.exists():
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "holdfast-lab", "-f", self.paths.ssh_key])

    def _start(self) -> ControlPlane:
        found = network.owned(self.paths.root)
        if found:
            net = found[0]
        elif self.paths.state.exists():
            # The machine restarted: the certificates are valid for the old addresses only.
            net = Network(json.loads(self.paths.state.read_text())["index"])
            if not net.up(self.paths.root):
                raise LabError(f"another lab took the network {net.bridge} meanwhile; run: make lab-down")
        else:
            net = network.claim(self.paths.root)
        self.paths.state.write_text(json.dumps({"index": net.index}))
        plane = ControlPlane(self.paths, net)
        plane.identities()
        plane.start()
        # Without it, the API server refuses the first pods.
        _wait(
            lambda: bool(self.kubectl("get", "serviceaccount", "default", "--ignore-not-found", "-o", "name")),
            PATIENCE,
            lambda: "the controller manager makes no service account",
        )
        return plane

    def _scale(self, plane: ControlPlane, count: int) -> None:
        authority = plane.identities()
        for node in existing(self.paths, plane.network):
            if node.number > count:
                with step(f"remove {node.name}"):
                    node.remove()
                    self.kubectl("delete", "node", node.name, "--ignore-not-found")
        nodes = [Node(self.paths, plane.network, number) for number in range(1, count + 1)]
        if not nodes:
            return
        with step(f"{count} real nodes"):
            for node in nodes:
                node.make(authority, plane.url)
                node.power_on()
            self.wait_ready(node.name for node in nodes)

    def _delete_simulated(self, names: Sequence[str]) -> None:
        for start in range(0, len(names), 200):
            # One request for many nodes: one by one, kubectl takes a fifth of a second for each.
            self.kubectl("delete", "--raw", kwok.collection(names[start : start + 200]))

    def _control_plane(self) -> ControlPlane:
        return ControlPlane(self.paths, self.network)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Allow one change at a time, from any process."""
        with locked(self.paths.lock):
            yield


def _wait(condition: Callable[[], bool], timeout: float, complaint: Callable[[], str]) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"after {timeout:.0f} s: {complaint()}")
        time.sleep(0.25)


def _natural(name: str) -> tuple[str, int]:
    head, _dash, number = name.rpartition("-")
    return (head, int(number)) if number.isdigit() else (name, 0)

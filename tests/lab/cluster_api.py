# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cluster API's own core controller, for tests that ask for it. It is not part of a lab that is up.

The infrastructure is the lab's own: two kinds on which no controller acts, so that a test decides when a machine
exists.
"""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from . import programs
from .certificates import Authority, kubeconfig, write_private
from .cluster import Lab
from .commands import direct_environment, run
from .control_plane import ControlPlane
from .errors import LabError
from .patience import PATIENCE
from .ports import free_port
from .processes import Process
from .progress import step

GROUP = "cluster.x-k8s.io"
INFRASTRUCTURE = f"infrastructure.{GROUP}"
MACHINE_KIND, TEMPLATE_KIND = "LabMachine", "LabMachineTemplate"
NAME = "cluster-api"
CONTROL_PLANE = f"{GROUP}/control-plane"
_MODULE = "sigs.k8s.io/cluster-api"
# Only the kind of the kubeadm control plane is here: its controller is another program.
_KINDS = (
    "core/config/crd/bases/*.yaml",
    f"controlplane/kubeadm/config/crd/bases/controlplane.{GROUP}_kubeadmcontrolplanes.yaml",
)
# The label of everything that is installed.
_OURS = "holdfast.dev/lab=cluster-api"


class ClusterApi:
    """The controller and its kinds in a lab that is up."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._paths = lab.paths
        self._plane = ControlPlane(lab.paths, lab.network)

    @property
    def process(self) -> Process:
        return self._plane.process(NAME)

    @property
    def is_up(self) -> bool:
        return self.process.pid() is not None

    def up(self) -> None:
        """Build, install and start what is missing; return when the controller works."""
        if self.is_up:
            return
        kinds = self._build()
        with step("Cluster API"):
            port = free_port()
            serving = self._identities()
            self._install(kinds, port)
            self._start(port, serving)
            # The first kind that the controller works on: when it has seen a Cluster, it watches the others too.
            self._until("its controllers work", lambda: "Starting workers" in self._log())
            self._until("its conversion works", self._converts)

    def down(self) -> None:
        """End the controller, and remove its kinds with all their objects."""
        self.process.stop()
        installed = self._lab.kubectl("get", "crd", "-l", _OURS, "-o", "jsonpath={.items[*].metadata.name}").split()
        for kind in installed:
            # No controller is left to remove finalizers.
            for item in self._objects(kind):
                namespace, name = item["metadata"].get("namespace"), item["metadata"]["name"]
                where = ["-n", namespace] if namespace else []
                patch = '{"metadata": {"finalizers": null}}'
                self._lab.kubectl("patch", kind, *where, name, "--type=merge", f"--patch={patch}")
        if installed:
            self._lab.kubectl("delete", "crd", *installed, "--wait=true", f"--timeout={PATIENCE}s")

    def tail(self) -> str:
        """The end of its log."""
        return self.process.tail(40)

    def _objects(self, kind: str) -> list[dict[str, Any]]:
        # Uses the stored version: the other one needs the controller.
        listed = json.loads(self._lab.kubectl("get", kind, "--all-namespaces", "-o", "json"))
        return [item for item in listed["items"] if item["metadata"].get("finalizers")]

    def _build(self) -> list[Path]:
        """Build the program, and take the definitions of its kinds from the same Go module."""
        cache = self._paths.cache
        self._lab.provide([programs.CLUSTER_API])
        with self._lab.building():
            folder = cache / "programs" / programs.CLUSTER_API.key() / "kinds"
            if not folder.exists():
                _keep_kinds(folder)
        return sorted(folder.iterdir())

    def _identities(self) -> Path:
        authority = Authority(self._paths.pki)
        own = self._kubeconfig
        if not own.exists():
            pair = authority.client(NAME, ["system:masters"])
            write_private(own, kubeconfig(self._plane.url, authority.certificate, pair))
        folder = self._paths.pki / NAME
        folder.mkdir(mode=0o700, exist_ok=True)
        if not (folder / "tls.crt").exists():
            authority.server(NAME, ["localhost"], ["127.0.0.1"]).write(folder, "tls")
        return folder

    @property
    def _kubeconfig(self) -> Path:
        return self._paths.pki / f"{NAME}.kubeconfig"

    def _install(self, kinds: Sequence[Path], port: int) -> None:
        definitions = [yaml.safe_load(path.read_text()) for path in kinds]
        authority = base64.b64encode((self._paths.pki / "ca.crt").read_bytes()).decode()
        for definition in definitions:
            # What Cluster API's own manifests say of its kinds: which version implements which contract.
            contracts = {f"{GROUP}/v1beta1": "v1beta1", f"{GROUP}/v1beta2": "v1beta2"}
            definition["metadata"].setdefault("labels", {}).update(contracts)
            if definition["spec"]["group"] == GROUP:
                definition["spec"]["conversion"] = _conversion(port, authority)
        definitions += infrastructure()
        label, _equals, value = _OURS.partition("=")
        for definition in definitions:
            definition["metadata"]["labels"][label] = value
        manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": definitions})
        self._lab.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest)
        names = [definition["metadata"]["name"] for definition in definitions]
        established = "--for=condition=Established"
        self._lab.kubectl("wait", established, f"--timeout={PATIENCE}s", "crd", *names)

    def _start(self, port: int, serving: Path) -> None:
        self.process.log.unlink(missing_ok=True)
        command: list[str | Path] = [
            self._paths.bin / NAME,
            f"--kubeconfig={self._kubeconfig}",
            f"--webhook-port={port}",
            f"--webhook-cert-dir={serving}",
            "--health-addr=127.0.0.1:0",
            "--diagnostics-address=0",
            "--leader-elect=false",
            # Nothing here was stored by an earlier release.
            "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
        ]
        self.process.start(self._plane.cgroup.command(command), direct_environment())

    def _log(self) -> str:
        return self.process.log.read_text(errors="replace") if self.process.log.exists() else ""

    def _converts(self) -> bool:
        try:
            self._lab.kubectl("get", "--raw", f"/apis/{GROUP}/v1beta1/machines")
        except LabError:
            return False
        return True

    def _until(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if not self.is_up:
                raise LabError(f"Cluster API's controller ended, the last of its log is:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise LabError(f"Cluster API: after {PATIENCE} s not yet: {what}; see {self.process.log}")
            time.sleep(0.2)


def infrastructure() -> list[dict[str, Any]]:
    """The definitions of the lab's own kinds: a machine, and the template from which a MachineSet makes more."""
    return [_definition(kind) for kind in (MACHINE_KIND, TEMPLATE_KIND)]


def _definition(kind: str) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{INFRASTRUCTURE}", "labels": {f"{GROUP}/v1beta2": "v1"}},
        "spec": {
            "group": INFRASTRUCTURE,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


def _conversion(port: int, authority: str) -> dict[str, Any]:
    client = {"url": f"https://127.0.0.1:{port}/convert", "caBundle": authority}
    return {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}


def _keep_kinds(folder: Path) -> None:
    """Keep the definitions next to the program: Go's module cache may be emptied at any time."""
    module = programs.CLUSTER_API.directory
    found = json.loads(run(["go", "mod", "download", "-json", _MODULE], cwd=module))
    temporary = folder.with_name(".kinds")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for pattern in _KINDS:
        for path in Path(found["Dir"]).glob(pattern):
            (temporary / path.name).write_bytes(path.read_bytes())
    temporary.rename(folder)

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""etcd, the API server, the controllers and the scheduler: the real programs, as plain processes."""

from __future__ import annotations

import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path

from . import kwok
from .certificates import Authority, kubeconfig, signing_keys, write_private
from .cgroups import Cgroup
from .commands import direct_environment
from .errors import LabError
from .network import Network
from .paths import PACKAGE, Paths
from .patience import PATIENCE
from .processes import Process

API_PORT = 6443
ETCD_PORT = 2379
SERVICES = "10.96.0.0/16"
SERVICE_API = "10.96.0.1"

# Seconds without a heartbeat until a node counts as unreachable; 50 by default, too long for a test. On a busy machine
# a heartbeat can be late by more than ten seconds.
NODE_GRACE = 35
# Seconds between two heartbeats of a simulated node.
RENEWED_EVERY = 5


class ControlPlane:
    """The control plane, started as a whole; the API server also on its own."""

    def __init__(self, paths: Paths, network: Network, *, api_port: int = API_PORT, etcd_port: int = ETCD_PORT) -> None:
        self.paths = paths
        self.network = network
        self.cgroup = Cgroup(f"{network.cgroup}/control-plane")
        self.url = f"https://{network.gateway}:{api_port}"
        self._api_port = api_port
        self._etcd_url = f"http://{network.loopback}:{etcd_port}"
        # For other etcd members; there are none.
        self._etcd_peer_url = f"http://{network.loopback}:{etcd_port + 1}"

    def process(self, name: str) -> Process:
        return Process(name, self.paths.run / f"{name}.json", self.paths.logs / f"{name}.log")

    @property
    def names(self) -> list[str]:
        always = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
        return [*always, "kwok"] if self.process("kwok").record.exists() else always

    def identities(self) -> Authority:
        """Make the keys, certificates and kubeconfigs that are missing."""
        pki = self.paths.pki
        authority = Authority(pki)
        signing_keys(pki)
        if not (pki / "apiserver.crt").exists():
            names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
            addresses = [self.network.gateway, "127.0.0.1", SERVICE_API]
            authority.server("kube-apiserver", names, addresses).write(pki, "apiserver")
        if not (pki / "apiserver-kubelet-client.crt").exists():
            client = authority.client("kube-apiserver-kubelet-client", ["system:masters"])
            client.write(pki, "apiserver-kubelet-client")
        users = {
            self.paths.kubeconfig: ("admin", ["system:masters"]),
            self._kubeconfig("kube-controller-manager"): ("system:kube-controller-manager", []),
            self._kubeconfig("kube-scheduler"): ("system:kube-scheduler", []),
            self._kubeconfig("kwok"): ("kwok", ["system:masters"]),
        }
        for path, (user, groups) in users.items():
            if not path.exists():
                write_private(path, kubeconfig(self.url, authority.certificate, authority.client(user, groups)))
        return authority

    def start(self) -> None:
        """Start what does not run, and wait until the API answers. Simulated nodes need kwok as well."""
        self.cgroup.make()
        self._start("etcd", self._etcd())
        self.start_apiserver()
        self._start("kube-controller-manager", self._controller_manager())
        self._start("kube-scheduler", self._scheduler())

    def start_kwok(self) -> None:
        self._start("kwok", self._kwok())

    def start_apiserver(self) -> None:
        self._start("kube-apiserver", self._apiserver())
        self._wait_ready()

    def stop_apiserver(self) -> None:
        self.process("kube-apiserver").stop(timeout=5)

    def _start(self, name: str, argv: list[str]) -> None:
        # Memory is cheaper here than the time of the garbage collector: it takes 15 percent of the API server's.
        environment = {**direct_environment(), "GOGC": "400"}
        self.process(name).start(self.cgroup.command([self.paths.bin / name, *argv]), environment)

    def _kubeconfig(self, name: str) -> Path:
        return self.paths.pki / f"{name}.kubeconfig"

    def _wait_ready(self, timeout: float = PATIENCE) -> None:
        context = ssl.create_default_context(cafile=str(self.paths.pki / "ca.crt"))
        opener = urllib.request.build_opener(
            # A proxy of the machine can't reach the lab.
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=context),
        )
        deadline = time.monotonic() + timeout
        while True:
            try:
                with opener.open(f"{self.url}/readyz", timeout=5):
                    return
            except (OSError, urllib.error.URLError) as error:
                for name in ("etcd", "kube-apiserver"):
                    process = self.process(name)
                    if process.pid() is None:
                        raise LabError(f"{name} ended, the last of its log is:\n{process.tail()}") from error
                if time.monotonic() > deadline:
                    raise LabError(f"the API server is not ready after {timeout:.0f} s: {error}") from error
            time.sleep(0.1)

    def _etcd(self) -> list[str]:
        client, peer = self._etcd_url, self._etcd_peer_url
        return [
            "--name=lab",
            f"--data-dir={self.paths.root / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=lab={peer}",
            # The data need not outlive the machine, and the disk is slow.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _apiserver(self) -> list[str]:
        pki = self.paths.pki
        return [
            f"--etcd-servers={self._etcd_url}",
            f"--bind-address={self.network.gateway}",
            f"--advertise-address={self.network.gateway}",
            f"--secure-port={self._api_port}",
            f"--service-cluster-ip-range={SERVICES}",
            f"--tls-cert-file={pki / 'apiserver.crt'}",
            f"--tls-private-key-file={pki / 'apiserver.key'}",
            f"--client-ca-file={pki / 'ca.crt'}",
            f"--kubelet-client-certificate={pki / 'apiserver-kubelet-client.crt'}",
            f"--kubelet-client-key={pki / 'apiserver-kubelet-client.key'}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--service-account-key-file={pki / 'service-account.pub'}",
            f"--service-account-signing-key-file={pki / 'service-account.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            # A test with a thousand nodes must reach its own limits, not the API server's.
            "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=1000",
            "--shutdown-delay-duration=0s",
        ]

    def _controller_manager(self) -> list[str]:
        pki = self.paths.pki
        return [
            f"--kubeconfig={self._kubeconfig('kube-controller-manager')}",
            f"--bind-address={self.network.loopback}",
            "--leader-elect=false",
            f"--node-monitor-grace-period={NODE_GRACE}s",
            "--node-monitor-period=1s",
            f"--root-ca-file={pki / 'ca.crt'}",
            f"--service-account-private-key-file={pki / 'service-account.key'}",
            "--use-service-account-credentials=true",
            f"--cluster-signing-cert-file={pki / 'ca.crt'}",
            f"--cluster-signing-key-file={pki / 'ca.key'}",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            # Tests are about disruption budgets: their status must follow at once.
            "--concurrent-deployment-syncs=20",
            "--concurrent-replicaset-syncs=20",
        ]

    def _scheduler(self) -> list[str]:
        return [
            f"--kubeconfig={self._kubeconfig('kube-scheduler')}",
            f"--bind-address={self.network.loopback}",
            "--leader-elect=false",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]

    def _kwok(self) -> list[str]:
        return [
            f"--kubeconfig={self._kubeconfig('kwok')}",
            *(f"--config={path}" for path in sorted((PACKAGE / "stages").iterdir())),
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            f"--manage-nodes-with-label-selector={kwok.POWER} notin ({kwok.OFF},{kwok.HUNG})",
            # kwok renews at a quarter of this time.
            f"--node-lease-duration-seconds={4 * RENEWED_EVERY}",
            "--cidr=10.215.0.0/16",
            f"--server-address={self.network.loopback}:10247",
        ]

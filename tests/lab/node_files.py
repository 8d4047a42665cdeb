# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that make a Debian tree a Kubernetes node, as data."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import yaml

from .certificates import Pair, kubeconfig_text
from .image import NAME as IMAGE

# The same paths as kubeadm's, because tools look for them there.
KUBELET_CONFIG = "var/lib/kubelet/config.yaml"
KUBELET_CERTIFICATE = "var/lib/kubelet/pki/kubelet-client-current.pem"
KUBELET_KUBECONFIG = "etc/kubernetes/kubelet.conf"
AUTHORITY = "etc/kubernetes/pki/ca.crt"
PROGRAMS = "/opt/k8s"
CGROUP = "/lab"

# The kubelet requires these values; they belong to the whole machine, so the node sees its own files instead.
SYSCTLS = {
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxbytes": 25000000,
    "kernel/keys/root_maxkeys": 1000000,
    "vm/overcommit_memory": 1,
}

PREPARE = """#!/bin/sh
set -eu
# The kubelet makes cgroups of its own, in a part of each hierarchy that systemd leaves alone.
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
    [ -e "$hierarchy/cgroup.procs" ] && [ ! -L "$hierarchy" ] || continue
    mount -o remount,bind,rw "$hierarchy" || true
    mkdir -p "$hierarchy@CGROUP@"
    for file in cpuset.cpus cpuset.mems; do
        [ ! -e "$hierarchy/$file" ] || cat "$hierarchy/$file" > "$hierarchy@CGROUP@/$file" || true
    done
done
# The kubelet must not report the hardware below: each node has a system UUID of its own, from its machine-id.
[ ! -d /sys/class/dmi/id ] || mount -t tmpfs tmpfs /sys/class/dmi/id
# Volumes of pods are mounts that the container runtime must see.
mount --make-rshared /
(cd /etc/lab/sysctl && find . -type f) | while read -r name; do
    mount --bind "/etc/lab/sysctl/$name" "/proc/sys/$name"
done
ip address replace "@ADDRESS@/24" dev host0
ip link set host0 up
ip route replace default via "@GATEWAY@"
"""

PREPARE_UNIT = """[Unit]
Description=What a machine in a container lacks to be a node
DefaultDependencies=no
After=local-fs.target
Before=network.target containerd.service kubelet.service ssh.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/lab-prepare

[Install]
WantedBy=multi-user.target
"""

IMAGE_UNIT = """[Unit]
Description=The image that pods in the lab run
Requires=containerd.service
After=containerd.service
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'ctr -n k8s.io images list -q | grep -qx @IMAGE@ || ctr -n k8s.io images import @PROGRAMS@/app.tar'

[Install]
WantedBy=multi-user.target
"""

KUBELET_UNIT = """[Unit]
Description=Kubelet
Wants=containerd.service lab-image.service
After=lab-prepare.service containerd.service lab-image.service dbus.service systemd-logind.service

[Service]
ExecStart=@PROGRAMS@/kubelet --kubeconfig=/@KUBECONFIG@ --config=/@CONFIG@ --node-ip=@ADDRESS@ --node-labels=type=real
Restart=always
RestartSec=1
KillMode=process

[Install]
WantedBy=multi-user.target
"""

CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  # A process in a container may not lower its score: no sandbox would start.
  restrict_oom_score_adj = true
  sandbox_image = "@IMAGE@"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    # The root file system is an overlay, and overlays don't nest.
    snapshotter = "native"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
"""

CNI = """{
  "cniVersion": "0.4.0",
  "name": "lab",
  "plugins": [
    {
      "type": "ptp",
      "ipam": {
        "type": "host-local",
        "ranges": [[{"subnet": "@PODS@"}]],
        "dataDir": "/run/cni-ipam",
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    }
  ]
}
"""

# Containers whose first process ignores SIGTERM would delay a shutdown for 90 s.
SYSTEM_CONF = """[Manager]
DefaultTimeoutStopSec=10s
"""

ENABLED = ("lab-prepare.service", "lab-image.service", "containerd.service", "kubelet.service", "ssh.service")
# Units that a node does not need, such as those for a serial line or for a network that comes from outside.
MASKED = (
    "console-getty.service",
    "getty.target",
    "systemd-networkd.service",
    "systemd-networkd.socket",
    "systemd-networkd-wait-online.service",
    "systemd-resolved.service",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "systemd-modules-load.service",
)


@dataclass(frozen=True)
class NodeSpec:
    """Everything that differs between nodes."""

    name: str
    number: int
    address: str
    gateway: str
    server: str

    @property
    def pods(self) -> str:
        """The same in each lab: pods' addresses never leave their node."""
        return f"10.214.{self.number}.0/24"


@dataclass(frozen=True)
class File:
    """One file in the node's root file system."""

    content: bytes
    mode: int = 0o644


def files(spec: NodeSpec, identity: Pair, authority: bytes, ssh_public_key: str) -> dict[str, File]:
    """Map paths to files."""

    def fill(text: str) -> bytes:
        values = {
            "ADDRESS": spec.address,
            "CGROUP": CGROUP,
            "CONFIG": KUBELET_CONFIG,
            "GATEWAY": spec.gateway,
            "IMAGE": IMAGE,
            "KUBECONFIG": KUBELET_KUBECONFIG,
            "PODS": spec.pods,
            "PROGRAMS": PROGRAMS,
        }
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
        return text.encode()

    certificate = f"/{KUBELET_CERTIFICATE}"
    found = {
        "etc/hostname": File(f"{spec.name}\n".encode()),
        "etc/hosts": File(f"127.0.0.1 localhost\n127.0.1.1 {spec.name}\n".encode()),
        # With its own machine ID, the first boot is a boot like any other.
        "etc/machine-id": File(f"{uuid.uuid4().hex}\n".encode(), 0o444),
        "etc/resolv.conf": File(b""),
        "etc/systemd/system.conf.d/lab.conf": File(SYSTEM_CONF.encode()),
        "etc/systemd/system/lab-prepare.service": File(PREPARE_UNIT.encode()),
        "etc/systemd/system/lab-image.service": File(fill(IMAGE_UNIT)),
        "etc/systemd/system/kubelet.service": File(fill(KUBELET_UNIT)),
        "usr/local/sbin/lab-prepare": File(fill(PREPARE), 0o755),
        "etc/containerd/config.toml": File(fill(CONTAINERD)),
        "etc/cni/net.d/10-lab.conflist": File(fill(CNI)),
        AUTHORITY: File(authority),
        KUBELET_CERTIFICATE: File(identity.certificate + identity.key, 0o600),
        KUBELET_KUBECONFIG: File(
            kubeconfig_text(
                {"server": spec.server, "certificate-authority": f"/{AUTHORITY}"},
                {"client-certificate": certificate, "client-key": certificate},
            ),
            0o600,
        ),
        KUBELET_CONFIG: File(yaml.safe_dump(kubelet_configuration()).encode()),
        "root/.ssh/authorized_keys": File(ssh_public_key.encode(), 0o600),
    }
    for name, value in SYSCTLS.items():
        found[f"etc/lab/sysctl/{name}"] = File(f"{value}\n".encode())
    return found


def links() -> dict[str, str]:
    """Map links to targets: the units that are enabled, and those that are masked."""
    wants = "etc/systemd/system/multi-user.target.wants"
    own = {"lab-prepare.service", "lab-image.service", "kubelet.service"}
    found = {f"{wants}/{unit}": f"{'/etc' if unit in own else '/lib'}/systemd/system/{unit}" for unit in ENABLED}
    found.update({f"etc/systemd/system/{unit}": "/dev/null" for unit in MASKED})
    return found


def kubelet_configuration() -> dict[str, object]:
    """The kubelet's configuration file."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"/{AUTHORITY}"},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": CGROUP,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "enforceNodeAllocatable": ["pods"],
        "failCgroupV1": False,
        "failSwapOn": False,
        # The disk and the memory belong to the machine: how full they are says nothing about the node.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        # Well below the controller manager's grace period.
        "nodeLeaseDurationSeconds": 8,
        "nodeStatusUpdateFrequency": "4s",
        "resolvConf": "/etc/resolv.conf",
        "shutdownGracePeriod": "10s",
        "shutdownGracePeriodCriticalPods": "4s",
    }

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node agent on a real node, installed as the role does, and what can be seen of it."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import jinja2
import yaml
from integration.support.turns import turn

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import to_text
from lab import Lab
from lab.commands import run
from lab.errors import LabError
from lab.paths import CHECKOUT
from lab.patience import PATIENCE

ROLE = CHECKOUT / "roles/node_agent"
PROGRAM = "/usr/local/lib/holdfast-agent"
UNIT = "/etc/systemd/system/holdfast-agent.service"
TEXTFILE = "/var/lib/node_exporter/holdfast.prom"
RBAC = CHECKOUT / "docs/node_agent_rbac.yml"
TARGETS = ("reboot", "poweroff", "halt", "kexec", "soft-reboot", "exit")
# systemd 252 and systemd 257.
NODES = ("node-1", "node-2")
UNITS = {name for target in TARGETS for name in (f"{target}.target", f"systemd-{target}.service")}


class Agent:
    def __init__(self, lab: Lab, cluster: Cluster, name: str) -> None:
        self.lab, self.cluster, self.name = lab, cluster, name

    # -- the node

    def ssh(self, command: str, *, timeout: float = PATIENCE) -> str:
        return self.lab.node(self.name).ssh(command, timeout)

    def ask_to_reboot(self, *options: str) -> None:
        self.lab.node(self.name).ask_to_reboot(*options)

    def send(self, content: str, command: str) -> None:
        """Run a command with this on its standard input."""
        node = self.lab.node(self.name)
        argv = ["ssh", *node.ssh_arguments(), "-o", "BatchMode=yes", f"root@{node.address}", command]
        run(argv, stdin=content, timeout=PATIENCE)

    @property
    def boot_id(self) -> str:
        return self.ssh("cat /proc/sys/kernel/random/boot_id").strip()

    @property
    def systemd(self) -> int:
        return int(self.ssh("systemctl --version").split()[1])

    def journal(self, unit: str = "holdfast-agent", *, boot: str = "-b") -> str:
        return self.ssh(f"journalctl {boot} --no-pager --output=short-precise --unit={unit}")

    # -- the service

    def install(self, **config: Any) -> None:
        """Install it as the role does: the program, the unit, the configuration."""
        self.program("0.1.0")
        loader = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, autoescape=False)
        loader.filters["dirname"] = lambda path: str(Path(path).parent)
        unit = loader.from_string((ROLE / "templates/holdfast-agent.service.j2").read_text()).render(
            __node_agent_systemd_version=self.systemd, __node_agent_settings={"textfile": TEXTFILE}
        )
        self.send(unit, f"mkdir -p {Path(TEXTFILE).parent} && cat > {UNIT}")
        self.configure(**config)
        self.ssh(
            "systemctl daemon-reload && systemctl enable --quiet holdfast-agent && systemctl restart holdfast-agent"
        )

    def program(self, version: str) -> None:
        """Install the program with this version string."""
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as tar:
            for path in sorted((ROLE / "files/holdfast_agent").glob("*.py")):
                data = path.read_bytes()
                if path.name == "__init__.py":
                    data = data.replace(b'__version__ = "0.1.0"', f'__version__ = "{version}"'.encode())
                info = tarfile.TarInfo(f"holdfast_agent/{path.name}")
                info.size, info.mode = len(data), 0o644
                tar.addfile(info, io.BytesIO(data))
        text = base64.b64encode(content.getvalue()).decode()
        self.send(text, f"mkdir -p {PROGRAM} && base64 --decode | tar -C {PROGRAM} -xf -")

    def configure(self, **config: Any) -> None:
        content = yaml.safe_dump({"node_name": self.name, "textfile": TEXTFILE, **config})
        self.send(content, "mkdir -p /etc/holdfast && cat > /etc/holdfast/agent.yaml")

    def restart(self) -> None:
        self.ssh("systemctl restart holdfast-agent")

    def release(self) -> str:
        return self.ssh(f"/usr/bin/python3 -I -B {PROGRAM}/holdfast_agent --release --even-held")

    def remove(self) -> None:
        """Remove everything, as the role does with state absent."""
        self.ssh("systemctl disable --quiet --now holdfast-agent || true")
        with contextlib.suppress(LabError):
            self.release()
        self.ssh(
            f"rm -rf {PROGRAM} {UNIT} /etc/holdfast /var/lib/holdfast-agent /run/holdfast-agent && "
            "systemctl daemon-reload"
        )

    @property
    def pid(self) -> int:
        return int(self.ssh("systemctl show -P MainPID holdfast-agent"))

    @property
    def memory(self) -> float:
        """Resident memory, in MB."""
        found = self.ssh("grep VmRSS /proc/$(systemctl show -P MainPID holdfast-agent)/status")
        return int(found.split()[1]) * 1024 / 1e6

    # -- Leases

    def hold(self, namespace: str, holder: str = "me", *, acquired: str | None = None, **spec: Any) -> None:
        path = paths.leases(namespace)
        when = to_text(self.cluster.now()) if acquired is None else acquired
        whole = {"holderIdentity": holder, "acquireTime": when, **spec}
        given = {key: value for key, value in whole.items() if value != ""}
        try:
            self.cluster.merge(paths.lease(namespace, self.name), {"spec": given})
        except NotFound:
            self.cluster.create(path, {"metadata": {"name": self.name}, "spec": given})

    def end_hold(self, namespace: str) -> None:
        with contextlib.suppress(NotFound):
            self.cluster.delete(paths.lease(namespace, self.name))

    # -- what can be seen

    def condition(self) -> dict[str, Any]:
        node = self.cluster.get(paths.node(self.name))
        return next((item for item in node["status"]["conditions"] if item["type"] == "ShutdownInhibited"), {})

    def until(self, reason: str, status: str | None = None) -> dict[str, Any]:
        """Wait until the condition has this status."""

        def says() -> dict[str, Any] | None:
            found = self.condition()
            right = found.get("reason") == reason and (status is None or found.get("status") == status)
            return found if right else None

        return until(says, self.condition)

    def until_free(self) -> dict[str, Any]:
        """Wait until no one holds the node, and everything is released."""
        found = self.until("KubeletShutdownAllowed", "False")
        until(lambda: not self.locks() and not self.masked(), lambda: (self.locks(), self.masked()))
        return found

    def locks(self) -> list[str]:
        """The reasons of the agent's locks."""
        call = "org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager ListInhibitors"
        data = json.loads(self.ssh(f"busctl --json=short call {call}"))["data"][0]
        return sorted(
            why for what, who, why, mode, _uid, _pid in data if (what, who, mode) == ("shutdown", "holdfast", "block")
        )

    def masked(self) -> set[str]:
        """The units that have a runtime mask."""
        found = self.ssh("find /run/systemd/system -maxdepth 1 -lname /dev/null -printf '%f\n'")
        return set(found.split())

    def load_states(self) -> set[str]:
        return set(self.ssh(f"systemctl show -P LoadState {' '.join(sorted(UNITS))}").split())

    def metrics(self) -> dict[str, float]:
        lines = self.ssh(f"cat {TEXTFILE}").splitlines()
        return {
            name: float(value) for name, _space, value in (line.rpartition(" ") for line in lines if line[0] != "#")
        }

    def events(self) -> list[dict[str, Any]]:
        found = self.cluster.items(
            "/api/v1/namespaces/default/events", field_selector="reason=ShutdownInhibitedTooLong"
        )
        return [item for item in found if item["involvedObject"]["name"] == self.name]

    # -- trouble

    @contextlib.contextmanager
    def cut_off(self) -> Iterator[None]:
        """Cut all traffic between this node and the API server; the node itself runs on."""
        rules = (
            "INPUT --protocol tcp --sport 6443 --jump DROP",
            "OUTPUT --protocol tcp --dport 6443 --jump REJECT --reject-with tcp-reset",
        )
        self.ssh("; ".join(f"iptables --insert {rule}" for rule in rules))
        try:
            yield
        finally:
            self.ssh("; ".join(f"iptables --delete {rule}" for rule in rules))


def until(look: Callable[[], Any], describe: Callable[[], Any] = lambda: "", seconds: float = PATIENCE) -> Any:
    """Look until there is a value."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {describe()}")
        time.sleep(0.2)


@contextlib.contextmanager
def agents_on(lab: Lab, cluster: Cluster, names: tuple[str, ...]) -> Iterator[dict[str, Agent]]:
    """Run the agent on these nodes for a while."""
    found = {name: Agent(lab, cluster, name) for name in names}
    # Where the role is tested, the rights of all agents come and go.
    with turn(lab, "agents", shared=True):
        apply_rbac(lab)
        lab.wait_ready(names)
        try:
            for agent in found.values():
                agent.install()
            yield found
        finally:
            for agent in found.values():
                agent.remove()


@contextlib.contextmanager
def free(agent: Agent) -> Iterator[Agent]:
    """An agent on a node that no one holds, before and after."""
    agent.until_free()
    try:
        yield agent
    finally:
        for item in agent.cluster.items(paths.LEASES, field_selector=f"metadata.name={agent.name}"):
            if item["metadata"]["namespace"].startswith("test-"):
                agent.end_hold(item["metadata"]["namespace"])
        agent.until_free()


def apply_rbac(lab: Lab) -> None:
    """
    Apply the right to read Leases; it stays, because other agents may run.

    Several processes do this at once. On the client's side, ``kubectl apply`` reads and then creates, and the second
    process finds that the object exists. On the server's side it is one request.
    """
    lab.kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(RBAC))

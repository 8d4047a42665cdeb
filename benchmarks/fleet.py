# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure what a rolling reboot costs per node: CPU time of the controller, wall time, requests and bytes of the API.

benchmarks/fleet.py [--nodes N] [--others N] [--budget N] [--pairs N] [--before COLLECTIONS | --alone]

The nodes are simulated, and a reboot is one cheap task, so the figures are for the playbook alone. The group can have
other nodes that the playbook does not reboot. The peer is the collection in the directory ``--before``, for example
from an earlier commit, or else a playbook with ``serial`` and ``kubernetes.core.k8s_drain``. Both run in turn, on the
same lab. With ``--alone`` there is no peer. build/bench/fleet.json has every run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(CHECKOUT / folder) for folder in ("benchmarks", "tests", "tools")]

import stages  # noqa: E402
from measure import PEERS, BenchmarkError  # noqa: E402

from lab import Lab, kwok  # noqa: E402

PREFIX, POOL = "fleet", {"pool": "fleet"}
OTHERS = "other"
OUTPUT = CHECKOUT / "build/bench"
FORKS = 20
IDLE = 20
BOOT = (
    "{kubectl} --kubeconfig={kubeconfig} patch node {{{{ {name} }}}} --subresource=status --type=strategic "
    """--patch='{{"status":{{"nodeInfo":{{"bootID":"'$(cat /proc/sys/kernel/random/uuid)'"}}}}}}'"""
)
# Metrics of the API server: a sample of a counter, without its labels.
SAMPLE = re.compile(r"^(apiserver_request_total|apiserver_response_sizes_sum)\{.*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Cost:
    """What one run costs per node; the API server's own load without a run is subtracted.

    Attributes:
        cpu: Seconds of CPU time of the controller.
        wall: Seconds by the clock, of the whole run.
        requests: Requests that the API server answered.
        bytes: Bytes of its answers.
        memory: The largest resident memory of one process of the controller, in MiB; not per node.
    """

    cpu: float
    wall: float
    requests: float
    bytes: float
    memory: float


class Fleet:
    """Simulated nodes, and the playbooks that reboot them."""

    def __init__(self, lab: Lab, count: int, others: int, budget: int) -> None:
        self.lab, self.budget = lab, budget
        self.names = kwok.names(count, PREFIX)
        lab.start_kwok()
        lab.simulate(self.names, POOL)
        lab.simulate(kwok.names(others, OTHERS), POOL)
        OUTPUT.mkdir(parents=True, exist_ok=True)
        hosts = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        self.inventory = OUTPUT / "fleet.yml"
        self.inventory.write_text(yaml.safe_dump({"all": {"hosts": {name: {} for name in self.names}, "vars": hosts}}))
        (OUTPUT / "ansible.cfg").write_text(f"[defaults]\nforks = {FORKS}\ninternal_poll_interval = 0.01\n")

    def boot(self, name: str) -> list[dict[str, str]]:
        command = BOOT.format(kubectl=self.lab.bin / "kubectl", kubeconfig=self.lab.kubeconfig, name=name)
        return [{"name": "Boot", "ansible.builtin.raw": command}]

    def holdfast(self, collections: Path) -> Cost:
        boot = OUTPUT / "boot.yml"
        boot.write_text(yaml.safe_dump(self.boot("rolling_reboot_node_name")))
        variables = {
            "rolling_reboot_when": "always",
            "rolling_reboot_restart": True,
            "rolling_reboot_group": PREFIX,
            "rolling_reboot_selector": "pool=fleet",
            "rolling_reboot_max_unavailable": self.budget,
            "rolling_reboot_method": "command",
            "rolling_reboot_command_tasks": str(boot),
        }
        book = ["-e", json.dumps(variables), "holdfast.kubernetes.rolling_reboot"]
        return self._measured([Path(sys.executable).parent / "ansible-playbook", *book], collections)

    def naive(self) -> Cost:
        drain = {"name": "{{ inventory_hostname }}", "delete_options": {"ignore_daemonsets": True}}
        tasks = [
            {"name": "Drain", "kubernetes.core.k8s_drain": {**drain, "state": "drain"}},
            *self.boot("inventory_hostname"),
            {
                "name": "Wait until it is Ready",
                "kubernetes.core.k8s_info": {
                    "kind": "Node",
                    "name": "{{ inventory_hostname }}",
                    "wait": True,
                    "wait_condition": {"type": "Ready", "status": "True"},
                },
            },
            {"name": "Uncordon", "kubernetes.core.k8s_drain": {"name": drain["name"], "state": "uncordon"}},
        ]
        book = OUTPUT / "naive.yml"
        play = {"hosts": "all", "serial": self.budget, "gather_facts": False, "tasks": tasks}
        book.write_text(yaml.safe_dump([play], sort_keys=False))
        return self._measured([PEERS / "ansible-playbook", book], CHECKOUT / "build/collections")

    def _measured(self, command: list[str | Path], collections: Path) -> Cost:
        before, idle = self._boot_ids(), self._load()
        time.sleep(IDLE)
        first, started = self._load(), time.monotonic()
        usage = self._run(command, collections)
        wall = time.monotonic() - started
        last, after = self._load(), self._boot_ids()
        if same := [name for name in self.names if before[name] == after[name]]:
            raise BenchmarkError(f"{len(same)} nodes were not rebooted, {same[0]} for example")
        spent = {name: last[name] - first[name] - (first[name] - idle[name]) / IDLE * wall for name in last}
        count = len(self.names)
        requests, answered = spent["apiserver_request_total"], spent["apiserver_response_sizes_sum"]
        return Cost(
            cpu=round((usage.ru_utime + usage.ru_stime) / count, 3),
            wall=round(wall, 1),
            requests=round(requests / count, 1),
            bytes=round(answered / count),
            memory=round(usage.ru_maxrss / 1024),
        )

    def _run(self, command: list[str | Path], collections: Path) -> resource.struct_rusage:
        """Run a playbook; return what it and its workers used."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "K8S_AUTH_"))}
        env |= {"ANSIBLE_COLLECTIONS_PATH": str(collections), "K8S_AUTH_KUBECONFIG": str(self.lab.kubeconfig)}
        log = OUTPUT / "fleet.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, "-i", self.inventory],
                cwd=OUTPUT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            _pid, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise BenchmarkError(f"The playbook ended with {process.returncode}:\n{log.read_text(errors='replace')}")
        return usage

    def _load(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for name, value in SAMPLE.findall(self.lab.kubectl("get", "--raw", "/metrics")):
            found[name] += float(value)
        return found

    def _boot_ids(self) -> dict[str, str]:
        nodes = json.loads(self.lab.kubectl("get", "nodes", "-l", "pool=fleet", "-o", "json"))["items"]
        return {node["metadata"]["name"]: node["status"]["nodeInfo"]["bootID"] for node in nodes}

    def close(self) -> None:
        for prefix in (PREFIX, OTHERS):
            self.lab.unsimulate(prefix=prefix)
        self.lab.kubectl("delete", "configmap", f"group.{PREFIX}", "-n", "holdfast", "--ignore-not-found")


def measure(fleet: Fleet, before: Path | None, alone: bool, pairs: int) -> dict[str, list[Cost]]:
    sides: dict[str, Callable[[], Cost]] = {"now": lambda: fleet.holdfast(CHECKOUT / "build/collections")}
    if before:
        sides["before"] = lambda: fleet.holdfast(before)
    elif not alone:
        sides["naive"] = fleet.naive
    costs: dict[str, list[Cost]] = {name: [] for name in sides}
    for number in range(pairs):
        for name, run in sides.items():
            costs[name].append(run())
            print(f"  pair {number + 1} {name}: {costs[name][-1]}", flush=True)
    return costs


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what a rolling reboot of simulated nodes costs per node.")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--others", type=int, default=0, help="nodes of the group that the playbook does not reboot")
    parser.add_argument("--budget", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=3)
    peer = parser.add_mutually_exclusive_group()
    peer.add_argument("--before", type=Path, help="a collections directory with an earlier release of the collection")
    peer.add_argument("--alone", action="store_true", help="compare with nothing")
    options = parser.parse_args()
    lab = stages.Lab()
    try:
        with stages.signals():
            if status := lab.up():
                return status
            fleet = Fleet(Lab.default(), options.nodes, options.others, options.budget)
            try:
                costs = measure(fleet, options.before, options.alone, options.pairs)
            finally:
                fleet.close()
    except stages.Interrupted as interrupted:
        return 128 + int(interrupted.args[0])
    finally:
        lab.down()
    found = {name: [asdict(cost) for cost in runs] for name, runs in costs.items()}
    (OUTPUT / "fleet.json").write_text(json.dumps({**vars(options), "costs": found}, indent=1, default=str) + "\n")
    print(
        f"\n{options.nodes} nodes, {options.others} others, budget {options.budget}, {FORKS} forks; "
        f"medians of {options.pairs} runs"
    )
    for key in asdict(costs["now"][0]):
        medians = {name: statistics.median(getattr(cost, key) for cost in runs) for name, runs in costs.items()}
        words = [f"{name} {value:12.2f}" for name, value in medians.items()]
        if len(medians) > 1:
            ours, peer = medians.values()
            words.append(f"ratio {ours / peer:.2f}")
        print(f"{key:<9} {'  '.join(words)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

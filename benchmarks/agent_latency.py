# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node agent: from a Lease made or released to lock, masks and condition; its memory, and its work while idle.

benchmarks/agent_latency.py [--times N] [--idle SECONDS]

On both systemds of the lab. The node's own clock is the machine's, so what is seen there and here can be compared:
a program on the node looks at logind's locks and systemd's masks every 2 ms, a watch here sees the condition. The
result is build/bench/agent.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
OUTPUT = CHECKOUT / "build/bench/agent.json"
sys.path[:0] = [str(CHECKOUT / folder) for folder in ("tests", "tools", "build/collections")]

import stages  # noqa: E402
from integration.support.agent import Agent, agents_on, until  # noqa: E402

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths  # noqa: E402
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster  # noqa: E402
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import (  # noqa: E402
    Changed,
    Deadline,
    Follower,
)
from lab import Lab  # noqa: E402

NODES = ("node-1", "node-2")
NAMESPACE = "bench-agent"
AIM_MEDIAN, AIM_SLOWEST = 0.050, 0.250

# Prints when the lock or the mask came or went. Locks are files that logind writes.
OBSERVER = r"""
import glob, os, time
before = None
while os.path.exists("/run/observe"):
    lock = False
    # What ends in .ref is a pipe.
    for path in glob.glob("/run/systemd/inhibit/*[0-9]"):
        try:
            with open(path) as file:
                lock = lock or "WHO=holdfast" in file.read()
        except OSError:
            pass
    now = (lock, os.path.islink("/run/systemd/system/reboot.target"))
    if now != before:
        print(time.time(), int(now[0]), int(now[1]), flush=True)
        before = now
    time.sleep(0.002)
"""


class Conditions:
    """When the watch reported each state of the condition."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.seen: list[tuple[float, str]] = []
        self._follower = Follower(cluster, paths.NODES, Deadline(None), field_selector=f"metadata.name={name}")
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        for news in self._follower:
            for node in [news.object] if isinstance(news, Changed) else news.items:
                now = time.time()
                for item in node["status"].get("conditions") or []:
                    if item["type"] == "ShutdownInhibited" and [item["status"]] != [
                        said for _when, said in self.seen[-1:]
                    ]:
                        self.seen.append((now, item["status"]))

    def stop(self) -> None:
        self._follower.stop()


def latencies(agent: Agent, times: int) -> dict[str, list[float]]:
    """Seconds from each act to what it leads to."""
    agent.send(OBSERVER, "cat > /root/observe.py; touch /run/observe")
    agent.ssh("systemd-run --quiet --collect --unit=observe sh -c 'python3 /root/observe.py > /run/observed'")
    conditions = Conditions(agent.cluster, agent.name)
    acts: list[tuple[float, int]] = []
    for number in range(2 * times):
        wanted = "True" if number % 2 == 0 else "False"
        acts.append((time.time(), int(wanted == "True")))
        if wanted == "True":
            agent.hold(NAMESPACE)
        else:
            agent.end_hold(NAMESPACE)
        until(lambda wanted=wanted: [said for _when, said in conditions.seen[-1:]] == [wanted])
        # Locks and masks go after the condition; and neighbours should not be measured together.
        time.sleep(0.4)
    conditions.stop()
    agent.ssh("rm /run/observe; sleep 0.1")
    seen = [line.split() for line in agent.ssh("cat /run/observed").splitlines()]
    found: dict[str, list[float]] = {}
    for when, on in acts:
        told = {
            "condition": [moment for moment, said in conditions.seen if (said == "True") == bool(on)],
            "lock": [float(line[0]) for line in seen if int(line[1]) == on],
            "masks": [float(line[0]) for line in seen if int(line[2]) == on],
        }
        for what, moments in told.items():
            first = min(moment for moment in moments if moment >= when)
            found.setdefault(f"{'made' if on else 'released'}: {what}", []).append(first - when)
    return found


def processor_seconds(agent: Agent) -> float:
    fields = agent.ssh("cat /proc/$(systemctl show -P MainPID holdfast-agent)/stat; getconf CLK_TCK").split()
    return (int(fields[13]) + int(fields[14])) / int(fields[-1])


def measure(agent: Agent, times: int, idle: float) -> dict[str, Any]:
    agent.until_free()
    started = agent.memory
    found = latencies(agent, times)
    before = processor_seconds(agent)
    time.sleep(idle)
    used = processor_seconds(agent) - before
    return {
        "node": agent.name,
        "systemd": agent.systemd,
        "latency": {
            what: {
                "median": round(statistics.median(values), 4),
                "slowest": round(max(values), 4),
                "within_aim": statistics.median(values) < AIM_MEDIAN and max(values) < AIM_SLOWEST,
            }
            for what, values in found.items()
        },
        "memory_mb": {"started": round(started, 1), "after": round(agent.memory, 1)},
        "cpu_seconds_an_idle_hour": round(used / idle * 3600, 2),
    }


def show(result: dict[str, Any]) -> None:
    memory = result["memory_mb"]
    print(f"\n{result['node']}, systemd {result['systemd']}: {memory['after']} MB resident (after start", end=" ")
    print(f"{memory['started']}), {result['cpu_seconds_an_idle_hour']} CPU seconds an idle hour")
    for what, values in result["latency"].items():
        print(f"  {what:<20} median {values['median'] * 1000:6.1f} ms, slowest {values['slowest'] * 1000:6.1f} ms")


def run(times: int, idle: float) -> None:
    lab = Lab.default()
    cluster = Cluster({"kubeconfig": str(lab.kubeconfig)})
    lab.kubectl("create", "namespace", NAMESPACE)
    try:
        with agents_on(lab, cluster, NODES) as agents:
            results = [measure(agents[name], times, idle) for name in NODES]
    finally:
        lab.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    for result in results:
        show(result)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(results, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the node agent.")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--idle", type=float, default=120)
    options = parser.parse_args()
    lab = stages.Lab()
    try:
        with stages.signals():
            if status := lab.up():
                return status
            run(options.times, options.idle)
    except stages.Interrupted as interrupted:
        return 128 + int(interrupted.args[0])
    finally:
        lab.down()
    return 0


if __name__ == "__main__":
    sys.exit(main())

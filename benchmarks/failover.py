# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node dies under a StatefulSet's pod with a volume: our failover, and what Kubernetes does by itself.

benchmarks/failover.py [--patience SECONDS] [--bound SECONDS]

The same death twice: a real node of the lab loses its power. Once the playbook failover is started in the moment when
the node is seen not Ready, with a fence and a verify command; once nobody does anything. Both wait the same while
before they act: the playbook (failover_confirm_seconds), and the pod (tolerationSeconds for not-ready and unreachable,
300 by default). Then the machine is switched on again: by the playbook recover, or by hand.

All steps are seen from outside, by watches, in seconds after the power was cut, so that both columns mean the same.
What Kubernetes does not do within the bound is said to be so: without anybody's word that the machine is off a
StatefulSet's pod stays Terminating, and its volume attached, until the machine is back. (A force detach after 6 minutes
needs the pod to be gone first.) The operators of medik8s (node-healthcheck, fence-agents-remediation,
self-node-remediation) would be peers, but can't be built from Go modules, and come as images alone.

build/bench/failover.json has the result.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
OUTPUT = CHECKOUT / "build/bench/failover.json"
sys.path[:0] = [str(CHECKOUT / folder) for folder in ("benchmarks", "tests", "tools", "build/collections")]

import stages  # noqa: E402
from integration.support.realnodes import member, power_commands  # noqa: E402
from integration.support.volumes import Volumes, driver  # noqa: E402
from integration.support.world import Made, World, make_namespace  # noqa: E402
from measure import BenchmarkError  # noqa: E402

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths  # noqa: E402
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster  # noqa: E402
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import (  # noqa: E402
    EVIDENCE,
    FAILOVER,
    OUT_OF_SERVICE,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.objects import Object  # noqa: E402
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import from_text  # noqa: E402
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import (  # noqa: E402
    Changed,
    Deadline,
    Follower,
)
from lab import Lab  # noqa: E402

DEAD, OTHER = "node-3", "node-1"
APP = "db"
PATIENCE = 180.0

# In the order of this collection's steps. Kubernetes ends the pod after its own timeout, in every case.
NOT_READY = "node seen not Ready"
FENCING, FENCED = "fence: begun", "fence: done"
PROVEN, TAINTED = "proof that it is off", "taint out-of-service"
TOLD, GONE = "pod told to end", "pod gone"
DETACHED, ATTACHED = "volume detached", "volume attached elsewhere"
POD_READY = "pod Ready elsewhere"
SAID = "whole: the command has ended"
THERE = (NOT_READY, TOLD, FENCING, FENCED, PROVEN, TAINTED, GONE, DETACHED, ATTACHED, POD_READY, SAID)
BOOTED, UNTAINTED, OPEN = "node Ready, new boot ID", "taint gone", "uncordoned"
STARTED_AGAIN = "pod Ready again"
BACK = (BOOTED, STARTED_AGAIN, UNTAINTED, OPEN, SAID)
# What a column can't have: nobody does it.
OURS_ALONE = (FENCING, FENCED, PROVEN, TAINTED, SAID, UNTAINTED, OPEN)


class Observer:
    """When each step was seen first, by wall clock."""

    def __init__(self, world: World, volumes: Volumes) -> None:
        self.seen: dict[str, float] = {}
        self._news = threading.Condition()
        self._volumes = volumes
        self._boot_id = str(world.node(DEAD)["status"]["nodeInfo"]["bootID"])
        self._followers = []
        self._off = self._on = 0.0
        for path, look in (
            (paths.NODES, self._node),
            (world.path("pods"), self._pod),
            (paths.VOLUME_ATTACHMENTS, self._attachment),
        ):
            follower = Follower(world.cluster, path, Deadline(None))
            self._followers.append(follower)
            threading.Thread(target=self._follow, args=(follower, look), daemon=True).start()

    def _follow(self, follower: Follower, look: Callable[[Object, bool], None]) -> None:
        for news in follower:
            for item, deleted in (
                [(news.object, news.deleted)] if isinstance(news, Changed) else [(item, False) for item in news.items]
            ):
                with self._news:
                    look(item, deleted)
                    self._news.notify_all()

    def note(self, step: str, condition: object = True, at: float | None = None) -> None:
        if condition:
            self.seen.setdefault(step, at or time.time())

    def until(self, step: str, seconds: float) -> bool:
        """Wait until a step was seen."""
        with self._news:
            return self._news.wait_for(lambda: step in self.seen, seconds)

    def stop(self) -> None:
        for follower in self._followers:
            follower.stop()

    def again(self) -> None:
        """The way back begins."""
        with self._news:
            self.seen = {}
            self._on = time.time()

    def _node(self, node: Object, deleted: bool) -> None:
        if node["metadata"]["name"] != DEAD:
            return
        annotations = node["metadata"].get("annotations") or {}
        tainted = any(taint["key"] == OUT_OF_SERVICE for taint in node["spec"].get("taints") or [])
        ready = _is(node, "Ready")
        if self._on:
            self.note(BOOTED, ready and node["status"]["nodeInfo"]["bootID"] != self._boot_id)
            self.note(UNTAINTED, BOOTED in self.seen and not tainted)
            self.note(OPEN, BOOTED in self.seen and not node["spec"].get("unschedulable"))
            return
        self.note(NOT_READY, not ready)
        phase = json.loads(annotations.get(FAILOVER) or "{}").get("phase")
        self.note(FENCING, phase == "fence")
        self.note(FENCED, phase == "taint")
        self.note(TAINTED, tainted)
        if proof := json.loads(annotations.get(EVIDENCE) or "{}").get("looked_at"):
            self.note(PROVEN, at=from_text(proof).timestamp())

    def _pod(self, pod: Object, deleted: bool) -> None:
        node = pod["spec"].get("nodeName")
        if node == DEAD and not self._on:
            self.note(TOLD, pod["metadata"].get("deletionTimestamp"))
            self.note(GONE, deleted)
        elif not pod["metadata"].get("deletionTimestamp"):
            self.note(STARTED_AGAIN if self._on else POD_READY, _is(pod, "Ready") and (self._on or node == OTHER))

    def _attachment(self, item: Object, deleted: bool) -> None:
        if item["spec"]["attacher"] != self._volumes.driver:
            return
        node = item["spec"]["nodeName"]
        self.note(DETACHED, node == DEAD and deleted)
        self.note(ATTACHED, node == OTHER and (item.get("status") or {}).get("attached"))


def _is(found: Object, kind: str) -> bool:
    conditions = found["status"].get("conditions") or []
    return any(item["type"] == kind and item["status"] == "True" for item in conditions)


@contextmanager
def victim(lab: Lab, folder: Path, patience: int) -> Iterator[tuple[World, Volumes]]:
    """A StatefulSet with one pod, and its volume, on the node that is to die; another node would take it."""
    cluster = Cluster({"kubeconfig": str(lab.kubeconfig)})
    made = Made(cluster)
    world = World(cluster, make_namespace(cluster, made), made, str(lab.kubeconfig))
    gone = [
        {
            "key": f"node.kubernetes.io/{what}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": patience,
        }
        for what in ("not-ready", "unreachable")
    ]
    with ExitStack() as stack:
        stack.callback(made.remove)
        stack.callback(world.close)
        stack.enter_context(member(world, lab, DEAD))
        volumes = stack.enter_context(driver(world, lab, folder, DEAD, OTHER))
        volumes.statefulset(APP, 1, terminationGracePeriodSeconds=2, tolerations=gone)
        stack.enter_context(member(world, lab, OTHER))
        # Whatever happened: the volumes can't be taken down without its kubelet.
        stack.callback(lab.wait_ready, [DEAD])
        stack.callback(lab.power_on, DEAD)
        yield world, volumes


def playbook(name: str, lab: Lab, folder: Path, variables: Mapping[str, Any]) -> None:
    """A playbook of the collection, as a user starts it."""
    file = folder / "variables.json"
    file.write_text(json.dumps({f"failover_{key}": value for key, value in variables.items()}))
    env = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_"))}
    env |= {
        "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / "build/collections"),
        "ANSIBLE_HOME": str(CHECKOUT / "build/bench/home"),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
        "K8S_AUTH_KUBECONFIG": str(lab.kubeconfig),
    }
    program = Path(sys.executable).parent / "ansible-playbook"
    done = subprocess.run(
        [program, "-e", f"@{file}", f"holdfast.kubernetes.{name}"],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BenchmarkError(f"{name} ended with {done.returncode}:\n{done.stdout}")


def ours(lab: Lab, patience: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name, victim(lab, Path(name), patience) as found:
        folder = Path(name)
        world, volumes = found
        report = folder / "report.json"
        variables = {
            "node": DEAD,
            "confirm_seconds": patience,
            "selector": f"pool={world.namespace}",
            "max_unhealthy": 1,
            "report": str(report),
            **power_commands(lab, folder),
        }
        observer = Observer(world, volumes)
        cut = _cut(lab, observer)
        playbook("failover", lab, folder, variables)
        observer.note(SAID)
        if not observer.until(POD_READY, PATIENCE):
            raise BenchmarkError("the pod is not Ready elsewhere")
        there = {step: at - cut for step, at in observer.seen.items()}
        phases = json.loads(report.read_text())["nodes"][0]["seconds"]
        observer.again()
        on = time.time()
        playbook("recover", lab, folder, variables)
        observer.note(SAID)
        back = {step: at - on for step, at in observer.seen.items()}
        observer.stop()
        return {"there": there, "back": back, "phases": phases}


def kubernetes(lab: Lab, patience: int, bound: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name, victim(lab, Path(name), patience) as found:
        observer = Observer(*found)
        cut = _cut(lab, observer)
        observer.until(POD_READY, bound - (time.time() - cut))
        there = {step: at - cut for step, at in observer.seen.items()}
        observer.again()
        on = time.time()
        lab.power_on(DEAD)
        if not observer.until(BOOTED, PATIENCE) or not observer.until(STARTED_AGAIN, PATIENCE):
            raise BenchmarkError("the pod did not come back with its node")
        back = {step: at - on for step, at in observer.seen.items()}
        observer.stop()
        return {"there": there, "back": back}


def _cut(lab: Lab, observer: Observer) -> float:
    """Cut the power, and wait until the node is given up; when it was cut."""
    cut = time.time()
    lab.power_off(DEAD)
    if not observer.until(NOT_READY, PATIENCE):
        raise BenchmarkError(f"{DEAD} is Ready without power")
    return cut


def table(mine: Mapping[str, Any], others: Mapping[str, Any], bound: float) -> str:
    lines = [f"{'seconds after the power was cut':<34} {'ours':>8}  {'Kubernetes alone':>18}"]
    lines += _rows(THERE, mine["there"], others["there"], f"not in {bound:.0f}")
    lines += [f"\n{'seconds after it was to come back':<34} {'recover':>8}  {'switched on':>18}"]
    lines += _rows(BACK, mine["back"], others["back"], "not seen")
    return "\n".join(lines)


def _rows(steps: tuple[str, ...], mine: Mapping[str, float], others: Mapping[str, float], never: str) -> list[str]:
    found = []
    for step in steps:
        left = f"{mine[step]:.1f}" if step in mine else "-"
        missing = "-" if step in OURS_ALONE else never
        right = f"{others[step]:.1f}" if step in others and step not in OURS_ALONE else missing
        found.append(f"{step:<34} {left:>8}  {right:>18}")
    return found


def run(patience: int, bound: float) -> None:
    lab = Lab.default()
    print("== failover: ours", flush=True)
    mine = ours(lab, patience)
    print("== failover: Kubernetes alone", flush=True)
    others = kubernetes(lab, patience, bound)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    settings = {"patience": patience, "bound": bound}
    OUTPUT.write_text(json.dumps({**settings, "ours": mine, "kubernetes": others}, indent=1) + "\n")
    print(f"\nfailover: a node loses its power under a StatefulSet's pod; {patience} s of patience on both sides.")
    print(table(mine, others, bound))
    phases = ", ".join(f"{name} {seconds}" for name, seconds in mine["phases"].items())
    print(f"\nSeconds of each phase, by the report of the failover: {phases}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure a failover against what Kubernetes does by itself.")
    parser.add_argument("--patience", type=int, default=10, help="seconds before anybody acts, on both sides (10)")
    parser.add_argument("--bound", type=float, default=120, help="seconds that Kubernetes is given (120)")
    options = parser.parse_args()
    lab = stages.Lab()
    try:
        with stages.signals():
            if status := lab.up():
                return status
            run(options.patience, options.bound)
    except stages.Interrupted as interrupted:
        return 128 + int(interrupted.args[0])
    finally:
        lab.down()
    return 0


if __name__ == "__main__":
    sys.exit(main())

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases: what is done by ours and by others, and what is timed.

Ours is always the step in a running play: from the start of the task to its result, as a callback in the play's own
process sees it, fork included. That is what a play pays for it. Ansible's start (about a second) is paid once for all
steps of a play, and shown next to it. kubectl has no play around it: its whole process counts, without the second or so
that a task with ansible.builtin.command would add. kubernetes.core runs as ours does: same Ansible, same Python, same
libraries, same callback.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from measure import BenchmarkError, Took, play, program
from workload import APP, Workload, workload

from lab import Lab

Run = Callable[[], Took]
SECONDS = "s"


@dataclass(frozen=True)
class Rival:
    """One comparison: ours against one peer, each run after the same preparation."""

    case: str
    peer_name: str
    prepare: Callable[[], None]
    ours: Run
    peer: Run
    floor: Callable[[], float]


def tasks(*steps: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"name": module, module: options} for module, options in steps]


class _Drain:
    """What has a target, and can be drained in several ways."""

    def __init__(self, lab: Lab, app: Workload) -> None:
        self.lab = lab
        self.app = app
        self.target = ""

    def _checked(self, took: Took) -> Took:
        if left := self.app.on(self.target):
            raise BenchmarkError(f"{left} pods are still on {self.target}")
        return took

    def ours(self) -> Took:
        options = {"name": self.target, "pod_selector": f"app={APP}", "timeout": 300}
        return self._checked(play(tasks(("holdfast.kubernetes.drain", options)), self.lab.kubeconfig))

    def kubectl(self) -> Took:
        options = [f"--kubeconfig={self.lab.kubeconfig}", "--ignore-daemonsets", f"--pod-selector=app={APP}"]
        return self._checked(program([self.lab.bin / "kubectl", "drain", self.target, *options]))

    def kubernetes_core(self, **wait: int) -> Took:
        # Without a time-out it would not wait for the pods to be gone.
        options = {"ignore_daemonsets": True, "wait_timeout": 300, **wait}
        step = {"name": self.target, "pod_selectors": [f"app={APP}"], "delete_options": options}
        return self._checked(play(tasks(("kubernetes.core.k8s_drain", step)), self.lab.kubeconfig))


class _Budgeted(_Drain):
    """4 pods that end in 1 s, behind a budget that lets 2 of them go at a time; they move to other real nodes."""

    def __init__(self, lab: Lab, app: Workload) -> None:
        super().__init__(lab, app)
        self.nodes = lab.nodes
        self.target = self.nodes[-1]
        app.budget(2)

    def prepare(self) -> None:
        self.lab.kubectl("uncordon", self.target)
        self.app.remove_pods()
        self.app.allow(self.nodes, only=self.target)
        self.app.deploy(4)
        self.app.wait()
        self.app.allow(self.nodes)
        enough = "jsonpath={.status.disruptionsAllowed}=2"
        self.lab.kubectl("wait", "pdb", APP, "-n", self.app.namespace, f"--for={enough}", "--timeout=60s")
        if self.app.on(self.target) != 4:
            raise BenchmarkError(f"not all pods are on {self.target}")


@contextlib.contextmanager
def drain_pdb(lab: Lab) -> Iterator[list[Rival]]:
    with workload(lab) as app:
        drain = _Budgeted(lab, app)
        try:
            # Two rounds of pods that take a second to end. kubernetes.core's k8s_drain is no peer here: it fails at
            # the first eviction that the budget refuses.
            yield [Rival("drain_pdb", "kubectl drain", drain.prepare, drain.ours, drain.kubectl, lambda: 2.0)]
        finally:
            app.remove_pods()
            lab.kubectl("uncordon", drain.target)
            for node in drain.nodes:
                lab.kubectl("label", "node", node, f"{app.label}-")


class _Plain(_Drain):
    """110 pods on one simulated node, which end at once and go to the other of two nodes."""

    def __init__(self, lab: Lab, app: Workload) -> None:
        super().__init__(lab, app)
        self.nodes = [f"{app.label}-{number}" for number in (1, 2)]
        lab.simulate(self.nodes, {app.label: "yes"})
        lab.kubectl("cordon", self.nodes[1])
        app.deploy(110)
        self.target = self.nodes[1]

    def prepare(self) -> None:
        self.app.wait()
        self.target = next(node for node in self.nodes if node != self.target)
        self.lab.kubectl("uncordon", *self.nodes)
        if self.app.on(self.target) != 110:
            raise BenchmarkError(f"not all pods are on {self.target}")


@contextlib.contextmanager
def drain_plain(lab: Lab) -> Iterator[list[Rival]]:
    with workload(lab) as app:
        drain = _Plain(lab, app)
        try:
            # The pods take no time, so the floor is what the API server needs, and that is not known.
            yield [
                Rival("drain_plain", name, drain.prepare, drain.ours, peer, lambda: 0.0)
                for name, peer in (
                    ("kubectl drain", drain.kubectl),
                    ("kubernetes.core.k8s_drain", drain.kubernetes_core),
                    ("kubernetes.core.k8s_drain, wait_sleep 1", lambda: drain.kubernetes_core(wait_sleep=1)),
                )
            ]
        finally:
            app.remove_pods()
            lab.unsimulate(drain.nodes)


@contextlib.contextmanager
def task_overhead(lab: Lab) -> Iterator[list[Rival]]:
    """10 tasks that read one Node: half of them look at all that concerns it, half see that there is nothing to do."""
    with workload(lab) as app:
        (node,) = nodes = [f"{app.label}-1"]
        lab.simulate(nodes)
        look = ("holdfast.kubernetes.node_info", {"name": node})
        nothing = ("holdfast.kubernetes.cordon", {"name": node, "state": "uncordoned"})
        read = ("kubernetes.core.k8s_info", {"api_version": "v1", "kind": "Node", "name": node})
        empty = ("ansible.builtin.assert", {"that": ["true"], "quiet": True})

        def ten(*steps: tuple[str, dict[str, Any]]) -> Run:
            return lambda: play(tasks(*(steps * (10 // len(steps)))), lab.kubeconfig)

        try:
            yield [
                Rival(
                    "task_overhead",
                    read[0],
                    lambda: None,
                    ten(look, nothing),
                    ten(read),
                    # What Ansible itself takes for 10 tasks that do nothing.
                    lambda: min(ten(empty)().step for _round in range(3)),
                )
            ]
        finally:
            lab.unsimulate(nodes)


CASES = {"drain_pdb": drain_pdb, "drain_plain": drain_plain, "task_overhead": task_overhead}

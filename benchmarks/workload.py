# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the benchmarks drain, in a namespace and on nodes of their own."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator
from typing import Any

from lab import Lab

IMAGE = "localhost/lab/app:1"
PATIENCE = "300s"
APP = "bench"
# Takes a second to end, as a server does that finishes its requests, and until then no time from anybody.
ENDS_IN_A_SECOND = "trap 'sleep 1; exit 0' TERM; while :; do sleep 3600 & wait; done"


class Workload:
    """A Deployment that follows a node label of its own."""

    def __init__(self, lab: Lab, label: str) -> None:
        self.lab = lab
        self.namespace = label
        self.label = label

    def deploy(self, replicas: int) -> None:
        container = {
            "name": "app",
            "image": IMAGE,
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", ENDS_IN_A_SECOND],
        }
        spec = {"nodeSelector": {self.label: "yes"}, "containers": [container], "terminationGracePeriodSeconds": 30}
        template = {"metadata": {"labels": {"app": APP}}, "spec": spec}
        self.apply(
            "apps/v1",
            "Deployment",
            {"replicas": replicas, "selector": {"matchLabels": {"app": APP}}, "template": template},
        )

    def budget(self, max_unavailable: int) -> None:
        selector = {"matchLabels": {"app": APP}}
        self.apply("policy/v1", "PodDisruptionBudget", {"maxUnavailable": max_unavailable, "selector": selector})

    def apply(self, version: str, kind: str, spec: dict[str, Any]) -> None:
        metadata = {"name": APP, "namespace": self.namespace}
        body = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
        self.lab.kubectl("apply", "-f", "-", stdin=json.dumps(body))

    def wait(self) -> None:
        """Until all replicas are ready, and no pod of before is left."""
        self.lab.kubectl("rollout", "status", f"deployment/{APP}", "-n", self.namespace, f"--timeout={PATIENCE}")

    def remove_pods(self) -> None:
        self.lab.kubectl(
            "delete", "deployment", APP, "-n", self.namespace, "--ignore-not-found", "--cascade=foreground"
        )
        self.lab.kubectl("delete", "pods", "-n", self.namespace, "--all", "--now", f"--timeout={PATIENCE}")

    def on(self, node: str) -> int:
        """How many of its pods are on a node."""
        selectors = ["-l", f"app={APP}", f"--field-selector=spec.nodeName={node}"]
        return len(self.lab.kubectl("get", "pods", "-n", self.namespace, *selectors, "-o", "name").split())

    def allow(self, nodes: list[str], *, only: str | None = None) -> None:
        """Which nodes its pods may be on, from now on."""
        for node in nodes:
            value = "yes" if only in (None, node) else "no"
            self.lab.kubectl("label", "node", node, f"{self.label}={value}", "--overwrite")


@contextlib.contextmanager
def workload(lab: Lab) -> Iterator[Workload]:
    name = f"bench-{secrets.token_hex(3)}"
    lab.kubectl("create", "namespace", name)
    made = Workload(lab, name)
    try:
        yield made
    finally:
        lab.kubectl("delete", "namespace", name, "--wait=false")

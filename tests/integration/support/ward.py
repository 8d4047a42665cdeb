# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A group of simulated nodes with runs that work on them, and die, without a playbook."""

from __future__ import annotations

import json

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import operations, run_rules, runs
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation import node_operation
from ansible_collections.holdfast.kubernetes.plugins.modules import (
    cordon,
    doctor,
    node_claim,
    node_opt_outs,
    reboot_slot,
)

OURS = "holdfast.dev/"
LONG_AGO = "2020-01-01T00:00:00.000000Z"


class Ward:
    """A group of nodes, and runs that work on them as the role does."""

    def __init__(self, world, count=1):
        self.world = world
        self.group = world.namespace
        self.nodes = world.nodes(count)
        self.first = self.nodes[0]
        world.made.objects.append(self.ledger_path)

    @property
    def ledger_path(self):
        return paths.one(paths.config_maps("holdfast"), f"group.{self.group}")

    def do(self, module, **options):
        result = self.world.run(module, **options)
        assert not result.get("failed"), result
        return result

    def run_of(self, name):
        return f"{name}-{self.group}"

    def lease(self, name):
        path = paths.lease("holdfast", run_rules.lease_name(self.run_of(name)))
        if path not in self.world.made.objects:
            self.world.made.objects.append(path)
        return path

    def begin(self, name="one", operation="kernel"):
        self.lease(name)
        who = {"group": self.group, "run": self.run_of(name), "nodes": self.nodes}
        return self.do(operations.enter, operation=operation, fresh="another", restart=False, adopt_within=3600, **who)

    def slot(self, node, name="one", operation="kernel", **more):
        options = {"selector": f"pool={self.group}", "max_unavailable": "9", "max_failed": 9, "wait_timeout": 0}
        run = self.run_of(name) if name else None
        self.do(reboot_slot, name=node, group=self.group, operation=operation, run=run, **{**options, **more})

    def work(self, node, name="one", operation="kernel"):
        """Up to the drain."""
        run = self.run_of(name)
        self.slot(node, name, operation)
        self.do(node_claim, name=node, run=run, operation=operation)
        self.do(node_opt_outs, name=node, run=run)
        step = {"name": node, "operation": operation, "run": run, "claimed": False}
        self.do(node_operation, phase="cordon", **step)
        self.do(cordon, name=node, owner="rolling_reboot", reason="kernel", run=run)
        self.do(node_operation, phase="drain", **step)

    def die(self, name="one"):
        self.world.cluster.merge(self.lease(name), {"spec": {"renewTime": LONG_AGO}})

    def live_on(self, name="one"):
        """The run renews its Lease until the end of the test."""
        self.world.until_closed(runs.heartbeat(self.world.cluster, self.run_of(name)))

    def come_to_life(self, name="one"):
        runs.renew(self.world.cluster, self.run_of(name), "another")

    def left_by(self, name="one"):
        """A run that died while it drained the first node."""
        self.begin(name)
        self.work(self.first, name)
        self.die(name)
        return self

    def ask(self, state="reported", **more):
        return self.world.run(doctor, state=state, **{"group": self.group, **more})

    def clear(self, **more):
        return self.ask("cleared", **more)

    def ledger(self):
        found = self.world.cluster.find(self.ledger_path)
        return {key: json.loads(value) for key, value in (found["data"] if found else {}).items()}

    def lives(self, name="one"):
        """Whether the run has a Lease."""
        return self.world.cluster.find(self.lease(name)) is not None

    def state(self):
        """Everything that we could change; the taints of a node that is down come by themselves."""
        nodes = [self.world.node(name) for name in self.nodes]
        marks = [(item["metadata"].get("annotations"), item["spec"].get("unschedulable")) for item in nodes]
        # A live run renews its Lease all the time; the doctor may only delete one.
        leases = [self.world.cluster.find(path) for path in self.world.made.objects if "/leases/" in path]
        return marks, self.ledger(), [lease and lease["metadata"]["uid"] for lease in leases]

    def ours(self, node=None):
        annotations = self.world.node(node or self.first)["metadata"].get("annotations") or {}
        return {key[len(OURS) :]: json.loads(text) for key, text in annotations.items() if key.startswith(OURS)}

    def assert_untouched(self, name="one"):
        """The run still has everything that it needs to continue with its node."""
        assert {"cordon", "opt-outs", "operation"} <= set(self.ours())
        assert self.ours()["operation"]["result"] == ""
        assert self.world.cordoned(self.first)
        assert self.ledger()["slots"][self.first]["run"] == self.run_of(name)
        assert self.lives(name)

    def assert_cleared(self):
        assert set(self.ours()) == {"operation"}
        assert self.ours()["operation"]["result"] == "failed"
        assert self.ours()["operation"]["detail"] == "abandoned in phase drain"
        assert not self.world.cordoned(self.first)
        assert self.ledger()["slots"] == {}
        assert all(not entry["runs"] and not entry["unfinished"] for entry in self.ledger()["operations"])

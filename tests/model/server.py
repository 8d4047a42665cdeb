# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The world of the model on a real API server: the collection's own operations do what runs ask for.

No test waits for time: it passes by making the Leases of all runs older.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from ansible.module_utils.common.arg_spec import ModuleArgumentSpecValidator
from model.acts import Act, Outcome
from model.seen import ZONE, ledger_seen, node_seen, slot_seen

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules, paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import HoldfastError, NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import (
    CLAIM,
    CORDON,
    EXCLUDE,
    KEEP_CORDONED,
    NAMESPACE,
    OPERATION,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import from_text, to_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import ledger_store as store
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import run_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import runs as run_leases
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.ledger_rules import Ledger
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.operations import _silent
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.slots import claim as claim_slot

_MODULES = "ansible_collections.holdfast.kubernetes.plugins.modules"
OWNER = "rolling_reboot"


class Server:
    """One group of simulated nodes, as good as new.

    Args:
        cluster: The API.
        namespace: The namespace of the nodes' holders.
        selector: The label selector of the nodes.
        zones: The nodes, and the zone of each.
        group: A name that no earlier history had.
    """

    def __init__(self, cluster: Cluster, namespace: str, selector: str, zones: Mapping[str, str], group: str) -> None:
        self.cluster = cluster
        self.selector = selector
        self.zones = zones
        self.group = group
        self._held: set[str] = set()
        self._leases = paths.namespaced("apis/coordination.k8s.io/v1", namespace, "leases")
        self._renew()

    def _renew(self) -> None:
        for name, zone in self.zones.items():
            marks = dict.fromkeys((CLAIM, CORDON, KEEP_CORDONED, OPERATION))
            metadata = {"annotations": marks, "labels": {ZONE: zone, EXCLUDE: None}}
            self.cluster.merge(paths.node(name), {"metadata": metadata, "spec": {"unschedulable": None}})
            self.report(name, ready=True, boot_id=f"{name}-1")
            self.hold(name, held=False)

    def remove(self) -> None:
        """Remove what is not on the nodes."""
        for name in self.runs():
            run_leases.end(self.cluster, name)
        with contextlib.suppress(NotFound):
            self.cluster.delete(paths.one(paths.config_maps(NAMESPACE), store.config_map_name(self.group)))

    def perform(self, act: Act) -> Outcome:
        try:
            facts = getattr(self, f"do_{act.name}")(act.node, **act.options)
        except HoldfastError as error:
            return Outcome(error.kind)
        return facts if isinstance(facts, Outcome) else Outcome("", facts or {})

    def picture(self) -> dict[str, Any]:
        ledger = self._ledger()
        nodes = {item["metadata"]["name"]: item for item in self._nodes()}
        return {
            "nodes": {name: self._look_at(nodes[name], ledger) for name in self.zones},
            "ledger": ledger_seen(ledger),
        }

    def _look_at(self, node: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
        name = node_rules.name(node)
        return {**node_seen(node), "held": name in self._held, "slot": slot_seen(ledger.slots.get(name))}

    def _nodes(self) -> Any:
        return self.cluster.items(paths.NODES, label_selector=self.selector)

    def _ledger(self) -> Ledger:
        """Without the selector: the runs of the model do not ask which nodes it selects."""
        ledger = store.ledger_of(store.load(self.cluster, self.group))
        return replace(ledger, policy=replace(ledger.policy, selector="") if ledger.policy else None)

    def runs(self) -> list[str]:
        """The runs that have a Lease."""
        return [run.id for run in run_leases.all_runs(self.cluster) if run.id.startswith(self.group)]

    # -- what happens to nodes and runs

    def pass_time(self, seconds: float) -> None:
        leases = self.cluster.items(paths.leases(NAMESPACE))
        for lease in leases:
            if lease["metadata"]["name"].startswith(run_rules.lease_name(self.group)):
                times = {key: lease["spec"][key] for key in ("acquireTime", "renewTime")}
                older = {key: to_text(from_text(at) - timedelta(seconds=seconds)) for key, at in times.items()}
                self.cluster.merge(paths.lease(NAMESPACE, lease["metadata"]["name"]), {"spec": older})

    def beat(self, run: str) -> None:
        with contextlib.suppress(NotFound):
            run_leases.touch(self.cluster, run)

    def report(self, name: str, *, ready: bool, boot_id: str = "") -> None:
        condition = {"type": "Ready", "status": str(ready), "reason": "Told", "message": "by a test"}
        status: dict[str, Any] = {"conditions": [condition]}
        if boot_id:
            status["nodeInfo"] = {"bootID": boot_id}
        self.cluster.merge(f"{paths.node(name)}/status", {"status": status})

    def hold(self, name: str, *, held: bool) -> None:
        (self._held.add if held else self._held.discard)(name)
        if held:
            spec = {"holderIdentity": "a-test", "acquireTime": to_text(self.cluster.now())}
            self.cluster.create(self._leases, {"metadata": {"name": name}, "spec": spec})
        else:
            with contextlib.suppress(NotFound):
                self.cluster.delete(paths.one(self._leases, name))

    def exclude(self, name: str, *, excluded: bool) -> None:
        self.cluster.merge(paths.node(name), {"metadata": {"labels": {EXCLUDE: "" if excluded else None}}})

    def person_cordons(self, name: str, *, cordoned: bool, keep: bool) -> None:
        metadata = {"annotations": {KEEP_CORDONED: "" if keep else None}}
        self.cluster.merge(paths.node(name), {"metadata": metadata, "spec": {"unschedulable": cordoned or None}})

    def doctor(self, release: list[str]) -> list[str]:
        result = self._do("doctor", state="cleared", group=self.group, release=release)
        stale = [item for item in result["findings"] if item["stale"]]
        return sorted(f"{item['kind']} {item['node'] or item['operation'] or item['run']}" for item in stale)

    # -- what runs do

    def _do(self, module: str, **options: Any) -> dict[str, Any]:
        """Do a task's work with validated options; on one connection, because one for each task would take long."""
        found = importlib.import_module(f"{_MODULES}.{module}")
        checked = ModuleArgumentSpecValidator(found.SPEC["argument_spec"]).validate(options)
        assert not checked.error_messages, checked.error_messages
        context = Context(checked.validated_parameters)
        context.__dict__["cluster"] = self.cluster
        done: dict[str, Any] = found.OPERATION(context, checked.validated_parameters)
        return done

    def do_begin(self, _node_name: str, **options: Any) -> dict[str, Any]:
        return self._do("reboot_operation", state="begun", group=self.group, **options)

    def do_end(self, _node_name: str, *, run: str, operation: str, complete: bool) -> Outcome | None:
        params = {"group": self.group, "run": run, "operation": operation}
        if complete and _silent(self.cluster, params):
            # The module would wait for it.
            return Outcome("timed_out")
        self._do("reboot_operation", state="ended", complete=complete, **params)
        return None

    def do_look(self, name: str) -> dict[str, Any]:
        return self._look_at(self.cluster.get(paths.node(name)), self._ledger())

    def do_peek(self, _name: str, *, run: str, operation: str) -> None:
        """Does nothing: the module reads and writes in one act."""

    def do_mark(self, name: str, *, run: str, operation: str) -> None:
        claim_slot(self.cluster, self.group, name, run=run, operation=operation)

    def do_slot(self, name: str, *, policy: dict[str, Any], **options: Any) -> dict[str, Any]:
        limits = {key: value for key, value in policy.items() if value not in ("", None)}
        limits |= {"wait_timeout": 0, "unhealthy_grace": 0}
        given = {"name": name, "group": self.group, "selector": self.selector, **options, **limits}
        return self._do("reboot_slot", **given)

    def do_release(self, name: str, **options: Any) -> dict[str, Any]:
        return self._do("reboot_slot", name=name, group=self.group, state="absent", **options)

    def do_fail(self, name: str, **options: Any) -> dict[str, Any]:
        return self._do("reboot_slot", name=name, group=self.group, state="failed", reason="failed", **options)

    def do_claim(self, name: str, **options: Any) -> dict[str, Any]:
        return self._do("node_claim", name=name, wait_timeout=0, **options)

    def do_unclaim(self, name: str, *, run: str) -> None:
        self._do("node_claim", name=name, run=run, operation="any", state="absent")

    def do_note(self, name: str, *, run: str, operation: str, **options: Any) -> None:
        self._do("node_operation", name=name, run=run, operation=operation, **options)

    def do_cordon(self, name: str, *, run: str, operation: str) -> None:
        self._do("cordon", name=name, owner=OWNER, run=run, reason=operation)

    def do_uncordon(self, name: str, *, run: str) -> None:
        self._do("cordon", name=name, owner=OWNER, state="uncordoned", **({"run": run} if run else {}))

    def do_drain(self, name: str, *, run: str, operation: str) -> None:
        self._do("drain", name=name, owner=OWNER, run=run, reason=operation, wait_for_volumes=False, timeout=10)

    def do_free(self, name: str) -> Outcome:
        return Outcome("timed_out" if name in self._held else "")

    def do_reboot(self, name: str, *, run: str, operation: str, boot_id_before: str) -> Outcome | dict[str, Any]:
        """The gate of rolling_reboot_method command; the fleet decides whether the node then goes down."""
        if node_rules.boot_id(self.cluster.get(paths.node(name))) != boot_id_before:
            return Outcome("failed")
        self.do_note(name, run=run, operation=operation, phase="reboot", claimed=True)
        return {"held": bool(self._do("node_info", name=name)["nodes"][0]["holds"])}

    def do_back(self, name: str, *, boot_id_before: str) -> Outcome | None:
        before = {"boot_id_before": boot_id_before} if boot_id_before else {}
        self._do("node_ready", name=name, daemonset_pods=False, sign_of_life=False, timeout=0, **before)
        return None

    def do_check(self, _name: str) -> None:
        """The user's own check; the fleet decides whether it fails."""

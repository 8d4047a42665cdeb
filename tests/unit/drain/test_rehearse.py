# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In check mode, a drain fails where a real one gives up, and changes nothing."""

from __future__ import annotations

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from unit.reboot.memory_cluster import MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.drain import drain
from ansible_collections.holdfast.kubernetes.plugins.modules import drain as module

BY_BUDGET = {"reason": "DisruptionBudget", "message": "no disruption allowed"}


class Evicting(MemoryCluster):
    """Its API refuses the evictions of some pods, each with a status."""

    def __init__(self, **refused):
        super().__init__(dry_run=True)
        self.refused = refused
        self.node()

    def create(self, path, body, **options):
        status = self.refused.get(body["metadata"]["name"]) if body.get("kind") == "Eviction" else None
        if status:
            causes = [BY_BUDGET] if status == 429 else []
            raise ApiFailure("no", status=status, causes=causes, body_message="not this pod")
        return super().create(path, body, **options)

    def pod(self, name):
        owner = {"kind": "ReplicaSet", "name": name, "controller": True}
        metadata = {"name": name, "namespace": "shop", "labels": {"app": name}, "ownerReferences": [owner]}
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        item = {"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": status}
        self._store("TEST", paths.pod("shop", name), item)

    def budget(self, name, *, wanted, of):
        status = {"expectedPods": of, "desiredHealthy": wanted, "currentHealthy": wanted, "disruptionsAllowed": 0}
        metadata = {"name": name, "namespace": "shop"}
        item = {"metadata": metadata, "spec": {"selector": {"matchLabels": {"app": name}}}, "status": status}
        self._store("TEST", paths.one(paths.pod_disruption_budgets("shop"), name), item)


@pytest.fixture
def cluster():
    """A pod that can leave now, one that can leave later, and one that never can."""
    found = Evicting(kept=429, slow=429)
    for name in ("free", "kept", "slow"):
        found.pod(name)
    found.budget("kept", wanted=1, of=1)
    found.budget("slow", wanted=1, of=2)
    return found


def rehearse(cluster, **options):
    found = ArgumentSpecValidator(module.SPEC["argument_spec"]).validate({"name": "node-1", **options})
    assert not found.error_messages
    context = Context(found.validated_parameters, check_mode=True)
    context.cluster = cluster
    return drain(context, context.params)


def verdicts(blocked):
    return {item["name"]: item["verdict"] for item in blocked}


def names(pods):
    return [pod["name"] for pod in pods]


def test_fails_if_a_pod_can_never_leave(cluster):
    with pytest.raises(Refused, match=r"can't be drained, and nothing was changed: pod shop/kept: ") as failure:
        rehearse(cluster)

    fields = failure.value.fields
    assert verdicts(fields["blocked"]) == {"kept": "never", "slow": "later"}
    assert names(fields["evicted"]) == ["free", "slow"]


def test_succeeds_if_all_pods_can_leave_later(cluster):
    cluster.budget("kept", wanted=1, of=2)

    found = rehearse(cluster)

    assert verdicts(found["blocked"]) == {"kept": "later", "slow": "later"}
    assert names(found["evicted"]) == ["free", "kept", "slow"]


@pytest.mark.parametrize("options", [{"delete_after": 60}, {"disable_eviction": True}])
def test_succeeds_if_the_drain_may_delete_the_pod(cluster, options):
    assert names(rehearse(cluster, **options)["evicted"]) == ["free", "kept", "slow"]


def test_fails_if_a_webhook_forbids_what_a_budget_allows(cluster):
    cluster.budget("kept", wanted=1, of=2)
    cluster.refused["free"] = 403

    with pytest.raises(Refused, match="pod shop/free: not this pod") as failure:
        rehearse(cluster, delete_after=60)

    assert names(failure.value.fields["evicted"]) == ["kept", "slow"]

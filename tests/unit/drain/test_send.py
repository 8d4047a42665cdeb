# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain makes of the answers to its requests, and of volumes that an earlier drain waited for."""

from __future__ import annotations

import time
from contextlib import nullcontext

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from unit.reboot.memory_cluster import AT, QuietCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, InvalidInput, TimedOut
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.names import CORDON
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.drain import _DrainRun, _refusal, drain
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.rules import Options, Plan, Pod
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain.state_rules import Drain
from ansible_collections.holdfast.kubernetes.plugins.modules import drain as module


def params(**options):
    found = ArgumentSpecValidator(module.SPEC["argument_spec"]).validate({"name": "node-1", **options})
    assert not found.error_messages
    return found.validated_parameters


@pytest.mark.parametrize(
    ("message", "gone"),
    [
        (
            "the UID in the precondition (a) does not match the UID in record (b). The object might have been deleted",
            True,
        ),
        ("Precondition failed: UID in precondition: a, UID in object meta: b", True),
        ('Operation cannot be fulfilled on poddisruptionbudgets.policy "druid": the object has been modified', False),
        ('admission webhook "uid.example.com" denied the request', False),
    ],
)
def test_only_a_pod_with_another_uid_counts_as_gone(message, gone):
    pod = Pod("shop", "druid-0", "u1", controller="StatefulSet", controller_name="druid")
    state = Drain(Options(), time.monotonic())
    state.saw_all([pod], time.monotonic())
    state.next_evictions(time.monotonic())

    _refusal(pod, ApiFailure("no", status=409, reason="Conflict", body_message=message))(state)

    assert state.done is gone


@pytest.mark.parametrize(("causes", "deleted"), [((), False), (({"reason": "DisruptionBudget"},), True)])
def test_a_pod_that_a_webhook_keeps_is_not_deleted(causes, deleted):
    pod = Pod("vms", "virt-launcher-db", "u1", controller="StatefulSet", controller_name="db")
    state = Drain(Options(), 0.0, deletable=frozenset({"u1"}), delete_after=5.0)
    state.saw_all([pod], 0.0)
    state.next_evictions(0.0)

    _refusal(pod, ApiFailure("no", status=429, reason="TooManyRequests", body_message="migrating", causes=causes))(
        state
    )

    again = time.monotonic() + 60
    assert state.next_evictions(again) == [pod]
    assert (state.deletion("u1") is not None) is deleted
    assert not state.gives_up(again)


def test_a_pod_is_evicted_again_after_the_api_server_did_not_know_the_client_for_a_moment(
    monkeypatch,
):
    pod = Pod("shop", "web", "u1", controller="ReplicaSet", controller_name="web")
    state = Drain(Options(), 0.0)
    state.saw_all([pod], 0.0)
    state.next_evictions(0.0)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)

    _refusal(pod, ApiFailure("no", status=401, reason="Unauthorized", body_message="Unauthorized"))(state)

    assert state.next_evictions(now) == []
    assert state.next_evictions(now + 60) == [pod]


@pytest.mark.parametrize(("reason", "stays"), [("bad disk", True), ("", True), ("drain", False), (None, False)])
def test_a_drain_that_fails_undoes_its_own_cordon_only(reason, stays):
    """The same owner may have cordoned the node for another reason. A drain that was killed had the same one."""
    cluster = QuietCluster()
    cordon = {"owner": "holdfast", "reason": reason, "since": AT, "unschedulable_before": False}
    cluster.node(**({} if reason is None else {"unschedulable": True, "cordon": cordon}))
    owner = {"kind": "StatefulSet", "name": "db", "controller": True}
    metadata = {"name": "db-0", "namespace": "shop", "uid": "u2", "ownerReferences": [owner]}
    pod = {"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": {"phase": "Running"}}
    cluster._store("TEST", "/api/v1/namespaces/shop/pods/db-0", pod)
    options = params(timeout=1, uncordon_on_failure=True)
    context = Context(options)
    context.cluster = cluster

    with pytest.raises(TimedOut) as caught:
        drain(context, options)
    assert caught.value.fields["unschedulable"] is stays
    node = cluster.find("/api/v1/nodes/node-1")
    assert bool(node["spec"].get("unschedulable")) is stays
    assert node_rules.record(node, CORDON) == (cordon if stays else None)


def test_before_it_fails_a_drain_looks_at_the_pods_once_more():
    cluster = QuietCluster()
    options = params(timeout=1)
    context = Context(options)
    context.cluster = cluster
    work = _DrainRun(context, options, Deadline(0), Plan())
    # The watch has not shown that the pod is gone.
    work.state.saw_all([Pod("shop", "web", "u1")], 0.0)

    work._loop()

    assert work.state.entries == {}


def pod_with_a_volume(cluster):
    """A pod on the node, and its claim of a volume that is attached to the node."""
    owner = {"kind": "StatefulSet", "name": "db", "controller": True}
    metadata = {"name": "db-0", "namespace": "shop", "uid": "u2", "ownerReferences": [owner]}
    pod = {"metadata": metadata, "spec": {"nodeName": "node-1"}}
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster._store("TEST", "/api/v1/namespaces/shop/pods/db-0", pod)
    claim = {"metadata": {"name": "data", "namespace": "shop"}, "spec": {"volumeName": "pv-1"}}
    cluster._store("TEST", "/api/v1/namespaces/shop/persistentvolumeclaims/data", claim)
    source = {"nodeName": "node-1", "attacher": "d", "source": {"persistentVolumeName": "pv-1"}}
    cluster._store(
        "TEST", "/apis/storage.k8s.io/v1/volumeattachments/csi-x", {"metadata": {"name": "csi-x"}, "spec": source}
    )
    return pod


def at_work(cluster, **record):
    """A run of the operation drains the node."""
    known = {"id": "kernel", "run": "dead", "started": AT, "since": AT, "phase": "drain", "phases": {}, "result": ""}
    known |= {"boot_id_before": "boot-1", "unschedulable_before": False, "detail": "", **record}
    claim = {"run": "me", "operation": "kernel", "purpose": "rolling_reboot", "since": AT}
    cordon = {"owner": "rolling_reboot", "reason": "kernel", "since": AT, "unschedulable_before": False}
    cluster.node(unschedulable=True, claim=claim, cordon=cordon, operation=known)


@pytest.mark.parametrize("waits", [True, False])
def test_the_volume_of_a_pod_that_came_during_the_drain_is_waited_for(waits):
    cluster = QuietCluster()
    at_work(cluster)
    pod_with_a_volume(cluster)

    def leave(_verb, path, _body):
        if "/eviction/" in path:
            del cluster.objects["/api/v1/namespaces/shop/pods/db-0"]

    cluster.hooks.append(leave)
    options = params(wait_for_volumes=waits, operation="kernel", run="me", owner="rolling_reboot", timeout=1)
    context = Context(options)
    context.cluster = cluster
    # The pod came after the plan.
    work = _DrainRun(context, options, Deadline(1), Plan())

    with pytest.raises(TimedOut, match="csi-x") if waits else nullcontext():
        work.run()
    # The next run waits for it, too.
    assert cluster.marks()["operation"].get("volumes") == (["pv-1"] if waits else None)


def test_a_volume_of_a_pod_that_came_back_is_not_waited_for():
    cluster = QuietCluster()
    pod_with_a_volume(cluster)
    context = Context(params())
    context.cluster = cluster

    assert _DrainRun(context, params(), Deadline(0), Plan(), volumes={"pv-1"})._wait_for_volumes() == {}
    assert _DrainRun(context, params(), Deadline(0), Plan(), volumes={"pv-2"})._wait_for_volumes() == {}


def test_an_unexpected_error_of_an_eviction_ends_the_drain(monkeypatch):
    context = Context(params())
    context.cluster = QuietCluster()
    work = _DrainRun(context, params(), Deadline(10), Plan())

    def broken(*_arguments, **_options):
        raise InvalidInput("The token has a line break.")

    monkeypatch.setattr(work, "_send", broken)
    work._send_and_tell(Pod("shop", "web", "u1"), delete=False)

    with pytest.raises(InvalidInput):
        work._take_events(block=False)


def test_a_drain_that_is_resumed_waits_for_the_volumes_of_pods_that_are_gone():
    cluster = QuietCluster()
    at_work(cluster, volumes=["pv-1"])
    source = {"nodeName": "node-1", "attacher": "d", "source": {"persistentVolumeName": "pv-1"}}
    attachment = {"metadata": {"name": "csi-x"}, "spec": source, "status": {"attached": True}}
    cluster._store("TEST", "/apis/storage.k8s.io/v1/volumeattachments/csi-x", attachment)
    options = params(operation="kernel", run="me", owner="rolling_reboot", timeout=1)
    context = Context(options)
    context.cluster = cluster

    with pytest.raises(TimedOut, match="csi-x"):
        drain(context, options)
    del cluster.objects["/apis/storage.k8s.io/v1/volumeattachments/csi-x"]
    assert drain(context, options)["evicted"] == []

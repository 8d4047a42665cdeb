# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a new Lease if the node does not confirm the hold, on an API server in memory."""

from __future__ import annotations

import pytest
from unit.reboot.memory_cluster import AT, MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    ApiFailure,
    HoldfastError,
    TimedOut,
    Unreachable,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._holds import leases

LEASE = paths.lease("shop", "node-1")
PARAMS = {
    "node": "node-1",
    "namespace": "shop",
    "holder": "alice",
    "state": "present",
    "wait": True,
    "wait_timeout": 0,
    "reason": None,
    "labels": None,
}


@pytest.fixture
def cluster():
    found = MemoryCluster()
    found.node()
    return found


def take(monkeypatch, cluster, meanwhile):
    """Take a hold that the node does not confirm; return the error."""

    def wait_for(*_arguments):
        meanwhile()
        return cluster.objects[paths.node("node-1")]

    monkeypatch.setattr(leases, "wait_for", wait_for)
    with pytest.raises(HoldfastError) as caught:
        hold(cluster, wait=True)
    return caught.value


def hold(cluster, warn=lambda message: None, **options):
    params = {**PARAMS, "wait": False, **options}
    context = Context(params, warn=warn)
    context.cluster = cluster
    return leases.lease_hold(context, params)


def test_it_is_removed(monkeypatch, cluster):
    error = take(monkeypatch, cluster, lambda: None)

    assert isinstance(error, TimedOut)
    assert (error.fields["taken_back"], LEASE in cluster.objects) == (True, False)
    assert error.fields["changed"] is False
    assert error.message.endswith("The new Lease was removed.")


def test_the_error_says_what_the_agent_says(monkeypatch, cluster):
    condition = {
        "type": "ShutdownInhibited",
        "status": "False",
        "reason": "ObserveOnly",
        "message": "held by shop/alice, but the agent only observes: nothing is inhibited",
    }
    cluster.objects[paths.node("node-1")]["status"]["conditions"].append(condition)

    error = take(monkeypatch, cluster, lambda: None)

    assert (
        "its condition ShutdownInhibited names no holder (ObserveOnly: held by shop/alice, but the agent only "
        "observes: nothing is inhibited). Check that the node agent runs there" in error.message
    )


def test_it_is_removed_after_any_error_of_the_wait(monkeypatch, cluster):
    def refused():
        raise ApiFailure("The API server refused GET /api/v1/nodes (403): nodes is forbidden", status=403)

    error = take(monkeypatch, cluster, refused)

    assert isinstance(error, ApiFailure)
    assert (error.fields["taken_back"], LEASE in cluster.objects) == (True, False)


def test_the_error_names_it_if_it_can_not_be_removed(monkeypatch, cluster):
    def away(*_arguments, **_options):
        raise Unreachable("The API server did not answer.")

    error = take(monkeypatch, cluster, lambda: monkeypatch.setattr(cluster, "delete", away))

    assert (error.fields["taken_back"], LEASE in cluster.objects) == (False, True)
    assert "The node is still held: the new Lease shop/node-1 could not be removed: The API server" in error.message


def test_the_error_names_it_if_the_answer_to_its_creation_was_lost(monkeypatch, cluster):
    def lost(_path, body, **_options):
        cluster._store("TEST", LEASE, body)
        raise Unreachable("The API server did not answer.")

    monkeypatch.setattr(cluster, "create", lost)
    error = take(monkeypatch, cluster, lambda: None)

    assert isinstance(error, Unreachable)
    assert "Lease shop/node-1 may hold the node by now. Run this again" in error.message


def test_the_error_names_it_if_the_answer_to_its_change_was_lost(monkeypatch, cluster):
    def lost(_path, body):
        cluster._store("TEST", LEASE, body)
        raise Unreachable("The API server did not answer.")

    cluster.hold(holder="")
    monkeypatch.setattr(cluster, "replace", lost)
    error = take(monkeypatch, cluster, lambda: None)

    assert isinstance(error, Unreachable)
    assert "Lease shop/node-1 may hold the node by now. Run this again" in error.message


def test_a_new_hold_does_not_fail_if_the_node_can_not_be_read_afterwards(cluster):
    warnings = []
    cluster.hooks.append(lambda *_write: cluster.broken.append(paths.node("node-1")))

    result = hold(cluster, warnings.append)

    assert (result["changed"], result["inhibited"]) == (True, False)
    (warning,) = warnings
    assert "ShutdownInhibited of Node node-1 names shop/alice is unknown" in warning
    assert "(500): broken" in warning


@pytest.mark.parametrize("change", [{"uid": "another"}, {"labels": {"by": "someone"}}])
def test_it_stays_if_it_is_another_one_or_has_changed(monkeypatch, cluster, change):
    def changed():
        lease = cluster.find(LEASE)
        lease["metadata"].update(change)
        cluster._store("TEST", LEASE, lease)

    error = take(monkeypatch, cluster, changed)

    assert (error.fields["taken_back"], LEASE in cluster.objects) == (False, True)
    assert "The Lease shop/node-1 has changed since, so it stays" in error.message
    assert error.fields["changed"] is True


@pytest.mark.parametrize("freed", [False, True])
def test_it_stays_if_another_task_of_the_holder_relies_on_it(monkeypatch, cluster, freed):
    if freed:
        cluster.hold(holder="")
    results = []

    error = take(monkeypatch, cluster, lambda: results.append(hold(cluster)))

    (result,) = results
    assert (result["changed"], result["lease"]) == (False, cluster.find(LEASE))
    assert (error.fields["taken_back"], error.fields["changed"]) == (False, True)
    assert result["lease"]["spec"]["holderIdentity"] == "alice"
    assert "The Lease shop/node-1 has changed since, so it stays" in error.message


def test_a_repeated_hold_only_renews(cluster):
    cluster.hold(holder="alice")
    before = cluster.find(LEASE)["spec"]

    result = hold(cluster)

    assert (result["changed"], result["lease"]["spec"]) == (False, {**before, "renewTime": AT})


def test_one_that_existed_before_stays(monkeypatch, cluster):
    cluster.hold(holder="alice")
    error = take(monkeypatch, cluster, lambda: None)

    assert (error.fields["taken_back"], LEASE in cluster.objects) == (False, True)
    assert "The Lease existed before and stays. If no other task" in error.message


def test_numbers_in_labels_become_texts(cluster):
    labels = hold(cluster, labels={"ticket": 4711, "urgent": True})["lease"]["metadata"]["labels"]

    assert (labels["ticket"], labels["urgent"]) == ("4711", "true")

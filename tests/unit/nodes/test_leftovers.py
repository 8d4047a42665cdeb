# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a removal of leftover pods that fails says, on an API server in memory."""

from __future__ import annotations

import pytest
from unit.reboot.memory_cluster import MemoryCluster

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes import leftovers

PARAMS = {"name": "node-1", "state": "absent", "force": True}
FOUND = [{"namespace": "shop", "name": name, "uid": name, "kept": False} for name in ("a", "b", "c")]


@pytest.mark.parametrize(("refused", "removed"), [("a", []), ("b", ["a"]), ("c", ["a", "b"])])
def test_what_was_removed_before_a_failure_is_named(monkeypatch, refused, removed):
    cluster = MemoryCluster()
    cluster.node()

    def delete(path, _options):
        if path == paths.pod("shop", refused):
            raise ApiFailure("forbidden", status=403, reason="Forbidden")

    monkeypatch.setattr(cluster, "delete", delete, raising=False)
    monkeypatch.setattr(leftovers, "leftovers", lambda *_arguments: FOUND)
    context = Context(PARAMS)
    context.cluster = cluster

    with pytest.raises(ApiFailure) as caught:
        leftovers.leftover_pods(context, PARAMS)

    assert caught.value.fields["changed"] is bool(removed)
    assert [item["name"] for item in caught.value.fields["pods"] if item["removed"]] == removed

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts that others write are cut where they enter: the API limits most of them only by the size of the object."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import cluster, node_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._drain import rules as drain_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._events import dead_node_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover import taint_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import host_rules

LONG = "x" * 220_000
NOW = datetime(2026, 5, 4, tzinfo=timezone.utc)
METADATA = {"name": "n", "namespace": "shop"}
NODE = {"metadata": METADATA, "status": {"conditions": [{"type": "Ready", "status": "False", "message": LONG}]}}
HOST = {"metadata": METADATA, "status": {"errorType": "power management error", "errorMessage": LONG}}
ATTACHMENT = {"metadata": METADATA, "spec": {"attacher": "csi"}, "status": {"detachError": {"message": LONG}}}
FAILED = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": LONG}
BUDGET = {"metadata": METADATA, "spec": {}, "status": {"conditions": [FAILED]}}


def refusal(content):
    answer = SimpleNamespace(status=422, reason="", headers={}, data=content)
    return str(cluster._failure("PATCH", "/x", answer, answer.data))


@pytest.mark.parametrize(
    "read",
    [
        lambda: node_rules.not_ready_why(NODE),
        lambda: dead_node_rules.evidence(NODE, None, NOW)["message"],
        lambda: host_rules.trouble(HOST),
        lambda: taint_rules.attachment(ATTACHMENT).reason,
        lambda: drain_rules.read_budget(BUDGET).sync_failure,
        lambda: refusal(json.dumps({"message": LONG}).encode()),
        lambda: refusal(LONG.encode()),
    ],
    ids=["Ready", "dead node", "BareMetalHost", "VolumeAttachment", "PodDisruptionBudget", "API", "proxy"],
)
def test_a_text_without_end_is_cut(read):
    assert "xxx" in read()
    assert len(read()) < 1200

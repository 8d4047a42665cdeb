# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the inventory reads the cluster again in spite of a cache."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.inventory import nodes


@pytest.fixture
def inventory(monkeypatch):
    """An inventory with a cache. Each read of a cluster returns another host."""
    found = nodes.InventoryModule.__new__(nodes.InventoryModule)
    reads = iter({"name": f"node-{number}"} for number in range(9))
    found._cache = {}
    monkeypatch.setattr(found, "_read", lambda: [next(reads)], raising=False)
    monkeypatch.setattr(found, "_auth", lambda: dict.fromkeys(nodes._READ_BY), raising=False)
    monkeypatch.setattr(found, "get_option", lambda _name: None, raising=False)
    monkeypatch.setattr(found, "get_cache_key", lambda path: path, raising=False)
    return found


def test_another_cluster_by_kubeconfig_is_read(monkeypatch, inventory):
    monkeypatch.setenv("KUBECONFIG", "production")
    first = inventory._cached("nodes.yml", True)
    assert inventory._cached("nodes.yml", True) == first
    monkeypatch.setenv("KUBECONFIG", "staging")
    assert inventory._cached("nodes.yml", True) != first
    monkeypatch.delenv("KUBECONFIG")
    assert inventory._cached("nodes.yml", True) != first

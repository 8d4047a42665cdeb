# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the inventory reads the cluster again in spite of a cache."""

from __future__ import annotations

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader

from ansible_collections.holdfast.kubernetes.plugins.inventory import nodes


@pytest.fixture
def inventory(monkeypatch):
    """An inventory with a cache. Each read of a cluster returns another host."""
    found = nodes.InventoryModule.__new__(nodes.InventoryModule)
    reads = iter({"name": f"node-{number}"} for number in range(9))
    found._cache, found.loader = {}, DataLoader()
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


@pytest.mark.parametrize("by", ["option", "variable", "default"])
def test_another_current_context_of_the_file_is_read(monkeypatch, inventory, tmp_path, by):
    path = tmp_path / ".kube/config"
    path.parent.mkdir()
    monkeypatch.delenv("KUBECONFIG", raising=False)
    options = dict.fromkeys(nodes._READ_BY)
    monkeypatch.setattr(inventory, "_auth", lambda: options)
    if by == "option":
        options["kubeconfig"] = ["/not/there", str(path)]
    elif by == "variable":
        monkeypatch.setenv("KUBECONFIG", f"/not/there:{path}")
    else:
        monkeypatch.setenv("HOME", str(tmp_path))

    def use_context(name):
        path.write_text(yaml.safe_dump({"current-context": name}))
        return inventory._cached("nodes.yml", True)

    first = use_context("production")
    assert use_context("staging") != first
    assert use_context("production") == first
    options["context"] = "staging"
    second = use_context("production")
    assert second != first
    assert use_context("staging") == second

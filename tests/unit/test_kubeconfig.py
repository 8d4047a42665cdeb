# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubeconfig files that are encrypted with Ansible Vault."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.vault import VaultLib, VaultSecret

from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _kubeconfig

CONTENT = {"clusters": [{"name": "one", "cluster": {"server": "https://one.example"}}], "current-context": "one"}


@pytest.fixture
def loader():
    found = DataLoader()
    found.set_vault_secrets([("default", VaultSecret(b"password"))])
    return found


@pytest.fixture
def vault(tmp_path, loader):
    path = tmp_path / "vault"
    path.write_bytes(VaultLib([("default", VaultSecret(b"password"))]).encrypt(yaml.safe_dump(CONTENT)))
    return path


def test_a_vault_is_decrypted_in_memory(loader, vault, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given in (str(vault), [str(vault)], "vault", f"{vault}:/not/there"):
        found = json.loads(_kubeconfig.decrypted(loader, given))
        assert {key: found[key] for key in CONTENT} == CONTENT
    assert not loader._tempfiles


def test_a_vault_is_merged_with_other_files(loader, vault, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text(yaml.safe_dump({"clusters": [{"name": "two", "cluster": {}}], "current-context": "two"}))
    found = json.loads(_kubeconfig.decrypted(loader, [str(plain), str(vault)]))
    assert ([item["name"] for item in found["clusters"]], found["current-context"]) == (["two", "one"], "two")


@pytest.mark.parametrize("given", ["/not/there", "plain", ["plain", "/not/there"], {"clusters": []}])
def test_anything_else_stays_as_it_is(loader, tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").write_text("{}")
    assert _kubeconfig.decrypted(loader, given) == given

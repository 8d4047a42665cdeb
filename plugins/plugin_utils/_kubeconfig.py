# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubeconfig files of the controller: decrypted for use here, or embedded for use on another host."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from ansible.parsing.vault import is_encrypted_file

_LISTS = ("clusters", "contexts", "users")
_FILES = ("certificate-authority", "client-certificate", "client-key")


def paths_of(kubeconfig: str | list[Any]) -> list[str]:
    """The single paths of a kubeconfig option, with ``~`` expanded."""
    given = kubeconfig.split(os.pathsep) if isinstance(kubeconfig, str) else [str(path) for path in kubeconfig]
    return [os.path.expanduser(path) for path in given if path]


def decrypted(loader: Any, kubeconfig: Any) -> Any:
    """Return the content of a kubeconfig with a vault, as text, and any other one unchanged.

    Ansible's own decrypted copy of a file stays on the disk until the playbook ends: one for each task.

    Args:
        loader: Ansible's DataLoader, which knows the vault secrets.
        kubeconfig: A path, a list of paths, or the content.
    """
    if not isinstance(kubeconfig, (str, list)) or not any(map(_is_vault, paths_of(kubeconfig))):
        return kubeconfig
    return as_text(whole(loader, [path for path in paths_of(kubeconfig) if os.path.isfile(path)]))


def _is_vault(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return bool(is_encrypted_file(file))


def whole(loader: Any, kubeconfig: Any) -> Any:
    """Return one dictionary with everything, including certificates and keys, for a host that has none of the files.

    Paths that do not exist on the controller stay unchanged: they may be meant for the other host.
    """
    if not isinstance(kubeconfig, (str, list)):
        return kubeconfig
    paths = paths_of(kubeconfig)
    if not paths or not all(os.path.isfile(path) for path in paths):
        return kubeconfig
    merged: dict[str, Any] = {}
    for path in paths:
        content = yaml.safe_load(loader.get_text_file_contents(os.path.abspath(path))) or {}
        _merge(merged, _embedded(content, Path(path).parent))
    return merged


def current_context(loader: Any, kubeconfig: str | list[Any]) -> Any:
    """The context that kubeconfig files choose, as kubectl merges them; ``None`` if they choose none."""
    for path in paths_of(kubeconfig):
        content = None
        if os.path.isfile(path):
            # The read of the cluster says what is wrong with a file.
            with suppress(yaml.YAMLError):
                content = yaml.safe_load(loader.get_text_file_contents(os.path.abspath(path)))
        if isinstance(content, Mapping) and content.get("current-context"):
            return content["current-context"]
    return None


def as_text(kubeconfig: Any) -> Any:
    """Return content as one JSON text, and paths unchanged.

    Ansible masks each value of a secret option in every result: for a dictionary, every name and every "v1".
    """
    return json.dumps(kubeconfig) if isinstance(kubeconfig, Mapping) else kubeconfig


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Merge like kubectl: the first file that names something wins."""
    for key, value in more.items():
        if key in _LISTS:
            known = {item["name"] for item in into.setdefault(key, [])}
            into[key].extend(item for item in value or [] if item["name"] not in known)
        elif not into.get(key):
            into[key] = value


def _embedded(content: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    result = dict(content)
    for key, inner in (("clusters", "cluster"), ("users", "user")):
        result[key] = [{**item, inner: _with_data(item.get(inner) or {}, folder)} for item in content.get(key) or []]
    return result


def _with_data(entry: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    result = dict(entry)
    for key in _FILES:
        if key in result:
            data = (folder / str(result.pop(key))).read_bytes()
            result.setdefault(f"{key}-data", base64.b64encode(data).decode("ascii"))
    return result

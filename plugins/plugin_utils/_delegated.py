# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a task that runs on another host, which has neither the controller's environment nor its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.connection import speaks_for_itself
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _kubeconfig

_FILES = ("ca_cert", "client_cert", "client_key")


def with_environment(
    spec: Mapping[str, Any], arguments: Mapping[str, Any], loader: Any, theirs: Iterable[Any] = ()
) -> dict[str, Any]:
    """Add the options that the task leaves out and that the controller's environment has.

    Args:
        spec: The options of the module.
        arguments: The options as the task has them.
        loader: Ansible's DataLoader.
        theirs: The keyword ``environment`` of the task, which applies on the other host and therefore wins.
    """
    own = {name for item in theirs if isinstance(item, Mapping) for name in item}
    environment = {name: value for name, value in os.environ.items() if name not in own}
    found = dict(arguments)
    for name, option in spec.items():
        given = _given(option, name, arguments)
        if option.get("apply_defaults") and isinstance(given, (Mapping, type(None))):
            inner = {key: _read(item, environment) for key, item in option["options"].items()}
            value = {key: text for key, text in {**inner, **(given or {})}.items() if text is not None}
            found.update({name: value} if value else {})
        elif given is None and (read := _read(option, environment)) is not None:
            # The other host does not have the files either.
            found[name] = _kubeconfig.as_text(_kubeconfig.whole(loader, read)) if name == "kubeconfig" else read
    if not speaks_for_itself({name: _given(option, name, found) for name, option in spec.items()}):
        # Without the option, this is what a task on the controller uses.
        paths = [path for path in _kubeconfig.paths_of(environment.get("KUBECONFIG", "")) if os.path.isfile(path)]
        if paths and found.get("kubeconfig") is None:
            found["kubeconfig"] = _kubeconfig.as_text(_kubeconfig.whole(loader, paths))
    return found


def with_files(spec: Mapping[str, Any], arguments: Mapping[str, Any], copy: Callable[[str], str]) -> dict[str, Any]:
    """Copy the certificates and the key that exist on the controller, also those of ``management``.

    Args:
        spec: The options of the module.
        arguments: The options of the task.
        copy: Copies a file to the other host, and returns its path there.
    """
    found = dict(arguments)
    for name in (key for option in _FILES for key in (option, *spec.get(option, {}).get("aliases", []))):
        path = found.get(name)
        if isinstance(path, str) and os.path.isfile(os.path.expanduser(path)):
            found[name] = copy(os.path.abspath(os.path.expanduser(path)))
    management = found.get("management")
    if isinstance(management, Mapping):
        found["management"] = with_files(spec["management"]["options"], management, copy)
    return found


def _given(option: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> Any:
    return next((arguments[key] for key in (name, *option.get("aliases", [])) if arguments.get(key) is not None), None)


def _read(option: Mapping[str, Any], environment: Mapping[str, str]) -> str | None:
    variables = option["fallback"][1] if "fallback" in option else []
    return next((environment[name] for name in variables if name in environment), None)

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options for reaching a cluster, with the names and environment variables that kubernetes.core uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import env_fallback

from .patience import API_TIMEOUT

_PROXY_HEADERS: dict[str, dict[str, Any]] = {
    "proxy_basic_auth": {"type": "str", "no_log": True},
    "basic_auth": {"type": "str", "no_log": True},
    "user_agent": {"type": "str"},
}

_OPTIONS: dict[str, dict[str, Any]] = {
    "kubeconfig": {"type": "raw", "no_log": True},
    "context": {"type": "str"},
    "host": {"type": "str"},
    "api_key": {"type": "str", "no_log": True},
    "username": {"type": "str"},
    "password": {"type": "str", "no_log": True},
    "validate_certs": {"type": "bool", "aliases": ["verify_ssl"]},
    "ca_cert": {"type": "path", "aliases": ["ssl_ca_cert"]},
    "client_cert": {"type": "path", "aliases": ["cert_file"]},
    "client_key": {"type": "path", "aliases": ["key_file"], "no_log": False},
    "proxy": {"type": "str"},
    "no_proxy": {"type": "str"},
    "proxy_headers": {"type": "dict", "options": _PROXY_HEADERS},
    "persist_config": {"type": "bool"},
    "impersonate_user": {"type": "str"},
    "impersonate_groups": {"type": "list", "elements": "str"},
}
_API_TIMEOUT: dict[str, dict[str, Any]] = {"api_timeout": {"type": "int", "default": API_TIMEOUT}}

NAMES: tuple[str, ...] = (*_OPTIONS, *_API_TIMEOUT)


def _with_environment(name: str, option: dict[str, Any]) -> dict[str, Any]:
    variables = [f"K8S_AUTH_{key.upper()}" for key in (name, *option.get("aliases", []))]
    complete = {**option, "fallback": (env_fallback, variables)}
    if name == "proxy_headers":
        # A dict has no variable of its own. Each suboption has one, and apply_defaults makes Ansible read them.
        del complete["fallback"]
        complete["apply_defaults"] = True
        complete["options"] = {
            key: {**value, "fallback": (env_fallback, [f"K8S_AUTH_PROXY_HEADERS_{key.upper()}"])}
            for key, value in option["options"].items()
        }
    return complete


def auth_options() -> dict[str, dict[str, Any]]:
    """Argument spec of the common options; each falls back to its ``K8S_AUTH_*`` variable."""
    return {name: _with_environment(name, option) for name, option in {**_OPTIONS, **_API_TIMEOUT}.items()}


def management_option() -> dict[str, dict[str, Any]]:
    """Argument spec of ``management``, the cluster in which Machines and BareMetalHosts live.

    These options have no fallback, because the environment describes only one cluster, the workload cluster. The
    task's ``api_timeout`` applies to both clusters.
    """
    return {"management": {"type": "dict", "options": dict(_OPTIONS)}}


def kubeconfig_paths(params: Mapping[str, Any]) -> set[str]:
    """The kubeconfig options that are paths, of the cluster and of ``management``.

    ``no_log`` is for the content of a kubeconfig. A path is no secret, and messages have to name it.
    """
    found: set[str] = set()
    for options in (params, params.get("management")):
        given = options.get("kubeconfig") if isinstance(options, Mapping) else None
        paths = given if isinstance(given, list) else [given]
        found |= {path for path in paths if isinstance(path, str) and not is_content(path)}
    return found


def is_content(given: Any) -> bool:
    """Whether this is the content of a kubeconfig, as a dictionary or as text. No path has several lines."""
    return isinstance(given, Mapping) or (isinstance(given, str) and (given.lstrip().startswith("{") or "\n" in given))

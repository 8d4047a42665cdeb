# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Argument specs of options that several modules share; the fragment ``shared`` documents them."""

from __future__ import annotations

from typing import Any

Options = dict[str, dict[str, Any]]

NODE: Options = {"name": {"type": "str", "required": True}}
RUN: Options = {"run": {"type": "str", "required": True}}
# The rolling reboot whose phase a task records.
PHASE: Options = {"operation": {"type": "str"}}
# The run that must have claimed the node.
CLAIMANT: Options = {"run": {"type": "str"}}
# The run whose Lease a task renews while it waits. The specs are equal, but CLAIMANT is documented differently.
WAITING_RUN: Options = {"run": {"type": "str"}}
# The person or program that started the run; see the fragment.
HOLDER: Options = {"holder": {"type": "str"}}
# What a run has done of its operation, and what it leaves.
LEFT: Options = {
    "done": {"type": "list", "elements": "str"},
    "undone": {"type": "list", "elements": "str", "default": []},
    "postponed": {"type": "list", "elements": "str", "default": []},
}
# How many nodes of a group may be unavailable, and how many may fail.
BUDGET: Options = {
    "selector": {"type": "str"},
    "max_unavailable": {"type": "str", "default": "1"},
    "topology_key": {"type": "str", "no_log": False},
    "max_unavailable_per_domain": {"type": "int"},
    "max_domains": {"type": "int"},
    "max_failed": {"type": "int", "default": 0},
    "count_others": {"type": "bool", "default": True},
    "unhealthy_grace": {"type": "int", "default": 300},
}
WINDOWS: Options = {
    "windows": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "days": {"type": "list", "elements": "str"},
            # The operation checks that these are set: its message names the number of the entry.
            "start": {"type": "str"},
            "end": {"type": "str"},
        },
    },
}
_PODS: Options = {
    "selector": {"type": "str", "required": True},
    "namespace": {"type": "str"},
}
# The connection to Prometheus, Alertmanager or a Pushgateway.
_SERVER: Options = {
    "url": {"type": "str", "required": True},
    "token": {"type": "str", "no_log": True},
    "username": {"type": "str"},
    "password": {"type": "str", "no_log": True},
    "ca_cert": {"type": "path"},
    "validate_certs": {"type": "bool", "default": True},
    "timeout": {"type": "int", "default": 10},
}
_ALERTS: Options = {
    **_SERVER,
    "only": {"type": "str"},
    "ignore": {"type": "str"},
    "firing_only": {"type": "bool", "default": False},
    "labels": {"type": "dict"},
    "node_label": {"type": "str"},
}


def _server(options: Options) -> dict[str, Any]:
    return {
        "type": "dict",
        "options": options,
        "mutually_exclusive": [["token", "username"]],
        "required_together": [["username", "password"]],
    }


# Pods and alerts that block a reboot.
BLOCKERS: Options = {
    "pods": {"type": "list", "elements": "dict", "options": _PODS},
    "alerts": _server(_ALERTS),
}
ALERTMANAGER: Options = {
    "alertmanager": _server(
        {
            **_SERVER,
            "timeout": {"type": "int", "default": 5},
            "matchers": {"type": "list", "elements": "str"},
            "expires_after": {"type": "int", "default": 300},
        }
    ),
}
PUSHGATEWAY: Options = {"pushgateway": _server(_SERVER)}

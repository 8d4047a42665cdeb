# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A BareMetalHost, and what happens to it without a run: metal3 switches its machine off and on.

This stands in for metal3's controller. It keeps the machine off while the host has a reboot annotation, and shows at
once whether the machine is on.
"""

from __future__ import annotations

from typing import Any

from model import api
from model.api import Stored

from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import find_host, host_rules

NAMESPACE = "metal"
HOSTS = f"{find_host.hosts(NAMESPACE)}/"


def host_path(name: str) -> str:
    """The host has the name of its Node."""
    return HOSTS + name


def provider_id(name: str) -> str:
    """The provider ID by which a Node names its host."""
    return f"metal3://{NAMESPACE}/{name}"


def host(name: str) -> dict[str, Any]:
    """A host whose machine is on."""
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"online": True},
        "status": {"poweredOn": True, "provisioning": {"state": "provisioned"}, "operationalStatus": "OK"},
    }


def has_key(found: Stored | None) -> bool:
    """Whether something keeps the machine off."""
    return found is not None and bool(host_rules.requests_of(found.content))


def seen(found: Stored, *, powered: bool) -> dict[str, Any]:
    """The host after metal3 has switched its machine."""
    return api.merged(found.content, {"status": {"poweredOn": powered}})  # type: ignore[no-any-return]

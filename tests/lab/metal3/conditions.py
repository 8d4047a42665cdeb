# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for metal3's conditions of a host. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TYPES = ("Manageable", "AvailableForProvisioning", "Provisioned", "Ready", "Progressing")
_TRUE, _FALSE = "True", "False"
_AT_WORK = {
    "inspecting": "Inspecting",
    "preparing": "Preparing",
    "provisioning": "Provisioning",
    "deprovisioning": "Deprovisioning",
    "powering off before delete": "PoweringOffBeforeDelete",
    "deleting": "Deleting",
}


def compute(
    status: Mapping[str, Any], before: Sequence[Mapping[str, str]], *, power_failure: bool
) -> list[dict[str, str]]:
    """Return the conditions; those that changed have no time yet. Conditions of other types are kept."""
    state = (status.get("provisioning") or {}).get("state") or ""
    operational = status.get("operationalStatus")
    found = dict(zip(_TYPES, _of_state(state), strict=True))
    if operational == "error":
        found["Ready"] = (_FALSE, "Error")
        if state == "registering":
            found["Manageable"] = (_FALSE, "RegistrationFailed")
    elif operational == "servicing":
        found["Ready"] = (_FALSE, "Servicing")
    elif operational == "detached":
        found["Ready"] = found["Progressing"] = (_FALSE, "Detached")
    if power_failure and operational != "detached" and state not in ("", "unmanaged", "registering", "deleting"):
        found["Manageable"] = (_FALSE, "PowerFailure")
    old = {item["type"]: dict(item) for item in before}
    new = {kind: {"type": kind, "status": value, "reason": reason} for kind, (value, reason) in found.items()}
    for kind, item in new.items():
        if old.get(kind, {}).get("status") == item["status"]:
            new[kind] = {**old[kind], **item}
    return list({**new, **{kind: item for kind, item in old.items() if kind not in new}}.values())


def _of_state(state: str) -> list[tuple[str, str]]:
    """The conditions of a state, in the order of their types."""
    managed, not_provisioned = (_TRUE, "Manageable"), (_FALSE, "NotProvisioned")
    not_available, still = (_FALSE, "NotAvailable"), (_FALSE, "NotProgressing")
    if state in ("provisioned", "externally provisioned"):
        return [managed, not_available, (_TRUE, "Provisioned"), (_TRUE, "Provisioned"), still]
    if state in ("available", "ready"):
        return [managed, (_TRUE, "Available"), not_provisioned, not_provisioned, still]
    if state in _AT_WORK:
        return [managed, not_available, not_provisioned, not_provisioned, (_TRUE, _AT_WORK[state])]
    if state == "registering":
        registering = (_FALSE, "Registering")
        return [registering, not_available, not_provisioned, not_provisioned, (_TRUE, "Registering")]
    return [(_FALSE, "NotManaged"), not_available, not_provisioned, not_provisioned, still]

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about metal3's BareMetalHosts: whether the controller acts on a host, and whether the host counts as off.

Sources: baremetalhost_controller.go (manageHostPower, saveHostStatus) and host_state_machine.go of the
baremetal-operator (2026). The controller saves a status only over the object version that it has read. It also saves
one without reading the power: after a registration error, changed credentials or an unknown power state. So a status
that is newer than our key proves nothing. The proof is a poweredOn that was true after the key was written, and is
false now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .._api import node_rules
from .._api.names import REBOOT_KEYS
from .._api.node_rules import annotations_of
from .._api.objects import Object
from .._api.times import from_text
from .._shared.bounds import cut
from . import key_rules
from .key_rules import Request

PAUSED = "baremetalhost.metal3.io/paused"
DETACHED = "baremetalhost.metal3.io/detached"
PROVISIONED = ("provisioned", "externally provisioned")
# A host whose status was lost, as after a restore, passes through these states, although its machine is in use.
_NOT_KNOWN_YET = ("", "unmanaged", "registering")
_PROVIDER = "metal3://"

FELL = "poweredOn went from true to false after the key was written"
OTHER_EVIDENCE = (
    "Use another kind of evidence: Redfish, a verify command, or the statement of a person who has checked."
)


def provider_id(node: Object) -> tuple[str, list[str] | None]:
    """Return the provider ID of a Node, and its parts; ``None`` if it is not metal3's.

    The parts are namespace, BareMetalHost and Metal3Machine, or in older versions the UID of the BareMetalHost.
    """
    text = node_rules.provider_id(node)
    parts = [part for part in text[len(_PROVIDER) :].split("/") if part]
    return text, parts if text.startswith(_PROVIDER) else None


@dataclass(frozen=True)
class Written:
    """What was known when we wrote a key. A second annotation keeps it, for a run that resumes.

    Attributes:
        since: When, by the clock of the API server that holds the host.
        powered_on: Whether ``status.poweredOn`` was true at that moment, or was seen true later.
        node: The Node that the host is; empty if unknown.
        boot_id: Its boot ID at that moment.
        run: Id of the run that wrote it.
        consumer: UID of the object that used the host (its Metal3Machine); empty if unknown.
        used_by: Namespace and name of that object; empty if unknown, as in records of earlier versions.
        overridden: The holds, as namespace/holder, that were overridden.
    """

    since: str
    powered_on: bool
    node: str = ""
    boot_id: str = ""
    run: str = ""
    consumer: str = ""
    used_by: str = ""
    overridden: tuple[str, ...] = ()


# The types of the JSON fields.
_TYPES: Mapping[str, type] = {
    "since": str,
    "powered_on": bool,
    "node": str,
    "boot_id": str,
    "run": str,
    "consumer": str,
    "used_by": str,
    "overridden": list,
}


@dataclass(frozen=True)
class Off:
    """Whether it is proven that a host is off.

    Attributes:
        proven: Whether it is.
        why: The reason why it is, or is not.
        datable: Whether the time when the host went off is known, or can become known by waiting. It can't if the host
            was off before our key was written.
    """

    proven: bool
    why: str
    datable: bool = True


def full_name(host: Object) -> str:
    return f"{host['metadata']['namespace']}/{host['metadata']['name']}"


def requests_of(host: Object) -> list[Request]:
    return key_rules.requests_of(annotations_of(host))


def request_of(host: Object, key: str) -> Request | None:
    """Return the annotation of one key; ``None`` if there is none."""
    return next((request for request in requests_of(host) if request.key == key), None)


def powered_on(host: Object) -> bool | None:
    """Return what the controller saw last; ``None`` if it has never looked."""
    found = _status(host).get("poweredOn")
    return found if isinstance(found, bool) else None


def error_count(host: Object) -> int:
    return int(_status(host).get("errorCount") or 0)


def online(host: Object) -> bool:
    """Return whether the host should be on when no key keeps it off."""
    return bool((host.get("spec") or {}).get("online"))


def state(host: Object) -> str:
    return str((_status(host).get("provisioning") or {}).get("state") or "")


def last_updated(host: Object) -> str:
    return str(_status(host).get("lastUpdated") or "")


def trouble(host: Object) -> str:
    """Return the error that the status shows; empty if there is none."""
    status = _status(host)
    kind, message = status.get("errorType") or "", status.get("errorMessage") or ""
    operational = status.get("operationalStatus") or ""
    if not kind and operational in ("", "OK"):
        return ""
    return ": ".join(cut(str(part)) for part in (kind or f"operationalStatus is {operational}", message) if part)


def inert(host: Object) -> str:
    """Return why metal3 does not act on the host, so that its status may be old; empty if it does."""
    annotations, found = annotations_of(host), state(host)
    whys = []
    if host["metadata"].get("deletionTimestamp"):
        whys.append("it is being deleted")
    if PAUSED in annotations:
        whys.append(f"it is paused (annotation {PAUSED})")
    if DETACHED in annotations or _status(host).get("operationalStatus") == "detached":
        whys.append(f"it is detached (annotation {DETACHED})")
    if (host.get("spec") or {}).get("disablePowerOff"):
        whys.append("spec.disablePowerOff is true, so metal3 never switches it off, but only resets it")
    if found not in PROVISIONED:
        whys.append(f'it is not provisioned (its state is "{found or "not known yet"}")')
    return "; ".join(whys)


def why_not(host: Object) -> str:
    """Return why a reboot annotation would have no effect, or the wrong one; empty if metal3 would act on it."""
    whys = [inert(host)]
    if not online(host):
        whys.append("spec.online is false, so it stays off anyway and would not come back")
    return "; ".join(why for why in whys if why)


def why_no_reboot(host: Object) -> str:
    """Return why a single reboot would not happen, or not end, although the controller acts on the host."""
    if powered_on(host) is not True:
        return "it is off, and metal3 would remove the annotation without a reboot"
    keeps = [request.annotation for request in requests_of(host) if request.key]
    if keeps:
        return f"it is kept off until its owners remove {', '.join(keeps)}, so it would not come back"
    return ""


def off(host: Object, key: str) -> Off:
    """Return whether our key keeps the host off, as far as its status can prove that."""
    written = written_of(host, key)
    if request_of(host, key) is None:
        return Off(False, f"{key_rules.annotation(key)} is not on it, so this collection does not keep it off")
    if idle := inert(host):
        return Off(False, f"metal3 does not act on it: {idle}")
    if powered_on(host) is not False:
        return Off(False, "its status shows poweredOn: true" if powered_on(host) else "its status has no poweredOn")
    if written is None:
        return Off(False, "its state when the key was written was not recorded", datable=False)
    error = trouble(host)
    if not written.powered_on:
        # An error does not change that: metal3 may have failed to switch it on, and is idle since our key is set.
        shown = f"; it shows an error ({error})" if error else ""
        why = (
            "it was off before the key was written, and has not been on since, so the time when it went off is unknown"
        )
        return Off(False, f"{why}{shown}", datable=False)
    if error:
        return Off(False, f"poweredOn may be old, because its status shows an error ({error})")
    return Off(True, FELL)


def to_write(
    host: Object, *, since: str, node: str, boot_id: str, run: str, consumer: str = "", overridden: tuple[str, ...]
) -> Written:
    """Return what to record about a host when a key is written to it now."""
    return Written(since, powered_on(host) is True, node, boot_id, run, consumer, used_by(host), overridden)


def written_of(host: Object, key: str) -> Written | None:
    """Return what was recorded when a key was written; ``None`` if there is no record, or an invalid one."""
    found = _records(host).get(key)
    if not isinstance(found, dict) or not set(found) <= set(_TYPES):
        return None
    if not all(isinstance(found[name], kind) for name, kind in _TYPES.items() if name in found):
        return None
    overridden = found.get("overridden", [])
    if not all(isinstance(item, str) for item in overridden):
        return None
    try:
        from_text(found["since"])
        return Written(**{**found, "overridden": tuple(overridden)})
    except (KeyError, TypeError, ValueError):
        return None


def keys_written(host: Object) -> dict[str, Written]:
    """Return the record of each key of this collection that is on the host."""
    found = {request.key: written_of(host, request.key) for request in requests_of(host) if request.key}
    return {key: written for key, written in found.items() if written is not None}


def used_by(host: Object) -> str:
    """Return namespace and name of the object that uses the host; empty if none does."""
    found = (host.get("spec") or {}).get("consumerRef") or {}
    return f"{found.get('namespace') or host['metadata']['namespace']}/{found['name']}" if found.get("name") else ""


def former_use(host: Object, written: Written, consumer: str) -> str:
    """Return why a key of this collection belongs to a former use of the host; empty if it does not.

    The host remains the machine of its Node only while it is provisioned for the same consumer. A key that stays
    longer would switch off the host in its next use.

    Args:
        consumer: UID of the object that uses the host now; empty if unknown.
    """
    if state(host) not in (*PROVISIONED, *_NOT_KNOWN_YET):
        return f'its state is "{state(host)}"'
    if _has_another_uid(written, consumer) and written.used_by and used_by(host) not in ("", written.used_by):
        return "it has another consumer now"
    return ""


def unclear_use(host: Object, written: Written, consumer: str) -> str:
    """Return why only a person can tell whether a key belongs to a former use of the host; empty otherwise.

    ``clusterctl move`` and a restore give the same consumer another UID. The key may keep off what a failover fenced.
    """
    if former_use(host, written, consumer) or not _has_another_uid(written, consumer):
        return ""
    return f"its consumer {used_by(host) or '-'} has another UID than the one when the key was written"


def _has_another_uid(written: Written, consumer: str) -> bool:
    return bool(written.consumer and consumer and written.consumer != consumer)


def records_with(host: Object, key: str, written: Written | None) -> str | None:
    """Return the annotation that records our keys, with one set or removed; ``None`` if it is empty.

    The record of a key goes with the key. The record of a single reboot, whose key is empty, stays: metal3 removes its
    annotation halfway.
    """
    present = {request.key for request in requests_of(host)}
    kept = {name: value for name, value in _records(host).items() if name != key and (name in present or not name)}
    if written is not None:
        kept[key] = asdict(written)
    return json.dumps(kept, sort_keys=True) if kept else None


def _records(host: Object) -> Mapping[str, Any]:
    try:
        content = json.loads(annotations_of(host).get(REBOOT_KEYS) or "{}")
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _status(host: Object) -> Mapping[str, Any]:
    return host.get("status") or {}

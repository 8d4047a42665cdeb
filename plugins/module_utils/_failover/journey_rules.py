# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journey of a node through a failover and back: which step is next, from the facts of the moment.

:func:`next_step` asks the rules for the last step that is done, in their order. The first that has a step decides. The
module carries some steps out itself (:mod:`.turn`), adds what it found to the facts and asks again; the others are its
answer to the role. ``docs/decisions/0018-one-journey-of-a-failover.md`` lists what they decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._api.names import FAILOVER, NAMESPACE
from .._fencing.key_rules import BASE
from .._shared.bounds import some
from .facts_rules import ATTESTATION, COMMAND, FENCE_AGENT, LOOK, METAL3, REDFISH, Facts, Host, Progress, Settings
from .rules import (
    AUDIT,
    CLAIM,
    DELETING,
    DONE,
    FAIL_OVER,
    FENCE,
    FENCING,
    MOVED,
    POWER_ON,
    RECOVER,
    RECOVERED,
    STOP,
    TAINT,
    WAY,
)
from .ways_rules import KEY_FACTS

# Steps that the module carries out. After each it has other facts, and asks again.
ASK_QUORUM, FIND_HOST, LOOK_AT_HOST_BEFORE = "ask_quorum", "find_host", "look_at_host_before"
LOOK_AT_EVIDENCE, TAKE_CLAIM, RECORD = "look_at_evidence", "claim", "record"
LEAVE_OUT = "leave_out"
ACTS = (ASK_QUORUM, FIND_HOST, LEAVE_OUT, LOOK_AT_HOST_BEFORE, LOOK_AT_EVIDENCE, RECORD)
# Answers of the module. ``claim`` ends the look before anything is recorded: a failover then takes the claim, and a
# recovery has it already.
GO, SKIPPED, PLANNED, REFUSE, ENDED = "go", "skipped", "planned", "refuse", "ended"
ANSWERS = (TAKE_CLAIM, GO, SKIPPED, PLANNED, REFUSE, ENDED)

# The steps of the role, in their order.
CORDON, MOVE, KEY, ASK, READY, IN_SERVICE, UNCORDON = (
    "cordon",
    "move",
    "key",
    "ask",
    "ready",
    "in_service",
    "uncordon",
)
FAILOVER_STEPS = (CORDON, FENCE, TAINT, MOVE)
RECOVER_STEPS = (KEY, POWER_ON, ASK, READY, IN_SERVICE, UNCORDON)
# After which steps the role asks what is next. Only a look precedes the record.
DONE_STEPS = {
    FAIL_OVER: (LOOK, CLAIM, CORDON, FENCE, TAINT, MOVE),
    RECOVER: (LOOK, CLAIM, POWER_ON, READY, IN_SERVICE, UNCORDON),
}

_GONE = "gone"
_STAYS = "stays"


@dataclass(frozen=True)
class Record:
    """What is recorded before the next step, or at the end.

    Attributes:
        look: Check that the node is still down.
        gate: Check that nobody holds it.
        delete_node: Delete the Node after everything else is recorded.
        deleted: The Node was deleted, so only its entry in the history is left.
        host_version: The resource version of the host, for people.
    """

    phase: str = ""
    result: str = ""
    detail: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    look: bool = False
    gate: bool = False
    delete_node: bool = False
    deleted: bool = False
    host_version: str = ""


@dataclass(frozen=True)
class Step:
    """What is next.

    Attributes:
        name: One of :data:`ACTS` or :data:`ANSWERS`.
        why: The reason as text; empty if it is obvious.
        steps: The steps of the role that follow.
        facts: What is known of the way to switch the machine off.
        then: The other ways to switch the machine off, each with its facts.
        record: What ``record`` records.
    """

    name: str
    why: str = ""
    steps: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    then: tuple[Mapping[str, Any], ...] = ()
    record: Record = field(default_factory=Record)


Rule = Callable[[Facts], "Step | None"]


def next_step(facts: Facts) -> Step:
    """The next step of a node."""
    for rule in _RULES[facts.progress.direction, facts.done]:
        step = rule(facts)
        if step is not None:
            return step
    return Step(GO)


# -- before the record ------------------------------------------------------------------------------------------------


def _quorum(facts: Facts) -> Step | None:
    asked = facts.quorum_asked or not facts.settings.quorum_command or not facts.control_plane
    return None if asked else Step(ASK_QUORUM)


def _host(facts: Facts) -> Step | None:
    if METAL3 not in facts.settings.ways or facts.progress.host:
        return None
    if facts.hosts is None:
        return Step(FIND_HOST)
    why = _why_not(facts.progress.node, facts.hosts)
    if why and facts.settings.then:
        return Step(LEAVE_OUT, why)
    return Step(REFUSE, why) if why else None


def _why_not(node: str, hosts: tuple[Host, ...]) -> str:
    """Why metal3 can't fence the node by one of these hosts."""
    if not hosts:
        return (
            f"The BareMetalHost of node {node} was not found. Nothing was changed. Set failover_bare_metal_host to its "
            "name, failover_management to reach its cluster, or failover_fence to another method."
        )
    host = hosts[0]
    place = f"{host.namespace}/{host.name}"
    if len(hosts) > 1:
        return (
            f"Several BareMetalHosts may be node {node}. Nothing was changed. Set failover_bare_metal_host_namespace."
        )
    if host.node not in (None, node):
        return (
            f"BareMetalHost {place} is node {host.node}, not {node}. Nothing was changed. Leave "
            f"failover_bare_metal_host out, or set it to the host of node {node}."
        )
    if host.why_not:
        return (
            f"BareMetalHost {place} of node {node} would not be switched off: {host.why_not}. Nothing was changed. "
            "Fix that, or set failover_fence to another method."
        )
    return ""


def _evidence_of_a_plan(facts: Facts) -> Step | None:
    looks = facts.check_mode and facts.settings.fence in (ATTESTATION, REDFISH, FENCE_AGENT)
    return Step(LOOK_AT_EVIDENCE) if looks and facts.off is None else None


def _claim(_facts: Facts) -> Step:
    return Step(TAKE_CLAIM)


# -- after the claim --------------------------------------------------------------------------------------------------


def _nothing_left(facts: Facts) -> Step | None:
    progress = facts.progress
    if progress.step != DONE:
        return None
    if progress.direction == RECOVER:
        return Step(SKIPPED, "it was not failed over" if progress.exists else "it was recovered before")
    kept = (
        f"; its Node stays, because failover_delete_node has an effect only while its workloads move: kubectl delete "
        f"node {progress.node}"
    )
    why = f"it was failed over before: {progress.operation}"
    return Step(SKIPPED, why + (kept if facts.settings.delete_node and progress.exists else ""))


def _came_back(facts: Facts) -> Step | None:
    progress = facts.progress
    if progress.step != STOP:
        return None
    return Step(
        REFUSE,
        f"Node {progress.node} came back while its failover {progress.operation} was under way: it is Ready, or has "
        f"the new boot ID {progress.boot_id}. Run it again if it is still down, or goes down again.",
    )


def _planned(facts: Facts) -> Step | None:
    return Step(PLANNED, f"the next step would be: {facts.progress.step}") if facts.check_mode else None


def _cordon(facts: Facts) -> Step:
    """If a rolling reboot has cordoned the node before, only the rolling reboot undoes that cordon."""
    return Step(GO, steps=() if facts.cordoned_by not in (None, "failover") else (CORDON,))


# -- fence ------------------------------------------------------------------------------------------------------------


def _proven_before(facts: Facts) -> Step | None:
    return Step(GO) if facts.progress.step != FENCE else None


def _another_host(facts: Facts) -> Step | None:
    """Refuse to switch another host off while the key keeps the earlier one off."""
    host, known = facts.progress.host, facts.known
    if METAL3 not in facts.settings.ways or not known.get("host"):
        return None
    if (known.get("namespace"), known["host"]) == (host["namespace"], host["name"]):
        return None
    if facts.host_before is None:
        return Step(LOOK_AT_HOST_BEFORE)
    if not any(_keeps(facts, item) for item in facts.host_before):
        return None
    return Step(
        REFUSE,
        f"The failover {facts.progress.operation} of node {facts.progress.node} started with BareMetalHost "
        f"{known['namespace']}/{known['host']}, which its key keeps off. No other host was switched off. Start it "
        "again with that host, or run the playbook recover first.",
    )


def _key_of_an_unknown_host(facts: Facts, switched: str = "off") -> Step | None:
    """Refuse while a key keeps a host off that only the node's record names.

    It may be a machine of another cluster. And the recovery would not remove the key.
    """
    why = _unproven(facts)
    if not why:
        return None
    if facts.host_before is None:
        return Step(LOOK_AT_HOST_BEFORE)
    # Without the key, there is nothing to remove.
    kept = any(_keeps(facts, host) for host in facts.host_before)
    return Step(REFUSE, f"{why} Nothing was switched {switched}.") if kept else None


def _unproven(facts: Facts) -> str:
    """Return why the host whose key is known is not known to be the node's; else empty."""
    return unknown_host(facts.progress, facts.settings) if facts.known.get("key") else ""


def _keeps(facts: Facts, host: Host) -> bool:
    """Whether the key of this failover is on the host."""
    return (facts.known.get("key"), facts.progress.node) in host.keys_for


def _off_before(facts: Facts) -> Step | None:
    """A command that an earlier run started is not started again if the machine is off."""
    if facts.settings.fence != COMMAND or not facts.progress.sent:
        return None
    if facts.off is None:
        return Step(LOOK_AT_EVIDENCE)
    if not facts.off:
        return None
    if facts.progress.stated.get("fence") or facts.recorded:
        return Step(GO, facts={"fence": COMMAND})
    # Only the node's record says how the machine was switched off.
    return Step(RECORD, record=Record(FENCING, facts=_fenced_by(facts, COMMAND), look=True))


def _attested(facts: Facts) -> Step | None:
    settings = facts.settings
    if settings.fence != ATTESTATION:
        return None
    if facts.off is None:
        return Step(LOOK_AT_EVIDENCE)
    vouched = {
        "fence": ATTESTATION,
        "attested_by": settings.attestation_by,
        "statement": settings.attestation_statement,
    }
    earlier = facts.known.get("fence")
    if facts.progress.sent and earlier not in (None, ATTESTATION):
        # The earlier request may still switch the machine off.
        vouched["requested_by"] = str(earlier)
    if not facts.recorded:
        return Step(RECORD, record=Record(FENCING, facts=vouched, look=True, gate=True))
    return Step(GO, facts=vouched)


def _fence(facts: Facts) -> Step:
    ways = [{"method": way, "facts": _fenced_by(facts, way)} for way in facts.settings.then]
    return Step(GO, steps=(FENCE,), facts=_fenced_by(facts, facts.settings.fence), then=tuple(ways))


def _fenced_by(facts: Facts, way: str) -> Mapping[str, Any]:
    """How the machine is switched off, for the way back."""
    settings, stated, host = facts.settings, facts.progress.stated, facts.progress.host
    # A node can write its own record, and what a run records of the way is trusted later.
    unproven = {name: None for name in WAY if name in facts.known and name not in stated}
    # The key of an earlier run stays, and the recovery has to remove it.
    keyed = {} if _unproven(facts) else facts.known
    kept = {name: keyed[name] for name in KEY_FACTS if name in keyed} if keyed.get("key") else {}
    known = {**unproven, **kept, "fence": way}
    if way == REDFISH:
        return {**known, "uri": settings.redfish_uri}
    if way == FENCE_AGENT:
        return {**known, **settings.agent}
    if way == COMMAND:
        return known
    return {
        **known,
        "host": host["name"],
        "namespace": host["namespace"],
        "key": kept.get("key") or settings.key,
        "mode": "hard" if settings.soft_timeout == 0 else kept.get("mode") or "soft",
    }


# -- taint and move ---------------------------------------------------------------------------------------------------


def _taint(facts: Facts) -> Step:
    version = str(facts.result.get("resource_version") or "")
    return _recorded(facts, Record("taint", look=True, host_version=version), TAINT)


def _move(facts: Facts) -> Step:
    found = {name: facts.result.get(name) for name in ("evidence", "pods", "volume_attachments")}
    return _recorded(facts, Record("move", facts=found), MOVE)


def _moved(facts: Facts) -> Step:
    if facts.recorded:
        return Step(ENDED)
    pods, attachments = contents(facts.progress, facts.result)
    delete = facts.settings.delete_node
    return Step(
        RECORD,
        # If the node came back meanwhile, it is no longer proven off.
        record=Record(
            DELETING if delete else "move",
            result=MOVED,
            detail=_detail(facts.result["pods"], pods, attachments),
            facts={"pods": pods, "volume_attachments": attachments},
            look=True,
            delete_node=delete,
        ),
    )


def contents(progress: Progress, now: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The pods and VolumeAttachments of the node since it was declared out of service.

    What a task or an earlier run has seen, and no longer exists, is gone.
    """
    known = progress.facts
    pods = [*(known.get("pods") or []), *progress.pods]
    attachments = [*(known.get("volume_attachments") or []), *progress.volume_attachments]
    return (
        _with_gone(now["pods"], pods, "uid", {"state": _GONE, "reason": ""}),
        _with_gone(now["volume_attachments"], attachments, "name", {"state": _GONE}),
    )


def _with_gone(
    now: Iterable[Mapping[str, Any]], before: Iterable[Mapping[str, Any]], key: str, gone: Mapping[str, str]
) -> list[dict[str, Any]]:
    there = {item[key]: dict(item) for item in now}
    earlier = {item[key]: {**item, **gone} for item in reversed(list(before)) if item[key] not in there}
    return [*there.values(), *reversed(earlier.values())]


def _detail(now: Iterable[Mapping[str, Any]], pods: list[dict[str, Any]], attachments: list[dict[str, Any]]) -> str:
    def count(items: list[dict[str, Any]], what: str) -> str:
        number = sum(item["state"] == _GONE for item in items)
        return f"{number} {what}{'' if number == 1 else 's'}"

    staying = [f"{item['namespace']}/{item['name']} ({item['reason']})" for item in now if item["state"] == _STAYS]
    told = f"; these stay: {some(staying)}" if staying else ""
    return f"{count(pods, 'pod')} and {count(attachments, 'VolumeAttachment')} gone{told}"


# -- back -------------------------------------------------------------------------------------------------------------


def replaced(facts: Facts) -> Step | None:
    """Keep a host off whose Node may be another machine now: two kubelets would have one identity."""
    if not facts.booted or not facts.known.get("key") or facts.settings.force:
        return None
    if facts.host_before is None:
        return Step(LOOK_AT_HOST_BEFORE)
    if not any(_keeps(facts, host) and host.powered_on is False for host in facts.host_before):
        return None
    node, host = facts.progress.node, f"{facts.known['namespace']}/{facts.known['host']}"
    return Step(
        REFUSE,
        f"Node {node} has booted since its failover, but the status of BareMetalHost {host}, which the failover "
        f"switched off, shows that it is still off. If other hardware runs as node {node} now, {host} would start with "
        f"the same name and credentials. Nothing was switched on. Find out which machine runs as node {node}. If it is "
        f"{host}, whose status is then old, or none, set failover_force. If it is other hardware, delete or "
        f"deprovision {host}; after a deprovisioning, the playbook holdfast.kubernetes.doctor removes the key. Then "
        "run the playbook holdfast.kubernetes.recover.",
    )


def _another_machine(facts: Facts) -> Step | None:
    """Check that the machine is known, and is the one that was switched off.

    The user's credentials go to this URL. Only the user and the history decide about it: a node can write its record.
    """
    if facts.progress.step != POWER_ON or facts.known.get("fence") != REDFISH:
        return None
    given, known, kept = (
        text.rstrip("/")
        for text in (
            facts.settings.redfish_uri,
            str(facts.known.get("uri") or ""),
            str(facts.progress.stated.get("uri") or ""),
        )
    )
    node = facts.progress.node
    if given and kept and given != kept:
        return Step(
            REFUSE,
            f"Node {node} was switched off at {kept}, and failover_redfish_uri is another URL. Nothing was switched "
            "on. Leave it out, or give that one.",
        )
    if given or kept:
        return None
    if not known:
        return Step(
            REFUSE,
            f"Node {node} was switched off at an unknown URL, and failover_redfish_uri is not set. Nothing was "
            "switched on. Set it to the URL of the machine.",
        )
    return Step(
        REFUSE,
        f"The annotation {FAILOVER} of Node {node} says that it was switched off at {known}, but the ConfigMap "
        f"{NAMESPACE}/{AUDIT} does not say so. A node can write its own annotations, so no credentials were sent. "
        "Nothing was switched on. Find out which URL is that of the machine, and set failover_redfish_uri to it.",
    )


def _another_host_back(facts: Facts) -> Step | None:
    return _key_of_an_unknown_host(facts, "on") if facts.progress.step == POWER_ON else None


def unknown_host(progress: Progress, settings: Settings) -> str:
    """Return why the key must not be removed from the host: only the Node's record names that host; else empty."""
    node, known, found, stated = progress.node, progress.facts, progress.host, progress.stated
    namespace, name = host = (known.get("namespace"), known.get("host"))
    by_run, by_history = (found.get("namespace"), found.get("name")), (stated.get("namespace"), stated.get("host"))
    # Another cluster may have a host of the same name in another namespace.
    by_user = (settings.bare_metal_host_namespace, settings.bare_metal_host)
    if all(host) and host in (by_run, by_history, by_user):
        return ""
    place = f"{namespace}/{name}"
    return (
        f"The annotation {FAILOVER} of Node {node} says that its failover keeps BareMetalHost {place} off, but the "
        f"ConfigMap {NAMESPACE}/{AUDIT} does not say so. A node can write its own annotations, so the key stays. Find "
        f"out which host the machine is. If it is {place}, add -e failover_bare_metal_host={name} "
        f"-e failover_bare_metal_host_namespace={namespace}, or remove the annotation {BASE}/{known.get('key')} from "
        f"that host. Otherwise remove the annotation of the Node (kubectl annotate node {node} {FAILOVER}-). Then run "
        "the playbook holdfast.kubernetes.recover."
    )


def _another_agent(facts: Facts) -> Step | None:
    """Check that the fence agent is the one that switched the machine off."""
    known = {name: str(facts.known.get(name) or "") for name in ("agent", "plug")}
    if facts.progress.step != POWER_ON or facts.known.get("fence") != FENCE_AGENT or facts.settings.agent == known:
        return None
    given = "names another one" if facts.settings.agent else "is not set"
    plug = f" with plug {known['plug']}" if known["plug"] else ""
    return Step(
        REFUSE,
        f"Node {facts.progress.node} was switched off by fence agent {known['agent'] or '-'}{plug}, and "
        f"failover_fence_agent {given}. Nothing was switched on. Set it as for the failover.",
    )


def _nobody_switches_it_on(facts: Facts) -> Step | None:
    """No Node shows whether a person has switched the machine on."""
    if facts.progress.exists or facts.known.get("key") or not _by_a_person(facts):
        return None
    by_command = facts.known["fence"] == COMMAND
    how = "by a command: set failover_power_on_command" if by_command else "by a person: ask this person"
    return Step(
        REFUSE,
        f"Node {facts.progress.node} was deleted after its failover, and its machine was switched off {how}, or switch "
        "it on yourself. Nothing was switched on.",
    )


def _by_a_person(facts: Facts) -> bool:
    fence = facts.known.get("fence")
    return fence == ATTESTATION or (fence == COMMAND and not facts.settings.power_on_command)


def _power_on(facts: Facts) -> Step:
    """The counterpart of what fenced the node, as it was recorded."""
    if facts.progress.exists and not facts.recorded:
        return Step(RECORD, record=Record(POWER_ON))
    known, on = facts.known, facts.progress.may_be_on_already
    by_us = known.get("fence") in (REDFISH, FENCE_AGENT) or (
        known.get("fence") == COMMAND and facts.settings.power_on_command
    )
    # The key goes in any case.
    steps = (*((KEY,) if known.get("key") else ()), *((POWER_ON,) if by_us and not on else ()))
    return Step(GO, steps=steps)


def _of_a_deleted_node(facts: Facts) -> Step | None:
    """No Node can be claimed or untainted. Its kubelet creates a new one when it is back."""
    if facts.progress.exists:
        return None
    if facts.recorded:
        return Step(ENDED)
    # Nothing waits for the machine, so nothing else finds that the key still keeps it off.
    result, keys = facts.result, facts.result.get("keys", ())
    if stays := next((item["annotation"] for item in keys if item["key"] == facts.known.get("key")), ""):
        place = f"{result['namespace']}/{result['host']}"
        return Step(
            REFUSE,
            f"Node {facts.progress.node} was deleted after its failover, and the annotation {stays} of BareMetalHost "
            f"{place} still keeps its machine off. The warning of the task before says why the annotation stays. If "
            "nobody else needs the machine off, remove it and run this again: kubectl annotate baremetalhost -n "
            f"{result['namespace']} {result['host']} {stays}-",
        )
    detail = "its Node was deleted, so only its host was released"
    return Step(RECORD, record=Record(result=RECOVERED, detail=detail, deleted=True))


def _ready(facts: Facts) -> Step:
    if not facts.recorded:
        return Step(RECORD, record=Record(READY, host_version=str(facts.result.get("resource_version") or "")))
    asks = _by_a_person(facts) and not facts.progress.may_be_on_already and not facts.result.get("powered_on")
    why = (
        f"Switch node {facts.progress.node} on now: the role waits for it, {facts.settings.ready_timeout} s at most."
        if asks
        else ""
    )
    return Step(GO, why, steps=((ASK, READY) if asks else (READY,)))


def _never_off(facts: Facts) -> Step | None:
    """The node was not Ready when it got the taint, so the kubelet of this boot has reported Ready since."""
    before, now = facts.progress.boot_id_before, str(facts.result.get("boot_id") or "")
    if facts.settings.force or not before or now not in ("", before):
        return None
    return Step(
        REFUSE,
        f"Node {facts.progress.node} is Ready, but its boot ID is still {now}, so it was never off: the evidence was "
        "wrong, and its old pods may still run next to the new ones. The taint stays. Check these pods; then reboot "
        "the node and run this again, or set failover_force to remove the taint despite that.",
    )


def _in_service(facts: Facts) -> Step:
    return _recorded(facts, Record(IN_SERVICE), IN_SERVICE)


def _uncordon(facts: Facts) -> Step:
    # Only a removal by a run of this failover counts, not one of an earlier failover.
    removed = (facts.result.get("evidence") or {}).get("removed") or {}
    forced = removed.get("forced") and removed.get("run") in facts.progress.runs
    return _recorded(facts, Record(UNCORDON, facts={"forced": True} if forced else {}), UNCORDON)


def _back(facts: Facts) -> Step:
    if facts.recorded:
        return Step(ENDED)
    boot_id = facts.progress.boot_id_after
    stays = "; the out-of-service taint stays, because someone else had added it before"
    detail = f"it is Ready with boot ID {boot_id}{stays if facts.progress.taint_stays else ''}"
    return Step(RECORD, record=Record(result=RECOVERED, detail=detail, facts={"boot_id_after": boot_id}))


def _recorded(facts: Facts, record: Record, step: str) -> Step:
    """The step of the role, once its phase is recorded."""
    return Step(GO, steps=(step,)) if facts.recorded else Step(RECORD, record=record)


_RULES: Mapping[tuple[str, str], tuple[Rule, ...]] = {
    (FAIL_OVER, LOOK): (_quorum, _host, _evidence_of_a_plan, _claim),
    (FAIL_OVER, CLAIM): (_nothing_left, _came_back, _planned, _cordon),
    (FAIL_OVER, CORDON): (
        _proven_before,
        _quorum,
        _host,
        _another_host,
        _key_of_an_unknown_host,
        _attested,
        _off_before,
        _fence,
    ),
    (FAIL_OVER, FENCE): (_taint,),
    (FAIL_OVER, TAINT): (_move,),
    (FAIL_OVER, MOVE): (_moved,),
    (RECOVER, LOOK): (replaced, _claim),
    (RECOVER, CLAIM): (
        _nothing_left,
        _another_machine,
        _another_agent,
        _another_host_back,
        _planned,
        _nobody_switches_it_on,
        _power_on,
    ),
    (RECOVER, POWER_ON): (_of_a_deleted_node, _ready),
    (RECOVER, READY): (_never_off, _in_service),
    (RECOVER, IN_SERVICE): (_uncordon,),
    (RECOVER, UNCORDON): (_back,),
}

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.facts_rules import (
    Facts,
    Host,
    Progress,
    Settings,
    progress_of,
    settings_of,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._failover.journey_rules import (
    ACTS,
    ANSWERS,
    DONE_STEPS,
    FAILOVER_STEPS,
    RECOVER_STEPS,
    contents,
    next_step,
)

HOST = Host("unit-7", "metal", "node-1")
PLACE = {"namespace": "metal", "name": "unit-7"}
VOUCHED = {"fence": "attestation", "attestation_by": "Ada", "attestation_statement": "node-1 is off"}
BY_ADA = {"fence": "attestation", "attested_by": "Ada", "statement": "node-1 is off"}
POD = {"uid": "a", "namespace": "shop", "name": "db-0", "state": "left"}
VOLUME = {"name": "csi-1", "state": "left"}
PDU = {"agent": "fence_pdu", "plug": "7"}
BY_AGENT = {"fence": "fence_agent", **PDU}
KEY_NEVER_WRITTEN = {"host": None, "namespace": None, "key": None, "mode": None}
KEPT_OFF = {"fence": "metal3", "host": "unit-7", "namespace": "metal", "key": "k"}
OFF = replace(HOST, keys_for=(("k", "node-1"),), powered_on=False)
STAYS = {**KEPT_OFF, "keys": [{"key": "", "annotation": "reboot.metal3.io"}, {"key": "k", "annotation": "of.key/k"}]}


def forward(done, step="fence", *, settings=None, facts=None, **more):
    known = {"known": more.pop("known", {}), "sent": more.pop("sent", False), "host": more.pop("host", PLACE)}
    known["stated"] = more.pop("stated", {})
    progress = Progress("node-1", "failover", "r/node-1", step, "op", facts=known.pop("known"), **known)
    return Facts(Settings(**(settings or {})), progress, done, **more)


AT_BMC = {"fence": "redfish", "uri": "https://a/1/"}


def back(done, known=None, *, step="power_on", settings=None, **more):
    names = set(more) & {
        "exists",
        "stated",
        "boot_id",
        "record_boot_id",
        "boot_id_before",
        "runs",
        "boot_id_after",
        "taint_stays",
    }
    found = {name: more.pop(name) for name in names}
    # The history has the host that the failover has recorded.
    host = {name: value for name, value in (known or {}).items() if name in ("host", "namespace")}
    found["stated"] = {**host, **found.get("stated", {})}
    progress = Progress("node-1", "recover", "r/node-1", step, "op", facts=known or {}, **found)
    return Facts(Settings(**(settings or {})), progress, done, **more)


@pytest.mark.parametrize(
    ("facts", "name", "words"),
    [
        # Before the claim.
        (forward("look", host={}), "find_host", ""),
        (forward("look", host={}, hosts=()), "refuse", "The BareMetalHost of node node-1 was not found"),
        (forward("look", host={}, hosts=(HOST, HOST)), "refuse", "Several BareMetalHosts may be node node-1"),
        (forward("look", host={}, hosts=(replace(HOST, node="b"),)), "refuse", "metal/unit-7 is node b, not node-1"),
        (forward("look", host={}, hosts=(replace(HOST, node=None),)), "claim", ""),
        (forward("look", host={}, hosts=(replace(HOST, why_not="it is paused"),)), "refuse", "it is paused"),
        (forward("look", settings={"fence": "command"}), "claim", ""),
        (forward("look", settings={"quorum_command": True}, control_plane=True), "ask_quorum", ""),
        (forward("look", settings={"quorum_command": True}), "claim", ""),
        (forward("look", control_plane=True), "claim", ""),
        (forward("look", settings={"fence": "redfish"}, check_mode=True), "look_at_evidence", ""),
        (forward("look", settings={"fence": "command"}, check_mode=True), "claim", ""),
        (forward("look", settings={"fence": "attestation"}), "claim", ""),
        (forward("look", settings={"fence": "fence_agent"}, check_mode=True), "look_at_evidence", ""),
        # One of several ways that can't be taken is left out.
        (forward("look", host={}, hosts=(), settings={"then": ("redfish",)}), "leave_out", "was not found"),
        (forward("look", host={}, settings={"fence": "redfish", "then": ("metal3",)}), "find_host", ""),
        (forward("look", host={}, hosts=(HOST,), settings={"then": ("redfish",)}), "claim", ""),
        # After the claim.
        (forward("claim", "done"), "skipped", "it was failed over before: op"),
        (forward("claim", "done", settings={"delete_node": True}), "skipped", "kubectl delete node node-1"),
        (back("power_on", {"fence": "attestation"}, recorded=True), "go", "Switch node node-1 on now"),
        (
            back(
                "claim",
                {"fence": "redfish", "uri": "https://a/1"},
                settings={"redfish_uri": "https://a/2"},
                stated={"fence": "redfish", "uri": "https://a/1"},
            ),
            "refuse",
            "Leave it out, or give that one.",
        ),
        (back("claim", {"fence": "redfish"}), "refuse", "Set it to the URL of the machine."),
        (forward("claim", "stop"), "refuse", "came back while its failover op was under way"),
        (forward("claim", "stop", check_mode=True), "refuse", "came back"),
        (forward("claim", "taint", check_mode=True), "planned", "the next step would be: taint"),
        # Fence.
        (forward("cordon", settings={"quorum_command": True}, control_plane=True), "ask_quorum", ""),
        (forward("cordon", host={}), "find_host", ""),
        (forward("cordon", known={**KEPT_OFF, "host": "unit-8"}), "look_at_host_before", ""),
        (
            forward(
                "cordon",
                known={**KEPT_OFF, "host": "unit-8"},
                host_before=(Host("unit-8", "metal", keys_for=(("k", "node-1"),)),),
            ),
            "refuse",
            "started with BareMetalHost metal/unit-8",
        ),
        (forward("cordon", settings={"fence": "attestation"}), "look_at_evidence", ""),
        (forward("cordon", settings={"fence": "attestation"}, off=True), "record", ""),
        (forward("cordon", settings={"fence": "command"}, sent=True), "look_at_evidence", ""),
        (forward("move", result={"pods": [], "volume_attachments": []}), "record", ""),
        (forward("move", recorded=True), "ended", ""),
        # Back.
        (back("look", KEPT_OFF, booted=True), "look_at_host_before", ""),
        (back("look", KEPT_OFF, booted=True, host_before=(OFF,)), "refuse", "If other hardware runs as node node-1"),
        (back("look", KEPT_OFF, booted=True, host_before=(OFF,), settings={"force": True}), "claim", ""),
        # The key is gone, belongs to another node, or has had no effect yet.
        (back("look", KEPT_OFF, booted=True, host_before=()), "claim", ""),
        (back("look", KEPT_OFF, booted=True, host_before=(replace(OFF, keys_for=()),)), "claim", ""),
        (back("look", KEPT_OFF, booted=True, host_before=(replace(OFF, keys_for=(("k", "b"),)),)), "claim", ""),
        (back("look", KEPT_OFF, booted=True, host_before=(replace(OFF, powered_on=True),)), "claim", ""),
        (back("look", KEPT_OFF), "claim", ""),
        (back("look", AT_BMC, booted=True), "claim", ""),
        (back("claim", step="done"), "skipped", "it was not failed over"),
        (back("claim", step="done", exists=False), "skipped", "it was recovered before"),
        (
            back("claim", {"fence": "redfish"}),
            "refuse",
            "switched off at an unknown URL, and failover_redfish_uri is not",
        ),
        (
            back("claim", AT_BMC, settings={"redfish_uri": "https://a/17"}, stated=AT_BMC),
            "refuse",
            "failover_redfish_uri is another URL",
        ),
        (back("claim", AT_BMC, stated={"fence": "redfish", "uri": "https://a/1"}), "record", ""),
        (back("claim", {"fence": "redfish"}, stated=AT_BMC), "record", ""),
        # A node can write its own record, and the credentials go to this URL.
        (back("claim", AT_BMC), "refuse", "the ConfigMap holdfast/failovers does not say so"),
        # The history has no URL, so the user decides.
        (back("claim", AT_BMC, settings={"redfish_uri": "https://a/1"}), "record", ""),
        (back("claim", AT_BMC, settings={"redfish_uri": "https://b/1"}), "record", ""),
        (back("claim", {"fence": "attestation"}, exists=False), "refuse", "by a person: ask this person"),
        (
            back("claim", BY_AGENT),
            "refuse",
            "by fence agent fence_pdu with plug 7, and failover_fence_agent is not set",
        ),
        (back("claim", BY_AGENT, settings={"agent": {**PDU, "plug": "8"}}), "refuse", "names another one"),
        (back("claim", BY_AGENT, settings={"agent": PDU}), "record", ""),
        (back("claim", {**AT_BMC, **KEY_NEVER_WRITTEN}, exists=False, stated=AT_BMC), "go", ""),
        (back("claim", {"fence": "command"}, exists=False), "refuse", "set failover_power_on_command"),
        (back("claim", KEPT_OFF, check_mode=True), "planned", "the next step would be: power_on"),
        (back("power_on", exists=False), "record", ""),
        (back("power_on", KEPT_OFF, exists=False, result={**STAYS, "keys": STAYS["keys"][:1]}), "record", ""),
        (
            back("power_on", KEPT_OFF, exists=False, result=STAYS),
            "refuse",
            "the annotation of.key/k of BareMetalHost metal/unit-7 still keeps its machine off",
        ),
        # A machine that stays off is found by the wait for its Node.
        (back("power_on", KEPT_OFF, result=STAYS), "record", ""),
        (back("ready", boot_id_before="b1", result={"boot_id": "b1"}), "refuse", "so it was never off"),
        (back("ready", boot_id_before="b1", result={"boot_id": ""}), "refuse", "so it was never off"),
        (back("ready", boot_id_before="b1", result={"boot_id": "b2"}), "record", ""),
        (back("ready", boot_id_before="", result={"boot_id": "b1"}), "record", ""),
        (back("ready", boot_id_before="b1", result={"boot_id": "b1"}, settings={"force": True}), "record", ""),
        (back("uncordon", recorded=True), "ended", ""),
    ],
)
def test_the_next_step(facts, name, words):
    step = next_step(facts)
    assert step.name == name
    assert words in step.why


@pytest.mark.parametrize(
    "facts",
    [
        forward("claim", "done"),
        # No Node is left that could stay.
        replace(
            forward("claim", "done", settings={"delete_node": True}),
            progress=Progress("node-1", step="done", exists=False),
        ),
    ],
)
def test_a_node_that_stays_is_named_only_if_it_was_to_be_deleted(facts):
    assert "kubectl" not in next_step(facts).why


@pytest.mark.parametrize(
    ("facts", "known"),
    [
        (forward("cordon", settings=VOUCHED, off=True, recorded=True), BY_ADA),
        (
            forward("cordon", settings=VOUCHED, off=True, recorded=True, sent=True, known={"fence": "redfish"}),
            {**BY_ADA, "requested_by": "redfish"},
        ),
        (
            forward("cordon", settings=VOUCHED, off=True, recorded=True, known={"fence": "redfish"}),
            BY_ADA,
        ),
        (
            forward("cordon", settings=VOUCHED, off=True, recorded=True, sent=True, known={"fence": "attestation"}),
            BY_ADA,
        ),
        (
            forward("cordon", settings={"fence": "command"}, sent=True, off=True, stated={"fence": "redfish"}),
            {"fence": "command"},
        ),
        (forward("cordon", settings={"fence": "command"}, sent=True, off=True, recorded=True), {"fence": "command"}),
        (forward("cordon", settings={"fence": "command"}), {"fence": "command"}),
        (forward("cordon", settings={"fence": "redfish", "redfish_uri": "u"}), {"fence": "redfish", "uri": "u"}),
    ],
)
def test_what_is_known_of_the_way_to_fence(facts, known):
    step = next_step(facts)
    assert (step.name, step.facts) == ("go", known)


@pytest.mark.parametrize(
    ("facts", "steps"),
    [
        (forward("claim"), ["cordon"]),
        (forward("claim", cordoned_by="failover"), ["cordon"]),
        (forward("claim", cordoned_by="rolling_reboot"), []),
        (forward("cordon", "taint"), []),
        (forward("cordon"), ["fence"]),
        (forward("cordon", known=KEPT_OFF), ["fence"]),
        (forward("cordon", known={**KEPT_OFF, "host": "unit-8"}, host_before=()), ["fence"]),
        (forward("cordon", settings={"fence": "attestation"}, off=True, recorded=True), []),
        (forward("cordon", settings={"fence": "command"}), ["fence"]),
        (forward("cordon", settings={"fence": "command"}, sent=True, off=True, stated={"fence": "command"}), []),
        (forward("cordon", settings={"fence": "command"}, sent=True, off=False), ["fence"]),
        (forward("fence", recorded=True), ["taint"]),
        (forward("taint", recorded=True), ["move"]),
        (back("claim", KEPT_OFF, recorded=True), ["key"]),
        (back("claim", KEPT_OFF, exists=False), ["key"]),
        (back("claim", AT_BMC, stated=AT_BMC, recorded=True), ["power_on"]),
        (back("claim", {**KEPT_OFF, **AT_BMC}, stated=AT_BMC, recorded=True), ["key", "power_on"]),
        (back("claim", {"fence": "command"}, recorded=True), []),
        (back("claim", {"fence": "command"}, settings={"power_on_command": True}, recorded=True), ["power_on"]),
        # It has booted since it was proven to be off.
        (
            back(
                "claim",
                AT_BMC,
                stated=AT_BMC,
                boot_id="b2",
                record_boot_id="b1",
                boot_id_before="b1",
                recorded=True,
            ),
            [],
        ),
        # It was never proven to be off.
        (
            back("claim", AT_BMC, stated=AT_BMC, boot_id="b2", record_boot_id="b1", recorded=True),
            ["power_on"],
        ),
        (back("power_on", {"fence": "attestation"}, recorded=True), ["ask", "ready"]),
        (back("power_on", {"fence": "command"}, recorded=True, result={"powered_on": True}), ["ready"]),
        (back("power_on", KEPT_OFF, recorded=True), ["ready"]),
        (back("ready", recorded=True), ["in_service"]),
        (back("in_service", recorded=True), ["uncordon"]),
    ],
)
def test_the_steps_that_follow(facts, steps):
    step = next_step(facts)
    assert (step.name, list(step.steps)) == ("go", steps)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (forward("fence", result={"resource_version": "7"}), {"phase": "taint", "look": True, "host_version": "7"}),
        (forward("fence", result={"skipped": True}), {"phase": "taint", "look": True, "host_version": ""}),
        (
            forward("cordon", settings=VOUCHED, off=True),
            {"phase": "fence", "look": True, "gate": True, "facts": BY_ADA},
        ),
        (
            forward("taint", result={"evidence": {"kind": "Command"}, "pods": [POD], "volume_attachments": [VOLUME]}),
            {
                "phase": "move",
                "result": "",
                "facts": {"evidence": {"kind": "Command"}, "pods": [POD], "volume_attachments": [VOLUME]},
            },
        ),
        (
            forward(
                "move",
                known={"volume_attachments": [VOLUME]},
                result={"pods": [{**POD, "state": "gone"}], "volume_attachments": []},
            ),
            {
                "phase": "move",
                "result": "moved",
                "detail": "1 pod and 1 VolumeAttachment gone",
                "facts": {"pods": [{**POD, "state": "gone"}], "volume_attachments": [{**VOLUME, "state": "gone"}]},
                "delete_node": False,
                "look": True,
            },
        ),
        (
            forward("move", settings={"delete_node": True}, result={"pods": [], "volume_attachments": []}),
            {"phase": "delete", "result": "moved", "delete_node": True, "look": True},
        ),
        (
            forward("cordon", settings={"fence": "command"}, sent=True, off=True, known=AT_BMC),
            {"phase": "fence", "look": True, "facts": {"fence": "command", "uri": None}},
        ),
        (back("claim", KEPT_OFF), {"phase": "power_on", "look": False}),
        (
            back("power_on", exists=False),
            {
                "phase": "",
                "result": "recovered",
                "detail": "its Node was deleted, so only its host was released",
                "deleted": True,
            },
        ),
        (back("power_on", result={"resource_version": "7"}), {"phase": "ready", "host_version": "7"}),
        (back("power_on"), {"phase": "ready", "host_version": ""}),
        (back("ready", result={"boot_id": "b2"}), {"phase": "in_service", "result": ""}),
        (
            back("in_service", runs=("r1",), result={"evidence": {"removed": {"forced": True, "run": "r1"}}}),
            {"phase": "uncordon", "facts": {"forced": True}},
        ),
        (
            back("in_service", runs=("r2",), result={"evidence": {"removed": {"forced": True, "run": "r1"}}}),
            {"phase": "uncordon", "facts": {}},
        ),
        (
            back("uncordon", boot_id_after="b2", taint_stays=True),
            {
                "result": "recovered",
                "detail": "it is Ready with boot ID b2; the out-of-service taint stays, because someone "
                "else had added it before",
                "facts": {"boot_id_after": "b2"},
            },
        ),
        (back("uncordon", boot_id_after="b2"), {"result": "recovered", "detail": "it is Ready with boot ID b2"}),
    ],
)
def test_what_is_recorded(facts, expected):
    step = next_step(facts)
    assert step.name == "record"
    assert {name: getattr(step.record, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("soft_timeout", "known", "mode"), [(120, {}, "soft"), (0, {}, "hard"), (120, {**KEPT_OFF, "mode": "hard"}, "hard")]
)
def test_a_host_is_switched_off_hard_if_it_was_before(soft_timeout, known, mode):
    step = next_step(
        forward("cordon", settings={"soft_timeout": soft_timeout, "key": "mine"}, known=known, stated=known)
    )
    # The key of an earlier run stays: another one would keep the host off, too.
    key = known.get("key", "mine")
    assert step.facts == {"fence": "metal3", "host": "unit-7", "namespace": "metal", "key": key, "mode": mode}


@pytest.mark.parametrize("known", [{}, KEPT_OFF])
def test_the_key_of_an_earlier_run_stays_known_if_another_way_is_tried(known):
    """metal3 fails before it sends anything, and then nothing is known of its own request."""
    settings = {"then": ("redfish", "command"), "redfish_uri": "https://a/1"}
    facts = forward("cordon", settings=settings, known=known, stated=known)
    redfish, command = (way["facts"] for way in next_step(facts).then)
    kept = {name: known[name] for name in ("host", "namespace", "key", "mode") if name in known}
    assert redfish == {"fence": "redfish", "uri": "https://a/1", **kept}
    assert command == {"fence": "command", **kept}


def test_what_is_not_there_any_more_is_gone():
    progress = Progress(facts={"pods": [{"uid": "a", "state": "left"}]}, pods=({"uid": "b", "state": "left"},))
    pods, _attachments = contents(progress, {"pods": [{"uid": "b", "state": "stays"}], "volume_attachments": []})
    assert pods == [{"uid": "b", "state": "stays"}, {"uid": "a", "state": "gone", "reason": ""}]


def test_a_pod_that_stays_is_named():
    stays = {"uid": "a", "namespace": "shop", "name": "db-0", "state": "stays", "reason": "it tolerates the taint"}
    step = next_step(forward("move", result={"pods": [stays], "volume_attachments": [{"name": "v", "state": "gone"}]}))
    detail = "0 pods and 1 VolumeAttachment gone; these stay: shop/db-0 (it tolerates the taint)"
    assert step.record.detail == detail


# -- properties over all facts ----------------------------------------------------------------------------------------

_ANY = {
    "failover": st.sampled_from(["fence", "taint", "stop", "done"]),
    "recover": st.sampled_from(["power_on", "done"]),
}


@st.composite
def every(draw):
    direction = draw(st.sampled_from(["failover", "recover"]))
    fence = draw(st.sampled_from(["metal3", "redfish", "fence_agent", "command", "attestation"]))
    then = () if fence == "attestation" else draw(st.sampled_from([(), ("redfish",), ("metal3", "fence_agent")]))
    maybe = st.booleans()
    known = draw(
        st.sampled_from([{}, KEPT_OFF, {**KEPT_OFF, "host": "unit-8"}, {"fence": fence, "uri": "https://a/1"}])
    )
    progress = Progress(
        "node-1",
        direction,
        "r/node-1",
        draw(_ANY[direction]),
        "op",
        exists=draw(maybe),
        facts=known,
        boot_id=draw(st.sampled_from(["", "b1", "b2"])),
        record_boot_id=draw(st.sampled_from([None, "b1"])),
        boot_id_before=draw(st.sampled_from(["", "b1"])),
        sent=draw(maybe),
        host=draw(st.sampled_from([{}, PLACE])),
    )
    settings = Settings(
        fence=fence,
        then=tuple(way for way in then if way != fence),
        agent=draw(st.sampled_from([{}, PDU])),
        delete_node=draw(maybe),
        force=draw(maybe),
        quorum_command=draw(maybe),
        power_on_command=draw(maybe),
        soft_timeout=draw(st.sampled_from([0, 120])),
    )
    return Facts(
        settings,
        progress,
        draw(st.sampled_from(DONE_STEPS[direction])),
        draw(maybe),
        draw(maybe),
        cordoned_by=draw(st.sampled_from([None, "failover", "rolling_reboot"])),
        booted=draw(maybe),
        result={"pods": [], "volume_attachments": [], "boot_id": draw(st.sampled_from(["", "b1", "b2"]))},
    )


def carried_out(facts, step):
    """The facts after an act that found what lets the journey go on."""
    found = {
        "ask_quorum": {"quorum_asked": True},
        "find_host": {"hosts": (HOST,), "progress": replace(facts.progress, host=PLACE)},
        "look_at_host_before": {"host_before": ()},
        "look_at_evidence": {"off": True},
        "record": {"recorded": True},
    }
    if step.name == "leave_out":
        return replace(facts, settings=facts.settings.by(*(way for way in facts.settings.ways if way != "metal3")))
    return replace(facts, **found[step.name])


@given(every())
def test_every_act_is_carried_out_once(facts):
    acts = []
    while (step := next_step(facts)).name in ACTS:
        acts.append(step.name)
        facts = carried_out(facts, step)
    assert len(acts) == len(set(acts))
    assert step.name in ANSWERS
    assert (step.name == "claim") == (facts.done == "look" and step.name != "refuse")


def test_no_person_is_asked_for_what_the_role_does():
    assert next_step(back("power_on", KEPT_OFF, recorded=True)).why == ""


@given(every())
def test_the_steps_are_those_of_the_direction_in_their_order(facts):
    step = next_step(facts)
    order = FAILOVER_STEPS if facts.progress.direction == "failover" else RECOVER_STEPS
    assert list(step.steps) == sorted(step.steps, key=order.index)


@given(every())
def test_nothing_is_recorded_before_the_claim_or_in_check_mode(facts):
    if facts.done == "look" or (facts.done == "claim" and facts.check_mode):
        step = next_step(facts)
        assert step.name not in ("record", "go", "ended")


@given(every())
def test_the_machine_is_switched_off_only_without_proof_that_it_is_off(facts):
    step = next_step(facts)
    if "fence" in step.steps:
        assert facts.progress.step == "fence"
        assert not (facts.settings.fence == "command" and facts.off)
        assert facts.settings.fence != "attestation"
        assert facts.quorum_asked or not (facts.control_plane and facts.settings.quorum_command)


@given(every())
@example(forward("fence"))
def test_the_node_is_looked_at_before_each_step_that_is_not_undone(facts):
    step = next_step(facts)
    if step.name == "record" and step.record.phase in ("fence", "taint", "delete"):
        assert step.record.look
    if step.record.phase == "fence":
        assert step.record.gate


@given(every())
def test_the_progress_survives_a_task(facts):
    assert progress_of(json.loads(json.dumps(facts.progress.to_data()))) == facts.progress


def test_settings_are_those_of_the_role():
    assert settings_of({"fence": "command", "report": "/x", "key": None}) == Settings(fence="command")
    assert settings_of({"fence": ["redfish", "metal3", "redfish"]}) == Settings(fence="redfish", then=("metal3",))
    assert settings_of({}) == settings_of({"fence": []}) == Settings()


def test_each_way_says_how_the_machine_is_switched_on_again():
    settings = {"fence": "metal3", "then": ("redfish", "fence_agent", "command"), "redfish_uri": "u", "agent": PDU}
    step = next_step(forward("cordon", settings=settings))
    assert step.steps == ("fence",)
    assert (step.facts["fence"], step.facts["host"]) == ("metal3", "unit-7")
    assert step.then == (
        {"method": "redfish", "facts": {"fence": "redfish", "uri": "u"}},
        {"method": "fence_agent", "facts": BY_AGENT},
        {"method": "command", "facts": {"fence": "command"}},
    )


@pytest.mark.parametrize(
    ("known", "steps"),
    [
        (BY_AGENT, ("power_on",)),
        ({**BY_AGENT, **KEY_NEVER_WRITTEN}, ("power_on",)),
        ({**BY_AGENT, "key": "k", "host": "unit-7", "namespace": "metal"}, ("key", "power_on")),
    ],
)
def test_the_way_back_of_a_fence_agent(known, steps):
    assert next_step(back("claim", known, settings={"agent": PDU}, recorded=True)).steps == steps

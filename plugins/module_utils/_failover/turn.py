# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say what is next in the failover of a node or on its way back, and record what was done.

Nothing is decided here: see :mod:`.journey_rules` and :mod:`.ending_rules`. What a run knows of a node is in the answer
of each task, and is passed to the next.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import datetime, timezone
from typing import Any

from .._api import node_rules, paths
from .._api.errors import HoldfastError, InvalidInput, NotFound, Refused
from .._api.names import CORDON
from .._api.objects import Object
from .._api.runner import Context, Params, Result, unexpected
from .._budget import claims, runs
from .._budget.claim_rules import Claimed
from .._drain.cordon import cordon
from .._fencing import agent_rules, command, evidence_rules
from .._fencing.annotation import reboot_annotation
from .._fencing.host_info import bare_metal_host_info
from .._progress import last_answer
from .._reboot.quorum_rules import is_control_plane
from . import ending_rules, journey_rules, ways_rules
from .audit_rules import way_of
from .confirm import again_if_ready_changes
from .ending_rules import Undone, failure_of
from .facts_rules import (
    ATTESTATION,
    COMMAND,
    FENCE_AGENT,
    LOOK,
    METAL3,
    REDFISH,
    Facts,
    Host,
    Progress,
    progress_of,
    settings_of,
    ways_of,
)
from .journey_rules import Step
from .record import failover_record
from .rules import CLAIM, DONE, FAILED, FENCE, PURPOSE, RECOVER, TAINT, booted_since
from .settings_rules import check_node, check_nodes
from .steps import failover_step
from .taint import out_of_service

# What is done before the first node is worked on.
SETTINGS, NOTHING = "settings", "nothing"
# The secret that belongs to the evidence of each way.
_SECRETS = {REDFISH: "password", COMMAND: "command", FENCE_AGENT: "agent"}
# What later tasks need to reach the BMC.
_BMC = {
    "redfish_username": "username",
    "redfish_validate_certs": "validate_certs",
    "redfish_ca_cert": "ca_cert",
    "redfish_insecure_http": "insecure_http",
}


def failover_turn(context: Context, params: Params) -> Result:
    """Say the next step of a failover; see the module of the same name."""
    done = params["done"]
    if done == SETTINGS:
        return _check(params)
    if done == NOTHING:
        return _kept(context, params, _begin_run(context, params))
    if "report" not in params["turn"]:
        # The last task failed before its module answered.
        params = {**params, "turn": last_answer.last(context.folder, _key(params))}
    turn = _Turn(context, params)
    if params.get("failed") is not None:
        return _kept(context, params, turn.fail(params["failed"]))
    return _kept(context, params, turn.begin() if done == CLAIM else turn.go_on())


def _kept(context: Context, params: Params, answer: Result) -> Result:
    """Keep the answer: its report has the results of the nodes before."""
    last_answer.keep(context.folder, _key(params), answer)
    return answer


def _key(params: Params) -> str:
    """A host of the playbook works on one node after the other."""
    return f"failover_turn on host {params.get('inventory_host') or ''}"


def _check(params: Params) -> Result:
    """Check the variables of one node."""
    machines = check_node(
        params["direction"],
        params["name"],
        params["settings"],
        uri=params.get("unchecked_redfish_uri") or "",
        given=params["given"],
        node_name=params.get("node_name") or "",
        agent=_agent(params),
    )
    return {"changed": False, "name": params["name"], "machines": machines}


def _begin_run(context: Context, params: Params) -> Result:
    """Check the nodes together, and name the run."""
    check_nodes(params["checked"])
    who = params["who"]
    started = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    # Two installations of AWX may have jobs of the same number.
    run = params["settings"].get("run") or f"{who['job'] or who['host'] + '/' + started}-{secrets.randbelow(1_000_000)}"
    return {"changed": False, "step": "", "steps": [], "report": _empty_report(run, context)}


def _empty_report(run: str, context: Context) -> dict[str, Any]:
    return ending_rules.report_of(run, [], check_mode=context.check_mode, delete_node=False)


def _agent(params: Params) -> agent_rules.FenceAgent | None:
    text = (params.get("proof") or {}).get("agent") or ""
    # A blank text of a survey is null.
    return None if text in ("", "{}", "null") else agent_rules.read(text)


class _Turn:
    """What is next for one node."""

    def __init__(self, context: Context, params: Params) -> None:
        self._context, self._params = context, params
        self._given: Mapping[str, Any] = params["settings"]
        more = {
            "redfish_uri": (params.get("redfish_uri") or "").strip(),
            "quorum_command": "quorum_command" in params["given"],
            "power_on_command": "power_on_command" in params["given"],
        }
        agent = _agent(params)
        if agent:
            more["agent"] = {"agent": agent.name, "plug": agent.plug}
        self._settings = settings_of({**self._given, **more})
        known = params["turn"]
        self._report: dict[str, Any] = known.get("report") or _empty_report("", context)
        self._progress = progress_of(known.get("progress") or {})
        if self._progress.fence:
            self._settings = self._settings.by(self._progress.fence, *self._progress.then)
        self._step = Step(journey_rules.GO)
        self._entry: dict[str, Any] = {}
        self._changed = False

    @property
    def _run(self) -> str:
        """The name of the run; empty if an answer was lost."""
        return str(self._report["content"]["summary"]["run"])

    # -- the journey

    def begin(self) -> Result:
        """Look at the node, claim it, and say what is left."""
        run = f"{self._run}/{self._params['name']}"
        self._progress = Progress(node=self._params["name"], direction=self._params["direction"], run=run)
        # The node before may have ended with another way.
        self._settings = self._settings.by(*ways_of(self._given))
        try:
            return self._tried(self._claim)
        except HoldfastError as error:
            if error.kind not in ending_rules.NOTHING_WRITTEN:
                raise
            # A refusal is the node's result. As a failed task, Ansible would show it once more.
            return self.fail(error.as_result())

    def go_on(self) -> Result:
        """Record what was done, and say what follows."""
        return self._tried(self._next) if self._progress.under_way else self._result()

    def _tried(self, act: Callable[[], Result]) -> Result:
        try:
            return act()
        except HoldfastError as error:
            error.fields.setdefault("changed", self._changed)
            error.fields.update(self._known())
            raise
        except Exception as error:  # noqa: BLE001 - what is known of the node is needed to leave it in order
            return {**unexpected(error, "failover_turn", self._params), **self._known()}

    def _known(self) -> Result:
        """What the next call needs after a failure, which is none of the role's steps."""
        self._progress = replace(self._progress, doing=())
        return {"progress": self._progress.to_data(), "report": self._report}

    def _claim(self) -> Result:
        progress = self._progress
        if not self._run:
            raise InvalidInput(
                "This run has no name, because an earlier task failed before its module ran. Nothing was done with "
                f"node {progress.node}. Start the playbook again."
            )
        if self._given.get("run"):
            runs.refuse_live(self._context.cluster, progress.run, "failover_run")
        options = {name: self._given[name] for name in _STEP if self._given.get(name) is not None}
        params = {
            **_STEP,
            **options,
            "fence": self._settings.fence,
            "name": progress.node,
            "run": progress.run,
            "direction": progress.direction,
            "holder": self._params.get("holder"),
            "quorum_asked": self._settings.quorum_command,
        }
        begun = failover_step(self._context, params, before=self._look)
        self._changed = begun["changed"]
        record = begun["record"] or {}
        sent = progress.direction == RECOVER or begun["sent"]
        # A node can write its own record.
        fence = begun["stated"].get("fence") or begun["facts"].get("fence") or ""
        ways = ways_rules.order(ways_of(self._given), str(fence), sent=sent)
        left_out = {item["method"] for item in self._progress.attempts}
        ways = tuple(way for way in ways if way not in left_out) or ways
        self._settings = self._settings.by(*ways)
        self._progress = replace(
            self._progress,
            fence=ways[0],
            then=ways[1:],
            step=begun["step"],
            operation=begun["operation"],
            exists=begun["exists"],
            resumed=begun["resumed"],
            facts=begun["facts"],
            stated=begun["stated"],
            boot_id=begun["boot_id"],
            record_boot_id=record.get("boot_id"),
            boot_id_before=begun["boot_id_before"],
            maintained_by=begun["maintained_by"],
            sent=sent,
        )
        facts = Facts(self._settings, self._progress, CLAIM, self._context.check_mode)
        if begun["exists"] and begun["step"] != DONE:
            node = self._context.cluster.find(paths.node(progress.node)) or {"metadata": {}}
            facts = replace(facts, cordoned_by=(node_rules.record(node, CORDON) or {}).get("owner"))
        return self._follow(facts)

    def _look(self, node: Object, known: Mapping[str, Any]) -> None:
        """Look at all that may refuse the failover or the recovery, before anything is recorded.

        Args:
            known: For a recovery, ``boot_id`` and ``facts`` of its failover.

        Raises:
            HoldfastError: It is refused.
        """
        self._progress = replace(self._progress, facts=known.get("facts", {}))
        facts = Facts(self._settings, self._progress, LOOK, self._context.check_mode)
        booted = bool(known) and booted_since(node, known["boot_id"], known["facts"])
        self._follow(replace(facts, control_plane=is_control_plane(node), booted=booted))

    def _next(self) -> Result:
        done, last, progress = self._params["done"], self._params["last"] or {}, self._progress
        if done == FENCE:
            sent = progress.sent or FENCE in progress.doing
            self._progress = replace(self._by(last), sent=sent, evidence=last.get("evidence") or {})
            self._settings = self._settings.by(self._progress.fence)
        elif done == TAINT:
            self._progress = replace(
                progress,
                tainted=last.get("taint") is not None,
                pods=tuple(last["pods"]),
                volume_attachments=tuple(last["volume_attachments"]),
            )
        elif done == journey_rules.READY:
            self._progress = replace(progress, boot_id_after=str(last.get("boot_id") or ""))
        elif done == journey_rules.IN_SERVICE:
            self._progress = replace(progress, taint_stays=last.get("taint") is not None)
        facts = Facts(self._settings, self._progress, done, self._context.check_mode, result=last)
        if done == journey_rules.CORDON and self._settings.quorum_command:
            node = self._context.cluster.find(paths.node(progress.node))
            facts = replace(facts, control_plane=node is not None and is_control_plane(node))
        return self._follow(facts)

    def _follow(self, facts: Facts) -> Result:
        """Carry out steps until there is an answer."""
        step = journey_rules.next_step(facts)
        while step.name in journey_rules.ACTS:
            facts = self._ACTS[step.name](self, facts, step)
            facts = replace(facts, progress=self._progress, settings=self._settings)
            step = journey_rules.next_step(facts)
        self._step = step
        if step.name == journey_rules.REFUSE:
            raise Refused(step.why, node=self._progress.node)
        known = {**self._progress.facts, **step.facts}
        self._progress = replace(self._progress, doing=step.steps, facts=known, under_way=step.name == journey_rules.GO)
        if step.name in (journey_rules.SKIPPED, journey_rules.PLANNED):
            self._note(ending_rules.result_of_step(self._progress, step))
        elif step.name == journey_rules.ENDED:
            self._note(self._ended(facts))
        return self._result()

    def _by(self, done: Mapping[str, Any]) -> Progress:
        """The progress with the way that the power-off ended with, as its task says."""
        progress, way = self._progress, done.get("method")
        if not way or FENCE not in progress.doing:
            return progress
        attempts = tuple(done["facts"].get("attempts") or progress.attempts)
        return replace(progress, fence=way, then=(), attempts=attempts, facts={**progress.facts, **done["facts"]})

    def _ended(self, facts: Facts) -> dict[str, Any]:
        pods, attachments = (
            journey_rules.contents(self._progress, facts.result) if facts.done == journey_rules.MOVE else ([], [])
        )
        found = ending_rules.result_of(
            self._progress, str(self._entry["result"]), str(self._entry.get("detail") or ""), self._entry
        )
        return {**found, "pods": pods, "volume_attachments": attachments}

    # -- the steps that are carried out here

    def _ask_quorum(self, facts: Facts, _step: Step) -> Facts:
        """Ask the user's command whether a member of etcd may go."""
        node, seconds = self._progress.node, self._given["fence_timeout"]
        environment = {"HOLDFAST_NODE": node}
        argv = command.expand(command.split(self._params["quorum_command"], "failover_quorum_command"), environment)
        ended = command.run_bounded(argv, environment, seconds)
        if ended.status == 0:
            return replace(facts, quorum_asked=True)
        # It may contain secrets: it is shown, but not recorded where others can read it.
        for line in ended.lines or ["It had no output."]:
            self._context.say(f"failover_quorum_command for node {node}: {line}")
        raise Refused(
            f"failover_quorum_command ({argv[0]}) for node {node} {ended.how(seconds)}. A member of etcd may go "
            "only if the command ends with 0. This run has switched nothing off. Bring another member back first.",
            node=node,
        )

    def _find_host(self, facts: Facts, _step: Step) -> Facts:
        named = self._given.get("bare_metal_host") or None
        try:
            hosts = self._hosts(named, self._given.get("bare_metal_host_namespace") or None, facts.progress.node)
        except HoldfastError as error:
            if not self._settings.then:
                raise
            return self._leave_out(facts, Step(journey_rules.LEAVE_OUT, error.message))
        if len(hosts) == 1:
            host = {"namespace": hosts[0].namespace, "name": hosts[0].name}
            if hosts[0].node in (None, facts.progress.node) and not hosts[0].why_not:
                self._progress = replace(self._progress, host=host)
        return replace(facts, hosts=hosts)

    def _leave_out(self, facts: Facts, step: Step, way: str = METAL3) -> Facts:
        """Go without one way, because there are others."""
        self._settings = self._settings.by(*(other for other in self._settings.ways if other != way))
        attempts = (*self._progress.attempts, {"method": way, "why": step.why})
        self._progress = replace(self._progress, attempts=attempts)
        if self._progress.fence:
            self._progress = replace(self._progress, fence=self._settings.fence, then=self._settings.then)
        return facts

    def _look_at_host_before(self, facts: Facts, _step: Step) -> Facts:
        return replace(facts, host_before=self._hosts(facts.known["host"], facts.known["namespace"], ""))

    def _hosts(self, name: str | None, namespace: str | None, node: str) -> tuple[Host, ...]:
        params = {"bare_metal_host": name, "namespace": namespace, "node": None if name else node}
        return tuple(map(_host, bare_metal_host_info(self._context, params)["hosts"]))

    def _look_at_evidence(self, facts: Facts, _step: Step) -> Facts:
        """Look whether the evidence proves that the machine is off."""
        plan = self._context.check_mode
        context = self._context if plan else _looking(self._context)
        params = {
            **_TAINT,
            "name": self._progress.node,
            "value": self._given["value"],
            "evidence": {**self._proof(), **self._secret()},
            "run": "" if plan else self._progress.run,
            "override_holds": self._given["override_holds"],
        }
        try:
            out_of_service(context, params)
        except Claimed:
            # In check mode, the claim of a dead run stays.
            if not plan:
                raise
        except HoldfastError as error:
            if error.fields.get("why") == evidence_rules.NOT_OFF:
                return replace(facts, off=False)
            if plan and self._settings.then and ways_rules.may_try_next(error.kind, {**error.fields, "sent": False}):
                return self._leave_out(facts, Step(journey_rules.LEAVE_OUT, error.message), self._settings.fence)
            raise
        return replace(facts, off=True)

    def _record(self, facts: Facts, step: Step) -> Facts:
        record, progress = step.record, self._progress
        params = {
            "name": progress.node,
            "operation": progress.operation,
            "run": progress.run,
            "override_holds": self._given.get("override_holds", False),
            "wait_timeout": 120,
            "confirm_seconds": self._given.get("confirm_seconds") or 0,
            **asdict(record),
            "result": record.result or None,
            "host_version": record.host_version or None,
        }
        done = again_if_ready_changes(lambda: failover_record(self._context, params))
        self._changed |= done["changed"]
        self._entry = done["entry"]
        self._progress = replace(progress, runs=tuple(done["entry"].get("runs") or ()))
        return replace(facts, recorded=True)

    _ACTS: Mapping[str, Callable[[_Turn, Facts, Step], Facts]] = {
        journey_rules.ASK_QUORUM: _ask_quorum,
        journey_rules.FIND_HOST: _find_host,
        journey_rules.LEAVE_OUT: _leave_out,
        journey_rules.LOOK_AT_HOST_BEFORE: _look_at_host_before,
        journey_rules.LOOK_AT_EVIDENCE: _look_at_evidence,
        journey_rules.RECORD: _record,
    }

    # -- a failure

    def fail(self, failed: Mapping[str, Any]) -> Result:
        """Leave the node in order after a failure. Each write is tried, even if another one fails."""
        failure = failure_of(failed, self._params.get("task") or "")
        of_another_node = self._progress.node != self._params["name"]
        # Each answer has the name of the run, so without a name, there was no answer.
        lost = of_another_node and not self._run
        if of_another_node:
            self._progress = Progress(node=self._params["name"], direction=self._params["direction"])
        progress = self._progress = self._by(failed)
        ending = ending_rules.LOST if lost else ending_rules.after_failure(progress, failure)
        # An earlier run has set the key, maybe long ago.
        if progress.resumed and ending.undo and ending.remove_key and (why := self._try(self._check_host)):
            advice = f" The key on its host, its record and its cordon stay: {why}"
            ending = replace(ending, result=FAILED, advice=advice, undo=False)
        undo = ending.undo and not self._context.check_mode
        why_not = self._try(lambda: self._undo(remove_key=ending.remove_key)) if undo else ""
        result = FAILED if why_not else ending.result
        # The phase of a power-off is recorded before its request. The next run must not count the node as fenced.
        untouched = ending.undo and not ending_rules.was_sent(progress, failure)
        record = journey_rules.Record(CLAIM if untouched else "", result, failure.why + ending.advice)
        facts = Facts(self._settings, progress, CLAIM)
        unrecorded = ""
        if progress.claimed and not self._context.check_mode:
            unrecorded = self._try(lambda: self._record_failure(facts, record)) if ending.record else ""
            self._try(lambda: runs.end(self._context.cluster, progress.run))
        undone = Undone(why_not, unrecorded, self._entry)
        self._progress = replace(self._progress, doing=(), under_way=False)
        self._step = Step(journey_rules.ENDED, failure.why)
        self._note(ending_rules.result_of_failure(self._progress, failure, ending, undone))
        return self._result()

    def _record_failure(self, facts: Facts, record: journey_rules.Record) -> None:
        try:
            self._record(facts, Step(journey_rules.RECORD, record=record))
        except NotFound:
            if not self._progress.exists:
                raise
            # The Node was deleted, and the record and the claim with it.
            self._record(facts, Step(journey_rules.RECORD, record=replace(record, deleted=True)))
        except HoldfastError:
            # The record stays on the Node. The claim must not stay.
            cluster, node = self._context.cluster, self._progress.node
            self._try(lambda: claims.give_back(cluster, node, run=self._progress.run, context=self._context))
            raise

    def _check_host(self) -> None:
        """Check that the host is the node's, and that no other hardware can run as the node.

        Raises:
            Refused: Only the Node names the host; or the Node has booted, while its host is still off.
        """
        progress = self._progress
        if why := journey_rules.unknown_host(progress, self._settings):
            raise Refused(why, node=progress.node)
        node = self._context.cluster.find(paths.node(progress.node))
        if node is None or not booted_since(node, progress.record_boot_id or "", progress.facts):
            return
        step = Step(journey_rules.LOOK_AT_HOST_BEFORE)
        facts = self._look_at_host_before(Facts(self._settings, progress, LOOK, booted=True), step)
        if found := journey_rules.replaced(facts):
            raise Refused(found.why, node=progress.node)

    def _undo(self, *, remove_key: bool) -> None:
        """Remove the key from the host, and undo the role's cordon."""
        node, run = self._progress.node, self._progress.run
        if remove_key:
            known = self._progress.facts
            place = {"bare_metal_host": known["host"], "namespace": known["namespace"], "key": known["key"]}
            reboot_annotation(self._context, {**_ANNOTATION, "node": node, "run": run, **place})
        cordon(self._context, {"name": node, "owner": PURPOSE, "run": run, "state": "uncordoned", "force": False})
        self._changed = True

    @staticmethod
    def _try(act: Callable[[], Any]) -> str:
        """Why it was not possible; empty where it was."""
        try:
            act()
        except HoldfastError as error:
            return error.message
        return ""

    # -- the answer

    def _note(self, result: dict[str, Any]) -> None:
        """Add the result of the node to the report."""
        content = self._report["content"]
        self._report = ending_rules.report_of(
            content["summary"]["run"],
            [*content["nodes"], result],
            check_mode=self._context.check_mode,
            delete_node=self._settings.delete_node,
        )

    def _result(self) -> Result:
        progress = self._progress
        return {
            "changed": self._changed,
            "step": self._step.name,
            "why": self._step.why,
            "steps": [*progress.doing, *self._closing()],
            "node": progress.node,
            # Without a Node there is no claim.
            "run": progress.run if progress.exists else "",
            "operation": progress.operation,
            "facts": way_of(progress.facts),
            "method": self._method(),
            "bmc": self._bmc() if self._method() == REDFISH else {},
            "then": [{**way, "bmc": self._bmc() if way["method"] == REDFISH else {}} for way in self._step.then],
            "evidence": self._proof(),
            "progress": progress.to_data(),
            "report": self._report,
        }

    def _closing(self) -> list[str]:
        """The steps of the role that end the run."""
        report = ["report"] if self._given.get("report") or self._given.get("html") else []
        return report + (["fail"] if self._report["why"] else [])

    def _method(self) -> str:
        """How the machine is switched."""
        if self._progress.direction == RECOVER:
            return str(self._progress.facts.get("fence") or "")
        return self._settings.fence

    def _bmc(self) -> dict[str, Any]:
        known = self._progress.facts
        proven = known.get("evidence") or {}
        found = {
            # A node can write its own record, and the credentials go to this URL.
            "uri": self._settings.redfish_uri or str(self._progress.stated.get("uri") or ""),
            "uuid": self._given.get("redfish_uuid") or proven.get("uuid"),
            **{name: self._given.get(option) for option, name in _BMC.items()},
        }
        return {name: value for name, value in found.items() if value not in (None, "")}

    def _proof(self) -> dict[str, Any]:
        """What proves that the machine is off, without secrets."""
        if self._progress.direction == RECOVER:
            return {}
        fence, given = self._settings.fence, self._given
        if fence == REDFISH:
            return {"kind": "Redfish", **self._bmc()}
        if fence == FENCE_AGENT:
            return {"kind": "FenceAgent"}
        if fence == COMMAND:
            return {"kind": "Command"}
        if fence == ATTESTATION:
            names = {"by": "attestation_by", "statement": "attestation_statement", "at": "attestation_at"}
            return {"kind": "Attestation", **{name: given.get(option) for name, option in names.items()}}
        return dict(self._progress.evidence)

    def _secret(self) -> dict[str, Any]:
        """The secret part of the proof."""
        name = _SECRETS.get(self._settings.fence, "")
        value = self._params["proof"].get(name)
        return {name: value} if value else {}


# What failover_step is told where the user says nothing.
_STEP: Mapping[str, Any] = {
    "reason": "",
    "fence": "",
    "confirm_seconds": 30,
    "selector": "",
    "max_unhealthy": "40%",
    "etcd_selector": "component=etcd",
    "override_holds": False,
    "claim_timeout": 120,
    "lifecycle_conditions": False,
}
_TAINT: Mapping[str, Any] = {
    "state": "present",
    "proof_timeout": 0,
    "wait": False,
    "wait_timeout": 0,
    "force": False,
}
_ANNOTATION: Mapping[str, Any] = {
    "mode": "soft",
    "state": "absent",
    "wait": False,
    "wait_timeout": 600,
    "override_holds": False,
}


def _looking(context: Context) -> Context:
    """The same clusters, with every write a dry run."""
    return Context(context.params, check_mode=True, warn=context.warn)


def _host(found: Mapping[str, Any]) -> Host:
    keys = [key for key in found["keys"] if key["ours"]]
    return Host(
        found["name"],
        found["namespace"],
        found["node"],
        "" if found["acts"] else found["why_not"],
        # The run of a failover ends with the name of its Node.
        tuple((key["key"], str(key["run"]).rpartition("/")[2]) for key in keys),
        found["powered_on"],
    )

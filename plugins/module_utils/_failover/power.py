# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch the machine of a node off or on, by its BMC, by metal3, by a fence agent or by a command of the user.

The last look at the node and the act are one operation: a run that was paused in between looks again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Union

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import HoldfastError, InvalidInput, Refused, TimedOut
from .._api.objects import Object
from .._api.read_node import node_names, read_node
from .._api.runner import Context, Params, Result
from .._api.watch import Deadline
from .._budget import claim_rules, gate, runs
from .._fencing import agent, agent_rules, command, evidence_rules, last_look, redfish_rules
from .._fencing.annotation import reboot_annotation
from .._fencing.key_rules import HARD, SOFT
from .._fencing.last_look import Look
from .._fencing.redfish import Bmc
from .._fencing.redfish_rules import OFF, ON, BmcFailure, System
from .._fencing.still_down_rules import check_still_down
from . import rules, ways_rules
from .confirm import again_if_ready_changes
from .ending_rules import NOTHING_WRITTEN
from .facts_rules import FENCE_AGENT, METAL3, REDFISH
from .record import failover_record

_PAUSE = 2.0
# Seconds that a fence agent may take to report a power state.
_LOOK = 60


def failover_power(context: Context, params: Params) -> Result:
    """Switch one machine off or on; see the module of the same name."""
    if params["power"] == "off":
        return _alive(context, params, lambda: _switch_off_by_any(context, params))
    if params["method"] == METAL3:
        raise InvalidInput("metal3 switches a host on when its key is removed: use reboot_annotation, state absent.")
    return _alive(context, params, lambda: _switch_on(context, params, _machine(context, params)))


def _alive(context: Context, params: Params, act: Callable[[], Result]) -> Result:
    """Act while the run gives signs of life. If it cannot give the first one, nothing was sent."""
    begun = False
    try:
        with runs.heartbeat(context.cluster, params.get("run") or ""):
            begun = True
            return act()
    except HoldfastError as error:
        if not begun:
            error.fields["sent"] = False
        raise


def _switch_off_by_any(context: Context, params: Params) -> Result:
    """Try one way after the other, as long as nothing was sent and the failure concerns the way alone."""
    attempts: list[dict[str, str]] = list(params.get("attempts") or [])
    ways = [{name: params.get(name) for name in ("method", "facts", "bmc")}, *(params.get("then") or [])]
    over: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    sent = False
    for number, way in enumerate(ways, start=1):
        facts = {**over, **(way.get("facts") or {}), **kept, **({"attempts": attempts} if attempts else {})}
        try:
            found = _switch_off_by(context, {**params, **way, "facts": facts})
        except HoldfastError as error:
            # A key of metal3 that an earlier way has written keeps its host off.
            sent = sent or bool(error.fields.get("sent", True))
            error.fields.update(method=way["method"], facts=facts, attempts=attempts)
            if number == len(ways) or not ways_rules.may_try_next(error.kind, error.fields):
                error.fields["sent"] = sent
                error.message = ways_rules.told(attempts) + error.message
                raise
            attempts = [*attempts, {"method": str(way["method"]), "why": error.message}]
            over |= ways_rules.facts_after(error.kind, way.get("facts") or {})
            kept |= ways_rules.key_after(error.kind, way.get("facts") or {})
            context.warn_now(
                f"Node {params['name']}: {ways_rules.told(attempts[-1:])}Trying {ways[number]['method']} next."
            )
        else:
            return {**found, "method": way["method"], "facts": facts}
    raise AssertionError("unreachable: the last way returns or raises")


def _switch_off_by(context: Context, params: Params) -> Result:
    if params["method"] == METAL3:
        return _keep_off(context, params)
    try:
        machine = _machine(context, params)
    except HoldfastError as error:
        error.fields["sent"] = False
        raise
    return _switch_off(context, params, machine)


def _switch_off(context: Context, params: Params, machine: _Machine) -> Result:
    sent = False

    def attempt() -> bool:
        nonlocal sent
        needed = machine.look(read_node(context.cluster, params["name"]), OFF)
        look = _look(context, params)
        if context.check_mode or not needed:
            return False
        look.check()
        sent = True
        machine.switch(OFF, look)
        return True

    try:
        again_if_ready_changes(lambda: last_look.repeat(attempt))
        if not context.check_mode:
            machine.wait(OFF)
    except HoldfastError as error:
        error.fields["sent"] = sent
        raise
    return {"changed": sent, "sent": sent, **machine.facts}


def _keep_off(context: Context, params: Params) -> Result:
    """Keep the host of the node off with a key. After its timeout, a soft power-off becomes a hard one."""
    sent = False
    try:
        if params["facts"]["mode"] == SOFT:
            try:
                return _keep_off_by(context, params, SOFT, params["soft_timeout"])
            except TimedOut as error:
                # The look may have timed out, before the request.
                sent = bool(error.fields.get("sent"))
                if not sent:
                    raise
        return _keep_off_by(context, params, HARD, params["timeout"])
    except HoldfastError as error:
        error.fields["sent"] = sent or error.fields.get("sent", False)
        raise


def _keep_off_by(context: Context, params: Params, mode: str, patience: int) -> Result:
    def attempt() -> Result:
        record = _record(context, {**params, "facts": {**params["facts"], "mode": mode}})
        return _annotate(context, params, mode, record, patience)

    return again_if_ready_changes(attempt)


def _annotate(context: Context, params: Params, mode: str, record: Mapping[str, Any], patience: int) -> Result:
    def last_check(cluster: Cluster, name: str) -> None:
        check_still_down(read_node(cluster, name), record, record["confirmed"])

    options = {
        "node": params["name"],
        "bare_metal_host": params["facts"]["host"],
        "namespace": params["facts"]["namespace"],
        "key": params["facts"]["key"],
        "mode": mode,
        "state": "present",
        "wait": True,
        "wait_timeout": patience,
        "override_holds": params["override_holds"],
        "run": params["run"],
    }
    try:
        return reboot_annotation(context, options, last_check)
    except HoldfastError as error:
        # A refusal means that nothing was sent. After any other failure, that is unknown.
        error.fields.setdefault("sent", error.kind not in NOTHING_WRITTEN)
        raise


def _look(context: Context, params: Params) -> Look:
    began = last_look.steady()
    return Look(gate.Pass(str(_record(context, params)["boot_id"])), began)


def _record(context: Context, params: Params) -> Mapping[str, Any]:
    """Check that the claim is ours, the node still down and not held by anyone, and record the phase."""
    done = failover_record(
        context,
        {
            "name": params["name"],
            "operation": params["operation"],
            "run": params["run"],
            "phase": rules.FENCING,
            "look": True,
            "gate": True,
            "override_holds": params["override_holds"],
            "wait_timeout": params["timeout"],
            "confirm_seconds": params["confirm_seconds"],
            "facts": params.get("facts") or {},
            "delete_node": False,
            "deleted": False,
        },
    )
    record: Mapping[str, Any] = done["record"]
    return record


def _switch_on(context: Context, params: Params, machine: _Machine) -> Result:
    def attempt() -> bool:
        node = _claimed(context, params)
        needed = machine.look(node, ON)
        if needed:
            _check_no_other_node(context, params["name"], str(machine.facts["uuid"] or ""))
        if context.check_mode or not needed:
            return needed
        # A BMC may answer slowly. Meanwhile another run may have brought the node back, and a third one fenced it.
        began = last_look.steady()
        _claimed(context, params)
        last_look.check(began)
        machine.switch(ON, None)
        return True

    needed = last_look.repeat(attempt)
    if needed and not context.check_mode:
        machine.wait(ON)
    return {"changed": needed, "sent": needed, **machine.facts}


def _claimed(context: Context, params: Params) -> Object | None:
    """Return the Node if the claim is ours; ``None`` if it was deleted after its failover, so that it has no claim.

    Raises:
        Claimed, ClaimLost: It is not ours.
        Refused: The Node was created again after this run had begun.
    """
    node, run, name = context.cluster.find(paths.node(params["name"])), params.get("run") or "", params["name"]
    if node is None:
        return None
    claim_rules.check(node, run)
    if not run:
        raise Refused(
            f"Node {name} exists, but this run has not claimed it: it was created again since the run began. Nothing "
            "was switched on. Run the playbook holdfast.kubernetes.recover again.",
            node=name,
            why="created_again",
        )
    return node


def _check_no_other_node(context: Context, name: str, uuid: str) -> None:
    """Check that the machine is no other Node now, which may have been fenced since.

    Raises:
        Refused: It is one.
    """
    if other := evidence_rules.other_node(name, uuid, context.cluster.items(paths.NODES)):
        raise Refused(
            f"The machine of node {name} is the system with UUID {uuid}, but node {other} has this systemUUID. Nothing "
            f"was switched on. Look after node {other}. If they are two machines, switch that of node {name} on "
            "yourself, and run the playbook holdfast.kubernetes.recover again.",
            node=other,
            why="another_node",
        )


class _Redfish:
    """A machine at its BMC."""

    def __init__(self, context: Context, params: Params) -> None:
        self._cluster, self._params = context.cluster, params
        self._options: dict[str, Any] = {**params["bmc"]}
        if params.get("bmc_password"):
            self._options["password"] = params["bmc_password"]
        self._bmc = Bmc(self._options)
        self._system: System | None = None

    @property
    def facts(self) -> Result:
        found = self._system
        return {"power_state": found.power_state if found else None, "uuid": found.uuid if found else None}

    def look(self, node: Object | None, wanted: str) -> bool:
        """Verify that it is the machine of the node, and return whether it must be switched."""
        self._system = self._bmc.read()
        expected = str(self._options.get("uuid") or "")
        if node or expected:
            evidence_rules.check_system(
                self._params["name"],
                self._system.uuid,
                uri=self._bmc.uri,
                expected=expected,
                of_node=node_rules.system_uuid(node) if node else "",
            )
        if wanted == OFF:
            nodes = self._cluster.items(paths.NODES)
            evidence_rules.check_no_other_node(self._params["name"], self._system.uuid, nodes)
        if self._system.power_state == wanted:
            return False
        # A system that can't be switched is found before anything is sent, so that the next way is tried.
        redfish_rules.reset_url(self._system)
        redfish_rules.reset_type(self._system, wanted)
        return True

    def switch(self, wanted: str, _look: Look | None) -> None:
        if self._system:
            self._bmc.reset(self._system, wanted)

    def wait(self, wanted: str) -> None:
        """Wait until the system itself reports the power state.

        Raises:
            TimedOut: It does not report it in time.
        """
        deadline, uuid = Deadline(self._params["timeout"]), self._system.uuid if self._system else ""
        while self._system is None or self._system.power_state != wanted:
            if deadline.passed:
                raise TimedOut(
                    f"{self._bmc.uri} accepted the request to switch {wanted.lower()}, but its PowerState is not "
                    f"{wanted} after {self._params['timeout']} s. Check the machine, and run it again.",
                    why="timed_out",
                    **self.facts,
                )
            time.sleep(min(_PAUSE, deadline.left))
            # A BMC may be unreachable for a moment because its machine was switched off.
            with suppress(BmcFailure):
                self._system = self._bmc.read()
            if self._system and self._system.uuid != uuid:
                raise BmcFailure(f"{self._bmc.uri} is now the system with UUID {self._system.uuid}; it was {uuid}.")


class _UserCommand:
    """A command of the user; only the command knows the machine."""

    def __init__(self, params: Params) -> None:
        self._params = params
        self._name: str = params.get("command_name") or "command"
        self._argv = command.split(params.get("command") or "", self._name)

    @property
    def facts(self) -> Result:
        return {"power_state": None, "uuid": None}

    def look(self, _node: Object | None, _wanted: str) -> bool:
        return True

    def switch(self, _wanted: str, look: Look | None) -> None:
        node, seconds = self._params["name"], self._params["timeout"]
        environment = {"HOLDFAST_NODE": node, **_deadline_environment(look)}
        argv = command.expand(self._argv, environment)
        ended = command.run_bounded(argv, environment, seconds)
        if ended.status == 0:
            return
        raise command.CommandFailed(
            f"{self._name} ({self._argv[0]}) for node {node} {ended.how(seconds)}. The machine may be off "
            "or on. Fix the command, and start the playbook again.",
            node=node,
            rc=ended.status,
            output=ended.last_lines or "no output",
        )

    def wait(self, wanted: str) -> None:
        """Wait until the verify command reports off, or until the Node is back on."""


class _FenceAgent:
    """A machine that a fence agent of ClusterLabs switches."""

    def __init__(self, context: Context, params: Params) -> None:
        self._cluster, self._node = context.cluster, str(params["name"])
        self._agent = agent_rules.read(params.get("agent") or "")
        self._seconds: int = params["timeout"]
        self._state = ""

    @property
    def facts(self) -> Result:
        return {"power_state": self._state or None, "uuid": None}

    def look(self, _node: Object | None, wanted: str) -> bool:
        """Check that it is the machine of the node, and return whether it must be switched."""
        seconds = min(self._seconds, _LOOK)
        self._state = agent.look(self._agent, self._node, seconds, lambda: node_names(self._cluster))
        return self._state != wanted.lower()

    def switch(self, wanted: str, _look: Look | None) -> None:
        action = wanted.lower()
        ended = agent.run(self._agent, action, self._seconds)
        if ended.status != 0:
            advice = "The machine may be off or on. Check it, and start the playbook again."
            raise agent.failed(self._agent, action, ended, self._seconds, advice)

    def wait(self, wanted: str) -> None:
        """Wait until the agent itself reports the power state: its success alone proves nothing.

        Raises:
            TimedOut: It does not report it in time.
        """
        deadline = Deadline(self._seconds)
        while True:
            with suppress(command.CommandFailed):
                self._state = agent.state(self._agent, min(self._seconds, _LOOK))
            if self._state == wanted.lower():
                return
            if deadline.passed:
                raise TimedOut(
                    f"Fence agent {self._agent.shown} succeeded with {wanted.lower()}, but reports that the machine is "
                    f"{self._state} after {self._seconds} s. Check the machine, and run it again.",
                    why="timed_out",
                    **self.facts,
                )
            time.sleep(min(_PAUSE, deadline.left))


_Machine = Union[_Redfish, _UserCommand, _FenceAgent]


def _machine(context: Context, params: Params) -> _Machine:
    if params["method"] == REDFISH:
        return _Redfish(context, params)
    return _FenceAgent(context, params) if params["method"] == FENCE_AGENT else _UserCommand(params)


def _deadline_environment(look: Look | None) -> Mapping[str, str]:
    """Return what a command that acts later needs to know: until when the look counts, and the boot ID."""
    return {"HOLDFAST_BOOT_ID": look.boot_id, "HOLDFAST_DEADLINE": f"{look.until:.0f}"} if look else {}

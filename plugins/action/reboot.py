# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reboot a node: gate, inhibitors, the reboot of ansible.builtin.reboot, and proof that it happened."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action.reboot import ActionModule as BuiltinReboot

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    Held,
    HoldfastError,
    MissingLibrary,
    Refused,
    TimedOut,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.read_node import read_node
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context, unexpected
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import gate, runs
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation import record_phase
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.node_operation_rules import (
    boot_to_end,
    phase_of,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._fencing import last_look
from ansible_collections.holdfast.kubernetes.plugins.module_utils._logind import inhibitor_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._nodes.ready import wait_until_back
from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress.event_rules import waits
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.once_rules import LATE, OTHER_BOOT, guarded
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.quorum import require_quorum
from ansible_collections.holdfast.kubernetes.plugins.modules.reboot import SPEC
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _kubeconfig, _progress_file, _traffic
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._answer_within import clean_up
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._arguments import validated
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._parent_death import end_with_parent

_MINUTE = 60
_LOOK_EVERY = 2.0
# Seconds after the last look in which the node may begin its reboot: a silent run loses its claim after 90 s.
_ACT_WITHIN = 30
_LATE_AT_MOST = 3
# Seconds. A node refuses by itself if a hold came after the last look. If the hold is gone by then, try again.
_TRY_FOR = 60
_TRY_EVERY = 1.0
_NO_SUCH_COMMAND = (126, 127)
_RECONNECTION = "reconnection_retries"


class _AlreadyRebooted(Exception):
    """The reboot that an earlier run of the operation requested has happened. It is not a failure."""


def _another_machine(boot_id: str, node: str, reported: str) -> Refused:
    return Refused(
        f"This host has boot ID {boot_id}, but Node {node} reports {reported or 'none'}. Either node names another "
        "machine, or its kubelet has not reported since the last boot.",
        node=node,
    )


class ActionModule(BuiltinReboot):
    """Adds to ansible.builtin.reboot what a node of a cluster needs before and after."""

    _VALID_ARGS = (
        frozenset(SPEC["argument_spec"])
        | BuiltinReboot._VALID_ARGS
        | {alias for option in SPEC["argument_spec"].values() for alias in option.get("aliases", [])}
    )

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        arguments = dict(self._task.args)
        if "kubeconfig" in arguments:
            content = _kubeconfig.decrypted(self._loader, arguments["kubeconfig"])
            arguments["kubeconfig"] = _kubeconfig.as_text(content)
        end_with_parent()
        validation = validated(SPEC, arguments)
        self._params = validation.validated_parameters
        self._run_id: str = self._params.get("run") or ""
        self._phases: dict[str, float] = {}
        self._passed = gate.Pass("")
        self._sent = False
        self._boot_id = ""
        # The boot that an earlier run of the operation began to end.
        self._earlier = ""
        self._after = ""
        self._stage = Deadline(None)
        unshown = validation._no_log_values
        with _progress_file.telling(self._task, task_vars or {}, self._params, unshown) as self._progress:
            self._progress.outcome = self._outcome(tmp, task_vars)
        cleaned: dict[str, Any] = remove_values(self._progress.outcome, unshown)
        return cleaned

    def _outcome(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Return the result; errors become a failed one."""
        started = time.monotonic()
        try:
            with runs.heartbeat(self._cluster(), self._run_id) if self._run_id else nullcontext():
                result = self._reboot(tmp, task_vars)
        except MissingLibrary as error:
            result = {"failed": True, "msg": error.message, "exception": error.traceback}
        except HoldfastError as error:
            result = error.as_result()
            if isinstance(error, Held) and self._params.get("operation"):
                # Part of a rolling reboot: the role puts the node back, and the node gets another turn.
                result = {**error.fields, "step": "held", "why": result["msg"]}
        except AnsibleConnectionFailure as error:
            # Do not report it as unreachable: rescue and always would not run for a node that does not come back.
            result = {"failed": True, "msg": f"The node can't be reached: {error}", "error": "unreachable"}
        except AnsibleError as error:
            result = {"failed": True, "msg": str(error), "error": "error"}
        except Exception as error:  # noqa: BLE001 - whether the node was told to reboot has to be in the result
            result = unexpected(error, "reboot", self._params)
        if self._params.get("operation") and not result.get("failed"):
            result.setdefault("step", "rebooted")
        happened = bool(self._after) and self._after != self._boot_id
        changed = happened and self._sent
        if self._task.check_mode and not result.get("failed"):
            happened = changed = not self._after
        result.update(
            rebooted=happened,
            sent=self._sent,
            changed=changed,
            boot_id_before=self._boot_id or None,
            boot_id_after=self._after or None,
            elapsed=round(time.monotonic() - started, 1),
            phases=self._phases,
        )
        if self._passed.overridden:
            result["overridden_holds"] = self._passed.overridden
        _traffic.add(self._params.get("node") or "", self._context.traffic())
        return result

    def cleanup(self, force: bool = False) -> None:
        clean_up(super().cleanup, force=force)

    def _reboot(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        if self._connection.transport == "local":
            raise Refused(
                "With a local connection, this task would reboot the controller. Use the node's own connection."
            )
        node = self._params.get("node")
        if node and self._params.get("operation"):
            self._earlier = boot_to_end(read_node(self._cluster(), node), self._params["operation"])
        try:
            if self._earlier:
                self._wait_for_earlier_reboot()
            self._look(first=True)
            self._wait_for_inhibitors()
            self._done("inhibitors")
            if self._task.check_mode:
                if node and self._params["etcd_selector"]:
                    require_quorum(self._cluster(), node, self._params["etcd_selector"])
                return {}
            result: dict[str, Any] = super().run(tmp, task_vars)
        except _AlreadyRebooted:
            result, self._passed = {}, gate.Pass("")
            if self._task.check_mode:
                self._after = self._boot_id_now()
                return {}
        if result.get("failed"):
            self._after = self._after or self._boot_id_now()
            if not self._sent:
                self._raise_if_held()
            return result
        self._done("reboot")
        now = self._boot_id_now()
        if self._sent:
            self._after = now or self._after
        if not node:
            return result
        self._tell("Ready with a new boot ID")
        back = wait_until_back(self._cluster(), node, self._boot_id, Deadline(self._params["ready_timeout"]))
        reported = node_rules.boot_id(back)
        if not self._sent and now not in ("", reported):
            raise _another_machine(now, node, reported)
        self._after = reported
        # The next reboot of this operation is another one.
        record_phase(self._cluster(), node, phase_of(self._params, "ready"))
        self._done("ready")
        return result

    def _wait_for_earlier_reboot(self) -> None:
        """Wait while the reboot that an earlier run requested is under way: the host goes down, is down, or boots."""
        deadline = Deadline(self._params["reboot_timeout"])
        while not deadline.passed:
            # While it boots, ssh may answer before logind does.
            with suppress(AnsibleConnectionFailure, HoldfastError):
                if not self._logind().preparing_for_shutdown:
                    return
            self._tell("the end of the reboot that an earlier run requested")
            time.sleep(_LOOK_EVERY)
            with suppress(AnsibleError, AttributeError):
                self._connection.reset()

    def perform_reboot(self, task_vars: dict[str, Any], distribution: dict[str, str]) -> dict[str, Any]:
        """Look a last time and then send the command, until the node accepts it or finally refuses it."""
        given = "reboot_command" in self._task.args
        programs = self._programs(task_vars, distribution)
        record = last_look.RebootRecord(self._context, self._params.get("node") or "", self._params)
        record.add(self._passed.overridden_names)
        wait, late = Deadline(_TRY_FOR), 0
        while True:
            state = self._look(first=False)
            if record.add(self._passed.overridden_names):
                # The write may wait for the API server, so look again.
                continue
            result, again = self._act(state, self._command(state, programs, distribution))
            if again == LATE and late < _LATE_AT_MOST:
                # Another run may have finished the node since then. The look shows it.
                late, wait = late + 1, Deadline(_TRY_FOR)
            elif not again or given or wait.passed:
                return result
            time.sleep(_TRY_EVERY)

    def check_boot_time(self, distribution: dict[str, str], previous_boot_time: str) -> None:
        """Wait for another boot ID, too: a line of sudo before the boot time, or the user's command, can change it."""
        super().check_boot_time(distribution, previous_boot_time)
        now = self._boot_id_now()
        if now in ("", self._boot_id):
            raise ValueError(f"the boot ID is still {self._boot_id}" if now else "the boot ID is unknown")
        self._after = now

    def _act(self, state: inhibitor_rules.Logind, command: str) -> tuple[dict[str, Any], str]:
        """Send the command once; return the result and, if the node did not obey, why a retry is possible."""
        until = int(state.uptime) + _ACT_WITHIN
        # Until a refusal is known, the node may have received it.
        self._sent = True
        result: dict[str, Any] = {"failed": False, "start": datetime.now(timezone.utc)}
        try:
            with self._without_reconnection():
                answer = self._low_level_execute_command(
                    guarded(command, self._boot_id, until, unless_held=self._holds_count()),
                    sudoable=self.DEFAULT_SUDOABLE,
                )
        except AnsibleConnectionFailure as error:
            # A node that goes down at once closes the connection.
            answer, ended, said = {"rc": None}, False, str(error)
        else:
            ended, said = True, f"{answer['stdout'].strip()} {answer['stderr'].strip()}".strip()
        if answer["rc"] == 0 or OTHER_BOOT in said or not (LATE in said or self._stays_up(until, ended=ended)):
            return result, ""
        self._sent = False
        result.update(failed=True, rebooted=False, msg=f"The node did not reboot: {said}")
        if LATE in said:
            return result, LATE
        return result, "" if answer["rc"] in _NO_SUCH_COMMAND else "refused"

    def _stays_up(self, until: int, *, ended: bool) -> bool:
        """Return whether the node stays up despite the command: same boot, and no shutdown that logind prepares.

        If the connection broke, the command may still arrive, until it is too late for it.
        """
        while True:
            try:
                state = self._logind()
            except (AnsibleConnectionFailure, HoldfastError):
                return False
            if state.boot_id != self._boot_id or state.preparing_for_shutdown:
                return False
            if ended or state.uptime > until:
                return True
            time.sleep(_LOOK_EVERY)

    @contextmanager
    def _without_reconnection(self) -> Iterator[None]:
        """Keep the connection from sending a command again: that would happen during or after the shutdown."""
        try:
            before = self._connection.get_option(_RECONNECTION)
        except (KeyError, AnsibleError):
            yield
            return
        self._connection.set_option(_RECONNECTION, 0)
        try:
            yield
        finally:
            self._connection.set_option(_RECONNECTION, before)

    def _raise_if_held(self) -> None:
        """A node with an agent refuses by itself if a hold came after the last look: report who has the hold."""
        node = self._params.get("node")
        if node:
            gate.check(self._cluster(), node, override_holds=self._params["override_holds"], run=self._run_id)

    def _look(self, *, first: bool) -> inhibitor_rules.Logind:
        """Check that the node may be rebooted now; the gate comes last."""
        state = self._logind()
        if state.preparing_for_shutdown:
            # The node goes down, no matter who requested it.
            self._sent = True
            raise Refused(
                "A shutdown of the node is already in progress. Wait for its end, and find out what started it.",
                boot_id=state.boot_id,
            )
        if first:
            self._boot_id = self._earlier or state.boot_id
        self._check_boot(state)
        if not first:
            self._refuse_blocks(state)
        node = self._params.get("node")
        if not node:
            return state
        if not first and self._params["etcd_selector"]:
            # The run may have been paused since the last check.
            require_quorum(self._cluster(), node, self._params["etcd_selector"])
        passed = gate.check(self._cluster(), node, override_holds=self._params["override_holds"], run=self._run_id)
        self._passed = passed
        if self._earlier and passed.boot_id not in ("", self._earlier):
            # The API server did not answer until the node was back.
            raise _AlreadyRebooted
        if passed.boot_id != self._boot_id:
            raise _another_machine(self._boot_id, node, passed.boot_id)
        return state

    def _check_boot(self, state: inhibitor_rules.Logind) -> None:
        if state.boot_id == self._boot_id:
            return
        if self._earlier:
            raise _AlreadyRebooted
        raise Refused(
            f"Someone else has rebooted the node (its boot ID was {self._boot_id} and is now {state.boot_id}). Run "
            "this again if the node still needs a reboot.",
            boot_id=state.boot_id,
        )

    def _wait_for_inhibitors(self) -> None:
        deadline = Deadline(self._params["inhibitor_timeout"])
        while True:
            state = self._logind()
            self._check_boot(state)
            foreign = self._foreign(state)
            if not foreign or deadline.passed:
                break
            self._tell(f"block locks of {inhibitor_rules.sentence(foreign)}")
            time.sleep(min(_LOOK_EVERY, deadline.left))
        self._refuse_blocks(state)

    def _refuse_blocks(self, state: inhibitor_rules.Logind) -> None:
        foreign = self._foreign(state)
        if foreign:
            raise TimedOut(
                f"The node can't be rebooted because of block locks of {inhibitor_rules.sentence(foreign)}. Wait until "
                "they are released, or raise inhibitor_timeout.",
                inhibitors=[asdict(item) for item in foreign],
            )

    def _foreign(self, state: inhibitor_rules.Logind) -> list[inhibitor_rules.Inhibitor]:
        """Return block locks that do not represent a hold: the gate has already judged holds."""
        judged = bool(self._params.get("node"))
        return [item for item in state.blocks() if not (judged and item.who == inhibitor_rules.AGENT)]

    def _holds_count(self) -> bool:
        """Whether a hold refuses the reboot."""
        return bool(self._params.get("node")) and not self._params["override_holds"]

    def _programs(self, task_vars: dict[str, Any], distribution: dict[str, str]) -> dict[str, str]:
        """Return paths of the commands. The search runs on the node, so it must come before the last look."""
        given = dict(self._task.args)
        programs = {}
        try:
            if "reboot_command" in given:
                programs["given"] = self.get_shutdown_command(task_vars, distribution)
                return programs
            if self._params["pre_reboot_delay"] >= _MINUTE:
                programs["shutdown"] = self.get_shutdown_command(task_vars, distribution)
            self._task.args = {**given, "reboot_command": "systemctl"}
            programs["systemctl"] = self.get_shutdown_command(task_vars, distribution)
            return programs
        finally:
            self._task.args = given

    def _command(self, state: inhibitor_rules.Logind, programs: dict[str, str], distribution: dict[str, str]) -> str:
        if "given" in programs:
            return f"{programs['given']} {self.get_shutdown_command_args(distribution)}"
        held = state.masked or any(item.who == inhibitor_rules.AGENT for item in state.blocks())
        if self._params["override_holds"] and held:
            # The agent's masks allow nothing else, and the user has chosen to override the holders.
            return f"{programs['systemctl']} reboot --force"
        if "shutdown" in programs:
            return f"{programs['shutdown']} {self.get_shutdown_command_args(distribution)}"
        # ansible.builtin.reboot passes minutes to shutdown, which then schedules the shutdown for now. On systemd 252
        # this succeeds even if a hold comes a moment later, and the shutdown is then silently refused.
        return f"{programs['systemctl']} reboot --message={shlex.quote(self._params['msg'])}"

    def _logind(self) -> inhibitor_rules.Logind:
        answer = self._low_level_execute_command(inhibitor_rules.QUERY, sudoable=self.DEFAULT_SUDOABLE)
        if answer["rc"] != 0:
            said = answer["stderr"].strip() or answer["stdout"].strip()
            raise Refused(
                f"The node's logind did not answer: {said}. The node needs systemd 239 or later with "
                "busctl, and the user must be root or become root."
            )
        return inhibitor_rules.parse(answer["stdout"])

    def _boot_id_now(self) -> str:
        try:
            answer = self._low_level_execute_command("cat /proc/sys/kernel/random/boot_id")
        except AnsibleConnectionFailure:
            return ""
        return inhibitor_rules.boot_id(answer["stdout"]) if answer["rc"] == 0 else ""

    def _tell(self, why: str) -> None:
        if self._params.get("node"):
            self._progress.tell(waits(self._params["node"], "reboot", why))

    @cached_property
    def _context(self) -> Context:
        return Context(self._params, check_mode=bool(self._task.check_mode))

    def _cluster(self) -> Cluster:
        return self._context.cluster

    def _done(self, phase: str) -> None:
        self._phases[phase] = round(self._stage.elapsed, 1)
        self._stage = Deadline(None)

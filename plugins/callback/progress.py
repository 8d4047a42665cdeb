# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows how far a run is: a table on a terminal, a line for each change in a log."""

from __future__ import annotations

DOCUMENTATION = r"""
name: progress
type: stdout
short_description: Show the nodes of a run in one table
version_added: 0.1.0
description:
  - Shows the phase of each node, since when it is in it, and what it waits for. It also shows the budgets, how many
    nodes are done and left, and an estimate of the time that is left.
  - On a terminal, it keeps one table up to date. This needs the Python library C(rich), which comes with Molecule and
    ansible-lint, for example. Without the library, and in a log, it prints a line for each change of a phase.
  - Results of tasks that went well are hidden, unless you increase the verbosity. Failures, warnings and the recap look
    as P(ansible.builtin.default#callback) prints them, in full and above the table. The messages of
    M(ansible.builtin.debug) are shown as plain lines. Plays without this collection look as
    P(ansible.builtin.default#callback) prints them, too.
  - It can also run in addition to another callback, for example in AWX, which has its own. To do that, enable it with
    C(callbacks_enabled). Then it adds its lines or its table, and changes nothing else.
options:
  view:
    description:
      - V(auto) shows a table on a terminal, and lines in a log. V(lines) prints lines on a terminal, too.
    type: str
    choices: [auto, lines]
    default: auto
    version_added: 0.1.0
    env:
      - name: HOLDFAST_PROGRESS_VIEW
    ini:
      - section: callback_progress
        key: view
extends_documentation_fragment:
  - default_callback
  - result_format_callback
requirements:
  - Set as C(stdout_callback), or in C(callbacks_enabled).
  - C(rich) for the table
author:
  - holdfast.kubernetes contributors (@holdfast)
"""

EXAMPLES = r"""
# On the command line:
# ANSIBLE_STDOUT_CALLBACK=holdfast.kubernetes.progress ansible-playbook holdfast.kubernetes.rolling_reboot

# In ansible.cfg:
# [defaults]
# stdout_callback = holdfast.kubernetes.progress

# In ansible.cfg, in addition to another callback, for example in AWX:
# [defaults]
# callbacks_enabled = holdfast.kubernetes.progress
"""

from typing import Any

from ansible import constants
from ansible.plugins.callback.default import CallbackModule as Default

from ansible_collections.holdfast.kubernetes.plugins.module_utils._shared.bounds import plain
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _live_view

_COLLECTION = "holdfast.kubernetes."
_FOLDER = "ansible_collections/holdfast/kubernetes/"
_NOT_SHOWN = ("changed", "failed", "ansible_loop_var", "ansible_index_var")
_DEBUG = ("ansible.builtin.debug", "ansible.legacy.debug", "debug")


class CallbackModule(Default):
    """Adds the view to the default callback, and hides the results that the view replaces."""

    CALLBACK_VERSION = 2.0
    # Ansible can load a callback of this type in addition to another one, or as stdout_callback.
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "holdfast.kubernetes.progress"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._ours = False
        self._view: _live_view.LiveView | None = None
        # The callback of ansible-runner is made from the user's stdout callback, and has this type.
        alone = self.CALLBACK_TYPE == "stdout" or vars(constants)["DEFAULT_STDOUT_CALLBACK"] == self.CALLBACK_NAME
        self._printer: Any = self._display
        if not alone:
            vars(self)["_display"] = _Silent(self._printer)

    @property
    def _quiet(self) -> bool:
        """Whether the view replaces the results of tasks that went well."""
        return self._ours and not self._display.verbosity

    # -- what the view shows

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._ours = _is_ours(play)
        self._play = play
        if self._ours and self._view is None:
            self._view = _live_view.LiveView(self._printer, table=self.get_option("view") == "auto")
        if not self._quiet:
            super().v2_playbook_on_play_start(play)

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        if self._view and self._ours and not (_is_from_us(task) or _uses_us(task)):
            self._view.own_task(host.get_name(), task.name or task.get_name())
        super().v2_runner_on_start(host, task)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        if self._view and not ignore_errors and not (_is_from_us(result.task) or _uses_us(result.task)):
            self._view.lost(result.host.get_name(), str(result.result.get("msg") or "failed"))
        super().v2_runner_on_failed(result, ignore_errors)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        if self._view:
            self._view.lost(result.host.get_name(), str(result.result.get("msg") or "unreachable"))
        super().v2_runner_on_unreachable(result)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        if self._view:
            self._view.stop()
        super().v2_playbook_on_stats(stats)

    # -- what is hidden while the view shows it

    def v2_runner_on_ok(self, result: Any) -> None:
        if not self._quiet:
            super().v2_runner_on_ok(result)
        elif result.task.action not in _DEBUG:
            self._handle_warnings_and_exception(result)
        elif not result.task.loop:
            # A loop has shown the message of each item.
            self._show(result.result)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        if not self._quiet:
            super().v2_runner_item_on_ok(result)
        elif result.task.action in _DEBUG:
            self._show(result.result)
        else:
            self._handle_warnings_and_exception(result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        if not self._quiet:
            super().v2_runner_on_skipped(result)

    def v2_runner_item_on_skipped(self, result: Any) -> None:
        if not self._quiet:
            super().v2_runner_item_on_skipped(result)

    def v2_playbook_on_include(self, included_file: Any) -> None:
        if not self._quiet:
            super().v2_playbook_on_include(included_file)

    def _task_start(self, task: Any, prefix: str | None = None) -> None:
        if self._quiet:
            # A failure prints the banner of its task.
            self._last_task_name = None
        else:
            super()._task_start(task, prefix)

    def _show(self, result: Any) -> None:
        """Print the message of a debug task as plain lines."""
        shown = (
            result.get("msg", "")
            if "msg" in result
            else {key: value for key, value in result.items() if not key.startswith("_") and key not in _NOT_SHOWN}
        )
        for item in shown if isinstance(shown, list) else [shown]:
            text = item if isinstance(item, str) else self._dump_results(shown, indent=2)
            # Texts of others, for example from a Node, could move the cursor.
            self._display.display("\n".join(map(plain, text.split("\n"))))


class _Silent:
    """The display while another callback prints the results."""

    def __init__(self, display: Any) -> None:
        self._real = display

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        return (lambda *_args, **_options: None) if callable(found) else found


def _is_ours(play: Any) -> bool:
    """Whether a play is of this collection, or has its roles or modules."""
    return any(_is_from_us(task) or _uses_us(task) for block in play.compile() for task in _tasks(block))


def _tasks(block: Any) -> list[Any]:
    found = []
    for item in [*block.block, *block.rescue, *block.always]:
        found += _tasks(item) if hasattr(item, "block") else [item]
    return found


def _is_from_us(task: Any) -> bool:
    """Whether a task is written in this collection. A role of it also runs tasks of the user."""
    return _FOLDER in str(task.get_path() or "")


def _uses_us(task: Any) -> bool:
    """Whether a task calls a module of this collection, or includes a role of it."""
    names = (task.resolved_action or task.action, vars(task).get("_role_name") or "")
    return any(str(name).startswith(_COLLECTION) for name in names)

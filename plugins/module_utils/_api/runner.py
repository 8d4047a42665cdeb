# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run an operation: from options to a result, as a module or in the controller's process.

An operation is a function ``(Context, params) -> result``. It uses the network but not Ansible; this
module turns its errors into results.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Callable

from ansible.module_utils.basic import AnsibleModule

from .._shared.bounds import plain
from .auth_options import NAMES, kubeconfig_paths
from .cluster import Cluster
from .errors import HoldfastError, MissingLibrary
from .option_rules import check_numbers

REPORT_TO = "https://holdfast.dev/kubernetes"
# Options that name what a task works on.
_OBJECTS = ("name", "node", "machine", "bare_metal_host", "namespace", "group", "operation", "run")

# What Ansible shows in place of a secret.
HIDDEN = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"

Params = Mapping[str, Any]
Result = dict[str, Any]
Unshown = Mapping[str, Sequence[str]]


@dataclass
class Context:
    """The clusters and the mode of an operation.

    Attributes:
        params: The validated options of the task.
        check_mode: Change nothing; writes are server-side dry runs.
        warn: Shows the user a warning. ansible-core shows it with the result of the task.
        say: Shows the user a line at once.
        folder: A folder that all tasks of an ansible-playbook process share; empty if there is none.
        tell: Tells the live view what the operation waits for, as an event of ``_progress/event_rules.py``.
    """

    params: Params
    check_mode: bool = False
    warn: Callable[[str], None] = field(default=lambda message: None)
    say: Callable[[str], None] = field(default=lambda message: None)
    folder: str = ""
    tell: Callable[[dict[str, Any]], None] = field(default=lambda event: None)

    def warn_now(self, message: str) -> None:
        """Show the user a warning while the operation waits."""
        self.say(f"WARNING: {message}")

    @cached_property
    def cluster(self) -> Cluster:
        """The workload cluster: the cluster that has the Nodes."""
        return Cluster({name: self.params.get(name) for name in NAMES}, dry_run=self.check_mode)

    @cached_property
    def management(self) -> Cluster:
        """The cluster that has the Machines and BareMetalHosts; by default the workload cluster."""
        options = self.params.get("management")
        if not options:
            return self.cluster
        return Cluster({**options, "api_timeout": self.params.get("api_timeout")}, dry_run=self.check_mode)

    def traffic(self) -> dict[str, int]:
        """Requests that were sent, and bytes that were received, with every cluster that was connected to."""
        connected = {id(item): item for name, item in vars(self).items() if name in ("cluster", "management")}.values()
        return {"requests": sum(item.requests for item in connected), "bytes": sum(item.received for item in connected)}


Operation = Callable[[Context, Params], Result]


def run_operation(
    operation: Operation,
    params: Params,
    *,
    check_mode: bool,
    warn: Callable[[str], None],
    say: Callable[[str], None] | None = None,
    count: Callable[[dict[str, int]], None] = lambda traffic: None,
    folder: str = "",
    tell: Callable[[dict[str, Any]], None] = lambda event: None,
) -> Result:
    """Run an operation and return what the task returns; errors become ``failed``, ``msg``, ``error`` and fields.

    Args:
        count: Gets the number of requests and bytes, also after a failure.
        folder: See :class:`Context`.
        tell: See :class:`Context`.
    """
    context = Context(params, check_mode, _plainly(warn), _plainly(say or warn), folder, tell)
    try:
        check_numbers(params)
        return operation(context, params)
    except MissingLibrary as error:
        return {"failed": True, "changed": False, "msg": error.message, "exception": error.traceback}
    except HoldfastError as error:
        return error.as_result()
    except Exception as error:  # noqa: BLE001 - a trace alone would name neither the operation nor the object
        return unexpected(error, operation.__name__, params)
    finally:
        count(context.traffic())


def _plainly(show: Callable[[str], None]) -> Callable[[str], None]:
    """Ansible prints a warning as it is, as it does the message of an error."""
    return lambda message: show(plain(message))


def run_module(operation: Operation, spec: Mapping[str, Any], unshown: Unshown = MappingProxyType({})) -> None:
    """Run an operation as a module: options from Ansible, the result to Ansible. Ends the process.

    Args:
        operation: What the module does.
        spec: Keyword arguments of ``AnsibleModule``.
        unshown: See :func:`invocation`.
    """
    module = AnsibleModule(**spec)
    module.no_log_values -= kubeconfig_paths(module.params)
    traffic: dict[str, int] = {}
    result = run_operation(
        operation, module.params, check_mode=module.check_mode, warn=module.warn, count=traffic.update
    )
    # The action plugin counts it, and takes it out of the result.
    result["api"] = traffic
    result["invocation"] = invocation(module.params, unshown)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


def invocation(params: Params, unshown: Unshown) -> Result:
    """Return the options of a task, as its result shows them.

    ``no_log`` would also hide each word of a command wherever it stands in the result, for example "off".

    Args:
        unshown: The suboptions that are not shown, by their option.
    """
    shown = dict(params)
    for option, names in unshown.items():
        given = params.get(option) or {}
        if hidden := {name: HIDDEN for name in names if given.get(name)}:
            shown[option] = {**given, **hidden}
    return {"module_args": shown}


def unexpected(error: Exception, operation: str, params: Params) -> Result:
    """The result of a defect in this collection: the operation, its objects, and where to report it."""
    given = ", ".join(f"{name} {params[name]}" for name in _OBJECTS if params.get(name))
    return {
        "failed": True,
        "changed": False,
        "msg": f"Unexpected error in {operation}{f' of {given}' if given else ''}: {type(error).__name__}: {error}. "
        "Check the object before you run this again: changes made before the error stay. Please report the "
        f"error, with the trace, at {REPORT_TO}.",
        "error": "unexpected",
        "exception": traceback.format_exc(),
    }

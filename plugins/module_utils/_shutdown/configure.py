# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Set the time of a graceful shutdown for both the kubelet and the logind of the node that this runs on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._api.errors import HoldfastError, Refused, TimedOut
from .._logind.bus import NodeBus
from .._logind.inhibitor_rules import Inhibitor
from .._logind.runner import Context, Params, Result
from .._logind.wait import until
from . import logind_files, logind_rules, whole_file
from .grace_rules import Groups, needed, wanted
from .kubelet_files import kubelet_of, read_settings
from .kubelet_rules import Kubelet, Settings
from .logind_rules import LogindFiles
from .plan_rules import (
    Memory,
    Outcome,
    Wanted,
    delay,
    is_ours,
    kept_from_data,
    kept_to_data,
    kubelet_drop_in,
    logind_drop_in,
    names_to_sort_after,
    plan,
    values,
    with_settings,
)

_LOGIND = "/etc/systemd/logind.conf.d"
# The kubelet writes this file if the delay is too short: it holds an earlier value, which no one else asked for.
_KUBELETS_OWN = f"{_LOGIND}/99-kubelet.conf"
_MEMORY = "/var/lib/holdfast/graceful_shutdown.json"
# What the last change found. It is lost at the next boot, and useless after it. The role removes it when the kubelet
# has come back with the change.
_PREVIOUS = "/run/holdfast-graceful-shutdown.json"
_PATIENCE = 15.0
_LOOK_EVERY = 0.05


@dataclass(frozen=True)
class _Node:
    """What was found before any change.

    Attributes:
        unproven: The backup of an earlier change of the kubelet's files, if the kubelet has not started since.
    """

    bus: NodeBus
    version: int
    kubelet: Kubelet
    settings: Settings
    logind: LogindFiles
    memory: Memory
    unproven: Mapping[str, Any] | None


def graceful_shutdown(context: Context, params: Params) -> Result:
    """Set both sides, set them back, or undo the last change; see the module of the same name."""
    divided = wanted(params.get("total"), params.get("critical"), params.get("by_priority"))
    if os.geteuid() != 0:
        raise Refused("Only root may change what the kubelet and logind read. Use become.")
    bus = context.bus
    _refuse_in_shutdown(bus)
    node = _look(bus, params)
    if params["state"] == "previous":
        outcome = _previous(node)
    elif params["state"] == "absent":
        outcome = plan(node.memory, _texts(node, node.memory.made), Wanted())
    else:
        goal = _wanted_state(node, divided, bool(params.get("by_priority")))
        outcome = plan(node.memory, _texts(node, (goal.main, *goal.files)), goal)
    kubelets = [path for path in outcome.after if not _logind(path)]
    if kubelets and node.settings.troubles and params["state"] != "previous":
        path, why = node.settings.troubles[0]
        raise Refused(
            f"{path} {why}. The kubelet would not start with it, so nothing was changed. Fix the file first.",
            path=path,
        )
    before = {path: whole_file.read(path) for path in outcome.after}
    reload = _reload_needed(node, outcome, params["state"])
    if not context.check_mode:
        _carry_out(node, outcome, before, params["state"], reload=reload)
    effective = _expected(node, outcome) if context.check_mode else _effective(bus)
    return {
        "changed": bool(outcome.after) or reload,
        "restart_needed": bool(kubelets) or node.unproven is not None or _stale(node, divided),
        "files": [_change(path, before[path], text) for path, text in sorted(outcome.after.items())],
        "needed": needed(divided) if params["state"] == "present" else None,
        "inhibit_delay_max": logind_rules.finite(effective),
        "diff": [_diff(path, before[path], text) for path, text in sorted(outcome.after.items())],
    }


def _refuse_in_shutdown(bus: NodeBus) -> None:
    if bus.logind().preparing_for_shutdown:
        raise Refused(
            "A shutdown of the node is in progress, with the times that are set. Try again after the next boot.",
            preparing_for_shutdown=True,
        )


# -- what exists


def _look(bus: NodeBus, params: Params) -> _Node:
    kubelet = kubelet_of(bus, params)
    text, version = whole_file.read(_MEMORY), bus.systemd_version()
    try:
        memory = Memory.from_data(json.loads(text)) if text else Memory()
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Refused(
            f"{_MEMORY}, which records the kubelet's configuration from before this module, is invalid: {error}. "
            "Restore it from a backup; or remove it, and the present configuration counts as the earlier one.",
            path=_MEMORY,
        ) from error
    return _Node(
        bus=bus,
        version=version,
        kubelet=kubelet,
        settings=read_settings(kubelet.config, kubelet.config_dir, embedded=kubelet.embedded),
        logind=logind_files.read(version),
        memory=memory,
        unproven=_unproven(kubelet),
    )


def _unproven(kubelet: Kubelet) -> Mapping[str, Any] | None:
    text = whole_file.read(_PREVIOUS)
    backup: dict[str, Any] = json.loads(text) if text else {}
    if all(_logind(path) for path in (*backup.get("settings", ()), *backup.get("files", ()))):
        return None
    # Ages instead of times: the clock may have been set since. The backup is from this boot.
    age = time.monotonic() - backup.get("changed", 0)
    runs = kubelet.active and kubelet.started is not None and time.time() - kubelet.started < age
    return None if runs else backup


def _texts(node: _Node, more: Any) -> dict[str, str | None]:
    """Return the files that are wanted or remembered, and others that may be ours."""
    paths = {*more, *node.memory.before, *node.memory.made}
    for folder in (_LOGIND, node.kubelet.config_dir):
        for name in os.listdir(folder) if folder and os.path.isdir(folder) else ():
            if logind_files.is_ours(name):
                paths.add(os.path.join(folder, name))
    return {path: whole_file.read(path) for path in paths if path}


def _wanted_state(node: _Node, divided: Groups, by_priority: bool) -> Wanted:
    kubelet, settings = node.kubelet, values(divided, by_priority)
    files = {}
    if kubelet.config_dir:
        files[_kubelet_drop_in(kubelet.config_dir)] = kubelet_drop_in(settings)
    elif not kubelet.config or whole_file.read(kubelet.config) is None:
        raise Refused(
            f"The kubelet of {kubelet.unit} has no configuration file{kubelet.config and f' {kubelet.config}'}, and "
            "the times can be set nowhere else. Start it with --config or --config-dir, or give kubelet_unit, "
            "kubelet_config or kubelet_config_dir.",
            kubelet_unit=kubelet.unit,
        )
    if needed(divided):
        name = logind_files.winning_name(node.logind.drop_ins)
        files[f"{_LOGIND}/{name}"] = logind_drop_in(divided, delay(divided, _others(node)))
    return Wanted("" if kubelet.config_dir else kubelet.config, settings, files)


def _kubelet_drop_in(folder: str) -> str:
    if os.path.islink(folder) or not os.path.isdir(folder):
        why = "is a link, which the kubelet does not follow" if os.path.islink(folder) else "is not a directory"
        raise Refused(
            f"{folder}, from which the kubelet is configured to read drop-ins, {why}. Fix it first.", path=folder
        )
    entries = [entry for entry in os.scandir(folder) if not logind_files.is_ours(entry.name)]
    names = names_to_sort_after((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    return os.path.join(folder, logind_files.winning_name(names))


def _others(node: _Node) -> float:
    """Return the seconds that logind would give without us and without the kubelet."""
    found = [
        item.seconds for item in node.logind.candidates if item.file != _KUBELETS_OWN and not _is_own_file(item.file)
    ]
    return found[-1] if found else logind_rules.DEFAULT


def _logind(path: str) -> bool:
    return path.startswith(f"{_LOGIND}/")


def _is_own_file(path: str) -> bool:
    return _logind(path) and is_ours(whole_file.read(path))


def _effective(bus: NodeBus) -> float:
    return logind_rules.effective(bus.inhibit_delay_max())


# -- what to do


def _previous(node: _Node) -> Outcome:
    """Return what the last change found."""
    text = whole_file.read(_PREVIOUS)
    if text is None:
        return Outcome({}, node.memory, {})
    data = json.loads(text)
    after: dict[str, str | None] = dict(data["files"])
    for path, kept in data["settings"].items():
        now = whole_file.read(path)
        if now is not None:
            after[path] = with_settings(path, now, kept_from_data(kept))
    changed = {path: content for path, content in after.items() if content != whole_file.read(path)}
    return Outcome(changed, Memory.from_data(data["memory"]), {})


def _reload_needed(node: _Node, outcome: Outcome, state: str) -> bool:
    if any(_logind(path) for path in outcome.after):
        return True
    wanted_there = state == "present" and any(_logind(path) for path in outcome.memory.made)
    return wanted_there and not logind_rules.same(_effective(node.bus), node.logind.seconds)


def _stale(node: _Node, divided: Groups) -> bool:
    """Return whether the kubelet's files changed after its start, or it gave up its lock at its start."""
    if not node.kubelet.active:
        return False
    changed = node.kubelet.started is not None and node.settings.changed > node.kubelet.started
    mine = [item for item in node.bus.logind().inhibitors if item.pid == node.kubelet.pid and item.mode == "delay"]
    return changed or (bool(needed(divided)) and not mine)


def _expected(node: _Node, outcome: Outcome) -> float:
    """Return what logind will give, before the change is made."""
    candidates = [item for item in node.logind.candidates if item.file not in outcome.after]
    for path, text in outcome.after.items():
        seconds = logind_rules.delay(text) if _logind(path) and text else None
        if seconds is not None:
            return seconds
    return candidates[-1].seconds if candidates else logind_rules.DEFAULT


# -- the change


def _carry_out(node: _Node, outcome: Outcome, before: Mapping[str, str | None], state: str, *, reload: bool) -> None:
    """Change logind first: the kubelet must not need more than it gives. If logind fails, set everything back."""
    kept = whole_file.read(_PREVIOUS)
    if outcome.after and state != "previous":
        _remember(node, outcome, before)
    drop_ins = {path: text for path, text in outcome.after.items() if _logind(path)}
    try:
        _write_files(drop_ins)
        if reload:
            _reload(node, outcome)
    except HoldfastError:
        _write_files({**{path: before[path] for path in drop_ins}, _PREVIOUS: kept})
        node.bus.reload_logind()
        raise
    # Write this before the kubelet's files: their original state must survive a kill at any time.
    if outcome.memory:
        whole_file.write(_MEMORY, json.dumps(outcome.memory.to_data(), indent=1), 0o600)
    _write_files({path: text for path, text in outcome.after.items() if path not in drop_ins})
    if not outcome.memory:
        whole_file.remove(_MEMORY)
        whole_file.remove_folder(os.path.dirname(_MEMORY))
    if state == "previous":
        whole_file.remove(_PREVIOUS)


def _remember(node: _Node, outcome: Outcome, before: Mapping[str, str | None]) -> None:
    data: dict[str, Any] = {
        "settings": {path: kept_to_data(kept) for path, kept in outcome.was.items()},
        "files": {path: text for path, text in before.items() if path not in outcome.was},
        "memory": node.memory.to_data(),
        "changed": time.monotonic(),
    }
    if node.unproven:
        # The kubelet may not start with what the earlier change left, so that is nothing to return to.
        for name in ("settings", "files"):
            data[name] = {**data[name], **node.unproven[name]}
        data["memory"] = node.unproven["memory"]
    whole_file.write(_PREVIOUS, json.dumps(data), 0o600)


def _write_files(texts: Mapping[str, str | None]) -> None:
    # Write new files before removing old ones, so that logind finds one at any time.
    for path, text in sorted(texts.items(), key=lambda item: item[1] is None):
        if text is None:
            whole_file.remove(path)
        else:
            whole_file.write(path, text, 0o644 if _logind(path) else 0o600)


def _reload(node: _Node, outcome: Outcome) -> None:
    """Have logind read its files, and check that it did, and that every lock is still there."""
    bus = node.bus
    locks = bus.logind().inhibitors
    bus.reload_logind()
    files = logind_files.read(node.version)
    if not until(lambda: logind_rules.same(_effective(bus), files.seconds), _PATIENCE, _LOOK_EVERY):
        raise TimedOut(
            f"logind was reloaded, but {_PATIENCE:.0f} s later its InhibitDelayMaxSec is {_effective(bus):g} s, and "
            f"{files.winner.file if files.winner else 'its default'} says {files.seconds:g} s. See journalctl -u "
            "systemd-logind on the node.",
            inhibit_delay_max=logind_rules.finite(_effective(bus)),
        )
    wrong = files.winner.file if files.winner else None
    made = [path for path in outcome.memory.made if _logind(path)]
    if made and wrong not in made:
        raise HoldfastError(
            f"logind uses {wrong or 'its default'}, not {', '.join(made)}. Check whether a directory among its "
            "drop-ins prevents it from reading the files after it.",
            file=wrong,
        )
    lost = [item for item in locks if item not in bus.logind().inhibitors and _lives(item)]
    if lost:
        raise HoldfastError(
            "While logind reloaded its files, these locks were lost: "
            + "; ".join(f'{item.who} ("{item.why}", process {item.pid})' for item in lost)
            + ". If their holders did not release them, let the holders take their locks again.",
            locks=[item.who for item in lost],
        )


def _lives(item: Inhibitor) -> bool:
    return os.path.exists(f"/proc/{item.pid}")


# -- results


def _change(path: str, before: str | None, after: str | None) -> dict[str, str]:
    return {"path": path, "change": "created" if before is None else "removed" if after is None else "changed"}


def _diff(path: str, before: str | None, after: str | None) -> dict[str, str]:
    return {"before": before or "", "after": after or "", "before_header": path, "after_header": path}

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's files must say for a graceful shutdown, and what they said before.

Texts in, texts out. Files of others are changed setting by setting, and their former settings remembered; files that
are only ours are written as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from .._api.errors import Refused
from .grace_rules import BY_PRIORITY, CRITICAL, KEYS, TOTAL, Groups, duration, needed, parse_duration
from .kubelet_edit_rules import Setting, edit, settings

# This line identifies a file as ours. The name does not matter.
MARK = "# Written by holdfast.kubernetes.graceful_shutdown, which removes it again."
# Seconds that logind waits longer than the kubelet takes. Otherwise the pauses between groups would cut the last group
# short, and a shutdown that used all of its time would look like one that did not finish.
MARGIN = 5

Texts = Mapping[str, Optional[str]]
# The setting of each key in a file; None if it is absent.
Kept = Mapping[str, Optional[Setting]]


@dataclass(frozen=True)
class Memory:
    """What is needed to set everything back.

    Attributes:
        before: For each file of others, its settings before our change.
        ours: Our settings there. A setting that differs by now was changed by others, and counts as ``before``.
        made: Files that are only ours.
    """

    before: Mapping[str, Kept] = field(default_factory=dict)
    ours: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    made: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.before or self.made)

    def to_data(self) -> dict[str, Any]:
        return {
            "before": {path: kept_to_data(kept) for path, kept in self.before.items()},
            "ours": {path: dict(values) for path, values in self.ours.items()},
            "made": list(self.made),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Memory:
        return cls(
            {path: kept_from_data(kept) for path, kept in data["before"].items()},
            {path: dict(values) for path, values in data["ours"].items()},
            tuple(data["made"]),
        )


@dataclass(frozen=True)
class Wanted:
    """The wanted state.

    Attributes:
        main: File of others in which to set the values; empty if there is none.
        values: The kubelet's settings.
        files: Files that are to be only ours, and their texts.
    """

    main: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """The resulting files.

    Attributes:
        after: Those to change; None for one to remove.
        memory: What to remember.
        was: For each changed file of others, its present settings.
    """

    after: Mapping[str, str | None]
    memory: Memory
    was: Mapping[str, Kept]


def values(divided: Groups, by_priority: bool) -> dict[str, Any]:
    """Return the kubelet's settings for groups. Those of the other form are emptied, so that the two never coexist."""
    if by_priority:
        groups = [{"priority": group.priority, "shutdownGracePeriodSeconds": group.seconds} for group in divided]
        return {TOTAL: "0s", CRITICAL: "0s", BY_PRIORITY: groups}
    critical = divided[-1].seconds if divided else 0
    return {TOTAL: duration(needed(divided)), CRITICAL: duration(critical), BY_PRIORITY: []}


def kubelet_drop_in(wanted: Mapping[str, Any]) -> str:
    """Return a drop-in for the kubelet that sets everything; the other files do not matter."""
    groups = wanted[BY_PRIORITY]
    lines = [MARK, "apiVersion: kubelet.config.k8s.io/v1beta1", "kind: KubeletConfiguration"]
    lines += [f"{key}: {wanted[key]}" for key in (TOTAL, CRITICAL)]
    lines.append(f"{BY_PRIORITY}:{'' if groups else ' []'}")
    for group in groups:
        first, *others = [f"{name}: {number}" for name, number in group.items()]
        lines += [f"- {first}", *(f"  {other}" for other in others)]
    return "\n".join(lines) + "\n"


def delay(divided: Groups, others: float) -> float:
    """Return the seconds that logind must give: what the kubelet needs, and at least what it would give without us."""
    return max(needed(divided) + MARGIN, others)


def logind_drop_in(divided: Groups, seconds: float) -> str:
    value = "infinity" if math.isinf(seconds) else f"{math.ceil(seconds)}"
    return f"{MARK}\n# The kubelet needs {needed(divided)} s of it.\n[Login]\nInhibitDelayMaxSec={value}\n"


def is_ours(text: str | None) -> bool:
    return bool(text) and str(text).startswith(MARK)


def plan(memory: Memory, texts: Texts, wanted: Wanted) -> Outcome:
    """Return what to change so that the files have what is wanted, and none of our other settings.

    Args:
        memory: What earlier runs left.
        texts: The existing files: those that are wanted and remembered, and others that may be ours.

    Raises:
        Refused: A file cannot be changed safely, or another program's file has the name that this one needs.
    """
    after: dict[str, str | None] = {}
    before: dict[str, Kept] = {}
    ours: dict[str, Mapping[str, Any]] = {}
    was: dict[str, Kept] = {}
    for path in sorted({*memory.before, wanted.main} - {""}):
        text = texts.get(path)
        if text is None:
            continue
        now = kept(path, text)
        there = _before(memory, path, now)
        aims = _aims(now, there, wanted.values) if path == wanted.main else there
        changed = with_settings(path, text, aims)
        if changed != text:
            after[path], was[path] = changed, now
        if aims != there:
            before[path] = there
            ours[path] = {key: setting.value if setting else None for key, setting in aims.items()}
    after.update(_own_files(texts, wanted.files))
    return Outcome(after, Memory(before, ours, tuple(sorted(wanted.files))), was)


def kept(path: str, text: str) -> Kept:
    """Return the setting of each key in a file."""
    found = settings(path, text, KEYS)
    return {key: found.get(key) for key in KEYS}


def with_settings(path: str, text: str, aims: Kept) -> str:
    """Return a file's text with these settings, and without those that are None."""
    now = kept(path, text)
    return edit(path, text, {key: aim for key, aim in aims.items() if aim != now[key]})


def _before(memory: Memory, path: str, now: Kept) -> Kept:
    if path not in memory.before:
        return now
    before, ours = memory.before[path], memory.ours[path]
    return {key: before[key] if _value(now[key]) == ours[key] else now[key] for key in KEYS}


def _aims(now: Kept, before: Kept, wanted: Mapping[str, Any]) -> Kept:
    """Keep the text of correct settings; restore former ones that were correct; write only the others."""
    aims: dict[str, Setting | None] = {}
    for key in KEYS:
        if _same(key, _value(now[key]), wanted[key]):
            aims[key] = now[key]
        elif _same(key, _value(before[key]), wanted[key]):
            aims[key] = before[key]
        else:
            aims[key] = Setting(wanted[key])
    return aims


def _own_files(texts: Texts, wanted: Mapping[str, str]) -> dict[str, str | None]:
    for path in wanted:
        if texts.get(path) and not is_ours(texts[path]):
            raise Refused(
                f"{path} exists, but this module did not write it and needs the name. Rename or remove the file.",
                path=path,
            )
    found: dict[str, str | None] = {path: text for path, text in wanted.items() if texts.get(path) != text}
    return {**found, **{path: None for path, text in texts.items() if is_ours(text) and path not in wanted}}


def _value(setting: Setting | None) -> Any:
    return setting.value if setting else None


def _same(key: str, one: Any, other: Any) -> bool:
    """Return whether two values are the same for the kubelet, which treats an absent one as empty."""
    return bool(_amount(key, one) == _amount(key, other))


def _amount(key: str, value: Any) -> Any:
    if key == BY_PRIORITY:
        if not isinstance(value, list):
            return [] if value is None else value
        return sorted(value, key=lambda item: str(sorted(item.items()) if isinstance(item, dict) else item))
    try:
        return parse_duration("0" if value is None else value)
    except (TypeError, ValueError):
        return value


def kept_to_data(kept: Kept) -> dict[str, Any]:
    return {key: {"value": setting.value, "text": setting.text} if setting else None for key, setting in kept.items()}


def kept_from_data(data: Mapping[str, Any]) -> Kept:
    return {key: Setting(item["value"], item["text"]) if item else None for key, item in data.items()}


def names_to_sort_after(names: Iterable[tuple[str, bool]]) -> list[str]:
    """Return entries of the kubelet's directory in the form that a name must sort after.

    Args:
        names: Name, and whether it is a directory: the kubelet reads its content in the place of its name.
    """
    return [f"{name}.conf" if folder else name for name, folder in names if folder or name.endswith(".conf")]

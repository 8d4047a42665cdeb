# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change single settings in the text of a kubelet's configuration, and leave every other byte unchanged.

The text is never generated from the parsed content: the parser gives only the positions of keys and values. Each edit
is read back, and refused if the result differs from what was asked for.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .._api.errors import MissingLibrary, Refused

try:
    import yaml

    YAML_ERROR = ""
except ImportError:
    YAML_ERROR = traceback.format_exc()

_BREAK = re.compile(r"\r\n|\n|\r")
_DURATION = re.compile(r"(\d+[hms])+")
_STRANGE = re.compile(r"[^ -~\r\n]")
_QUESTION = re.compile(r"\? *\Z")
_SEPARATOR = re.compile(r"\s*,\s*")


@dataclass(frozen=True)
class Setting:
    """A value, and its text in the file.

    Attributes:
        text: The text after the key, from the colon to the end of the value; empty if it must be written.
    """

    value: Any
    text: str = ""


@dataclass(frozen=True)
class _Entry:
    """One key of the top level, and the positions of the key and its value.

    Attributes:
        text_block: Whether its value ends in a block scalar, which includes the blank lines after it.
        anchors: The names that its value defines for use elsewhere.
        aliases: The names that its value uses.
    """

    key: str | None
    start: int
    key_end: int
    end: int
    text_block: bool = False
    anchors: frozenset[str] = frozenset()
    aliases: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Layout:
    flow: bool
    entries: tuple[_Entry, ...]

    def find(self, key: str) -> _Entry | None:
        return next((entry for entry in self.entries if entry.key == key), None)


class _Uneditable(Exception):
    """The form of the text does not allow an edit; the message says why, as a part of a sentence."""


def settings(path: str, text: str, keys: tuple[str, ...]) -> dict[str, Setting]:
    """Return those of the keys that are set at the top level.

    Args:
        path: The file, for errors.

    Raises:
        Refused: The text is no mapping, or has one of the keys twice.
    """
    try:
        found, said = _layout(text), _documents(text)[0]
        entries = {key: _once(found, key) for key in keys}
    except _Uneditable as error:
        raise _refused(path, str(error)) from error
    return {
        key: Setting(said[key], text[entry.key_end : entry.end])
        for key, entry in entries.items()
        if entry and key in said
    }


def edit(path: str, text: str, changes: Mapping[str, Setting | None]) -> str:
    """Return the text with these settings, and no other change; None removes one.

    Args:
        path: The file, for errors.

    Raises:
        Refused: The form of the text does not allow a safe edit.
    """
    try:
        for key, setting in changes.items():
            text = _change(text, key, setting)
    except _Uneditable as error:
        raise _refused(path, str(error)) from error
    return text


def _refused(path: str, why: str) -> Refused:
    return Refused(
        f"{path} can't be changed without a risk to its other content: {why}. Nothing was changed. Simplify the file, "
        "or set shutdownGracePeriod and the related settings there yourself.",
        path=path,
    )


def _change(text: str, key: str, setting: Setting | None) -> str:
    layout, before = _layout(text), _documents(text)
    entry = _once(layout, key)
    wanted = dict(before[0])
    if setting is None:
        wanted.pop(key, None)
        tries = [_without(text, layout, entry)] if entry else [text]
    else:
        wanted[key] = setting.value
        tries = [
            _with(text, layout, entry, key, written)
            for written in (setting.text, _written(setting.value, layout, text))
            if written
        ]
    for changed in tries:
        try:
            if _documents(changed) == [wanted, *before[1:]]:
                return changed
        except _Uneditable:
            pass
    raise _Uneditable(f"{key} has an unknown form")


# -- reading


def _layout(text: str) -> _Layout:
    """Return the positions of the keys of the first document, and of their values."""
    entries: list[_Entry] = []
    keys: list[Any] = []
    value: list[Any] = []
    flow, depth = False, 0
    for event in _events(text):
        if isinstance(event, yaml.DocumentEndEvent):
            break
        if depth == 0 and not isinstance(event, yaml.MappingStartEvent):
            if isinstance(event, (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
                continue
            raise _Uneditable("it is not a mapping")
        if depth == 0:
            flow, depth = bool(event.flow_style), 1
            continue
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth == 0:
            break
        part = value if _complete(keys) else keys
        part.append(event)
        if part is value and _complete(value):
            entries.append(_entry(keys, value))
            keys, value = [], []
    if not entries:
        raise _Uneditable("it is empty")
    return _Layout(flow, tuple(entries))


def _complete(events: list[Any]) -> bool:
    """Return whether these events are a whole node."""
    starts = sum(isinstance(event, yaml.CollectionStartEvent) for event in events)
    return bool(events) and starts == sum(isinstance(event, yaml.CollectionEndEvent) for event in events)


def _entry(keys: list[Any], value: list[Any]) -> _Entry:
    # Only the next event, which may follow comments, marks the end of a block collection.
    ends = [event for event in value if isinstance(event, yaml.NodeEvent) or event.end_mark != event.start_mark]
    last = max(ends, key=lambda event: event.end_mark.index)
    scalar = keys[0] if len(keys) == 1 and isinstance(keys[0], yaml.ScalarEvent) else None
    named = [(_is_alias(event), str(event.anchor)) for event in value if getattr(event, "anchor", None)]
    return _Entry(
        key=scalar.value if scalar else None,
        start=keys[0].start_mark.index,
        key_end=keys[-1].end_mark.index,
        end=max(last.end_mark.index, keys[-1].end_mark.index),
        text_block=getattr(last, "style", None) in ("|", ">"),
        anchors=frozenset(name for alias, name in named if not alias),
        aliases=frozenset(name for alias, name in named if alias),
    )


def _is_alias(event: Any) -> bool:
    return isinstance(event, yaml.AliasEvent)


def _once(layout: _Layout, key: str) -> _Entry | None:
    found = [entry for entry in layout.entries if entry.key == key]
    if len(found) > 1:
        raise _Uneditable(f"{key} occurs {len(found)} times")
    if found:
        others = frozenset().union(*(entry.aliases for entry in layout.entries if entry is not found[0]))
        if found[0].anchors & others:
            raise _Uneditable(f"other settings refer to the value of {key}")
    return found[0] if found else None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _events(text: str) -> Any:
    if YAML_ERROR:
        raise MissingLibrary(
            "The Python library yaml is needed on the node. Install the package python3-yaml (Debian, Ubuntu) or "
            "python3-pyyaml (RHEL and its derivatives), or set ansible_python_interpreter to the distribution's own "
            "Python.",
            YAML_ERROR,
        )
    # JSON may have tabs, and characters in its texts, that this YAML parser refuses. Positions stay the same.
    plain = text if _json(text) is None else _STRANGE.sub("x", text.replace("\t", " "))
    try:
        yield from yaml.parse(plain, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _Uneditable(f"it is not YAML ({' '.join(str(error).split())})") from error


def documents(text: str) -> Iterator[Any]:
    """Read the documents of a text. JSON may have tabs, which this YAML parser refuses.

    Raises:
        yaml.YAMLError: The text is neither JSON nor YAML.
        ValueError: A value is impossible, for example a date.
    """
    whole = _json(text)
    yield from [whole] if whole is not None else yaml.safe_load_all(text)


def _documents(text: str) -> list[Any]:
    try:
        found = list(documents(text))
    except (yaml.YAMLError, ValueError) as error:
        raise _Uneditable(f"it is not YAML ({' '.join(str(error).split())})") from error
    if not found or not isinstance(found[0], dict):
        raise _Uneditable("it is not a mapping")
    return found


# -- writing


def _written(value: Any, layout: _Layout, text: str) -> str:
    """Return a value as the text would have it, with the colon before it."""
    if layout.flow:
        return f": {json.dumps(value)}"
    if isinstance(value, list) and value and all(isinstance(item, dict) and item for item in value):
        between = _newline(text) + _indentation(text, layout)
        lines = [
            f"{'  ' if place else '- '}{name}: {json.dumps(content)}"
            for item in value
            for place, (name, content) in enumerate(item.items())
        ]
        return f":{between}{between.join(lines)}"
    plain = isinstance(value, str) and _DURATION.fullmatch(value)
    return f": {value if plain else json.dumps(value)}"


def _with(text: str, layout: _Layout, entry: _Entry | None, key: str, written: str) -> str:
    if entry:
        return text[: entry.key_end] + written + text[entry.end :]
    # Next to related settings, or last.
    kin = [item for item in layout.entries if item.key and item.key.startswith("shutdownGracePeriod")]
    beside = (kin or layout.entries)[-1]
    if layout.flow:
        quoted = text[layout.entries[0].start] == '"'
        lead = re.search(r"\s*\Z", text[: layout.entries[-1].start])
        name = f'"{key}"' if quoted else key
        return f"{text[: beside.end]},{lead.group() if lead else ''}{name}{written}{text[beside.end :]}"
    newline, indentation = _newline(text), _indentation(text, layout)
    if not beside.text_block:
        place = _end_of_line(text, beside.end)
        return f"{text[:place]}{newline}{indentation}{key}{written}{text[place:]}"
    first = _start(text, layout)
    before = _end_of_line_before(text, first)
    if before is None:
        return f"{text[:first]}{key}{written}{newline}{indentation}{text[first:]}"
    return f"{text[:before]}{newline}{indentation}{key}{written}{text[before:]}"


def _without(text: str, layout: _Layout, entry: _Entry) -> str:
    place = layout.entries.index(entry)
    before = layout.entries[place - 1] if place else None
    after = layout.entries[place + 1] if place + 1 < len(layout.entries) else None
    if layout.flow:
        if before and _SEPARATOR.fullmatch(text[before.end : entry.start]):
            return text[: before.end] + text[entry.end :]
        if not before and after and _SEPARATOR.fullmatch(text[entry.end : after.start]):
            return text[: entry.start] + text[after.start :]
        raise _Uneditable(f"there are comments around {entry.key}")
    previous = _end_of_line_before(text, entry.start)
    if previous is not None:
        return text[:previous] + text[_end_of_line(text, entry.end) :]
    rest = text[_end_of_line(text, entry.end) :]
    newline = _BREAK.match(rest)
    rest = rest[newline.end() :] if newline else rest
    return text[: entry.start] + rest.removeprefix(_indentation(text, layout))


def _newline(text: str) -> str:
    found = _BREAK.search(text)
    return found.group() if found else "\n"


def _start(text: str, layout: _Layout) -> int:
    """Return where the first key begins, with the question mark that may precede it."""
    first = layout.entries[0].start
    mark = _QUESTION.search(text[:first])
    return mark.start() if mark else first


def _indentation(text: str, layout: _Layout) -> str:
    lead = _BREAK.split(text[: _start(text, layout)])[-1].lstrip("\ufeff")
    if lead.strip(" "):
        raise _Uneditable("its first key is not at the start of a line")
    return lead


def _end_of_line(text: str, place: int) -> int:
    found = _BREAK.search(text, place)
    return found.start() if found else len(text)


def _end_of_line_before(text: str, place: int) -> int | None:
    """Return where the line before this position ends, without its line break."""
    breaks = list(_BREAK.finditer(text, 0, place))
    return breaks[-1].start() if breaks else None

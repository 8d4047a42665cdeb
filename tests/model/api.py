# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server in memory: objects with versions, requests, and their answers.

Objects never change: each write makes a new one. Equal objects and requests are the same Python object, so that states
of the model can be compared quickly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any

from model.continuation import constant

CREATED = "2026-11-21T00:00:00Z"
_numbers = count()
# Whether each write gives an object a new version, as on a real server. Random histories use this, because it is
# faster. The search through all histories does not: it must recognize equal states, see write().
versions_grow = False


@dataclass(frozen=True, eq=False)
class Stored:
    """One version of one object. A path that does not begin with a slash is not part of the API, but of the model.

    Attributes:
        content: The object as it was written.
        shown: The object as the API returns it, with its version.
        number: Identifies this version of this object.
    """

    path: str
    content: dict[str, Any]
    version: int
    shown: dict[str, Any]
    number: int = field(default_factory=lambda: next(_numbers))


@dataclass(frozen=True, eq=False)
class Request:
    """A request to the API (``GET`` and so on), to a node (such as ``REBOOT``), or to the other programs of the run."""

    verb: str
    path: str
    body: dict[str, Any]

    @property
    def writes(self) -> bool:
        return self.verb in ("POST", "PUT", "PATCH", "DELETE")

    @property
    def only_counts(self) -> bool:
        """Whether it only asks for the number of nodes, or for their roles. These never change in the model."""
        return "limit" in self.body or self.body.get("label_selector", "").startswith("node-role")

    def __str__(self) -> str:
        place = self.path.removeprefix("/").split("/namespaces/")[-1].removeprefix("api/v1/").removeprefix("holdfast/")
        marks = [key.rpartition("/")[2] for key in (self.body.get("metadata") or {}).get("annotations") or {}]
        # The annotation about conditions accompanies others.
        marks = [mark for mark in marks if mark != "conditions"] or marks
        return f"{self.verb} {place}{f' {marks}' if marks and self.verb == 'PATCH' else ''}"


@dataclass(frozen=True)
class Answer:
    """The answer to a request: its kind, and the objects or other values in it."""

    kind: str
    value: tuple[Any, ...] = ()


OK = Answer("ok")
UNREACHABLE, CONFLICT, NOT_FOUND = Answer("unreachable"), Answer("conflict"), Answer("not found")
# The deadline of a wait has passed; or all deadlines of the task have passed.
TIME_IS_UP, LONG_AFTER = Answer("time is up"), Answer("long after")
# A node got its command to reboot after the time until which the command is good.
LATE = Answer("late")
# Not an answer: the program was paused before it sent the request.
PAUSED = Answer("paused")
Objects = Mapping[str, Stored]
_stored: dict[tuple[str, str, int], Stored] = {}
_by_number: dict[int, Stored] = {}
_requests: dict[tuple[str, str, str], Request] = {}


def stored(path: str, content: Mapping[str, Any], version: int) -> Stored:
    """The version of an object: always the same Python object for equal arguments."""
    text = json.dumps(content, sort_keys=True)
    key = (path, text, version)
    if key not in _stored:
        known = json.loads(text)
        meta = {
            "creationTimestamp": CREATED,
            "uid": path,
            **known.get("metadata", {}),
            "resourceVersion": str(version),
        }
        _stored[key] = Stored(path, known, version, {**known, "metadata": meta})
        _by_number[_stored[key].number] = _stored[key]
        constant(_stored[key].shown, f"#{_stored[key].number}")
    return _stored[key]


def by_number(number: int) -> Stored:
    return _by_number[number]


def request(verb: str, path: str, body: Mapping[str, Any] | None = None) -> Request:
    key = (verb, path, json.dumps(body or {}, sort_keys=True))
    if key not in _requests:
        _requests[key] = Request(verb, path, dict(body or {}))
    return _requests[key]


def write(objects: Objects, path: str, content: Mapping[str, Any] | None) -> Objects:
    """The objects after a write; ``None`` deletes.

    If versions do not grow, the present version of each object is always 0, and the versions that programs remember get
    other numbers instead, see :func:`with_older`. Only whether two versions are equal matters.
    """
    before = objects.get(path)
    if content is None:
        return {key: value for key, value in objects.items() if key != path}
    if before is not None and (before.content is content or before.content == content):
        return objects
    return {**objects, path: stored(path, content, before.version + 1 if versions_grow and before else 0)}


@lru_cache(None)
def with_older(answer: Answer, path: str) -> Answer:
    """An answer that a program remembers, after one more write of the object at ``path``: its version gets older."""

    def older(item: Any) -> Any:
        is_written = isinstance(item, Stored) and item.path == path and item.version >= 0
        return stored(path, item.content, item.version + 1) if is_written else item

    items = tuple(map(older, answer.value))
    return answer if items == answer.value else Answer(answer.kind, items)


def perform(objects: Objects, asked: Request) -> tuple[Objects, Answer]:
    """Carry out a request to the API. Return the objects after it, and the answer."""
    if asked.verb == "LIST":
        return objects, Answer("list", tuple(listed(objects, asked.path, asked.body)))
    path, present = asked.path, objects.get(asked.path)
    if asked.verb == "POST":
        path = f"{asked.path}/{asked.body['metadata']['name']}"
        if path in objects:
            return objects, CONFLICT
        after = write(objects, path, _without_managed_fields(asked.body))
        return after, Answer("object", (after[path],))
    if present is None:
        return objects, NOT_FOUND
    if asked.verb == "GET":
        return objects, Answer("object", (present,))
    if asked.verb == "DELETE":
        wanted = (asked.body.get("preconditions") or {}).get("resourceVersion")
        if wanted not in (None, str(present.version)):
            return objects, CONFLICT
        return write(objects, path, None), OK
    version = (asked.body.get("metadata") or {}).get("resourceVersion")
    if version not in (None, str(present.version)):
        return objects, CONFLICT
    after = write(objects, path, _content_after(present, asked))
    return after, Answer("object", (after[path],))


@lru_cache(None)
def _content_after(present: Stored, asked: Request) -> dict[str, Any]:
    body = _without_managed_fields(asked.body)
    if asked.verb == "PATCH" and "status" in body:
        before = present.content["status"]["conditions"]
        body = {**body, "status": {"conditions": with_conditions(before, body["status"]["conditions"])}}
    after: dict[str, Any] = body if asked.verb == "PUT" else merged(present.content, body)
    return present.content if after == present.content else after


def merged(content: Any, patch: Any) -> Any:
    """The content after a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    known = content if isinstance(content, dict) else {}
    both = {**known, **{key: merged(known.get(key), value) for key, value in patch.items()}}
    return {key: value for key, value in both.items() if value is not None}


def with_conditions(before: Sequence[Mapping[str, Any]], patch: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The conditions after a strategic merge patch, which merges them by their types."""
    found = {item["type"]: dict(item) for item in before}
    for item in patch:
        known = {**found.pop(item["type"], {}), **item}
        if item.get("$patch") != "delete":
            found[item["type"]] = {key: value for key, value in known.items() if value is not None}
    return list(found.values())


def _without_managed_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """The object without the metadata that the server sets."""
    managed = ("resourceVersion", "creationTimestamp", "uid")
    return {
        key: {name: item for name, item in value.items() if name not in managed} if key == "metadata" else value
        for key, value in body.items()
    }


def listed(objects: Objects, path: str, selectors: Mapping[str, Any]) -> list[Stored]:
    """The objects of a collection that match its selectors."""
    fields, labels = selectors.get("field_selector", ""), selectors.get("label_selector", "")
    found = [item for item in objects.values() if item.path[0] == "/" and _is_in(item.path, path)]
    found = sorted((item for item in found if _matches(item, fields, labels)), key=lambda item: item.path)
    # Leave out what the program does not use, so that a change of it gives the same state: a request with a limit only
    # counts Nodes, and a table only shows their status.
    if "limit" in selectors:
        return [_partial(item) for item in found[: selectors["limit"]]]
    return [_partial(item, "spec", "status") for item in found] if "as" in selectors else found


@lru_cache(None)
def _partial(item: Stored, *keys: str) -> Stored:
    """The object with only its name, its labels, the keys given, and of its conditions only Ready."""
    meta, content = item.content["metadata"], item.content
    part = {"metadata": {key: meta[key] for key in ("name", "labels") if key in meta}}
    part |= {key: content[key] for key in keys if key in content}
    if "status" in part:
        ready = [item for item in content["status"]["conditions"] if item["type"] == "Ready"]
        part["status"] = {"conditions": ready}
    return stored(item.path, part, -1)


def _parts_of(path: str) -> tuple[str, str, str]:
    """Group and version, namespace (empty for none, or for all), and resource of a collection's path."""
    rest, _slash, resource = path.rpartition("/")
    group, _word, namespace = rest.partition("/namespaces/")
    return group, namespace, resource


@lru_cache(None)
def _is_in(path: str, collection: str) -> bool:
    own, wanted = _parts_of(path.rpartition("/")[0]), _parts_of(collection)
    return (own[0], own[2]) == (wanted[0], wanted[2]) and wanted[1] in ("", own[1])


@lru_cache(None)
def _matches(item: Stored, fields: str, labels: str) -> bool:
    meta = item.content.get("metadata", {})
    known = {"metadata.name": meta.get("name"), "metadata.namespace": meta.get("namespace")}
    for part in filter(None, fields.split(",")):
        name, equal, value = part.partition("!=") if "!=" in part else part.partition("=")
        if name not in known:
            raise NotImplementedError(f"The model's API has no field selector {name}: add it to {__name__}.")
        if (known[name] == value) != (equal == "="):
            return False
    present = meta.get("labels") or {}
    for part in filter(None, labels.split(",")):
        name, equal, value = part.partition("=")
        if " in " in part:
            raise NotImplementedError(f"The model's API has no label selector {part}: add it to {__name__}.")
        if (present.get(name) != value) if equal else ((part.lstrip("!") in present) == part.startswith("!")):
            return False
    return True

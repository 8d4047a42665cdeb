# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server of the model answers as a real one does. `make model` relies on it."""

from __future__ import annotations

from model import api

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, NotFound


class Server:
    """A real server; answers as the model does."""

    def __init__(self, cluster):
        self._verbs = {"GET": cluster.get, "POST": cluster.create, "PUT": cluster.replace, "PATCH": cluster.merge}
        self._cluster = cluster

    def ask(self, verb, path, body):
        try:
            if verb == "LIST":
                return "list", list(self._cluster.items(path, **body))
            if verb == "DELETE":
                self._cluster.delete(path)
                return "ok", []
            return "object", [self._verbs[verb](path, *([body] if body else []))]
        except NotFound:
            return "not found", []
        except ApiFailure as error:
            return "conflict" if error.status == 409 else error.message, []


class Model:
    def __init__(self):
        self._objects = {}

    def ask(self, verb, path, body):
        self._objects, answer = api.perform(self._objects, api.request(verb, path, body))
        return answer.kind, [item.shown for item in answer.value]


def test_the_same_answers(world, monkeypatch):
    monkeypatch.setattr(api, "versions_grow", True)
    collection, server, model = paths.config_maps(world.namespace), Server(world.cluster), Model()
    path = f"{collection}/of-the-model"
    versions = {server: [], model: []}

    def both(verb, where, body=None, *, version=None):
        seen = []
        for world_of in (server, model):
            told = dict(body or {})
            if version is not None:
                told["metadata"] = {**told.get("metadata", {}), "resourceVersion": versions[world_of][version]}
            kind, items = world_of.ask(verb, where, told)
            versions[world_of] += [item["metadata"]["resourceVersion"] for item in items if kind == "object"]
            known = versions[world_of]
            meta = [item["metadata"] for item in items]
            marks = [(item["name"], item.get("labels"), item.get("annotations")) for item in meta]
            seen.append((kind, marks, [item.get("data") for item in items], [known.index(each) for each in known]))
        assert seen[0] == seen[1], (verb, where, body)

    named = {"name": "of-the-model", "namespace": world.namespace, "labels": {"model": "yes"}}
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": {"a": "1"}}
    both("GET", path)
    both("POST", collection, whole)
    both("POST", collection, whole)
    both("PATCH", path, {"data": {"b": "2"}}, version=0)
    # An old version, no version, and a change that changes nothing.
    both("PATCH", path, {"data": {"b": "3"}}, version=0)
    both("PATCH", path, {"data": {"a": None}, "metadata": {"annotations": {"x": "y"}}})
    both("PATCH", path, {"data": {"b": "2"}})
    both("PUT", path, {**whole, "data": {"c": "4"}}, version=0)
    both("PUT", path, {**whole, "data": {"c": "4"}}, version=-1)
    for selector in ("model=yes", "model", "!model", "model=no"):
        both(
            "LIST",
            collection,
            {"label_selector": f"{selector},model"}
            if selector[0] != "!"
            else {"label_selector": selector + ",model=yes"},
        )
    both("LIST", collection, {"field_selector": "metadata.name=of-the-model"})
    both("DELETE", path)
    both("DELETE", path)
    both("PATCH", path, {"data": {"b": "2"}})

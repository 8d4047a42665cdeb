# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small API server in memory: objects by their paths, changed by compare-and-swap."""

from __future__ import annotations

import copy
import json
import re
import time
from datetime import datetime, timezone

from model.api import with_conditions

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import node_rules, paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, NotFound
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import ledger_store as store
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.run_rules import lease_name

NOW = datetime(2026, 11, 21, 9, tzinfo=timezone.utc)
AT = "2026-11-21T09:00:00.000000Z"
_ACROSS = {paths.LEASES: "/leases/", paths.PODS: "/pods/", paths.POD_DISRUPTION_BUDGETS: "/poddisruptionbudgets/"}


class MemoryCluster:
    """As much of :class:`Cluster` as operations use that wait for nothing.

    Attributes:
        writes: What was written, as (verb, path).
        hooks: Called with the verb, the path and the body after each write; each may change the cluster.
        broken: Paths that answer with a failure, as regular expressions.
    """

    requests = received = 0

    def __init__(self, *, dry_run=False):
        self.dry_run = dry_run
        self.objects, self.version = {}, 0
        self.writes, self.hooks, self.broken = [], [], []

    def now(self):
        return NOW

    def find(self, path):
        self._check(path)
        return copy.deepcopy(self.objects.get(path))

    def get(self, path, **_options):
        found = self.find(path)
        if found is None:
            raise NotFound(f"GET {path}: not found", path=path)
        return found

    def items(self, path, *, field_selector="", label_selector="", limit=0):
        self._check(path)
        part = _ACROSS.get(path)
        for place, item in sorted(self.objects.items()):
            inside = part in place if part else place.rpartition("/")[0] == path
            if inside and _fields(item, field_selector) and _labels(item, label_selector):
                yield copy.deepcopy(item)

    def rows(self, path, *, label_selector="", limit=0):
        for item in self.items(path, label_selector=label_selector):
            ready = node_rules.ready(item), item["spec"].get("unschedulable")
            status = [word for word, so in zip(("Ready", "SchedulingDisabled"), ready) if so]
            yield {"Name": item["metadata"]["name"], "Status": ",".join(status) or "NotReady"}

    def pages(self, path, *, patient=True, **selectors):
        yield {"metadata": {"resourceVersion": str(self.version)}, "items": list(self.items(path, **selectors))}

    def create(self, path, body, **_options):
        place = f"{path}/{body['metadata']['name']}"
        if place in self.objects:
            raise ApiFailure(f"{place} exists", status=409)
        return self._store("POST", place, body, body)

    def replace(self, path, body):
        if path not in self.objects:
            raise NotFound(f"PUT {path}: not found", path=path)
        self._compare(path, body)
        return self._store("PUT", path, body, body)

    def merge(self, path, body, **_options):
        if path not in self.objects:
            raise NotFound(f"PATCH {path}: not found", path=path)
        self._compare(path, body)
        return self._store("PATCH", path, _merged(self.objects[path], body), body)

    def merge_conditions(self, path, metadata, conditions):
        self._check(f"{path}/status")
        present = self.get(path)["status"]["conditions"]
        return self.merge(path, {"metadata": metadata, "status": {"conditions": with_conditions(present, conditions)}})

    def delete(self, path, options=None, **_options):
        found, wanted = self.get(path)["metadata"], (options or {}).get("preconditions") or {}
        if any(found[key] != value for key, value in wanted.items()):
            raise ApiFailure(f"{path}: Precondition failed", status=409)
        self.writes.append(("DELETE", path))
        return {} if self.dry_run else self.objects.pop(path)

    # What tests set and see.

    def node(
        self,
        name="node-1",
        *,
        ready=True,
        boot_id="boot-1",
        system_uuid="",
        labels=None,
        unschedulable=False,
        **annotations,
    ):
        marks = {f"holdfast.dev/{key.replace('_', '-')}": json.dumps(value) for key, value in annotations.items()}
        self._store(
            "TEST",
            paths.node(name),
            {
                "metadata": {"name": name, "labels": labels or {}, "annotations": marks},
                "spec": {"unschedulable": True} if unschedulable else {},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
                    "nodeInfo": {
                        "bootID": boot_id,
                        "kernelVersion": f"kernel of {boot_id}",
                        "systemUUID": system_uuid,
                    },
                },
            },
        )

    def etcd_pod(self, node):
        metadata = {"name": f"etcd-{node}", "namespace": "kube-system", "labels": {"component": "etcd"}, "uid": node}
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        body = {"metadata": metadata, "spec": {"nodeName": node}, "status": status}
        self._store("TEST", paths.pod("kube-system", f"etcd-{node}"), body)

    def hold(self, name="node-1", holder="app", *, namespace="shop"):
        spec = {"holderIdentity": holder, "acquireTime": AT}
        body = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
        self._store("TEST", paths.lease(namespace, name), body)

    def lives(self, run):
        spec = {"holderIdentity": run, "renewTime": AT, "acquireTime": AT}
        labels = {"app.kubernetes.io/managed-by": "holdfast.kubernetes"}
        metadata = {
            "name": lease_name(run),
            "creationTimestamp": AT,
            "labels": labels,
            "annotations": {"holdfast.dev/run": run},
        }
        self._store("TEST", paths.lease("holdfast", lease_name(run)), {"metadata": metadata, "spec": spec})

    def ledger(self, group="default", ledger=None):
        path = paths.one(paths.config_maps("holdfast"), store.config_map_name(group))
        if ledger is not None:
            labels = {"holdfast.dev/ledger": "group"}
            metadata = {"name": store.config_map_name(group), "labels": labels}
            self._store("TEST", path, {"metadata": metadata, "data": ledger.to_data()})
        return store.ledger_of(self.objects.get(path))

    def marks(self, name="node-1"):
        found = self.objects[paths.node(name)]["metadata"]["annotations"]
        return {key.partition("/")[2]: json.loads(value) for key, value in found.items()}

    def conditions(self, name="node-1"):
        """The conditions that are True, by type, with their messages; without Ready."""
        found = self.objects[paths.node(name)]["status"]["conditions"]
        shown = {item["type"]: item.get("message") for item in found if item["status"] == "True"}
        return {kind: message for kind, message in shown.items() if kind != "Ready"}

    def condition(self, kind, status="True", name="node-1", **more):
        """Another writer sets a condition."""
        node = self.objects[paths.node(name)]
        node["status"]["conditions"].append(
            {"type": kind, "status": status, "reason": "Theirs", "message": "a disk", **more}
        )

    def cordoned(self, name="node-1"):
        return bool(self.objects[paths.node(name)]["spec"].get("unschedulable"))

    def _check(self, path):
        if any(re.search(pattern, path) for pattern in self.broken):
            raise ApiFailure(f"The API server refused {path} (500): broken", status=500)

    def _compare(self, path, body):
        self._check(path)
        wanted = body["metadata"].get("resourceVersion") if "metadata" in body else None
        if wanted and wanted != self.objects[path]["metadata"]["resourceVersion"]:
            raise ApiFailure(f"{path} changed meanwhile", status=409)

    def _store(self, verb, path, item, body=None):
        self._check(path)
        self.version += 1
        item = copy.deepcopy(item)
        metadata = {"creationTimestamp": AT, "uid": path, **item["metadata"], "resourceVersion": str(self.version)}
        item["metadata"] = metadata
        if verb != "TEST":
            self.writes.append((verb, path))
        if verb == "TEST" or not self.dry_run:
            self.objects[path] = item
        for hook in self.hooks if verb != "TEST" else ():
            hook(verb, path, body)
        return copy.deepcopy(item)


def _merged(item, patch):
    if not isinstance(patch, dict):
        return patch
    found = dict(item) if isinstance(item, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), value)
    return found


def _fields(item, selector):
    for term in filter(None, selector.split(",")):
        key, unequal, value = re.fullmatch(r"([\w.]+)(!?)=(.*)", term).groups()
        found = item
        for part in key.split("."):
            found = (found or {}).get(part)
        if ((found or "") == value) is bool(unequal):
            return False
    return True


def _labels(item, selector):
    labels = item["metadata"].get("labels") or {}
    for term in filter(None, selector.split(",")):
        key, _equals, value = term.lstrip("!").partition("=")
        present = labels.get(key) == value if value else key in labels
        if present is term.startswith("!"):
            return False
    return True


class QuietCluster(MemoryCluster):
    """Its watches show nothing new, for operations that wait until their time is up."""

    def open_watch(self, *_arguments, **_options):
        return _Silence()


class _Silence:
    def __iter__(self):
        time.sleep(0.1)
        return iter(())

    def stop(self):
        pass

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove this collection's keys from BareMetalHosts that have a new Machine: they would switch it off, too."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from .._api.cluster import Cluster
from .._api.errors import NotFound
from .._api.names import REBOOT_KEYS
from .._api.objects import Object
from .._api.runner import Context, Params, Result
from .._api.watch import Changed, Deadline, Follower, Listed, retry_conflicts
from . import find_host, key_rules
from . import host_rules as rules
from .host_rules import Written


def remove(context: Context, params: Params) -> Result:
    """Remove the keys; with a node, wait until no host has one that was written for it."""
    management, node = context.management, params.get("node") or ""
    waits = bool(node and params["wait"] and not context.check_mode)
    work = _ExpiredKeys(management, node, params.get("namespace") or "")
    deadline = Deadline(params["wait_timeout"] if waits else 0)
    work.follow(deadline)
    if work.kept and waits:
        names = ", ".join(sorted(item["annotation"] for item in work.kept.values()))
        context.warn(
            f"{names} of node {node} stays on BareMetalHost {', '.join(sorted(work.kept))}: after "
            f"{params['wait_timeout']} s, the host is still provisioned for the same consumer. When it no longer is, "
            "the next run of guard_machine or the doctor removes the key."
        )
    for item in work.kept.values():
        if item.get("why"):
            context.warn(
                f"{item['annotation']} of node {item['node'] or '-'} stays on BareMetalHost {item['host']}: "
                f"{item['why']}, as after clusterctl move or a restore. Find out whether the host is still the node's "
                "machine. If it is, run the playbook holdfast.kubernetes.recover for the node when the machine may be "
                "switched on. Otherwise remove the key: reboot_annotation with state absent."
            )
    return {
        "changed": bool(work.removed),
        "removed": work.removed,
        "kept": list(work.kept.values()),
        "waited": round(deadline.elapsed, 3),
    }


@dataclass
class _ExpiredKeys:
    management: Cluster
    node: str
    namespace: str
    removed: list[dict[str, str]] = field(default_factory=list)
    #: The keys that remain, by the name of the host.
    kept: dict[str, dict[str, str]] = field(default_factory=dict)

    def follow(self, deadline: Deadline) -> None:
        """Look at all hosts, and then at each one that changes, until no key is left or the deadline passes."""
        try:
            for news in Follower(self.management, find_host.hosts(self.namespace), deadline):
                self._see(news)
                if not self.kept:
                    return
        except NotFound:
            # The cluster does not serve BareMetalHosts.
            return

    def _see(self, news: Listed | Changed) -> None:
        if isinstance(news, Listed):
            self.kept.clear()
            for host in news.items:
                self._look(host)
            return
        self.kept.pop(rules.full_name(news.object), None)
        if not news.deleted:
            self._look(news.object)

    def _look(self, host: Object) -> None:
        for key, written in rules.keys_written(host).items():
            if self.node and written.node != self.node:
                continue
            found = {"host": rules.full_name(host), "annotation": key_rules.annotation(key), "node": written.node}
            why, unclear = retry_conflicts(partial(self._remove, host, key, written))
            if why:
                self.removed.append({**found, "why": why})
            else:
                self.kept[found["host"]] = {**found, **({"why": unclear} if unclear else {})}

    def _remove(self, seen: Object, key: str, written: Written) -> tuple[str, str]:
        """Return why the key was removed, and why it is for a person to decide; both empty if it stays."""
        host = self.management.find(find_host.path_of(seen))
        if host is None or rules.written_of(host, key) != written:
            return "it is gone", ""
        consumer = find_host.consumer_uid(self.management, host)
        why = rules.former_use(host, written, consumer)
        if why:
            annotations = {key_rules.annotation(key): None, REBOOT_KEYS: rules.records_with(host, key, None)}
            metadata = {"resourceVersion": host["metadata"]["resourceVersion"], "annotations": annotations}
            self.management.merge(find_host.path_of(host), {"metadata": metadata})
        return why, rules.unclear_use(host, written, consumer)

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for metal3 (its baremetal-operator and Ironic): a controller that really switches the lab's nodes.

Started as ``python -m lab metal3``. ``rules`` and ``ironic`` decide what it does; this file reads and writes. Ironic's
memory ends with the process: after a restart no change is under way.
"""

from __future__ import annotations

import contextlib
import os
import queue
import random
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, NotFound, Unreachable
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.objects import Object
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline, Follower, Listed

from ..cluster import Lab
from ..progress import say
from . import ironic, rules
from .provisioner import Provisioner
from .reboot_keys import REBOOT
from .settings import Settings, load, path_of
from .switches import Switch, switch

GROUP = "metal3.io/v1alpha1"
# While a change is under way: a management controller has no watch.
_TICK = 0.1
# As in controller-runtime: for reconciliations that failed, and for those that ask for an immediate one.
_FIRST, _LONGEST = 0.005, 30.0


def hosts_path(namespace: str) -> str:
    return paths.namespaced(f"apis/{GROUP}", namespace, "baremetalhosts")


@dataclass
class _Known:
    """What the controller remembers of a host between two reconciliations."""

    switch: Switch
    node: ironic.Node = field(default_factory=ironic.Node)
    due: float | None = None
    # How often in a row it was reconciled again at once.
    again: int = 0
    act: Future[None] | None = None

    @property
    def busy(self) -> bool:
        return self.act is not None and not self.act.done()


class Controller:
    """All hosts of one namespace that have settings in a directory; the controller ignores the others.

    Args:
        cluster: Where the BareMetalHosts are.
        workload: Where the nodes are.
    """

    def __init__(self, lab: Lab, cluster: Cluster, workload: Cluster, namespace: str, directory: Path) -> None:
        self._lab = lab
        self._cluster = cluster
        self._workload = workload
        self._namespace = namespace
        self._directory = directory
        self._collection = hosts_path(namespace)
        self._known: dict[str, _Known] = {}
        self._news: queue.Queue[str] = queue.Queue()
        self._pool = ThreadPoolExecutor(max_workers=16)

    def run(self) -> None:
        """Run until the process ends."""
        threading.Thread(target=self._follow, daemon=True).start()
        while True:
            with contextlib.suppress(queue.Empty):
                self._heard(self._news.get(timeout=self._pause()))
                while True:
                    self._heard(self._news.get_nowait())
            for name in list(self._known):
                if self._known[name].node.target or self._known[name].busy:
                    # Where a machine's power can't be read for a moment, read it again.
                    with contextlib.suppress(ApiFailure, Unreachable):
                        self._conduct(name)
            now = time.monotonic()
            for name, known in list(self._known.items()):
                if known.due is not None and known.due <= now:
                    self._look(name, known)

    def _follow(self) -> None:
        """Filter as metal3 does: a change of the status alone leads to no reconciliation."""
        seen: dict[str, Any] = {}
        try:
            for news in Follower(self._cluster, self._collection, Deadline(None), keep=_essence):
                for name, essence in news.items if isinstance(news, Listed) else [news.object]:
                    if isinstance(news, Listed) or seen.get(name) != essence:
                        self._news.put(name)
                    seen[name] = essence
        except (ApiFailure, NotFound) as error:
            say(f"metal3: {error}")
            os._exit(1)

    def _heard(self, name: str) -> None:
        settings = load(path_of(self._directory, self._namespace, name))
        if settings is None:
            return
        if name not in self._known:
            self._known[name] = _Known(switch(self._lab, self._workload, settings.node))
        self._known[name].due = time.monotonic()

    def _pause(self) -> float | None:
        now = time.monotonic()
        if any(known.node.target or known.busy for known in self._known.values()):
            return _TICK
        dues = [known.due for known in self._known.values() if known.due is not None]
        return max(0.0, min(dues) - now) if dues else None

    def _conduct(self, name: str) -> Settings | None:
        """One round of Ironic's conductor."""
        known = self._known[name]
        settings = load(path_of(self._directory, self._namespace, name))
        if settings is None:
            del self._known[name]
            return None
        failed = known.act.exception() if known.act and known.act.done() else None
        if failed:
            known.act = None
            say(f"metal3: {name}: {failed}")
            if known.node.target:
                known.node.fail(str(failed))
        command = known.node.advance(
            time.monotonic(), known.switch.powered(), settings.faults, settings.times, busy=known.busy
        )
        if command is not None:
            self._record(name, command)
            known.act = self._pool.submit(_carry_out, known.switch, command)
        return settings

    def _record(self, name: str, command: ironic.Command) -> None:
        say(f"metal3: {name}: {command.value}")
        path = path_of(self._directory, self._namespace, name).with_suffix(".commands")
        with path.open("a") as file:
            file.write(f"{command.value}\n")

    def _look(self, name: str, known: _Known) -> None:
        known.due = None
        try:
            settings = self._conduct(name)
            host = self._cluster.find(paths.one(self._collection, name)) if settings else None
            if settings is None or host is None:
                self._known.pop(name, None)
                return
            provisioner = Provisioner(known.node, time.monotonic(), settings.faults, settings.times)
            outcome = rules.look(host, provisioner, random.random())
            if not outcome.trouble:
                self._write(host, outcome)
        except (ApiFailure, Unreachable, NotFound) as error:
            # Another client wrote in between, or the API is unavailable.
            outcome = rules.Outcome(trouble=str(error), after=0)
        if outcome.trouble:
            say(f"metal3: {name}: {outcome.trouble}")
        after = outcome.after
        if after == 0:
            after = min(_LONGEST, _FIRST * 2**known.again)
            known.again += 1
        else:
            known.again = 0
        known.due = None if after is None else time.monotonic() + after

    def _write(self, host: Object, outcome: rules.Outcome) -> None:
        path = paths.one(self._collection, host["metadata"]["name"])
        if outcome.remove_key:
            del host["metadata"]["annotations"][REBOOT]
            host = self._cluster.replace(path, host)
        if outcome.status is not None:
            now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            for condition in outcome.status.get("conditions") or []:
                condition.setdefault("lastTransitionTime", now)
                condition.setdefault("message", "")
            host["status"] = {**outcome.status, "lastUpdated": now}
            self._cluster.replace(f"{path}/status", host)
        for reason, message in outcome.events:
            self._tell(host, reason, message)

    def _tell(self, host: Object, reason: str, message: str) -> None:
        metadata = host["metadata"]
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {
            "metadata": {"generateName": f"{reason}-", "namespace": self._namespace},
            "involvedObject": {
                "apiVersion": GROUP,
                "kind": "BareMetalHost",
                "namespace": self._namespace,
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
            "reason": reason,
            "message": message,
            "source": {"component": "metal3-baremetal-controller"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": "Normal",
            "reportingComponent": "metal3.io/baremetal-controller",
        }
        # An event that can't be recorded stops nothing.
        with contextlib.suppress(ApiFailure, NotFound):
            self._cluster.create(paths.namespaced("api/v1", self._namespace, "events"), event)


def _essence(host: Object) -> tuple[str, Any]:
    metadata = host["metadata"]
    what = (metadata.get("generation"), metadata.get("annotations"), metadata.get("finalizers"))
    return metadata["name"], what


def _carry_out(target: Switch, command: ironic.Command) -> None:
    if command is ironic.Command.ON:
        target.on()
    elif command is ironic.Command.OFF:
        target.off()
    elif command is ironic.Command.SHUT_DOWN:
        target.press()
    elif command is ironic.Command.RESET:
        target.off()
        target.on()
    elif command is ironic.Command.SHUT_DOWN_AND_ON:
        target.restart()

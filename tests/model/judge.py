# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold at every instant, judged by what can be seen and by what the runs have done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from model.acts import Act, Outcome
from model.role import OWNER, Play

# Acts that may remove a slot; after any other act, see the check for healed nodes.
_GIVES_BACK = {"release", "fail"}


@dataclass
class Judge:
    """Follows a history and fails where a promise is broken."""

    # Nodes that a person wants cordoned.
    cordoned: set[str] = field(default_factory=set)
    # Nodes that one of our runs sent down and that have not come back.
    down: set[str] = field(default_factory=set)
    # Cordoned nodes whose slot was given back as allowed: the node came back after a failure, or a person released it.
    excused: set[str] = field(default_factory=set)
    # How often each operation has sent a node down. A node that failed is tried again. Its record is for one operation
    # only, the last one.
    reboots: Counter[tuple[str, str]] = field(default_factory=Counter)
    last: dict[str, Any] = field(default_factory=dict)
    # The runs that work on nodes: each has the claim, and has recorded it on its slot.
    working: dict[str, str] = field(default_factory=dict)
    # The number of pictures judged.
    instants: int = 0

    def begin(self, picture: dict[str, Any]) -> None:
        self.last = picture

    def see(self, picture: dict[str, Any], *, cleared: bool = False, act: Act | None = None) -> None:
        """Judge a picture of the world after something happened."""
        before, self.last = self.last, picture
        self.instants += 1
        self._budget(picture["ledger"])
        for name, node in picture["nodes"].items():
            self._works(node, name, act)
            self._slot_gone(before["nodes"][name], node, name, cleared=cleared, act=act)
            self._node(name, node)
            self._record(before["nodes"][name]["record"], node["record"], name)

    def _budget(self, ledger: dict[str, Any]) -> None:
        policy, slots = ledger["policy"], ledger["slots"].values()
        if not slots:
            return
        limit = policy["max_unavailable"]
        allowed = max(1, len(self.last["nodes"]) * int(limit[:-1]) // 100) if limit.endswith("%") else int(limit)
        assert len(slots) <= allowed, f"promise 1: {len(slots)} slots, {allowed} allowed"
        domains = Counter(slot["domain"] for slot in slots)
        each, many = policy["max_unavailable_per_domain"], policy["max_domains"]
        assert each is None or max(domains.values()) <= each, f"promise 1: {domains}, {each} allowed in each"
        assert many is None or len(domains) <= many, f"promise 1: {domains}, {many} domains allowed"

    def _works(self, node: dict[str, Any], name: str, act: Act | None) -> None:
        runs = {mark["run"] for mark in (node["claim"], node["slot"]) if mark}
        if act is not None and act.name == "mark" and act.node == name and runs == {act.options["run"]}:
            self.working[name] = act.options["run"]
        elif not node["claim"] or node["claim"]["run"] != self.working.get(name):
            self.working.pop(name, None)

    def _slot_gone(
        self, before: dict[str, Any], node: dict[str, Any], name: str, *, cleared: bool, act: Act | None
    ) -> None:
        slot = before["slot"]
        if act is not None and act.name == "cordon" and act.node == name:
            self.excused.discard(name)
        if not slot or node["slot"]:
            return
        healed = slot["state"] == "failed" and node["ready"] and node["boot_id"] != slot["boot_id"]
        mine = act is not None and act.name in _GIVES_BACK and act.node == name
        # If a run has not recorded its claim on the slot, it has not started work under it.
        idle = name not in self.working and not node["cordon"] and not before["cordon"]
        assert healed or cleared or mine or idle, f"promise 1: the slot of {name} is gone after {act}"
        if healed or cleared or (mine and act is not None and act.name == "fail"):
            self.excused.add(name)
        claim = node["claim"]
        if mine and act is not None and claim:
            assert claim["run"] == act.options["run"], f"promise 1: {act} took the slot that {claim} works under"

    def _node(self, name: str, node: dict[str, Any]) -> None:
        cordon = node["cordon"]
        ours = cordon and cordon["owner"] == OWNER and not cordon["unschedulable_before"] and node["unschedulable"]
        if ours and name not in self.cordoned | self.excused:
            assert node["slot"], f"promise 1: {name} is cordoned by us without a slot"
        if name in self.down - self.excused:
            assert node["slot"], f"promise 1: {name} was sent down by us and has no slot"
        if name in self.cordoned:
            assert node["unschedulable"], f"promise 3: {name} was uncordoned, which a person had cordoned"

    # -- what runs do

    def act(self, play: Play, operation: str, act: Act, outcome: Outcome, before: dict[str, Any]) -> None:
        """Judge an act by what was seen before it."""
        if act.name == "slot" and not outcome.error and not before["nodes"][act.node]["slot"]:
            self._grant(play, operation, act, before, outcome.facts.get("gone"))
        if act.name == "reboot" and not outcome.error and not outcome.facts["held"]:
            self._reboot(play, operation, act, before["nodes"][act.node])
        if act.name == "fail" and not outcome.error:
            self._failure(play, operation, act, before["nodes"][act.node])

    def _record(self, before: dict[str, Any] | None, after: dict[str, Any] | None, name: str) -> None:
        if before and (after is None or after["id"] != before["id"] or after["result"] == "failed"):
            self.reboots[before["id"], name] = 0

    def _grant(
        self, play: Play, operation: str, act: Act, before: dict[str, Any], gone: dict[str, bool] | None
    ) -> None:
        """Judge a granted slot by the Nodes that were read for it; ``gone`` has those that were unavailable."""
        failures = before["ledger"]["operations"].get(operation, {}).get("failures", [])
        healed = [name for name in failures if name not in self.last["ledger"]["operations"][operation]["failures"]]
        assert len(failures) - len(healed) <= play.max_failed, f"promise 5: {failures} failed, and a slot for {act}"
        nodes = self.last["nodes"]
        busy = {name for name, node in nodes.items() if node["slot"]}
        if play.count_others:
            gone = gone or {name: not node["ready"] or node["unschedulable"] for name, node in nodes.items()}
            busy |= {name for name, away in gone.items() if away}
        limit = str(play.policy["max_unavailable"])
        allowed = max(1, len(nodes) * int(limit[:-1]) // 100) if limit.endswith("%") else int(limit)
        assert len(busy | {act.node}) <= allowed, f"promise 1: others were not counted: {busy}"

    def _reboot(self, play: Play, operation: str, act: Act, node: dict[str, Any]) -> None:
        name = act.node
        assert not node["held"], f"promise 2: {name} is held and rebooted"
        assert node["slot"], f"promise 1: {name} is rebooted without a slot"
        assert node["claim"], f"{name} is rebooted without a claim"
        assert node["claim"]["run"] == play.run, f"{name} is rebooted under another run's claim"
        if name not in self.down:
            self.reboots[operation, name] += 1
        assert self.reboots[operation, name] <= 1, f"promise 6: {name} is rebooted twice in {operation}"

    def _failure(self, play: Play, operation: str, act: Act, node: dict[str, Any]) -> None:
        if node["claim"] and node["claim"]["run"] == play.run:
            failures = self.last["ledger"]["operations"][operation]["failures"]
            assert act.node in failures, f"promise 5: {act.node} failed and is not counted"

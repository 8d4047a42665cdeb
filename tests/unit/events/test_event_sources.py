# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the event sources tell of, and that what documents them agrees with what they take."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.dead_node import DeadNode
from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.long_hold import LongHold
from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.source import Later
from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.waiting_machine import WaitingMachine

CHECKOUT = Path(__file__).resolve().parents[3]
EDA = CHECKOUT / "extensions/eda"
SOURCES = sorted((EDA / "plugins/event_source").glob("*.py"))
RULEBOOKS = sorted((EDA / "rulebooks").glob("*.yml"))
PRE_DRAIN = "pre-drain.delete.hook.machine.cluster.x-k8s.io"
NOW = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)


def by_name(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


class TestWaitingMachine:
    def source(self, **params):
        given = {"hook": None, "owner": None, **params}
        return WaitingMachine(Context(given), given)

    def keys(self, *hooks, named=None, **params):
        """Of a Machine that waits before its drain, for all its hooks or for those that the controller names."""
        marks = {f"{PRE_DRAIN}/{name}": owner for name, owner in hooks}
        message = ",".join(f"{PRE_DRAIN}/{name}" for name in (named or [name for name, _owner in hooks]))
        deleting = {
            "type": "Deleting",
            "status": "True",
            "reason": "WaitingForPreDrainHook",
            "message": f"Waiting for pre-drain hooks to succeed (hooks: {message})",
        }
        metadata = {"name": "m", "namespace": "n", "uid": "u", "annotations": marks, "deletionTimestamp": "x"}
        machine = {"metadata": metadata, "status": {"conditions": [deleting]}}
        return [condition.key for condition in self.source(**params).conditions(machine)]

    def test_our_hooks_by_name_by_owner_or_by_both(self):
        hooks = [("backup", "us"), ("backup-2", "us"), ("check", "them")]

        assert self.keys(*hooks, hook="backup") == ["u/pre-drain/backup"]
        assert self.keys(*hooks, owner="us") == ["u/pre-drain/backup", "u/pre-drain/backup-2"]
        assert self.keys(*hooks, owner="them") == ["u/pre-drain/check"]
        assert self.keys(*hooks, hook="backup", owner="them") == []

    def test_only_what_the_controller_waits_for(self):
        hooks = [("backup", "us"), ("late", "us")]

        assert self.keys(*hooks, named=["backup"], owner="us") == ["u/pre-drain/backup"]

    def test_hook_or_owner_is_required(self):
        with pytest.raises(InvalidInput, match="hook or owner"):
            self.source()


class TestLongHold:
    def conditions(self, **spec):
        lease = {"metadata": {"name": "node", "namespace": "shop", "uid": "u"}, "spec": spec}
        return LongHold(Context({}), {}).conditions(lease)

    def test_from_when_it_was_acquired(self):
        (condition,) = self.conditions(holderIdentity="app", acquireTime="2026-05-04T12:00:00.000000Z", renewTime="x")

        assert (condition.key, condition.since) == ("u/app/2026-05-04T12:00:00.000000Z", NOW)

    def test_a_lease_without_a_holder(self):
        assert self.conditions() == ()
        assert self.conditions(holderIdentity="", acquireTime="2026-05-04T12:00:00.000000Z") == ()


class TestDeadNode:
    class Leases:
        def __init__(self, renewed):
            self.renewed = renewed

        def find(self, path):
            assert path.endswith("/kube-node-lease/leases/n")
            return {"spec": {"renewTime": self.renewed}}

    def source(self, renewed):
        context = Context({"after": 60, "reporting": False})
        context.cluster = self.Leases(renewed)
        return DeadNode(context, context.params)

    def event(self, renewed, *, source=None, after=0, since="2026-05-04T11:00:00Z"):
        """What is sent some seconds after NOW, of a Lease that says so."""
        source = source or self.source(renewed)
        source.cluster().renewed = renewed
        node = self.node(status="Unknown", lastTransitionTime=since)
        (condition,) = source.conditions(node)
        return source.event(node, condition, NOW + timedelta(seconds=after))

    def node(self, **ready):
        conditions = [{"type": "Ready", **ready}]
        return {"metadata": {"name": "n", "uid": "u"}, "status": {"conditions": conditions}}

    def test_its_kubelet_is_silent_too(self):
        evidence = self.event("2026-05-04T10:59:20.000000Z")["evidence"]

        assert (evidence["seconds"], evidence["lease_renewed"]) == (3600, "2026-05-04T10:59:20.000000Z")

    def test_a_sign_of_life_puts_it_off(self):
        with pytest.raises(Later) as later:
            self.event("2026-05-04T11:59:50.000000Z")

        assert later.value.moment == NOW + timedelta(seconds=50)

    @pytest.mark.parametrize("ahead", ["2026-05-04T12:01:10.000000Z", "2026-06-04T12:00:00.000000Z"])
    def test_a_node_whose_clock_is_ahead_is_postponed_once_and_reported(self, ahead):
        source = self.source(ahead)
        with pytest.raises(Later) as later:
            self.event(ahead, source=source)

        assert later.value.moment == NOW + timedelta(seconds=60)
        assert self.event(ahead, source=source, after=60)["evidence"]["lease_renewed"] == ahead

    def test_a_node_whose_lease_changes_is_postponed_whatever_its_clock(self):
        behind = "2026-05-04T08:00:0{}.000000Z"
        source = self.source(behind.format(0))
        self.event(behind.format(0), source=source)
        with pytest.raises(Later) as later:
            self.event(behind.format(9), source=source, after=3600)

        assert later.value.moment == NOW + timedelta(seconds=3660)

    def test_another_silence_starts_without_the_earlier_one(self):
        ahead = "2026-06-04T12:00:00.000000Z"
        source = self.source(ahead)
        first, second = "2026-05-04T11:00:00Z", "2026-05-04T11:58:00Z"
        for since in (first, second):
            with pytest.raises(Later):
                self.event(ahead, source=source, since=since)
        assert source.conditions(self.node(status="True")) == ()

        with pytest.raises(Later):
            self.event(ahead, source=source, since=second)

    def test_a_node_that_is_gone_is_forgotten(self):
        ahead = "2026-06-04T12:00:00.000000Z"
        source = self.source(ahead)
        with pytest.raises(Later):
            self.event(ahead, source=source)
        source.forget(lambda path: path.endswith("/other"))
        assert self.event(ahead, source=source, after=60)

        source.forget(lambda path: path.endswith("/n"))
        with pytest.raises(Later):
            self.event(ahead, source=source, after=60)


@by_name(SOURCES)
class TestSource:
    def test_documents_its_options(self, path):
        found = runpy.run_path(str(path))
        documented = yaml.safe_load(found["DOCUMENTATION"])["options"]
        own = {name: option for name, option in found["SPEC"].items() if name != "management"}

        assert set(documented) == set(own)
        assert not set(own) & set(auth_options.NAMES)
        for name, option in own.items():
            assert documented[name]["type"] == option["type"]
            assert documented[name].get("default") == option.get("default")
        assert yaml.safe_load(found["EXAMPLES"])[0]["sources"][0].keys() == {f"holdfast.kubernetes.{path.stem}"}

    def test_runs_by_its_path_in_the_collections_folder(self, path, tmp_path):
        collection = tmp_path / "ansible_collections/holdfast/kubernetes"
        collection.parent.mkdir(parents=True)
        collection.symlink_to(CHECKOUT)
        source = collection / path.relative_to(CHECKOUT)

        # The test's own Python finds the collection in any case: which one the source took is asked.
        imported = "sys.modules['ansible_collections.holdfast.kubernetes.plugins.module_utils'].__path__[0]"
        program = f"import runpy, sys; runpy.run_path({str(source)!r}); print({imported})"
        ran = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)

        assert (ran.stderr, ran.stdout.strip()) == ("", str(collection / "plugins/module_utils"))

    def test_is_read_from_a_checkout_near_the_root(self, path):
        exec(compile(path.read_text(), path.name, "exec"), {"__name__": path.stem, "__file__": f"/{path.name}"})


@by_name(RULEBOOKS)
def test_rulebook_ignores_repeated_events(path):
    (ruleset,) = yaml.safe_load(path.read_text())
    ((_name, options),) = [item for item in ruleset["sources"][0].items() if item[0] != "name"]

    assert all(rule["throttle"]["once_within"] == "10 minutes" for rule in ruleset["rules"])
    # A reminder must not be taken for one that came twice.
    assert int(options["repeat"].partition("default(")[2].partition(")")[0]) > 600


# What nobody but the API server, or this collection, decides the form of.
CHECKED = {
    "event.node.name",
    "event.node.uid",
    "event.evidence.since",
    "event.evidence.status",
    "event.evidence.reason",
    "event.evidence.lease_renewed",
    "event.machine.name",
    "event.machine.namespace",
    "event.machine.cluster",
    "event.machine.uid",
    "event.hook.hook",
}


@by_name(RULEBOOKS)
def test_rulebook_gives_playbooks_nothing_that_others_can_write(path):
    (ruleset,) = yaml.safe_load(path.read_text())
    given = [str(rule["action"].get("run_playbook", {}).get("extra_vars", "")) for rule in ruleset["rules"]]

    assert set(re.findall(r"event(?:\.\w+)+", " ".join(given))) <= CHECKED


@by_name(RULEBOOKS)
def test_rulebook_takes_for_the_same_only_what_has_the_same_key(path):
    (ruleset,) = yaml.safe_load(path.read_text())

    assert [rule["throttle"]["group_by_attributes"] for rule in ruleset["rules"]] == [["event.key"]]

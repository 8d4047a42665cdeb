# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rolling reboot of real nodes whose graceful shutdown is not in effect, and what a shutdown leaves."""

from __future__ import annotations

import contextlib
import json
import re

import pytest
from integration.support.agent import until
from integration.support.realnodes import boot_id, member
from integration.support.world import IMAGE

from lab.errors import LabError
from lab.patience import PATIENCE

pytestmark = pytest.mark.nodes

# It sorts last, as unattended-upgrades' own does where the kubelet's is 99-kubelet.conf.
SHORTER = "/etc/systemd/logind.conf.d/zzz-test-shorter.conf"
MANAGER = "org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"
DBUS = "/usr/lib/python3/dist-packages/dbus"
# What the node answered is in the result of the plan's question to it.
ASKED = re.compile(r'"shutdown": {')
WARNED = "WARNING: Graceful shutdown of node"


def insist(lab, name, command):
    """A busy node may refuse a login at first, and must not stay changed."""

    def done():
        with contextlib.suppress(LabError):
            lab.ssh(name, f"{command}; echo done")
            return True
        return False

    until(done)


@contextlib.contextmanager
def too_short(lab, name):
    """logind waits 3 s, and the kubelet needs 10 s."""
    lab.wait_ready([name])
    reload = "systemctl kill --signal=HUP systemd-logind"
    try:
        lab.ssh(name, f"printf '[Login]\nInhibitDelayMaxSec=3\n' > {SHORTER} && {reload}")
        until(lambda: "t 3000000" in lab.ssh(name, f"busctl get-property {MANAGER} InhibitDelayMaxUSec"))
        yield
    finally:
        # A kubelet that started meanwhile has no lock.
        insist(lab, name, f"rm -f {SHORTER}; {reload}; systemctl restart kubelet")
        until(lambda: '"kubelet"' in lab.ssh(name, f"busctl call {MANAGER} ListInhibitors"))


@contextlib.contextmanager
def without_dbus(lab, name):
    try:
        lab.ssh(name, f"mv {DBUS} {DBUS}.away")
        yield
    finally:
        insist(lab, name, f"[ ! -e {DBUS}.away ] || mv {DBUS}.away {DBUS}")


@pytest.mark.long
@pytest.mark.parametrize("name", ["node-1", "node-2"])
def test_required_the_node_is_refused_untouched_and_otherwise_warned_of_once(lab, world, rolling, name):
    with member(world, lab, name) as variables, too_short(lab, name):
        before, record = boot_id(lab, name), rolling.record(name)
        spec = world.node(name)["spec"]

        # The record of an operation stays on a real node.
        one, two = (f"{which}-{rolling.group}" for which in ("one", "two"))
        done = rolling.run({name: variables}, operation=one, graceful_shutdown="require")

        assert done.code != 0
        assert done.results == {name: "stopped"}
        assert SHORTER in done.detail(name)
        assert "holdfast.kubernetes.graceful_shutdown" in done.detail(name)
        assert boot_id(lab, name) == before
        assert world.node(name)["spec"] == spec
        assert rolling.record(name) == record
        # It is not a failure: the next run resumes.
        assert (rolling.slots(), rolling.failures(one)) == ({}, {})
        rolling.assert_nothing_left([name])

        # Held, so that it goes through two passes.
        rolling.hold(name)
        run = rolling.start({name: variables}, operation=two, reboot_timeout=PATIENCE)
        run.until(lambda: rolling.record(name).get("phase") == "hold", "the last pass")
        rolling.release(name)
        done = run.done().good()

        assert done.results == {name: "rebooted"}
        assert boot_id(lab, name) != before
        assert done.output.count(WARNED) == 1
        assert SHORTER in done.output
        rolling.assert_nothing_left([name])


@pytest.mark.long
def test_the_plan_says_so_and_who_does_not_ask_pays_nothing(lab, world, rolling):
    name = "node-1"
    with member(world, lab, name) as variables, too_short(lab, name):
        done = rolling.run({name: variables}, "--check", graceful_shutdown="require").good()
        assert done.entry(name)["verdict"] == "never"
        assert SHORTER in done.detail(name)

        done = rolling.run({name: variables}, "--check").good()
        assert done.entry(name)["verdict"] == "now"
        assert done.output.count(WARNED) == 1

        for more in ({"graceful_shutdown": "ignore"}, {}):
            method = variables if more else {**variables, "rolling_reboot_method": "command"}
            done = rolling.run({name: method}, "--check", "-v", **more).good()
            assert done.entry(name)["verdict"] == "now"
            assert not ASKED.search(done.output)
            assert WARNED not in done.output


@pytest.mark.long
def test_a_node_that_is_well_is_not_warned_of(lab, world, rolling):
    name = "node-1"
    with member(world, lab, name) as variables:
        done = rolling.run({name: variables}, "--check", "-v", graceful_shutdown="require").good()

        assert done.entry(name)["verdict"] == "now"
        assert ASKED.search(done.output)
        assert "WARNING: " not in done.output


@pytest.mark.long
@pytest.mark.parametrize("name", ["node-1", "node-2"])
def test_a_node_that_can_not_be_asked_is_warned_of_or_refused(lab, world, rolling, name):
    with member(world, lab, name) as variables, without_dbus(lab, name):
        done = rolling.run({name: variables}, "--check").good()
        assert done.entry(name)["verdict"] == "now"
        assert "WARNING: It is unknown whether graceful shutdown of node" in done.output
        assert "python3-dbus" in done.output

        done = rolling.run({name: variables}, "--check", graceful_shutdown="require").good()
        assert done.entry(name)["verdict"] == "never"
        assert "python3-dbus" in done.detail(name)


def workload(world, kind, name, node, status):
    """One pod on a node, cordoned or not, that ends with this status."""
    container = {
        "name": "app",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", f"trap 'exit {status}' TERM; sleep 3600 & wait"],
    }
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}],
        "containers": [container],
    }
    metadata = {"name": name, "namespace": world.namespace, "labels": {"app": name}}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"selector": selector, "template": template},
    }


@pytest.mark.long
@pytest.mark.parametrize("name", ["node-1", "node-2"])
def test_the_report_names_what_the_shutdown_left(lab, world, rolling, tmp_path, name):
    sweep = name == "node-2"
    items = [
        workload(world, "Deployment", "again", name, 0),
        workload(world, "Deployment", "failed", name, 3),
        workload(world, "Pod", "bare", name, 0),
    ]
    manifest = tmp_path / "pods.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    wait = f"wait pod --namespace {world.namespace} --all --for=condition=Ready --timeout={PATIENCE}s"
    # After the drain, so that the shutdown ends them.
    late = {
        "name": "Start pods that stay",
        "ansible.builtin.raw": f"{{{{ kubectl }}}} apply -f {manifest} && {{{{ kubectl }}}} {wait}",
        "delegate_to": "localhost",
    }
    with member(world, lab, name) as variables:
        run = rolling.start({name: variables}, sweep=sweep, before_reboot_tasks=rolling.tasks("late", late))
        done = run.done().good()

        found = {item["name"].split("-")[0]: item for item in done.entry(name)["leftovers"]}
        assert {key: (item["phase"], item["removed"]) for key, item in found.items()} == {
            "again": ("Succeeded", sweep),
            "failed": ("Failed", sweep),
            "bare": ("Succeeded", False),
        }
        assert "it has no owner" in found["bare"]["kept"]
        assert f"pods left over from its shutdown: {world.namespace}/" in done.output
        left = {item["metadata"]["uid"] for item in world.pods(name).values()}
        assert {item["name"] for item in found.values() if item["uid"] in left} == {
            item["name"] for item in found.values() if not item["removed"]
        }

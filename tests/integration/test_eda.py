# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dead nodes and long holds: the event sources report them, on a real API server, to a real ansible-rulebook."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
import yaml
from integration.support.failovers import Victim
from integration.support.metal3 import management
from integration.support.rulebooks import CHECKOUT, Listening, Rulebooks, events, runs, until, until_runs

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import to_text
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline
from lab import kwok
from lab.management import Management
from lab.patience import PATIENCE

GUIDE = CHECKOUT / "docs/events.md"
LONG_AGO = "2026-01-02T03:04:05.000000Z"


@pytest.fixture
def listen(world):
    """Start sources over this world's nodes."""
    started = []

    def start(source, **args):
        started.append(Listening(source, **{"kubeconfig": world.kubeconfig, **args}))
        return started[-1]

    yield start
    for source in started:
        source.stop()


@pytest.fixture
def rulebooks(ansible, kubeconfig):
    found = Rulebooks(ansible, kubeconfig)
    yield found
    found.close()


def victims(world, count):
    return [Victim(world, name) for name in world.nodes(count)]


def hold(world, node, *, acquired=LONG_AGO, holder="app"):
    annotations = {"holdfast.dev/reason": "it takes long"}
    spec = {"holderIdentity": holder, "acquireTime": acquired}
    world.create("leases", node, {"metadata": {"annotations": annotations}, "spec": spec})


class TestDeadNode:
    @pytest.fixture
    def source(self, world, listen):
        return lambda **args: listen("dead_node", selector=f"pool={world.namespace}", **args)

    def test_sent_once_with_evidence(self, world, source):
        dead, marker = victims(world, 2)
        listener = source(after=0, repeat=0)
        dead.hang()

        (event,) = listener.until(node=dead.name)
        assert event["node"]["boot_id"] == dead.boot_id
        assert (event["evidence"]["status"], event["evidence"]["reason"]) == ("Unknown", "NodeStatusUnknown")
        assert event["evidence"]["lease_renewed"] is None
        assert event["told"] == 0
        world.cluster.merge(paths.node(dead.name), {"metadata": {"labels": {"changed": "true"}}})
        marker.hang()
        listener.until(node=marker.name)
        assert len(listener.events(node=dead.name)) == 1

    def test_a_node_that_flaps_is_not_reported(self, world, source):
        silent, flapping = victims(world, 2)
        # Longer than one flap of a node takes on a busy machine.
        listener = source(after=60)
        silent.hang()
        deadline = Deadline(PATIENCE)
        while not listener.events(node=silent.name):
            assert not deadline.passed
            flapping.hang()
            flapping.wake()

        assert listener.events(node=flapping.name) == []

    def test_a_node_whose_kubelet_renews_its_lease_is_not_reported(self, world, source):
        # Sorted by name: the source looks at them in this order.
        alive, dead = victims(world, 2)
        for victim in (alive, dead):
            victim.hang()
            world.cluster.merge(f"{paths.node(victim.name)}/status", unknown(victim, "2026-05-04T12:00:00Z"))
        leases = paths.leases("kube-node-lease")
        renewed = {"holderIdentity": alive.name, "renewTime": "2036-05-04T12:00:00.000000Z"}
        world.cluster.create(leases, {"metadata": {"name": alive.name}, "spec": renewed})
        world.made.objects.append(paths.one(leases, alive.name))
        listener = source(after=300)

        listener.until(node=dead.name)
        assert listener.events(node=alive.name) == []

    def test_a_node_whose_clock_is_ahead_is_reported_once(self, world, source):
        (dead,) = victims(world, 1)
        dead.hang()
        since = world.cluster.now() - timedelta(seconds=8)
        world.cluster.merge(f"{paths.node(dead.name)}/status", unknown(dead, since.strftime("%Y-%m-%dT%H:%M:%SZ")))
        # It renewed its Lease just before it died.
        leases, renewed = paths.leases("kube-node-lease"), to_text(since + timedelta(hours=1))
        spec = {"holderIdentity": dead.name, "renewTime": renewed}
        world.cluster.create(leases, {"metadata": {"name": dead.name}, "spec": spec})
        world.made.objects.append(paths.one(leases, dead.name))
        listener = source(after=5, repeat=0)

        (event,) = listener.until(node=dead.name)
        assert event["evidence"]["lease_renewed"] == renewed
        assert event["evidence"]["seconds"] < 3600

    def test_a_node_that_was_dead_before_is_sent_at_once_and_again_if_wanted(self, world, source):
        (dead,) = victims(world, 1)
        dead.hang()
        world.cluster.merge(f"{paths.node(dead.name)}/status", unknown(dead, "2026-05-04T12:00:00Z"))
        listener = source(after=300, repeat=2)

        first, second = listener.until(2, node=dead.name)[:2]
        assert (first["told"], second["told"]) == (0, 1)
        assert first["key"] == second["key"]
        assert first["evidence"]["seconds"] > 300

    def test_one_that_comes_back_is_not_reported(self, world, source):
        dead, back = victims(world, 2)
        back.hang()
        listener = source(after=60)
        back.wake()
        dead.hang()

        listener.until(node=dead.name)
        assert listener.events(node=back.name) == []


def unknown(victim, since, reason="NodeStatusUnknown", message="by a test"):
    conditions = [item for item in victim.node["status"]["conditions"] if item["type"] != "Ready"]
    mine = {"type": "Ready", "status": "Unknown", "reason": reason, "message": message}
    return {"status": {"conditions": [*conditions, {**mine, "lastTransitionTime": since, "lastHeartbeatTime": since}]}}


class TestLongHold:
    def test_sent_with_node_and_holder(self, world, listen):
        (node,) = world.nodes()
        listener = listen("long_hold", namespace=world.namespace, after=3600)
        hold(world, node)

        (event,) = listener.until(hold=node)
        assert event["hold"]["held_seconds"] > 3600
        assert (event["hold"]["holder"], event["hold"]["reason"]) == ("app", "it takes long")
        assert event["hold"]["namespace"] == world.namespace

    def test_a_lease_without_a_node_is_no_hold_and_a_new_holder_starts_again(self, world, listen):
        one, other = world.nodes(2)
        hold(world, "some-election")
        hold(world, one)
        listener = listen("long_hold", namespace=world.namespace, after=3600)
        listener.until(hold=one)
        world.delete("leases", one)
        hold(world, one, acquired="2096-01-01T00:00:00.000000Z", holder="next")
        hold(world, other)
        listener.until(hold=other)

        assert [event["hold"]["holder"] for event in listener.events(hold=one)] == ["app"]
        assert listener.events(hold="some-election") == []


class TestAround:
    def test_continues_after_an_outage_of_the_api(self, world, lab, listen):
        """In its own cluster, which may be unavailable; no controller changes objects there."""
        with management(lab, world) as (cluster, kubeconfig):
            label = {"pool": world.namespace}
            listener = listen("dead_node", after=0, selector=f"pool={world.namespace}", kubeconfig=str(kubeconfig))
            silent(cluster, f"{world.namespace}-a", label)
            listener.until(node=f"{world.namespace}-a")
            plane = Management(lab)
            plane.process("kube-apiserver").kill()
            plane.start_apiserver()
            silent(cluster, f"{world.namespace}-b", label)

            listener.until(node=f"{world.namespace}-b")
            assert len(listener.events()) == 2
            listener.stop()

    def test_the_rights_in_the_guide_are_enough(self, world, listen):
        (rights,) = [
            text for text in re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL) if "ClusterRole" in text
        ]
        role, who = yaml.safe_load(rights), f"events-{world.namespace}"
        group = "rbac.authorization.k8s.io"
        subject = {"apiGroup": group, "kind": "User", "name": who}
        reference = {"apiGroup": group, "kind": "ClusterRole", "name": who}
        for kind, body in (
            ("clusterroles", {"rules": role["rules"]}),
            ("clusterrolebindings", {"roleRef": reference, "subjects": [subject]}),
        ):
            path = f"/apis/{group}/v1/{kind}"
            world.cluster.create(path, {"metadata": {"name": who}, **body})
            world.made.objects.append(paths.one(path, who))
        (dead,) = victims(world, 1)
        dead.hang()
        hold(world, dead.name)
        pool = {"selector": f"pool={world.namespace}", "after": 0}

        listen("dead_node", impersonate_user=who, **pool).until(node=dead.name)
        listen("long_hold", impersonate_user=who, after=0).until(hold=dead.name)

    def test_missing_rights_end_it_with_a_message(self, listen):
        failure = listen("dead_node", impersonate_user="nobody").failure()

        assert "403" in str(failure)
        assert "nodes" in str(failure)


def silent(cluster, name, labels):
    """A silent Node, where there is no kubelet."""
    cluster.create(paths.NODES, {"metadata": {"name": name, "labels": labels}})
    ready = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "by a test"}
    times = {"lastTransitionTime": "2026-05-04T12:00:00Z", "lastHeartbeatTime": "2026-05-04T12:00:00Z"}
    cluster.merge(f"{paths.node(name)}/status", {"status": {"conditions": [{**ready, **times}]}})


class TestArguments:
    @pytest.mark.parametrize(
        ("source", "args", "says"),
        [
            ("dead_node", {"after": -1}, "after must not be negative"),
            ("dead_node", {"after": "soon"}, "after"),
            ("dead_node", {"afterwards": 1}, "afterwards"),
            ("waiting_machine", {"namespace": "x"}, "hook or owner is missing"),
        ],
    )
    def test_invalid_options_are_reported_at_once(self, listen, source, args, says):
        assert says in str(listen(source, **args).failure())


@pytest.mark.long
class TestRulebooks:
    def test_a_node_that_dies_is_failed_over_and_one_that_flaps_is_not(self, world, failovers, rulebooks):
        dead, flapping, _other = victims(world, 3)
        variables = {"selector": f"pool={world.namespace}", "max_unhealthy": 2, "confirm_seconds": 0}
        variables |= failovers.by_command()
        run = rulebooks.start(
            "failover",
            playbook={f"failover_{name}": value for name, value in variables.items()},
            dead_node_after=30,
            dead_node_selector=f"pool={world.namespace}",
        )
        dead.hang()
        deadline = Deadline(PATIENCE)
        while not events(run, dead.name):
            assert not deadline.passed, run.output
            flapping.hang()
            flapping.wake()
        until_runs(run, 1)

        assert (dead.taint, dead.record["result"]) == ("nodeshutdown", "moved"), run.output
        assert failovers.commands == ["off"]
        (kept,) = [entry for entry in failovers.audit().values() if entry["node"] == dead.name]
        assert kept["reason"].startswith("no sign of life since")
        assert kept["evidence"]["kind"] == "Command"
        assert flapping.untouched
        assert runs(run) == 1

    def test_events_that_come_twice_start_one_run(self, world, rulebooks):
        first, second = victims(world, 2)

        def twice(ruleset):
            (source,) = ruleset["sources"]
            ruleset["sources"] = [source, {**source, "name": "once more"}]
            # One after the other: if the first ran again, it would end before the second.
            ruleset["rules"][0]["action"] = {
                "run_playbook": {"name": "say.yml", "extra_vars": {"node": "{{ event.node.name }}"}}
            }

        say = {"name": "Say", "ansible.builtin.debug": {"msg": "it is {{ node }}"}}
        play = {"hosts": "localhost", "gather_facts": False, "tasks": [say]}
        run = rulebooks.start(
            "failover",
            change=twice,
            files={"say.yml": [play]},
            dead_node_after=1,
            dead_node_selector=f"pool={world.namespace}",
        )
        for victim in (first, second):
            victim.hang()
            until(run, lambda victim=victim: events(run, victim.name) == 2, "the event came twice")
        until(run, lambda: f"it is {second.name}" in run.output, "the other one's run")

        assert run.output.count(f'"msg": "it is {first.name}"') == 1

    def test_what_a_kubelet_writes_is_not_run_on_the_controller(self, world, rulebooks, tmp_path):
        (dead,) = victims(world, 1)
        ran = tmp_path / "ran"
        template = f"{{{{ lookup('ansible.builtin.pipe', 'touch {ran}') }}}}"

        def all_of_it(ruleset):
            action = {"name": "say.yml", "extra_vars": {"text": "{{ event.evidence.message }}"}}
            ruleset["rules"][0]["action"] = {"run_playbook": action}

        # Also the other variables that ansible-rulebook adds.
        says = [{"ansible.builtin.debug": {"var": name}} for name in ("text", "ansible_eda")]
        play = {"hosts": "localhost", "gather_facts": False, "tasks": says}
        run = rulebooks.start(
            "failover",
            change=all_of_it,
            files={"say.yml": [play]},
            dead_node_after=1,
            dead_node_selector=f"pool={world.namespace}",
        )
        # One write of the status: the first one is reported.
        world.cluster.merge(paths.node(dead.name), {"metadata": {"labels": {kwok.POWER: kwok.HUNG}}})
        status = unknown(dead, "2026-05-04T12:00:00Z", reason=template, message=template)
        world.cluster.merge(f"{paths.node(dead.name)}/status", status)
        until_runs(run, 1)

        assert "lookup(" in run.output
        assert not ran.exists()

    def test_a_hold_too_long_is_reported(self, world, rulebooks):
        (node,) = world.nodes()
        run = rulebooks.start("long_hold", long_hold_after=3600, long_hold_namespace=world.namespace)
        hold(world, node)

        wanted = f"Node {node} is held by {world.namespace}/app since {LONG_AGO}"
        until(run, lambda: wanted in run.output, "it says so")

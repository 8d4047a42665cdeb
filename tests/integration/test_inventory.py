# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin `nodes` in a real ansible-inventory, and a rolling reboot over its hosts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from integration.support.playbooks import Rolling

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._inventory.hosts import read_hosts
from ansible_collections.holdfast.kubernetes.plugins.modules import cordon, lease_hold

PLUGIN = "holdfast.kubernetes.nodes"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
def inventory(world, ansible):
    """Read the nodes of this world with ansible-inventory."""

    def path(**options):
        found = ansible.folder / "test.nodes.yml"
        content = {"plugin": PLUGIN, "selector": f"pool={world.namespace}", "kubeconfig": world.kubeconfig, **options}
        content = {key: value for key, value in content.items() if value is not None}
        found.write_text(yaml.safe_dump(content))
        return found

    def read(*arguments, environment=None, succeeds=True, **options):
        done = ansible.command(
            "ansible-inventory",
            "-i",
            str(path(**options)),
            *(arguments or ("--list",)),
            ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED="True",
            **(environment or {}),
        )
        assert (done.returncode == 0) is succeeds, done.stdout + done.stderr
        if not succeeds:
            return " ".join(done.stderr.split())
        assert not done.stderr, done.stderr
        return done.stdout if "--graph" in arguments else json.loads(done.stdout, object_hook=unwrapped)

    read.path = path
    return read


def unwrapped(value):
    """A text that is no template, which ansible-inventory marks; everything else as it is."""
    return value["__ansible_unsafe"] if value.keys() == {"__ansible_unsafe"} else value


def hosts(found):
    return found["_meta"]["hostvars"]


def members(found, group):
    return set((found.get(group) or {}).get("hosts") or [])


def mark(world, name, *, status=None, **body):
    world.cluster.merge(paths.node(name), body)
    if status:
        world.cluster.merge(f"{paths.node(name)}/status", {"status": status})


@pytest.fixture
def scene(world):
    """A control-plane node that is not Ready, a worker that is cordoned, and one that is held."""
    master, idle, held = names = world.nodes(3)
    for name in names:
        world.open(name)
    labels = {"node-role.kubernetes.io/control-plane": "", "topology.kubernetes.io/zone": "eu-1a"}
    marks = {"cluster.x-k8s.io/machine": "m-1", "cluster.x-k8s.io/cluster-namespace": "clusters"}
    mark(world, master, metadata={"labels": labels, "annotations": marks})
    addresses = [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "192.0.2.7"}]
    mark(world, held, metadata={"labels": {"example.com/pool": "gpu"}}, status={"addresses": addresses})
    world.set_condition(master, "DiskPressure", "True", "Full")
    world.run(cordon, name=idle, state="cordoned", owner="kernel")
    world.run(lease_hold, node=held, namespace=world.namespace, holder="db", reason="backup", wait=False)
    return names


@pytest.mark.core
def test_groups_and_variables(world, inventory, scene):
    master, idle, held = scene
    found = inventory(label_groups=["example.com/pool"])

    assert set(found["nodes"]["children"]) >= {"nodes_ready", "nodes_not_ready", "nodes_excluded", "zone_eu_1a"}
    assert members(found, "role_control_plane") == members(found, "zone_eu_1a") == {master}
    assert members(found, "role_worker") == {idle, held}
    assert members(found, "nodes_ready") == set(scene)
    assert members(found, "nodes_cordoned") == {idle}
    assert members(found, "nodes_held") == members(found, "pool_gpu") == {held}
    variables = hosts(found)
    assert set(variables) == set(scene)
    assert variables[master]["node_machine"] == {"namespace": "clusters", "name": "m-1"}
    assert variables[master]["node_conditions"]["DiskPressure"] == "True"
    assert variables[idle]["node_cordoned_by"] == "kernel"
    assert variables[idle]["node_unschedulable"] is True
    assert variables[held]["ansible_host"] == "192.0.2.7"
    assert variables[held]["node_boot_id"] == world.node(held)["status"]["nodeInfo"]["bootID"]
    (hold,) = variables[held]["node_holds"]
    assert (hold["namespace"], hold["holder"], hold["reason"]) == (world.namespace, "db", "backup")
    assert "held_seconds" not in hold
    assert "rolling_reboot_node_name" not in variables[held]


def test_graph(inventory, scene):
    lines = inventory("--graph").splitlines()

    assert "  |--@nodes:" in lines
    assert lines[lines.index("  |  |--@nodes_cordoned:") + 1] == f"  |  |  |--{scene[1]}"
    assert "  |  |--@nodes_not_ready:" in lines


@pytest.mark.long
def test_constructed(inventory, scene):
    master, idle, held = scene
    found = inventory(
        hostname_prefix="a-",
        group_prefix="a_",
        vars_prefix="k8s_",
        address_types=["ExternalIP"],
        compose={"ansible_user": "'root' if 'worker' in k8s_roles else 'core'", "wrong": "absent.thing"},
        groups={"busy": "k8s_holds | length > 0", "away": "not k8s_ready"},
        keyed_groups=[{"key": "k8s_labels['example.com/pool'] | default('')", "prefix": "pool"}],
    )
    variables = hosts(found)

    assert set(variables) == {f"a-{name}" for name in scene}
    assert variables[f"a-{held}"]["ansible_user"] == "root"
    assert variables[f"a-{master}"]["ansible_user"] == "core"
    assert "wrong" not in variables[f"a-{held}"]
    assert "ansible_host" not in variables[f"a-{held}"]
    assert variables[f"a-{held}"]["rolling_reboot_node_name"] == held
    assert members(found, "a_role_worker") == {f"a-{idle}", f"a-{held}"}
    assert members(found, "pool_gpu") == members(found, "busy") == {f"a-{held}"}
    assert "away" not in found
    assert "nodes" not in found


@pytest.mark.long
def test_strict(inventory, scene):
    said = inventory(strict=True, compose={"wrong": "absent.thing"}, succeeds=False)

    assert "wrong" in said


def test_text_of_others_is_no_template(world, inventory):
    (name,) = world.nodes()
    mark(world, name, metadata={"annotations": {"holdfast.dev/operation": '{"detail": "{{ 6 * 7 }}"}'}})
    found = hosts(inventory(compose={"copied": "node_operation.detail"}))[name]

    assert (found["node_operation"]["detail"], found["copied"]) == ("{{ 6 * 7 }}", "{{ 6 * 7 }}")


def test_two_lists_however_many_nodes(world):
    world.nodes(3)
    cluster = Cluster({"kubeconfig": world.kubeconfig})
    found = read_hosts(cluster, selector=f"pool={world.namespace}", holds=True)

    assert len(found) == 3
    assert cluster.requests == 2
    cluster = Cluster({"kubeconfig": world.kubeconfig})
    assert "holds" not in read_hosts(cluster, selector=f"pool={world.namespace}", holds=False)[0]
    assert cluster.requests == 1


class TestCluster:
    """How the cluster is reached."""

    @pytest.fixture
    def name(self, world):
        return world.nodes()[0]

    @pytest.mark.long
    def test_by_a_variable_of_the_environment(self, world, inventory, name):
        environment = {"K8S_AUTH_KUBECONFIG": world.kubeconfig, "K8S_AUTH_API_TIMEOUT": "0"}

        assert set(hosts(inventory(kubeconfig=None, environment=environment))) == {name}

    @pytest.mark.long
    def test_by_every_form_of_kubeconfig(self, world, ansible, inventory, name):
        content = yaml.safe_load(Path(world.kubeconfig).read_text())
        vault, password = ansible.folder / "vault.yml", ansible.folder / "password"
        password.write_text("open sesame")
        vault.write_text(Path(world.kubeconfig).read_text())
        done = ansible.command("ansible-vault", "encrypt", str(vault), "--vault-password-file", str(password))
        assert done.returncode == 0, done.stderr

        for form in (content, [world.kubeconfig], f"{world.kubeconfig}:{world.kubeconfig}", str(vault), [str(vault)]):
            found = inventory("--list", "--vault-password-file", str(password), kubeconfig=form)
            assert set(hosts(found)) == {name}, form

    @pytest.mark.long
    def test_by_an_encrypted_option(self, world, ansible, inventory, account, name):
        """A token that is encrypted in the file of the inventory, with aliases of other options."""
        password = ansible.folder / "password"
        password.write_text("open sesame")
        done = ansible.command("ansible-vault", "encrypt_string", account.token, "--vault-password-file", str(password))
        assert done.returncode == 0, done.stderr
        cluster = yaml.safe_load(Path(world.kubeconfig).read_text())["clusters"][0]["cluster"]
        path = inventory.path(kubeconfig=None, host=cluster["server"], verify_ssl=False, holds=False)
        path.write_text(path.read_text() + f"api_key: {done.stdout}")
        done = ansible.command("ansible-inventory", "-i", str(path), "--list", "--vault-password-file", str(password))

        assert set(hosts(json.loads(done.stdout, object_hook=unwrapped))) == {name}, done.stderr

    def test_what_is_wrong_is_said(self, inventory, name):
        nowhere = {"kubeconfig": None, "host": "https://127.0.0.1:1", "api_key": "to-ken", "api_timeout": 0}
        said = inventory(**nowhere, succeeds=False)

        assert said.count("The API server https://127.0.0.1:1 did not answer") == 2, (
            "once as a warning, once as an error"
        )
        assert "to-ken" not in said
        assert "No cluster can be reached with /not/there" in inventory(kubeconfig="/not/there", succeeds=False)

    @pytest.mark.long
    def test_without_the_right_to_list_leases(self, inventory, account, name):
        said = inventory(kubeconfig=account.kubeconfig, succeeds=False)

        assert "With holds: false, no right to list Leases is needed." in said
        found = hosts(inventory(kubeconfig=account.kubeconfig, holds=False))
        assert "node_holds" not in found[name]


@pytest.fixture
def account(world, ansible):
    """A ServiceAccount that may list Nodes, and nothing else."""

    class Account:
        name = world.namespace

    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
    world.cluster.create(f"{_RBAC}/clusterroles", {"metadata": {"name": Account.name}, "rules": [rule]})
    world.made.objects.append(f"{_RBAC}/clusterroles/{Account.name}")
    binding = {
        "metadata": {"name": Account.name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": Account.name},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": world.namespace}],
    }
    world.cluster.create(f"{_RBAC}/clusterrolebindings", binding)
    world.made.objects.append(f"{_RBAC}/clusterrolebindings/{Account.name}")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    found = Account()
    found.token = world.cluster.create(f"{world.path('serviceaccounts')}/default/token", request)["status"]["token"]
    config = yaml.safe_load(Path(world.kubeconfig).read_text())
    config["users"] = [{**user, "user": {"token": found.token}} for user in config["users"]]
    path = ansible.folder / "account.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    found.kubeconfig = str(path)
    return found


@pytest.mark.long
def test_cache(world, ansible, inventory):
    name, other = world.nodes(2)
    cache = {
        "cache": True,
        "cache_plugin": "ansible.builtin.jsonfile",
        "cache_connection": str(ansible.folder / "cache"),
    }
    before = hosts(inventory(**cache))
    mark(world, name, metadata={"labels": {"late": "yes"}})

    assert hosts(inventory(**cache)) == before, "not from the cache"
    assert hosts(inventory("--list", "--flush-cache", **cache))[name]["node_labels"]["late"] == "yes"
    assert set(hosts(inventory(**cache, selector=f"late,pool={world.namespace}"))) == {name}
    assert set(before) == {name, other}


@pytest.mark.long
def test_another_file_is_not_read(ansible, inventory):
    wrong = inventory.path().rename(ansible.folder / "other.yml")
    done = ansible.command("ansible-inventory", "-i", str(wrong), "--list")

    assert "hostvars" in done.stdout
    assert not hosts(json.loads(done.stdout))


@pytest.mark.core
@pytest.mark.long
def test_a_rolling_reboot_over_hosts_with_other_names(world, ansible, inventory):
    """Nothing but the inventory says which host is which Node."""
    rolling = Rolling(world, ansible)
    try:
        names = world.nodes(3)
        for name in names:
            world.open(name)
        world.run(cordon, name=names[2], state="cordoned", owner="a person")
        before = rolling.boot_ids(names)
        path = inventory.path(hostname_prefix="a-", group_prefix="a_", address_types=[])
        arguments = ("-i", str(path), "-e", "rolling_reboot_hosts=a_role_worker:!a_nodes_cordoned")
        # The cordoned node takes one unit of the budget.
        done = rolling.run({}, *arguments, max_unavailable=2).good()

        assert done.results == dict.fromkeys(names[:2], "rebooted")
        after = rolling.boot_ids(names)
        assert {name for name in names if before[name] != after[name]} == set(names[:2])
    finally:
        rolling.close()

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster of one real node, whose reboot also stops the API server: its own lab."""

from __future__ import annotations

import sys

import pytest
from integration.support.ansible import Ansible
from integration.support.playbooks import Rolling
from integration.support.realnodes import boot_id, member
from integration.support.world import Made, World, make_namespace

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from lab import Lab
from lab.paths import CHECKOUT, Paths
from lab.patience import PATIENCE

NODE = "node-1"
# The node and its API server go down, and the API server is the last to come back.
REBOOT = f"""
import sys, time
sys.path.insert(0, {str(CHECKOUT / "tests")!r})
from pathlib import Path
from lab import Lab
from lab.paths import Paths
lab = Lab(Paths(Path(sys.argv[1]), Path(sys.argv[2])))
if sys.argv[3] == "down":
    lab.stop_apiserver()
    lab.power_off({NODE!r})
    lab.power_on({NODE!r})
else:
    time.sleep(10)
    lab.start_apiserver()
"""


@pytest.fixture
def alone():
    """The lab with its only node."""
    usual = Paths.default()
    found = Lab(Paths(usual.root.with_name(f"{usual.root.name}-one"), usual.cache))
    found.up(1, 0)
    yield found
    found.down()


@pytest.fixture
def rolling(alone, tmp_path):
    cluster = Cluster({"kubeconfig": str(alone.kubeconfig)})
    made = Made(cluster)
    world = World(cluster, make_namespace(cluster, made), made, str(alone.kubeconfig))
    found = Rolling(world, Ansible(tmp_path, alone))
    yield found
    found.close()
    world.close()


@pytest.mark.long
@pytest.mark.nodes
def test_the_only_node_goes_only_if_asked_and_the_api_is_waited_for(rolling, alone, tmp_path):
    world = rolling.world
    script = tmp_path / "reboot.py"
    script.write_text(REBOOT)
    call = f"{sys.executable} {script} {alone.paths.root} {alone.paths.cache}"
    here = {"connection": "local", "delegate_to": "localhost"}
    steps = (
        {"name": "The node goes, and the API with it", "ansible.builtin.raw": f"{call} down", **here},
        {
            "name": "The API comes back later",
            "ansible.builtin.raw": f"setsid {call} up </dev/null >/dev/null 2>&1 &",
            **here,
        },
    )
    world.owned("web", NODE)
    (uid,) = (pod["metadata"]["uid"] for pod in world.pods(NODE).values())
    command = {"command_tasks": rolling.tasks("reboot", *steps)}
    with member(world, alone, NODE) as variables:
        hosts = {NODE: {**variables, "rolling_reboot_method": "command"}}
        before = boot_id(alone, NODE)

        refused = rolling.start(hosts, **command).done(PATIENCE)

        assert refused.code != 0
        assert refused.results == {NODE: "stopped"}
        assert f"Node {NODE} is the cluster's only node" in refused.detail(NODE)
        assert "Set rolling_reboot_single_node: true" in refused.detail(NODE)
        assert boot_id(alone, NODE) == before
        assert not world.cordoned(NODE)

        done = rolling.start(hosts, **command, single_node=True).done(PATIENCE).good()

        assert done.results == {NODE: "rebooted"}
        assert boot_id(alone, NODE) == rolling.boot_id(NODE) != before
        # It was not drained: its pods have nowhere to go.
        assert [pod["metadata"]["uid"] for pod in world.pods(NODE).values()] == [uid]
        rolling.assert_nothing_left([NODE])

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real API server for every test: the lab's. Nodes are simulated, unless a test is marked `nodes`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from integration.support.agent import NODES, Agent, agents_on, free
from integration.support.ansible import Ansible
from integration.support.failovers import Failovers
from integration.support.faults import Proxy
from integration.support.freezing import frozen
from integration.support.playbooks import Rolling
from integration.support.sharing import Sharing, nodes_of
from integration.support.turns import TESTS, node_turns, turn
from integration.support.world import Made, World, make_namespace

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from lab import Lab


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before ``-m`` chooses among them."""
    for item in items:
        parameters = item.nodeid.partition("[")[2]
        if any(node in parameters for mark in item.iter_markers("long_on") for node in mark.args):
            item.add_marker(pytest.mark.long)
    # A test that runs alone waits until no other test runs, and its process does nothing meanwhile.
    items.sort(key=lambda item: item.get_closest_marker("alone") is not None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Sharing:
    return Sharing(config, log)


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The lab; start it if none is up, and take it down again then."""
    found = Lab.default()
    ours = not found.is_up
    if ours:
        if "PYTEST_XDIST_WORKER" in os.environ:
            raise RuntimeError("Start the lab first (make lab). Several processes can't share one that each starts.")
        found.up(3, 0)
    # Tests make their own simulated nodes.
    found.start_kwok()
    yield found
    if ours:
        found.down()


@pytest.fixture(autouse=True)
def _turns(request: pytest.FixtureRequest, lab: Lab) -> Iterator[None]:
    """One test at a time has a real node, and while a test marked ``alone`` disturbs what all share, no other runs."""
    marks = {mark.name for mark in request.node.iter_markers()}
    # Tests that run at once take a turn each, in their own thread.
    names = nodes_of(request.node.nodeid) if "nodes" in marks and "together" not in marks else ()
    with node_turns(lab, names, alone="alone" in marks):
        yield


@pytest.fixture
def control_plane(lab: Lab) -> Iterator[None]:
    """One test at a time has control-plane nodes: the budget of the control plane counts all that the cluster has."""
    with turn(lab, "control plane"):
        yield


@pytest.fixture(scope="session")
def kubeconfig(lab: Lab) -> str:
    return str(lab.kubeconfig)


@pytest.fixture(scope="session")
def cluster(kubeconfig: str) -> Cluster:
    return Cluster({"kubeconfig": kubeconfig})


@pytest.fixture(scope="session")
def _sweeper() -> Iterator[ThreadPoolExecutor]:
    """Remove nodes in the background: each node that is left makes the API server renew its Lease all the time."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield pool


@pytest.fixture
def made(cluster: Cluster, _sweeper: ThreadPoolExecutor) -> Iterator[Made]:
    found = Made(cluster)
    yield found
    _sweeper.submit(found.remove)


@pytest.fixture
def namespace(cluster: Cluster, made: Made) -> str:
    """A namespace for the test, in which pods can be made."""
    return make_namespace(cluster, made)


@pytest.fixture
def world(cluster: Cluster, namespace: str, made: Made, kubeconfig: str) -> Iterator[World]:
    found = World(cluster, namespace, made, kubeconfig)
    yield found
    found.close()


@pytest.fixture
def rolling(world: World, ansible: Ansible) -> Iterator[Rolling]:
    """Runs of the role rolling_reboot over the nodes of the world."""
    found = Rolling(world, ansible)
    yield found
    found.close()


@pytest.fixture
def failovers(world: World, ansible: Ansible) -> Iterator[Failovers]:
    """Runs of the role failover over the nodes of the world."""
    found = Failovers(world, ansible)
    yield found
    found.close()


@pytest.fixture
def nodes(world: World) -> Callable[..., list[str]]:
    """Make simulated nodes for the test."""
    return world.nodes


@pytest.fixture
def run_module(world: World) -> Callable[..., dict[str, Any]]:
    return world.run


@pytest.fixture
def proxy(world: World, lab: Lab, tmp_path: Path) -> Iterator[Proxy]:
    """A proxy between this test's world and the API server: the world's requests pass through it, with its faults."""
    found = Proxy(lab.kubeconfig, tmp_path, names=(world.namespace,))
    direct, world.kubeconfig = world.kubeconfig, str(found.kubeconfig)
    yield found
    world.kubeconfig = direct
    found.close()
    # Shown where the test failed.
    print(f"faults with seed {found.faults.seed}:", *found.faults.log, sep="\n")


@pytest.fixture
def freeze() -> Callable[[int], AbstractContextManager[list[int]]]:
    """Stop a process and all that it started."""
    return frozen


@pytest.fixture(scope="module", params=NODES)
def installed(request: pytest.FixtureRequest, lab: Lab, cluster: Cluster) -> Iterator[Agent]:
    """Install the agent on one node; the tests of one file have it until the last one ends."""
    name = request.param
    alone = request.node.get_closest_marker("alone") is not None
    with node_turns(lab, [name], alone=alone), agents_on(lab, cluster, (name,)) as found:
        yield found[name]


@pytest.fixture
def agent(installed: Agent) -> Iterator[Agent]:
    with free(installed) as found:
        yield found


@pytest.fixture
def ansible(tmp_path: Path, lab: Lab) -> Ansible:
    return Ansible(tmp_path, lab)


Stage = Callable[[], tuple[World, Ansible]]
AT_ONCE = 4


@pytest.fixture(scope="session")
def stage(cluster: Cluster, kubeconfig: str, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Make worlds, for tests that need more than one."""
    made = Made(cluster)
    worlds: list[World] = []
    # Several threads make worlds. The first call makes a folder, and is not made for two at once.
    tmp_path_factory.getbasetemp()

    def make() -> tuple[World, Ansible]:
        world = World(cluster, make_namespace(cluster, made), made, kubeconfig)
        worlds.append(world)
        return world, Ansible(tmp_path_factory.mktemp(world.namespace), lab)

    yield make
    for world in worlds:
        world.close()
    made.remove()


@pytest.fixture(scope="session")
def _together(request: pytest.FixtureRequest, stage: Stage, lab: Lab) -> Iterator[dict[str, Future[Any]]]:
    """The result of every chosen test that is marked ``together``, by its id: several run at once.

    Each of them waits 90 s until a run counts as dead. One after the other they would take half an hour; all at once,
    two cores would be so busy that nodes count as dead because their Leases can't be renewed in time.
    """
    marked = {item: item.get_closest_marker("together") for item in request.session.items}
    chosen = {item: mark.kwargs["by"] for item, mark in marked.items() if mark}
    parameters = {item: item.callspec.params if hasattr(item, "callspec") else {} for item in chosen}
    pool = ThreadPoolExecutor(max_workers=AT_ONCE)
    yield {item.nodeid: pool.submit(_in_turn, lab, play, stage, **parameters[item]) for item, play in chosen.items()}
    pool.shutdown(wait=True, cancel_futures=True)


def _in_turn(lab: Lab, play: Callable[..., Any], stage: Stage, **parameters: Any) -> Any:
    """Run while other tests run, but not while a test marked ``alone`` runs."""
    with turn(lab, TESTS, shared=True):
        return play(stage, **parameters)


@pytest.fixture
def outcome(request: pytest.FixtureRequest, _together: dict[str, Future[Any]]) -> Callable[[], Any]:
    """Return what the function that the mark ``together`` names returned for this test, or raise its error."""
    return _together[request.node.nodeid].result

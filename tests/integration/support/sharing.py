# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests stay together when several processes share them."""

from __future__ import annotations

import re

from xdist.scheduler import LoadScopeScheduling

REAL_NODES = ("node-1", "node-2", "node-3")
# Tests of real nodes, by the beginning of their ids: they install an agent, take locks, reboot. Tests of one file share
# what they set up on a node. A test has the nodes that its parameters name, else the node below, else all nodes.
_REAL = {
    "test_agent_gap": "",
    "test_agent_holds": "",
    "test_agent_trouble": "",
    "test_controller_node.py::test_as_a_real_pod": "node-3",
    "test_drain.py::TestRealPods": "node-3",
    "test_failover_power": "",
    "test_failover_real": "",
    "test_graceful_shutdown.py": "node-1",
    "test_graceful_shutdown_info": "node-1",
    "test_graceful_shutdown_role": "node-3",
    "test_inhibitor_lock": "node-1",
    "test_late_hold": "",
    "test_node_agent_role": "node-3",
    "test_out_of_service.py::test_a_real_node": "node-3",
    "test_reboot.py": "",
    "test_reboot_once": "node-1",
    "test_rolling_reboot_graceful": "node-1",
    "test_settings_real": "node-2",
}

# They share Cluster API's controller, or only its kinds, which exist once: one fixture serves all tests of a file. A
# test that waits for it would keep a process from the rest.
_MACHINES = (
    "test_deletion_hook",
    "test_doctor.py::TestMachine",
    "test_eda_machines",
    "test_lab_capi",
    "test_machine_guard",
    "test_node_opt_outs",
    "test_reboot_annotation.py::TestByMachine",
)

# Marked `together`: the first of them starts them all, in its own process. A second process would start them again.
_TOGETHER = ("test_failover_killed", "test_killed", "test_paused")


def nodes_of(nodeid: str) -> tuple[str, ...]:
    """The real nodes that a test has to itself, if it needs any."""
    return _own_nodes(nodeid) or REAL_NODES


class Sharing(LoadScopeScheduling):
    """Three kinds of groups run in one process each: a real node's tests, Machines' tests, tests that run together."""

    def _split_scope(self, nodeid: str) -> str:
        if _name(nodeid).startswith(_MACHINES):
            return "machines"
        if _name(nodeid).startswith(_TOGETHER):
            return "together"
        own = _own_nodes(nodeid)
        if own is None:
            return nodeid
        return own[0] if len(own) == 1 else "real nodes"


def _own_nodes(nodeid: str) -> tuple[str, ...] | None:
    """The nodes of a test; empty where it has all of them, ``None`` where it is not a test of real nodes only."""
    for start, node in _REAL.items():
        if _name(nodeid).startswith(start):
            named = re.findall(r"\bnode-\d\b", nodeid.partition("[")[2])
            return tuple(dict.fromkeys(named)) or ((node,) if node else ())
    return None


def _name(nodeid: str) -> str:
    """File, class and function, without folder and parameters."""
    return nodeid.partition("[")[0].rpartition("/")[2]

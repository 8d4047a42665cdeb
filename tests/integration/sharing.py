# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests stay together where several processes share them."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

# Each changes real nodes as a whole: installs an agent, takes locks, reboots. Their tests build on each other.
REAL = (
    "test_agent_",
    "test_failover_real",
    "test_graceful_shutdown.py",
    "test_graceful_shutdown_info",
    "test_graceful_shutdown_role",
    "test_inhibitor_lock",
    "test_late_hold",
    "test_node_agent_role",
    "test_reboot.py",
    "test_rolling_reboot_graceful",
)
# They share Cluster API's controller, of which there is one: it is started once for all tests of a file.
MACHINES = ("test_lab_capi", "test_deletion_hook", "test_eda_machines", "test_machine_guard")


class Sharing(LoadScopeScheduling):
    """One process has all tests of real nodes, in their order, one those of Machines; others go to whoever is free."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0].rpartition("/")[2]
        if module.startswith(MACHINES):
            return "machines"
        return "real nodes" if module.startswith(REAL) else nodeid

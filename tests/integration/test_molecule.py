# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Molecule's scenarios, beside the other tests of real nodes. `make molecule` runs them alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PATIENCE = 1200
# With the nodes that each is about.
SCENARIOS = {
    "failover": "node-3",
    "graceful_shutdown": "node-1 node-2",
    "node_agent": "node-1 node-2",
    "recover": "node-3",
    "rolling_reboot": "node-1 node-2 node-3",
}

pytestmark = pytest.mark.nodes


@pytest.mark.parametrize(("nodes", "scenario"), [(nodes, scenario) for scenario, nodes in SCENARIOS.items()])
def test_scenario(lab, nodes, scenario):
    command = [sys.executable, str(CHECKOUT / "tools/stages.py"), "molecule", "--scenario", scenario]
    done = subprocess.run(
        command,
        env={**os.environ, "HOLDFAST_LAB": str(lab.paths.root)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_scenario_is_run():
    found = {path.parent.name for path in CHECKOUT.glob("extensions/molecule/*/molecule.yml")}
    # It only says how the lab is made and removed.
    assert found - {"default"} == set(SCENARIOS)

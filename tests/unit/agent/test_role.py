# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role asks the API server for: its guide says that a controller needs to read Nodes and Leases only."""

from __future__ import annotations

import re
from pathlib import Path

TASKS = Path(__file__).resolve().parents[3] / "roles/node_agent/tasks"
# Each reads Nodes or Leases, or needs a right that the guide names: RBAC, and nodes/status for a removal.
KNOWN = {"agent_rbac", "lease_hold_info", "node_condition", "node_condition_info", "role_settings"}


def test_its_modules_need_the_documented_rights_only():
    text = "\n".join(path.read_text() for path in TASKS.glob("*.yml"))
    assert set(re.findall(r"^ +holdfast\.kubernetes\.(\w+):", text, re.MULTILINE)) == KNOWN

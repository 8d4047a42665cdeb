# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role asks the API server for and what it reads from the node.

Its guide says that a controller needs to read Nodes and Leases only.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from unit.terminal import BEFORE_OUTPUT

ROLE = Path(__file__).resolve().parents[3] / "roles/node_agent"
TASKS = ROLE / "tasks"
# Each reads Nodes or Leases, or needs a right that the guide names: RBAC, and nodes/status for a removal.
KNOWN = {"agent_rbac", "lease_hold_info", "node_condition", "node_condition_info", "role_settings"}


def test_its_modules_need_the_documented_rights_only():
    text = "\n".join(path.read_text() for path in TASKS.glob("*.yml"))
    assert set(re.findall(r"^ +holdfast\.kubernetes\.(\w+):", text, re.MULTILINE)) == KNOWN


@pytest.mark.parametrize("before", BEFORE_OUTPUT.values(), ids=BEFORE_OUTPUT)
def test_lines_of_sudo_are_no_part_of_what_the_node_answers(before):
    loader = DataLoader()
    variables = loader.load_from_file(str(ROLE / "vars/main.yml"), trusted_as_template=True)
    output = f"{before}has_unit=1\r\nnode=\nmissing=/a=b /c\n"
    templar = Templar(loader, {**variables, "__node_agent_look": {"stdout_lines": output.splitlines()}})

    found = templar.template(trust_as_template("{{ __node_agent_found }}"))

    assert found == {"has_unit": "1", "node": "", "missing": "/a=b /c"}

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rolling reboot of a real node whose variables are all texts, as a survey of AWX gives them."""

from __future__ import annotations

import pytest
from integration.support.realnodes import boot_id, member
from integration.support.variables import as_texts, extra

pytestmark = [pytest.mark.nodes, pytest.mark.long]


@pytest.mark.parametrize("name", ["node-2"])
def test_a_held_node_survives_false_as_text_and_true_is_recorded(lab, world, rolling, ansible, name):
    own = {
        "group": rolling.group,
        "selector": rolling.selector,
        "when": "always",
        "method": "systemd",
        "hold_timeout": 3,
        "operation": "texts",
    }

    def run(number, variables, **more):
        report = str(ansible.folder / f"run-{number}/report.json")
        texts = as_texts("rolling_reboot", **own, report=report, **more)
        return rolling.run({name: variables}, *extra(ansible.folder, "rolling_reboot", texts))

    with member(world, lab, name) as variables:
        rolling.hold(name)
        before = boot_id(lab, name)

        held = run(0, variables)
        assert held.results == {name: "stopped"}, held.output
        assert "app" in held.detail(name)
        assert boot_id(lab, name) == before
        rolling.assert_nothing_left([name])

        overridden = run(1, variables, override_holds="true").good()
        assert overridden.results == {name: "rebooted"}
        assert boot_id(lab, name) != before
        assert f"holds were overridden: {world.namespace}/app" in overridden.detail(name)
        assert f"{world.namespace}/app" in rolling.record(name)["detail"]
        rolling.assert_nothing_left([name])

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of nodes as artifacts: small, with problems first, and readable again."""

from __future__ import annotations

import json

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.artifact_rules import KEPT, read, results

ORDER = ("failed", "rebooted")


def node(name, result, detail="", **more):
    return {"name": name, "result": result, "detail": detail, **more}


def test_each_node_has_its_result_or_its_verdict_and_why():
    nodes = [node("a", "rebooted", "always"), node("b", "planned", "held by\n shop/app", verdict="later")]

    assert results("demo", nodes, ORDER) == {
        "demo_results": {"a": "rebooted: always", "b": "later: held by shop/app"},
        "demo_results_left_out": 0,
    }


def test_of_a_large_fleet_the_problems_are_kept_and_the_rest_is_counted():
    nodes = [node(f"n{number:04}", "rebooted") for number in range(KEPT)] + [node("z", "failed", "no route")]

    found = results("demo", nodes, ORDER)

    assert next(iter(found["demo_results"].items())) == ("z", "failed: no route")
    assert (len(found["demo_results"]), found["demo_results_left_out"]) == (KEPT, 1)
    assert f"n{KEPT - 1:04}" not in found["demo_results"]


def test_the_size_is_limited_whatever_others_wrote():
    nodes = [node(f"n{number}" + "x" * 240, "failed", "y" * 10_000) for number in range(2 * KEPT)]

    assert len(json.dumps(results("demo", nodes, ORDER))) < 300_000


@pytest.mark.parametrize("detail", ["", "no route: port 22", "a\tb"])
def test_is_readable_again(detail):
    found = results("demo", [node("a", "not reported", detail)], ORDER)["demo_results"]

    assert read(found) == {"a": {"name": "a", "result": "not reported", "detail": " ".join(detail.split())}}

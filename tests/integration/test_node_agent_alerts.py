# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documented alert rules, tried by Prometheus's own tool on metrics as the agent writes them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import Lab, packages
from lab.prometheus import PACKAGE

RULES = Path(__file__).resolve().parents[2] / "docs/node_agent_alerts.yml"
NODE = 'instance="node-1"'
HOLD = f'{NODE}, namespace="shop", holder="migration-0"'


def series(name: str, labels: str, values: str) -> dict[str, str]:
    return {"series": f"holdfast_agent_{name}{{{labels}}}", "values": values}


def well(**other: str) -> list[dict[str, str]]:
    """An agent with one hold; everything is well except the given values; one sample a minute."""
    values = {
        "failed_locks": "0x20",
        "failed_masks": "0x20",
        "api_up": "1x20",
        "last_sync_timestamp_seconds": "0+60x20",
        "written_timestamp_seconds": "0+60x20",
        "hold_overdue": "0x20",
        **other,
    }
    return [series(name, HOLD if name == "hold_overdue" else NODE, value) for name, value in values.items()]


def alerts() -> list[str]:
    return [rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


@pytest.fixture(scope="module")
def promtool(lab: Lab) -> Path:
    found = packages.program(lab.paths.cache, PACKAGE).with_name("promtool")
    if not found.exists():
        pytest.fail(f"{found} is not there: it comes with Prometheus")
    return found


@pytest.mark.parametrize(
    ("metrics", "firing"),
    [
        (well(), ()),
        (well(hold_overdue="0x10 1x10"), ("HoldfastHeldTooLong",)),
        (well(failed_locks="0x10 1x10"), ("HoldfastNotLocked",)),
        (well(failed_masks="2x20"), ("HoldfastNotMasked",)),
        (well(api_up="1 0x20", last_sync_timestamp_seconds="0x20"), ("HoldfastApiAway",)),
        # A moment is no outage.
        (well(api_up="1x18 0 0", last_sync_timestamp_seconds="0+60x18 1080 1080"), ()),
        (well(written_timestamp_seconds="0x20"), ("HoldfastAgentSilent",)),
    ],
    ids=["well", "held too long", "not locked", "not masked", "API away", "API away for a moment", "silent"],
)
def test_fires(promtool: Path, tmp_path: Path, metrics: list[dict[str, str]], firing: tuple[str, ...]) -> None:
    expectations: list[dict[str, Any]] = [
        # An expectation also compares labels and texts; this test only asks whether an alert fires.
        {
            "expr": f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) or vector(0)',
            "eval_time": "20m",
            "exp_samples": [{"labels": "{}", "value": int(name in firing)}],
        }
        for name in alerts()
    ]
    book = tmp_path / "test.yml"
    test = {"interval": "1m", "input_series": metrics, "promql_expr_test": expectations}
    book.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}))

    done = subprocess.run([str(promtool), "test", "rules", str(book)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr

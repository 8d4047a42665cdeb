# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The live view of a real run, through a pipe."""

from __future__ import annotations

import pytest

# Longer than any screen is wide.
WHY = " ".join(f"word-{number}" for number in range(60))


@pytest.mark.long
def test_run_is_shown_in_lines_and_its_failure_in_full(rolling, nodes):
    good, bad = nodes(2)
    fails = rolling.tasks("fails", {"name": "Fail on purpose", "ansible.builtin.fail": {"msg": WHY}})
    hosts = {good: {}, bad: {"rolling_reboot_before_drain_tasks": fails}}
    environment = {
        "K8S_AUTH_KUBECONFIG": rolling.world.kubeconfig,
        "ANSIBLE_STDOUT_CALLBACK": "holdfast.kubernetes.progress",
    }

    done = rolling.run(
        hosts, "--forks=1", environment=environment, operation="seen", run=f"job-9-{rolling.group}", max_failed=1
    )

    assert done.results == {good: "rebooted", bad: "failed"}, done.output
    assert f"Rolling reboot, operation seen, run job-9-{rolling.group}: 2 nodes" in done.output
    # The time comes first.
    said = [
        line.split()[2] for line in done.output.splitlines() if line[:2].isdigit() and line.split()[1] == f"{good}:"
    ]
    phases = [word.rstrip(":") for word in said]
    assert phases == ["cordon", "drain", "reboot", "ready", "uncordon", "rebooted"], done.output
    # Ansible's own message, and the result of the node, each in one line.
    assert f'"msg": "{WHY}"' in done.output
    (result,) = [line for line in done.output.splitlines() if f" {bad}: failed: " in line]
    assert WHY in result
    assert "ok: [" not in done.output
    assert "changed: [" not in done.output
    assert "PLAY RECAP" in done.output

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Some histories of the model, which the real operations carry out on a real API server.

`make model` tries thousands in memory. This test shows that they match reality: after each act, both worlds must look
the same.
"""

from __future__ import annotations

import os
import secrets

from examples import share
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from model.fleet import Fleet
from model.machine import Machine
from model.memory import Memory
from model.mirror import Mirror
from model.server import Server

HISTORIES = max(5, share(0.01))
# The same histories each time. They have runs that are killed, runs that wake without their claims, runs that start
# over, and nodes that fail.
SEED = int(os.environ.get("HOLDFAST_MODEL_SEED", "4"))


def test_histories_on_a_real_server(world):
    nodes = world.nodes(3)
    zones = dict(zip(nodes, "aab", strict=True))
    servers = []

    class OnAServer(Machine):
        def make(self) -> Fleet:
            group = f"model-{secrets.token_hex(4)}"
            servers.append(Server(world.cluster, world.namespace, f"pool={world.namespace}", zones, group))
            return Fleet(Mirror(servers[-1], Memory(zones, peeks=False)), nodes, prefix=f"{group}-", brief=True)

        def teardown(self) -> None:
            try:
                super().teardown()
            finally:
                servers[-1].remove()

    how = settings(
        max_examples=HISTORIES,
        stateful_step_count=15,
        database=None,
        # No shrinking of failures: it would take many more histories.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(seed(SEED)(OnAServer), settings=how)

    assert len(servers) >= HISTORIES

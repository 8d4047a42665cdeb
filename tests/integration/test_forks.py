# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""More held nodes than a run has forks."""

from __future__ import annotations

import pytest


@pytest.mark.long
@pytest.mark.parametrize("last_first", [pytest.param(False, marks=pytest.mark.long), True])
def test_held_nodes_that_number_forks_plus_one_are_all_done(rolling, nodes, last_first):
    *held, free = names = nodes(4)
    for name in held:
        rolling.hold(name)
    before = rolling.boot_ids(names)

    run = rolling.start(names, "--forks=2", operation="forks", max_unavailable=2)
    # Held nodes take no fork from the other nodes.
    run.until(lambda: rolling.record(free).get("result") == "rebooted", "the node that nobody holds")
    run.until(lambda: sum(rolling.record(name).get("phase") == "hold" for name in held) == 2, "both forks wait")
    assert {name: rolling.boot_id(name) for name in held} == {name: before[name] for name in held}
    for name in reversed(held) if last_first else held:
        rolling.release(name)
    done = run.done().good()

    assert set(done.results.values()) == {"rebooted"}
    after = rolling.boot_ids(names)
    assert all(after[name] != before[name] for name in names)
    rolling.assert_nothing_left(names)

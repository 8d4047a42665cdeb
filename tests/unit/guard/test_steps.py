# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wait for a Machine survives an API server that was unavailable."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Outdated
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._guard import steps as step


def work(**options):
    params = {"hook": "backup", "owner": "team", "run": "r", "worker": "w", "machines": [], "selector": ""}
    params |= {"cluster": "", "templates": [], "set_points": [], "stop": "deadline", "retry_seconds": 0, **options}
    context = Context(params)
    context.__dict__["management"] = None
    return step._GuardStep(context, params)


@pytest.fixture
def away(monkeypatch):
    """The API server is unavailable once, so that a change was lost."""
    looks = []

    def follow(_self, _pause):
        looks.append(1)
        if len(looks) == 1:
            raise Outdated("The API server was unavailable.", patience=0)
        return {"step": "pre-drain"}

    monkeypatch.setattr(step._GuardStep, "_follow", follow)
    return looks


def test_a_change_that_was_lost_is_decided_again(away):
    assert work().next() == {"step": "pre-drain"}


def test_not_after_the_time(away):
    with pytest.raises(Outdated):
        work(wait_timeout=0).next()

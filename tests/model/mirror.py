# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two worlds in which the same happens: both must have the same result, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from model.acts import Act, Outcome
from model.memory import Memory
from model.server import Server


class Mirror:
    """Shows the server's world, and fails where the world in memory differs from it."""

    def __init__(self, server: Server, memory: Memory) -> None:
        self._server = server
        self._memory = memory

    def __getattr__(self, name: str) -> Any:
        def in_both(*arguments: Any, **options: Any) -> Any:
            getattr(self._memory, name)(*arguments, **options)
            return getattr(self._server, name)(*arguments, **options)

        return in_both

    def perform(self, act: Act) -> Outcome:
        found, thought = self._server.perform(act), self._memory.perform(act)
        assert found.error == thought.error, f"{act}: {found} on the server, {thought} in memory"
        return found

    def picture(self) -> dict[str, Any]:
        found, thought = self._server.picture(), self._memory.picture()
        assert found == thought, "; ".join(_differences(found, thought))
        return found

    def doctor(self, release: list[str]) -> list[str]:
        if self._server.picture()["ledger"]["policy"] is None:
            # The doctor checks one group, and the ledger knows the group's nodes only from its first slot on.
            return []
        self._memory.doctor(release)
        return self._server.doctor(release)


def _differences(found: Any, thought: Any, where: str = "") -> Iterator[str]:
    if isinstance(found, dict) and isinstance(thought, dict):
        for key in {**found, **thought}:
            yield from _differences(found.get(key), thought.get(key), f"{where}.{key}")
    elif found != thought:
        yield f"{where[1:]} is {found} on the server, {thought} in memory"

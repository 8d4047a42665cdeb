# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An event source as a task of ansible-rulebook."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest

from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _event_source

SPEC = {"repeat": {"type": "float", "default": 0}}


class Source:
    """A source that finds something only when the test says so."""

    def __init__(self, _subject, _log, send):
        self.send, self._over = send, threading.Event()
        self.stop = self._over.set

    def run(self):
        self._over.wait()


class Queue:
    def __init__(self):
        self.puts, self.events = [], []

    def put(self, event):
        self.puts.append(self._put(event))
        return self.puts[-1]

    async def _put(self, event):
        self.events.append(event)


@pytest.fixture
def source(monkeypatch):
    made = []

    def make(*arguments):
        made.append(Source(*arguments))
        return made[-1]

    monkeypatch.setattr(_event_source, "EventSource", make)
    return made


def test_it_puts_events_until_its_task_ends(source):
    queue = Queue()

    async def serve_one_event():
        task = asyncio.create_task(_event_source.serve(queue, {}, SPEC, lambda *_arguments: None))
        await asyncio.sleep(0)
        await asyncio.to_thread(source[0].send, {"reason": "a"})
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(serve_one_event())
    assert queue.events == [{"reason": "a"}]
    # The thread of the source may find one more event. Python warns of a coroutine that nothing awaits or closes.
    with pytest.raises(RuntimeError):
        source[0].send({"reason": "late"})
    assert [inspect.getcoroutinestate(put) for put in queue.puts] == ["CORO_CLOSED", "CORO_CLOSED"]

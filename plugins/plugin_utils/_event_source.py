# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Code that the event sources share: from ansible-rulebook's arguments to events in its queue."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Mapping
from typing import Any, Callable, Protocol

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.option_rules import check_numbers
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context, Params
from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.log_rules import EventLog
from ansible_collections.holdfast.kubernetes.plugins.module_utils._events.source import Event, EventSource, Subject

# ansible-rulebook passes this argument itself if a rulebook asks for answers to events.
_FEEDBACK = "eda_feedback_queue"


class Queue(Protocol):
    """The queue of ansible-rulebook."""

    async def put(self, event: Event) -> None: ...


async def serve(
    queue: Queue,
    args: Mapping[str, Any],
    spec: Mapping[str, Any],
    make: Callable[[Context, Params], Subject],
) -> None:
    """Put events into the queue until the task is cancelled.

    Raises:
        HoldfastError: The arguments are wrong, or the API server refuses for good. ansible-rulebook then reports it and
            ends.
    """
    params = _validated(args, spec)
    subject = make(Context(params), params)
    loop = asyncio.get_running_loop()

    def send(event: Event) -> None:
        # Wait until the queue has room before looking for the next event.
        put = queue.put(event)
        try:
            sent = asyncio.run_coroutine_threadsafe(put, loop)
        except RuntimeError:
            # ansible-rulebook has ended its loop.
            put.close()
            raise
        sent.result()

    source = EventSource(subject, EventLog(after=params.get("after") or 0, repeat=params["repeat"]), send)
    try:
        await asyncio.wrap_future(_start(source))
    finally:
        source.stop()


def _validated(args: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    options = {**spec, **auth_options()}
    # A rulebook passes an empty value for a variable that is not set.
    given = {name: value for name, value in args.items() if name != _FEEDBACK and value not in (None, "", {})}
    found = ArgumentSpecValidator(options).validate(given)
    if found.error_messages:
        raise InvalidInput("; ".join(found.error_messages))
    params: dict[str, Any] = found.validated_parameters
    check_numbers(params)
    for name in ("after", "repeat"):
        if (params.get(name) or 0) < 0:
            raise InvalidInput(f"{name} must not be negative, it is {params[name]}.")
    return params


def _start(source: EventSource) -> concurrent.futures.Future[None]:
    """Run a source in a daemon thread, so that ansible-rulebook does not wait for it at its end."""
    ended: concurrent.futures.Future[None] = concurrent.futures.Future()

    def work() -> None:
        try:
            source.run()
        except Exception as error:  # noqa: BLE001 - the waiting task raises every error
            _settle(ended, error)
        else:
            _settle(ended, None)

    threading.Thread(target=work, name="holdfast-source", daemon=True).start()
    return ended


def _settle(ended: concurrent.futures.Future[None], error: Exception | None) -> None:
    # After a cancellation, nothing waits for the result.
    with contextlib.suppress(concurrent.futures.InvalidStateError):
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)

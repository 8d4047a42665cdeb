# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about silences of Alertmanager: which alerts a node's silences match, and which silences belong to a run.

A silence keeps its run in ``createdBy`` and its node in ``comment``, so nothing else has to remember it. Source for the
format: api/v2/openapi.yaml in Alertmanager 0.25.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from .._api.errors import InvalidInput
from .._api.objects import Object
from .._api.times import to_text
from .._budget.claim_rules import claim_of

# Alerts of kube-state-metrics have the label node, those of node_exporter have instance, with or without a port.
DEFAULT_MATCHERS = ('node="{node}"', 'instance=~"{pattern}(:[0-9]+)?"')
SHORTEST = 10
_MATCHER = re.compile(r'\s*([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n"}

Silence = Mapping[str, Any]
Matchers = list[dict[str, Any]]


def read_matchers(texts: Sequence[str], node: str) -> list[Matchers]:
    """The matchers of each silence of a node.

    Args:
        texts: Of each silence, its matchers in Alertmanager's syntax, separated by commas; if empty, the default.
        node: Name of the Node, for the default.

    Raises:
        InvalidInput: A text is not a list of matchers.
    """
    if texts:
        return [_read(text) for text in texts]
    pattern = node.replace(".", r"\\.")
    return [_read(text.format(node=node, pattern=pattern)) for text in DEFAULT_MATCHERS]


def _read(text: str) -> Matchers:
    found, rest = [], text.strip().removeprefix("{").removesuffix("}")
    while True:
        match = _MATCHER.match(rest)
        if not match:
            break
        name, operator, value = match.groups()
        found.append(
            {
                "name": name,
                "value": _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), value),
                "isRegex": "~" in operator,
                "isEqual": "!" not in operator,
            }
        )
        rest = rest[match.end() :]
        if not rest.startswith(","):
            break
        rest = rest[1:]
    if rest.strip() or not found:
        raise InvalidInput(
            f"alertmanager.matchers: {text!r} is not a list of matchers. Write them as in Alertmanager, for example "
            'node="worker-1", or instance=~"worker-1:.*",severity="warning".'
        )
    return found


def check_seconds(seconds: int) -> None:
    """Refuse a time that is too short to be extended.

    Raises:
        InvalidInput: The time is too short.
    """
    if seconds < SHORTEST:
        raise InvalidInput(f"alertmanager.expires_after must be at least {SHORTEST} s, it is {seconds}.")


def creator_of(run: str) -> str:
    return f"holdfast.kubernetes, run {run}"


def comment_of(node: str) -> str:
    return f"Rolling reboot of node {node}"


def node_of(silence: Silence) -> str:
    """The node of one of our silences."""
    return str(silence.get("comment") or "").removeprefix(comment_of(""))


def worked_on(node: Object, run: str) -> bool:
    """Whether the run still works on a Node. The write of its result removes its claim."""
    claim = claim_of(node)
    return claim is not None and claim.run == run


def own(silences: Iterable[Silence], run: str, node: str = "") -> list[Silence]:
    """The silences of a run that have not expired, of one node or of all."""
    return [
        silence
        for silence in silences
        if silence.get("createdBy") == creator_of(run)
        and (not node or silence.get("comment") == comment_of(node))
        and (silence.get("status") or {}).get("state") != "expired"
    ]


def new(matchers: Matchers, run: str, node: str, now: datetime, seconds: int) -> dict[str, Any]:
    """A silence that begins now."""
    return {
        "matchers": matchers,
        "startsAt": to_text(now),
        "endsAt": to_text(now + timedelta(seconds=seconds)),
        "createdBy": creator_of(run),
        "comment": comment_of(node),
    }


def extended(silence: Silence, now: datetime, seconds: int) -> dict[str, Any]:
    """The silence with a later end. Alertmanager keeps its id only if matchers and start are unchanged."""
    kept = ("id", "matchers", "startsAt", "createdBy", "comment")
    return {**{name: silence[name] for name in kept}, "endsAt": to_text(now + timedelta(seconds=seconds))}


def has_matchers(silence: Silence, matchers: Matchers) -> bool:
    """Whether a silence has these matchers."""

    def key(matcher: Mapping[str, Any]) -> tuple[Any, ...]:
        return (matcher["name"], matcher["value"], matcher["isRegex"], matcher.get("isEqual", True))

    return sorted(map(key, silence["matchers"])) == sorted(map(key, matchers))

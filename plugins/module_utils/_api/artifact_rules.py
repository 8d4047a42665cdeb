# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of nodes as artifacts of a job, for the next job of a workflow and for the person who approves it.

AWX keeps them in its database, shows them on the page of the job, and gives them to later jobs as variables. So their
size is limited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._shared.bounds import cut

# Nodes, and characters of a detail: together at most 300 kB, however large the fleet is.
KEPT, LONGEST = 500, 200


def results(prefix: str, nodes: Iterable[Mapping[str, Any]], order: Sequence[str]) -> dict[str, Any]:
    """The artifacts ``PREFIX_results``, with a text for each node, and ``PREFIX_results_left_out``.

    Args:
        prefix: The prefix of the names.
        nodes: ``name``, ``result`` (in a plan, ``verdict``) and ``detail`` of each node.
        order: Results, the most important first. If there are more than ``KEPT`` nodes, those with the last results
            are left out.
    """
    texts = {str(node["name"]): text_of(node) for node in sorted(nodes, key=lambda node: _rank(node, order))}
    kept = dict(list(texts.items())[:KEPT])
    return {f"{prefix}_results": kept, f"{prefix}_results_left_out": len(texts) - len(kept)}


def text_of(node: Mapping[str, Any]) -> str:
    """The result of a node as text: ``RESULT: DETAIL``."""
    return f"{_word(node)}: {cut(' '.join(str(node.get('detail') or '').split()), LONGEST)}"


def read(results: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The name, result and detail of each node, from the artifact ``PREFIX_results``."""
    found = {}
    for name, text in results.items():
        word, _colon, detail = str(text).partition(": ")
        found[str(name)] = {"name": str(name), "result": word, "detail": detail}
    return found


def _word(node: Mapping[str, Any]) -> str:
    return str(node.get("verdict") or node["result"])


def _rank(node: Mapping[str, Any], order: Sequence[str]) -> tuple[int, str]:
    word = _word(node)
    return (order.index(word) if word in order else len(order), str(node["name"]))

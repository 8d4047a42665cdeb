# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the metrics: the text that node_exporter's text-file collector reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from . import __version__, alerts
from .holds import Hold
from .plan import Facts

# Each hold makes two series. Only the oldest holds get them.
_NAMED = 250


@dataclass(frozen=True)
class Moment:
    """What the metrics report in addition to the facts."""

    now: datetime
    alert_timeout: int
    api_up: bool
    last_sync: datetime | None


def text(facts: Facts, moment: Moment) -> str:
    """The whole content of the file."""
    info = f'{{version="{__version__}",enforcement="{facts.enforcement}"}}'
    named = facts.holds[:_NAMED]
    late = alerts.overdue(named, moment.now, moment.alert_timeout)
    synced = f"{moment.last_sync.timestamp():.0f}" if moment.last_sync else "0"
    families = (
        ("info", "The agent, and what it enforces.", [(info, "1")]),
        ("holds", "Leases that hold this node.", [("", str(len(facts.holds)))]),
        (
            "hold_held_seconds",
            "For how many seconds each hold has lasted.",
            [(_labels(hold), f"{alerts.held_seconds(hold, moment.now):.0f}") for hold in named],
        ),
        (
            "hold_overdue",
            "1 if a hold lasts longer than alert_timeout.",
            [(_labels(hold), str(int(hold in late))) for hold in named],
        ),
        ("holds_left_out", "Holds that the series above leave out.", [("", str(len(facts.holds) - len(named)))]),
        ("locks", "Locks on shutdown that are held.", [("", str(len(facts.locks)))]),
        ("failed_locks", "Locks that could not be taken.", [("", str(len(facts.failed_locks)))]),
        ("masked_units", "Units that are masked.", [("", str(len(facts.masked)))]),
        ("failed_masks", "Units that could not be masked.", [("", str(len(facts.failed_masks)))]),
        ("api_up", "Whether the API server answers.", [("", str(int(moment.api_up)))]),
        ("last_sync_timestamp_seconds", "When the API server last answered.", [("", synced)]),
        ("shutting_down", "Whether a shutdown is under way.", [("", str(int(facts.shutting_down)))]),
        ("written_timestamp_seconds", "When this file was written.", [("", f"{moment.now.timestamp():.0f}")]),
    )
    return "".join(_family(f"holdfast_agent_{name}", description, samples) for name, description, samples in families)


def _family(name: str, description: str, samples: Iterable[tuple[str, str]]) -> str:
    lines = [f"{name}{labels} {value}\n" for labels, value in samples]
    return f"# HELP {name} {description}\n# TYPE {name} gauge\n{''.join(lines)}"


def _labels(hold: Hold) -> str:
    return f'{{namespace="{hold.namespace}",holder="{_escaped(hold.holder)}"}}'


def _escaped(value: str) -> str:
    text_ = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text_.encode("utf-8", "replace").decode("utf-8")

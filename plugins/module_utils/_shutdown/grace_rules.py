# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a kubelet divides the time of a shutdown among the pods of its node.

Plain data in, decisions out. Sources: pkg/kubelet/nodeshutdown and pkg/kubelet/apis/config/validation of Kubernetes
1.36, and time.ParseDuration of Go.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Union

from .._api.errors import InvalidInput

TOTAL, CRITICAL = "shutdownGracePeriod", "shutdownGracePeriodCriticalPods"
BY_PRIORITY = "shutdownGracePeriodByPodPriority"
KEYS = (TOTAL, CRITICAL, BY_PRIORITY)
# system-cluster-critical begins here; system-node-critical is above it.
CRITICAL_PRIORITY = 2_000_000_000
# The API server's default for a pod that sets none.
_DEFAULT_GRACE = 30
_INT32, _INT64 = range(-(2**31), 2**31), range(-(2**63), 2**63)
_NUMBERS = {"priority": _INT32, "shutdownGracePeriodSeconds": _INT64}
_FINISHED = ("Succeeded", "Failed")

_UNITS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION = re.compile(rf"[+-]?(?:0|(?:{_PART.pattern})+)")


@dataclass(frozen=True, order=True)
class Group:
    """Pods of this priority and above, up to the next group, and the seconds that they share."""

    priority: int
    seconds: int

    def to_data(self) -> dict[str, int]:
        return {"priority": self.priority, "seconds": self.seconds}


Groups = tuple[Group, ...]
Seconds = Union[int, Fraction]


@dataclass(frozen=True)
class Pod:
    """The facts about a pod that the division needs.

    Attributes:
        wants: Seconds of its grace period.
        counts: Whether the kubelet ends it at a shutdown; false for a pod that is finished already.
    """

    namespace: str
    name: str
    priority: int = 0
    wants: int = _DEFAULT_GRACE
    counts: bool = True


@dataclass(frozen=True)
class Share:
    """The share of a shutdown's time that a pod wants, and what it gets."""

    namespace: str
    name: str
    priority: int
    wants: int
    gets: int

    @property
    def short_by(self) -> int:
        return self.wants - self.gets

    def to_data(self) -> dict[str, Any]:
        return {**vars(self), "short_by": self.short_by}


@dataclass(frozen=True)
class Configured:
    """The effect of a kubelet's configuration.

    Attributes:
        groups: From the lowest priority up; empty if the feature is off.
        refusals: Why the kubelet would not start with it.
    """

    groups: Groups = ()
    refusals: tuple[str, ...] = ()


def groups(total: Seconds = 0, critical: Seconds = 0, by_priority: Iterable[Group] = ()) -> Groups:
    """Return the groups that a kubelet makes of either form, from the lowest priority up; none if the feature is off.

    Like the kubelet, drop fractions of a second from each group.
    """
    given = tuple(sorted(by_priority, key=lambda group: group.priority))
    if given:
        return given
    if not total or not 0 <= critical <= total:
        return ()
    return (Group(0, int(total - critical)), Group(CRITICAL_PRIORITY, int(critical)))


def needed(divided: Iterable[Group]) -> int:
    """Return the seconds that a shutdown may take: the sum of the groups, because they follow each other."""
    return sum(group.seconds for group in divided)


def wanted(
    total: int | None = None, critical: int | None = None, by_priority: Sequence[Mapping[str, Any]] | None = None
) -> Groups:
    """Return the groups that a user asks for; none if nothing is given, which means that the feature is off.

    Args:
        total: Seconds for all pods together.
        critical: Those of the seconds that are reserved for critical pods.
        by_priority: Groups, each with ``priority`` and ``seconds``; instead of the other two.

    Raises:
        InvalidInput: The values cannot work. This covers all values that the kubelet refuses, and those that it accepts
            although they leave pods without what the user meant.
    """
    if by_priority and (total is not None or critical is not None):
        raise InvalidInput(
            "total and critical can't be given together with by_priority: a kubelet with both does not start. Leave "
            "one form out.",
            options=["total", "critical", "by_priority"],
        )
    if by_priority:
        return _by_priority(by_priority)
    total, critical = _whole(total or 0, "total"), _whole(critical or 0, "critical")
    if critical > total:
        raise InvalidInput(
            f"critical ({critical} s) is longer than total ({total} s), but is a part of it: a kubelet with these "
            "values does not start. Make total longer or critical shorter.",
            options=["critical", "total"],
        )
    return groups(total, critical)


def _by_priority(given: Sequence[Mapping[str, Any]]) -> Groups:
    found: dict[int, Group] = {}
    for item in given:
        priority, seconds = item.get("priority"), item.get("seconds")
        # Ansible has its own class of integers. With it, ``in`` would search a range number by number.
        if isinstance(priority, bool) or not isinstance(priority, int) or int(priority) not in _INT32:
            raise InvalidInput(
                f'A priority in by_priority must be a whole number of 32 bits, it is "{priority}".',
                options=["by_priority"],
            )
        if priority in found:
            raise InvalidInput(
                f"by_priority has priority {priority} twice, but only one of the two can take effect. Leave one out.",
                options=["by_priority"],
            )
        found[priority] = Group(priority, _whole(seconds, "by_priority", f" (priority {priority})"))
    divided = groups(by_priority=found.values())
    if not needed(divided):
        raise InvalidInput(
            "by_priority gives no pod any time: the kubelet would stop all of them at once. Leave it out to switch "
            "the feature off, or give a group some seconds.",
            options=["by_priority"],
        )
    return divided


def _whole(value: Any, option: str, where: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInput(
            f'{option}{where} must be a whole number of seconds of 0 or more, it is "{value}".', options=[option]
        )
    return value


def parse_duration(text: str) -> Fraction:
    """Return the seconds of a duration as Go writes it: ``1m30s``, ``500ms``, ``0``.

    Raises:
        ValueError: The text is no duration.
    """
    if not _DURATION.fullmatch(text):
        raise ValueError(f'"{text}" is not a duration of the form 1m30s')
    amount = sum((Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(text)), Fraction(0))
    return -amount if text.startswith("-") else amount


def duration(seconds: int) -> str:
    """Return whole seconds as Go writes them: ``1m30s``."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def configured(values: Mapping[str, Any]) -> Configured:
    """Return the effect of the three settings of a kubelet's configuration, and whether it would start with them.

    Args:
        values: The settings as the file or files have them, without absent ones.
    """
    refusals: list[str] = []
    total, critical = (_setting(values, key, refusals) for key in (TOTAL, CRITICAL))
    by_priority = _list(values, refusals)
    if critical > total:
        said = [values.get(key, "0s") for key in (CRITICAL, TOTAL)]
        refusals.append(f"{CRITICAL} ({said[0]}) is longer than {TOTAL} ({said[1]})")
    if by_priority and (total > 0 or critical > 0):
        refusals.append(f"{BY_PRIORITY} and {TOTAL} are both set")
    return Configured(groups(total, critical, by_priority), tuple(refusals))


def _setting(values: Mapping[str, Any], key: str, refusals: list[str]) -> Fraction:
    if key not in values:
        return Fraction(0)
    value = values[key]
    try:
        # A value without a unit is a number in YAML, and the kubelet accepts only strings.
        amount = parse_duration(value if isinstance(value, str) else f"{value} (not a string)")
    except ValueError as error:
        refusals.append(f"{key}: {error}")
        return Fraction(0)
    if amount < 0 or 0 < amount < 1:
        refusals.append(f"{key} ({value}) is neither 0 nor at least 1s")
    return amount


def _list(values: Mapping[str, Any], refusals: list[str]) -> list[Group]:
    """Return the groups of the list; omitted fields of an entry are 0, as in every Kubernetes object."""
    said = values.get(BY_PRIORITY)
    items = [] if said is None else said
    found = []
    for item in items if isinstance(items, list) else [items]:
        fields = {} if item is None and isinstance(items, list) else item
        numbers = [_number(fields, key, bounds) for key, bounds in _NUMBERS.items()]
        if not isinstance(items, list) or None in numbers:
            refusals.append(f"{BY_PRIORITY} is not a list of pairs of whole numbers: {item}")
        else:
            found.append(Group(*(number for number in numbers if number is not None)))
    return found


def _number(fields: Any, key: str, bounds: range) -> int | None:
    """Return a whole number of an entry, ``None`` if it is none; 1.0 is one."""
    value = fields.get(key) if isinstance(fields, dict) else ""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        return None
    return int(value) if int(value) in bounds else None


def read_pod(item: Mapping[str, Any]) -> Pod:
    """Read a pod of the API.

    A mirror pod represents a static one, which the kubelet ends like any other. A pod that is being deleted has only
    the time that its deletion leaves it.
    """
    metadata, spec = item["metadata"], item.get("spec") or {}
    grace = spec.get("terminationGracePeriodSeconds")
    deletion = metadata.get("deletionGracePeriodSeconds")
    wants = [value for value in (_DEFAULT_GRACE if grace is None else grace, deletion) if value is not None]
    return Pod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        priority=spec.get("priority") or 0,
        wants=min(wants),
        counts=(item.get("status") or {}).get("phase") not in _FINISHED,
    )


def fit(divided: Groups, pods: Iterable[Pod]) -> list[Share]:
    """Return what each unfinished pod gets; nothing if there are no groups."""
    found = []
    for pod in pods:
        if pod.counts:
            group = group_of(divided, pod.priority)
            gets = min(pod.wants, group.seconds) if group else 0
            found.append(Share(pod.namespace, pod.name, pod.priority, pod.wants, max(0, gets)))
    return found


def group_of(divided: Groups, priority: int) -> Group | None:
    """Return the group with the largest priority that is not above the pod's; the lowest if all are above it."""
    if not divided:
        return None
    place = bisect_left([group.priority for group in divided], priority)
    exact = place < len(divided) and divided[place].priority == priority
    return divided[place if exact else max(0, place - 1)]

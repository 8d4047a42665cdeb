# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of a lab, built once and kept in the cache: which are missing, how long they take, and how to make them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import host, programs, rootfs
from .progress import Step, say, step

# On 2 cores with empty caches, downloads included, while the other lane works.
SECONDS = {
    "packages": 15,
    "bookworm": 45,
    "trixie": 40,
    "kubernetes": 420,
    "kwok": 75,
    "cluster-api": 110,
    "csi": 30,
}


@dataclass(frozen=True)
class Part:
    """A part that is missing."""

    title: str
    seconds: int
    make: Callable[[Step], None]


def packages() -> list[Part]:
    """The Debian packages of the machine itself."""
    missing = host.missing()
    if not missing:
        return []
    return [Part(f"install {' '.join(missing)}", SECONDS["packages"], lambda _step: host.install(missing))]


def trees(cache: Path, suites: Sequence[str]) -> list[Part]:
    """The nodes' root file systems."""

    def part(suite: str) -> Part:
        title = f"make a root file system of Debian {suite}"
        return Part(title, SECONDS[suite], lambda _step: rootfs.make(cache, suite))

    return [part(suite) for suite in suites if not rootfs.tree(cache, suite).exists()]


def modules(cache: Path, wanted: Sequence[programs.Module]) -> list[Part]:
    """The programs."""

    def part(module: programs.Module) -> Part:
        title = f"build {module.title}"
        return Part(title, SECONDS[module.name], lambda made: programs.build(module, cache, made))

    return [part(module) for module in wanted if programs.missing(module, cache)]


def announcement(first: Sequence[Part], *lanes: Sequence[Part]) -> str:
    """Say how long it takes: the first parts, then the longest lane."""
    seconds = _sum(first) + max(map(_sum, lanes), default=0)
    parts = len(first) + sum(map(len, lanes))
    what = "1 part is missing and takes" if parts == 1 else f"{parts} parts are missing and take"
    return f"{what} {_about(seconds)}, once (on 2 cores, with empty caches); later starts take seconds"


def make(first: Sequence[Part], *lanes: Sequence[Part]) -> None:
    """Make the first parts, then all lanes at once, each in its order."""
    parts = [*first, *(part for lane in lanes for part in lane)]
    if not parts:
        return
    say(f"lab: {announcement(first, *lanes)}")
    titles = {
        part: f"{number} of {len(parts)}: {part.title}" if len(parts) > 1 else part.title
        for number, part in enumerate(parts, 1)
    }

    def run(lane: Sequence[Part]) -> None:
        for part in lane:
            with step(titles[part]) as made:
                part.make(made)

    run(first)
    with ThreadPoolExecutor() as pool:
        for future in [pool.submit(run, lane) for lane in lanes]:
            future.result()


def _sum(lane: Sequence[Part]) -> int:
    return sum(part.seconds for part in lane)


def _about(seconds: int) -> str:
    return f"about {seconds} s" if seconds < 90 else f"about {math.ceil(seconds / 60)} minutes"

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all tests share: where the checkout is, the collection's imports, hypothesis's profiles."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import hypothesis
import hypothesis.database
import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
BUILD = CHECKOUT / "build"

# Ansible's own import hook would find the collection, but only once something of Ansible set it up. As a plain
# namespace package it is importable from here on, in test processes and in what they start.
_COLLECTIONS = str(BUILD / "collections")
if _COLLECTIONS not in sys.path and (BUILD / "collections/ansible_collections/holdfast/kubernetes").exists():
    sys.path.insert(0, _COLLECTIONS)

_EXAMPLES = hypothesis.database.DirectoryBasedExampleDatabase(str(BUILD / "cache/hypothesis"))
# A busy machine must not turn a slow example into a failure.
hypothesis.settings.register_profile(
    "default", deadline=None, database=_EXAMPLES, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile(
    "ci",
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "nightly",
    deadline=None,
    database=_EXAMPLES,
    max_examples=5000,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
# For a mutation library, which runs the same tests thousands of times and needs no smallest example.
hypothesis.settings.register_profile(
    "mutants",
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=25,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The checkout that is tested."""
    return CHECKOUT


_CPU_BEFORE = pytest.StashKey[float]()


def _cpu_seconds() -> float:
    """CPU time of this process and of the programs that it waited for."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_CPU_BEFORE] = _cpu_seconds()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Put each test's CPU seconds into the JUnit report, which tools/measure.py reads."""
    if call.when == "teardown" and _CPU_BEFORE in item.stash:
        item.user_properties.append(("cpu_seconds", round(_cpu_seconds() - item.stash[_CPU_BEFORE], 2)))

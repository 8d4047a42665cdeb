# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all tests share: where the checkout is, the collection's imports, hypothesis's profiles."""

from __future__ import annotations

import os
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
hypothesis.settings.register_profile("default", deadline=None, database=_EXAMPLES)
hypothesis.settings.register_profile(
    "ci",
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("thorough", deadline=None, database=_EXAMPLES, max_examples=5000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The checkout that is tested."""
    return CHECKOUT

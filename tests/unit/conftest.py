# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of the model share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from model import after


@pytest.fixture
def other_rules() -> Iterator[None]:
    """Forget what is known before and after the test, so that changed rules take effect."""
    after.forget()
    yield
    after.forget()

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many examples a test tries: a share of the number of hypothesis's profile, see conftest.py."""

from __future__ import annotations

import hypothesis


def share(part: float) -> int:
    """For tests whose examples are dearer or cheaper than others'."""
    return max(1, round(hypothesis.settings().max_examples * part))

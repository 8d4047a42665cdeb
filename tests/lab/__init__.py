# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real cluster on one machine, for tests: see README.md."""

from __future__ import annotations

from .cluster import Lab
from .errors import LabError

__all__ = ["Lab", "LabError"]

# Copyright (c) 2026 holdfast contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""What the lab says when it cannot go on."""

from __future__ import annotations


class LabError(Exception):
    """A cause that a person can do something about; shown without a traceback."""

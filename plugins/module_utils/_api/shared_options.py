# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Argument specs of options that several modules share; the fragment ``shared`` documents them."""

from __future__ import annotations

from typing import Any

Options = dict[str, dict[str, Any]]

NODE: Options = {"name": {"type": "str", "required": True}}
RUN: Options = {"run": {"type": "str", "required": True}}
CLAIMANT: Options = {"run": {"type": "str"}}
WAITING_RUN: Options = {"run": {"type": "str"}}
HOLDER: Options = {"holder": {"type": "str"}}

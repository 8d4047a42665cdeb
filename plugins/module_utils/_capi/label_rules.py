# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How Cluster API writes names into labels."""

from __future__ import annotations

import base64

_LONGEST = 63
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193


def label_value(name: str) -> str:
    """Return the name itself, or a hash if no label value can hold the name.

    Source: Cluster API, util/labels/format, MustFormatValue: FNV-1a of 32 bits, in base64 for URLs.
    """
    if len(name) <= _LONGEST:
        return name
    value = _FNV_OFFSET
    for byte in name.encode():
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    text = base64.urlsafe_b64encode(value.to_bytes(4, "big")).decode().rstrip("=")
    return f"hash_{text}_z"

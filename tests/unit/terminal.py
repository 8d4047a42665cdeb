# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sudo writes before the output of a command, if the connection has a terminal."""

from __future__ import annotations

_UNRESOLVED = "sudo: unable to resolve host node1: Name or service not known"
_LECTURE = (
    "\nWe trust you have received the usual lecture from the local System\n"
    "Administrator. It usually boils down to these three things:\n\n    #1) Respect the privacy of others.\n\n"
)

BEFORE_OUTPUT = {
    "nothing": "",
    "password": "\n",
    "password on a terminal": "\r\n",
    "warning": f"{_UNRESOLVED}\n",
    "warning on a terminal": f"{_UNRESOLVED}\r\n\r\n",
    "lecture": _LECTURE,
}

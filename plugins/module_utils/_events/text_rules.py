# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about text in events.

A rulebook gives what an event says to a playbook as extra variables, and Ansible trusts those: a template in one is
run on the controller. What kubelets, holders and owners of hooks write must not be one.
"""

from __future__ import annotations

import re
from typing import Any

# What begins a template; at the end of a text, too, because another one may come after it.
_BEGINS = re.compile(r"\{(?=[{%#]|\Z)")
# In front of a text it says what else begins one.
_HEADER = "#jinja2:"


def plain(value: Any) -> Any:
    """The same without templates, whatever it consists of: people read it as before, and nobody runs it."""
    if isinstance(value, str):
        text = _BEGINS.sub("{ ", value)
        return f" {text}" if text.startswith(_HEADER) else text
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about text in events.

A rulebook passes the text of an event to a playbook as extra variables, and Ansible trusts those: it runs a template
in one on the controller. The text of kubelets, holders and owners of hooks must not be a template.
"""

from __future__ import annotations

import re
from typing import Any

from .._shared import bounds

# The start of a template, also at the end of a text, because another text may follow it.
_BEGINS = re.compile(r"\{(?=[{%#]|\Z)")
# At the start of a text, this also begins a template.
_HEADER = "#jinja2:"


def plain(value: Any) -> Any:
    """Return the value without templates and control characters, at any depth: people read it, and nothing runs it."""
    if isinstance(value, str):
        text = _BEGINS.sub("{ ", bounds.plain(value))
        return f" {text}" if text.startswith(_HEADER) else text
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value

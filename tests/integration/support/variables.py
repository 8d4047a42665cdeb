# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of a role as a survey or the command line gives them: every one a string."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from lab.paths import CHECKOUT


def options(role: str) -> dict[str, Any]:
    """The options of a role's main entry point, without the role's prefix."""
    specs = yaml.safe_load((CHECKOUT / f"roles/{role}/meta/argument_specs.yml").read_text())["argument_specs"]
    return {name[len(role) + 1 :]: option for name, option in specs["main"]["options"].items()}


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def as_texts(role: str, **own: Any) -> dict[str, str]:
    """Every variable that has a default, as its text; the given ones replace it; every Boolean is ``false``."""
    found = {}
    for name, option in options(role).items():
        if name in own:
            found[name] = text(own[name])
        elif option.get("type") == "bool":
            found[name] = "false"
        elif "default" in option:
            found[name] = text(option["default"])
    return found


def blank(role: str, **own: Any) -> dict[str, str]:
    """Every variable blank, except the given ones."""
    return {name: text(own[name]) if name in own else "" for name in options(role)}


def extra(folder: Path, role: str, variables: dict[str, str]) -> tuple[str, str]:
    """Arguments of ansible-playbook; extra variables have the highest precedence."""
    path = folder / f"{role}-extra.json"
    path.write_text(json.dumps({f"{role}_{name}": value for name, value in variables.items()}))
    return ("-e", f"@{path}")

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the role rolling_reboot as role_settings returns them, with the defaults of its argument spec."""

from __future__ import annotations

from pathlib import Path

import yaml

_SPEC = Path(__file__).resolve().parents[3] / "roles/rolling_reboot/meta/argument_specs.yml"
_OPTIONS = yaml.safe_load(_SPEC.read_text())["argument_specs"]["main"]["options"]
_PREFIX = "rolling_reboot_"
NAMES = frozenset(name.removeprefix(_PREFIX) for name in _OPTIONS)


def settings(**given):
    defaults = {
        name.removeprefix(_PREFIX): option["default"]
        for name, option in _OPTIONS.items()
        if "default" in option and not option.get("no_log")
    }
    return {**defaults, **given}


def split(options):
    """Those of these options that are variables of the role, and the others."""
    secret = {name.removeprefix(_PREFIX) for name, option in _OPTIONS.items() if option.get("no_log")}
    apart = {"operation", "run", "holder", *secret}
    ours = {name: value for name, value in options.items() if name in NAMES - apart}
    return ours, {name: value for name, value in options.items() if name not in ours}

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that tells whether a module is installed, before a file of tasks that uses it is read."""

from __future__ import annotations

from typing import Callable

from ansible.plugins.loader import module_loader


def installed_module(name: str) -> bool:
    """See the documentation of the test."""
    return bool(module_loader.find_plugin_with_context(name).resolved)


class TestModule:
    """Makes the test known to Ansible."""

    def tests(self) -> dict[str, Callable[[str], bool]]:
        return {"installed_module": installed_module}

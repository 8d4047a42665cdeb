# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the survey of an AWX job template from the argument spec of a role."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _survey
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._settings import plain


def survey(
    argument_specs: Mapping[str, Any], questions: Sequence[str], entry_points: Sequence[str], prefix: str = ""
) -> dict[str, Any]:
    """Return the ``survey_spec`` of a job template. survey.yml documents the arguments."""
    specs = plain(argument_specs)
    missing = [name for name in entry_points if name not in specs]
    if missing:
        raise AnsibleFilterError(f"There is no entry point {', '.join(missing)} in the argument spec.")
    options = {name: option for entry in entry_points for name, option in (specs[entry].get("options") or {}).items()}
    try:
        return _survey.survey(options, plain(questions), prefix)
    except _survey.UnknownQuestion as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """Ansible finds the filters of a file by this class."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"survey": survey}

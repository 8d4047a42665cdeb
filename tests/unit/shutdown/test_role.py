# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role graceful_shutdown: the names that it shares with the module."""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path

import jinja2
import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown import configure


def test_a_removal_looks_for_everything_that_an_earlier_run_may_have_left(checkout):
    """A removal that was interrupted before the restart of the kubelet leaves the backup alone."""
    role = checkout / "roles/graceful_shutdown"
    variables = yaml.safe_load((role / "vars/main.yml").read_text())
    look = yaml.safe_load((role / "tasks/absent.yml").read_text())[0]["ansible.builtin.find"]
    environment = jinja2.Environment(autoescape=True)
    environment.filters.update(dirname=os.path.dirname, basename=os.path.basename)
    folders, names = (
        [environment.from_string(text).render(variables) for text in look[key]] for key in ("paths", "patterns")
    )

    for left in (configure._MEMORY, configure._PREVIOUS, f"{configure._LOGIND}/zz-holdfast.conf"):
        path = Path(left)
        assert str(path.parent) in folders
        assert any(fnmatch.fnmatch(path.name, name) for name in names), path

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection as users install it, in a virtual environment that has its requirements and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

from integration.support.ansible import Ansible

from lab import Lab
from lab.paths import CHECKOUT

VENV = CHECKOUT / "build/venv-bare"
# No directory can be made here, not even by root.
_NO_HOME = "/proc/no-home"


def make_venv() -> Path:
    """Make the virtual environment if it is not there; ansible-core 2.21 needs Python 3.12."""
    command = [str(CHECKOUT / "tools/venv.sh"), str(VENV), "requirements/bare.txt"]
    command += ["--constraint", "requirements/constraints.txt"]
    done = subprocess.run(
        ["env", "OLDEST_PYTHON=3.12", *command], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return VENV


def install(venv: Path, folder: Path) -> Path:
    """Install the collection from its artefact; return the folder of collections."""
    program = str(venv / "bin/ansible-galaxy")
    collections = folder / "collections"
    # By force: the link to the checkout in the environment counts as installed.
    for arguments in (["build", "--output-path", str(folder), str(CHECKOUT)], ["install", "--offline", "--force"]):
        artefact = [str(next(folder.glob("*.tar.gz"))), "-p", str(collections)] if arguments[0] == "install" else []
        subprocess.run(
            [program, "collection", *arguments, *artefact], cwd=folder, check=True, stdout=subprocess.DEVNULL
        )
    return collections


class Bare(Ansible):
    """Runs plays with only the programs of a virtual environment, and without a home directory."""

    def __init__(self, folder: Path, lab: Lab, venv: Path, collections: Path) -> None:
        super().__init__(folder, lab)
        self.bin = venv / "bin"
        self._collections = collections

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": str(self.bin),
            "HOME": _NO_HOME,
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_COLLECTIONS_PATH": str(self._collections),
            # The environment links to the checkout.
            "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "False",
            "ANSIBLE_DEPRECATION_WARNINGS": "True",
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
            # As execution environments set it: Ansible itself needs a folder that it can write to.
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_REMOTE_TEMP": str(self.folder / "remote"),
            **more,
        }

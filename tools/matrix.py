# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sanity and the core of the integration tests with the oldest and the newest versions that are supported.

tools/matrix.py [oldest|newest ...]

Each pair of ansible-core and the Python client has a file in requirements/, and gets a virtual environment in build/.
The tests that are marked `core` need the API server and no real nodes. The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import stages

# The versions of Python that ansible-core runs on, in the order in which they are looked for.
PYTHONS = {"oldest": ("3.11", "3.12", "3.13"), "newest": ("3.13", "3.12")}
# The pins of the other environments are too new for the oldest urllib3.
CONSTRAINTS = {"oldest": [], "newest": ["--constraint", "requirements/constraints.txt"]}


def make(name: str) -> str:
    """Make the virtual environment of these versions; return its Python."""
    venv = stages.BUILD / f"venv-{name}"
    command = [str(stages.CHECKOUT / "tools/venv.sh"), str(venv), f"requirements/{name}.txt", *CONSTRAINTS[name]]
    names = [f"python{version} {Path.home()}/.pyenv/versions/{version}.*/bin/python3" for version in PYTHONS[name]]
    wanted = {"PYTHONS": " ".join(names), "OLDEST_PYTHON": min(PYTHONS[name])}
    subprocess.run(command, check=True, env={**os.environ, **wanted})
    return str(venv / "bin/python")


def versions(python: str) -> str:
    code = (
        "import sys, ansible, kubernetes; print('Python %d.%d,' % sys.version_info[:2], 'ansible-core', "
        "ansible.__version__ + ',', 'kubernetes', kubernetes.__version__)"
    )
    return subprocess.run([python, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def run(name: str) -> int:
    """Run both stages with the programs of the virtual environment; return the first status that is not 0."""
    python = make(name)
    stages.say(f"== {name}: {versions(python)}")
    command = [python, str(stages.CHECKOUT / "tools/stages.py")]
    status = 0
    for stage in (["sanity"], ["--pytest-args=-m core", "integration"]):
        status = status or subprocess.run([*command, *stage], check=False, cwd=stages.CHECKOUT).returncode
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description="Test with the oldest and the newest versions.")
    parser.add_argument("names", nargs="*", choices=[[], *PYTHONS], help="both by default")
    names = parser.parse_args().names or list(PYTHONS)
    lab = stages.Lab()
    if not lab.was_up:
        stages.Lab.command("up", "--nodes", "0", "--simulated", "0")
    try:
        results = {name: run(name) for name in names}
    finally:
        if not lab.was_up:
            stages.Lab.command("down")
    failed = [name for name, status in results.items() if status]
    for name in failed:
        stages.say(f"FAILED with the {name} versions")
    stages.say(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())

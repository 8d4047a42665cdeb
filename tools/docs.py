# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the documentation site: build/site/index.html. Needs no network.

build/venv-docs/bin/python tools/docs.py

antsibull-docs writes the pages of modules, plugins and roles into a copy of the repository, and Sphinx reads that copy.
Warnings are errors: a link or an anchor without a target, a page in no table of contents, a block that its language
can't parse. tests/site checks the result.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import workingtree

BUILD = workingtree.CHECKOUT / "build"
SITE = BUILD / "site"
WORK = BUILD / "docs"
# The folder of the generated pages in the copy.
COLLECTIONS = "collections"
BIN = Path(sys.executable).parent


def main() -> int:
    # antsibull-docs takes a linked action plugin for a redirect of the module.
    tree = workingtree.copy(WORK, links=False, keep=(COLLECTIONS,))
    shutil.copy2(tree / "tools/docsite/index.md", tree)
    pages = tree / COLLECTIONS
    pages.mkdir(exist_ok=True)
    generate = ["antsibull-docs", "collection", "--use-current", "--squash-hierarchy", "--fail-on-error"]
    generate += ["--cleanup", "everything", "--no-add-antsibull-docs-version", "--dest-dir", str(pages)]
    # Sphinx warns of a page only when it reads it: read all of them.
    build = ["sphinx-build", "-E", "-W", "--keep-going", "-n", "--quiet"]
    build += ["-c", str(tree / "tools/docsite"), "-d", str(WORK / "doctrees")]
    return run([*generate, "holdfast.kubernetes"]) or run([*build, str(tree), str(SITE)])


def run(command: list[str]) -> int:
    environment = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "ANSIBLE_HOME": str(BUILD / "cache/ansible"),
        "ANSIBLE_COLLECTIONS_PATH": str(WORK),
        # The virtual environment has a link to the checkout.
        "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "False",
    }
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

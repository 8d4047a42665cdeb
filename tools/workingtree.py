# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copy the working tree to where tools expect a collection: …/ansible_collections/holdfast/kubernetes.

The copy includes uncommitted files and leaves out ignored files. Uses the standard library only.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent


def files() -> list[str]:
    """The files of the working tree, relative to it."""
    if (CHECKOUT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=CHECKOUT,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        return sorted(name for name in set(listed.split("\0")) if name and os.path.lexists(CHECKOUT / name))
    # A released tarball: everything in it counts except what the build makes.
    found = []
    for directory, directories, names in os.walk(CHECKOUT):
        relative = Path(directory).relative_to(CHECKOUT)
        if relative == Path():
            directories[:] = [name for name in directories if name not in {"build", ".git"}]
        directories[:] = [name for name in directories if name != "__pycache__"]
        found += [str(relative / name) for name in names]
    return sorted(found)


def _same(source: Path, target: Path, *, links: bool) -> bool:
    if target.is_symlink() or (links and source.is_symlink()):
        return links and source.is_symlink() and target.is_symlink() and source.readlink() == target.readlink()
    return (
        target.is_file()
        and source.stat().st_mode == target.stat().st_mode
        and filecmp.cmp(source, target, shallow=False)
    )


def copy(collections: Path, *, repository: bool = False, links: bool = True, keep: tuple[str, ...] = ()) -> Path:
    """Bring the copy up to date, and return its root.

    Args:
        collections: The folder that gets ``ansible_collections/``.
        repository: Make the copy a Git repository without a commit. Otherwise tools that look for a repository find the
            checkout's, which ignores build/.
        links: Keep links; otherwise copy the files that they name.
        keep: Folders of the copy that stay, as the beginnings of their paths.
    """
    root = collections / "ansible_collections/holdfast/kubernetes"
    root.mkdir(parents=True, exist_ok=True)
    if repository and not (root / ".git").exists():
        subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    wanted = files()
    for name in wanted:
        source, target = CHECKOUT / name, root / name
        if _same(source, target, links=links):
            continue
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        elif os.path.lexists(target):
            target.unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=not links)
    known = set(wanted)
    for directory, directories, names in os.walk(root, topdown=False):
        relative = Path(directory).relative_to(root)
        if str(relative).startswith((".git/", *keep)) or str(relative) == ".git":
            continue
        linked = [name for name in directories if (Path(directory) / name).is_symlink()]
        for name in [*names, *linked]:
            if str(relative / name) not in known:
                (Path(directory) / name).unlink()
        if relative != Path() and not any(Path(directory).iterdir()):
            Path(directory).rmdir()
    return root

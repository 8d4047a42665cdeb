# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the working tree for files and text that do not belong in it. Uses the standard library only."""

from __future__ import annotations

import re
import sys

import workingtree

FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.}$/-])/(?:work|root/\.|home/[a-z]+)/(?!\.kube)"),
    "a package registry": re.compile(
        r"https?://[\w.-]*(?:artifactory|nexus|[\w-]*mirror|registry|pypi|goproxy|proxy\.golang)[\w.-]*[:/]",
        re.IGNORECASE,
    ),
    "an index or proxy of one machine": re.compile(
        r"(?:--index-url|--extra-index-url|--find-links|GOPROXY=(?!off|direct))"
    ),
    "a merge conflict": re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE),
}
THIS = "tools/tree_check.py"
# Program files only; files that only configure something need no license notice.
PROGRAM = re.compile(r"\.(?:py|sh|go)$")
NOTICE = "GNU General Public License v3.0+ (see COPYING"
LARGEST = 512 * 1024
# `make pictures` makes these.
PICTURE = re.compile(r"docs/images/[\w-]+\.png$")
LARGEST_PICTURE = 200_000


def complaints(name: str) -> list[str]:
    path = workingtree.CHECKOUT / name
    if path.is_symlink():
        target = path.resolve()
        inside = target.is_relative_to(workingtree.CHECKOUT) and target.exists()
        return [] if inside else [f"{name}: a link that leads out of the tree or nowhere"]
    content = path.read_bytes()
    if len(content) > LARGEST:
        return [f"{name}: {len(content)} bytes, generated things belong under build/"]
    if PICTURE.match(name):
        return [f"{name}: {len(content)} bytes, a picture has less"] if len(content) > LARGEST_PICTURE else []
    if b"\0" in content:
        return [f"{name}: not text"]
    text = content.decode("utf-8", errors="replace")
    found = []
    for what, pattern in FORBIDDEN.items():
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{name}:{line}: {what}: {match.group()}")
    if text and PROGRAM.search(name) and NOTICE not in text[:600]:
        found.append(f"{name}: no notice of its license")
    if text and not text.endswith("\n"):
        found.append(f"{name}: no newline at the end")
    if re.search(r"[ \t]+$", text, re.MULTILINE) and not name.endswith((".patch", ".md")):
        found.append(f"{name}: white space at the end of a line")
    return found


def main() -> int:
    found = [complaint for name in workingtree.files() if name != THIS for complaint in complaints(name)]
    print("\n".join(found) or "Nothing that does not belong here.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

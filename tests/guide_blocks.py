# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fenced blocks of README and guides, and the commands in them."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[1]
GUIDES = sorted(
    [
        *CHECKOUT.glob("*.md"),
        *CHECKOUT.glob("docs/**/*.md"),
        *CHECKOUT.glob("roles/*/README.md"),
        CHECKOUT / "tests/lab/README.md",
        CHECKOUT / "tools/docsite/index.md",
    ]
)
# A block that no test can check says why: <!-- not tested: needs a compiler -->
_FENCED = re.compile(
    r"(?:^ *<!-- not tested: (?P<why>[^\n]+) -->\n+)?^ *```(?P<language>[^\n`]*)\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)")
_HERE_DOCUMENT = re.compile(r" - <<(\w+)\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
_ASSIGNMENT = re.compile(r"[A-Z_][A-Z0-9_]*=")


class Block(NamedTuple):
    """A fenced block.

    Attributes:
        where: File and line of the fence.
        language: The word after the fence; empty for commands.
        text: The content.
        why: Why no test checks it; empty if one does.
    """

    where: str
    language: str
    text: str
    why: str

    @property
    def shell(self) -> str:
        """The text for a shell: all of it or, if it shows a session, what follows each prompt."""
        if "$ " not in {line[:2] for line in self.text.splitlines()}:
            return self.text
        return "".join(found + "\n" for found in re.findall(r"^\$ ((?:.*\\\n)*.*)", self.text, re.MULTILINE))

    @property
    def documents(self) -> list[str]:
        """The documents that its commands read from their input."""
        return [found[2] for found in _HERE_DOCUMENT.finditer(self.shell)]

    @property
    def commands(self) -> list[list[str]]:
        """Each command with its arguments; without variables that are set for it alone."""
        text = _HERE_DOCUMENT.sub(" -", self.shell).replace("\\\n", " ")
        return [command for line in text.splitlines() for command in _commands(line)]


def blocks(*paths: Path) -> list[Block]:
    """The blocks of these files; by default of all guides."""
    found = []
    for path in paths or GUIDES:
        content = path.read_text()
        for match in _FENCED.finditer(content):
            line = content.count("\n", 0, match.start("language")) + 1
            where = f"{path.relative_to(CHECKOUT)}:{line}"
            found.append(Block(where, match["language"], textwrap.dedent(match["text"]), match["why"] or ""))
    return found


def _commands(line: str) -> list[list[str]]:
    found = [command for inner in _SUBSTITUTION.findall(line) for command in _commands(inner)]
    lexer = shlex.shlex(_SUBSTITUTION.sub("substituted", line), posix=True, punctuation_chars="();|&")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if not set(word) <= set(";|&"):
            words.append(word)
            continue
        while words and _ASSIGNMENT.match(words[0]):
            words.pop(0)
        found += [words] if words else []
        words = []
    return found

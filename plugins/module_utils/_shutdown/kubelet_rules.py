# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about a kubelet: what its command line says about its files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_ROOT_DIR = "/var/lib/kubelet"
_FLAGS = {"--config": "config", "--config-dir": "config_dir", "--root-dir": "root_dir"}
_VARIABLE, _BRACED = re.compile(r"\$[A-Za-z_]\w*"), re.compile(r"\$\{([A-Za-z_]\w*)\}")


@dataclass(frozen=True)
class Kubelet:
    """A kubelet, and where its files are.

    Attributes:
        unit: Name of its unit.
        pid: Its process id; 0 if it does not run.
        started: Its start, by the node's present clock; ``None`` if it does not run.
        config: Its main file; empty if it has none.
        config_dir: Its directory of drop-ins; empty if it has none.
        root_dir: Its directory of state.
        known: Whether the location of its files is known, from its command line or from the user.
        embedded: Whether it is a part of another program, such as K3s.
    """

    unit: str
    pid: int = 0
    started: float | None = None
    config: str = ""
    config_dir: str = ""
    root_dir: str = _ROOT_DIR
    known: bool = True
    embedded: bool = False

    @property
    def active(self) -> bool:
        return self.pid > 0


@dataclass(frozen=True)
class Settings:
    """The content of the files.

    Attributes:
        values: The settings of a shutdown that are in effect, as the files have them.
        set_by: For each of them, the file that sets it.
        drop_ins: The drop-ins, in the order in which they are merged.
        troubles: File and reason, for each file that the kubelet cannot use.
        changed: When one of the files or directories was last changed; 0 if there is none.
        changed_file: The path of that file or directory.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    set_by: Mapping[str, str] = field(default_factory=dict)
    drop_ins: tuple[str, ...] = ()
    troubles: tuple[tuple[str, str], ...] = ()
    changed: float = 0.0
    changed_file: str = ""


def is_kubelet(command: Sequence[str]) -> bool:
    """Return whether a command line starts a kubelet, under any path or wrapper."""
    return any("kubelet" in posixpath.basename(word) for word in command[:2])


def places(command: Sequence[str], directory: str = "/") -> dict[str, str]:
    """Return the paths that a command line names: ``--config X`` or ``--config=X``; the last one counts."""
    found = {}
    # Flags of another program may have the same names.
    for index, word in enumerate(command if is_kubelet(command) else ()):
        flag, equals, value = word.partition("=")
        if flag in _FLAGS:
            path = value if equals else next(iter(command[index + 1 : index + 2]), "")
            # With a slash at its end, a link to a directory counts as a directory.
            found[_FLAGS[flag]] = posixpath.join(directory, path) if path else ""
    return found


def expand(command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Expand variables in the words of an ExecStart: ``$X`` alone becomes several words, ``${X}`` stays in its own."""
    words: list[str] = []
    for word in command:
        if _VARIABLE.fullmatch(word):
            words += environment.get(word[1:], "").split()
        else:
            words.append(_BRACED.sub(lambda found: environment.get(found[1], ""), word))
    return words

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

import yaml

from . import __version__
from .bounds import plain
from .config import Config, ConfigError, parse

DEFAULT_CONFIG = "/etc/holdfast/agent.yaml"
# The priorities of the journal: sd-daemon(3).
_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        priority = _PRIORITIES.get(record.levelno, 6)
        # The journal reads a priority at the beginning of each line.
        return "\n".join(f"<{priority}>{line}" for line in super().format(record).splitlines())

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name in the base class
        # Holders choose their names. A line break in one would make a line of its own.
        return plain(super().formatMessage(record))


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    path = Path(options.check or options.config)
    try:
        config = read(path)
    except ConfigError as error:
        sys.stderr.write("".join(f"{path}: {mistake}\n" for mistake in error.mistakes))
        return 1
    if options.check:
        return 0
    _log(config.log_level)
    # Imported late, because --check must work without D-Bus.
    if options.release:
        from .release import release  # noqa: PLC0415

        return release(config, even_held=options.even_held)
    from .daemon import run  # noqa: PLC0415

    return run(config)


def read(path: Path) -> Config:
    """Read a configuration.

    Raises:
        ConfigError: The file can't be read, or is wrong.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError([f"it can't be read: {error.strerror}."]) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError([f"it is not YAML: {' '.join(str(error).split())}."]) from error
    return parse(content)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holdfast-agent",
        description="Prevents a shutdown of this node while a Lease holds it. Runs until it is stopped, unless an "
        "option says otherwise. Locks and masks stay in place when it stops.",
    )
    parser.add_argument("--config", metavar="FILE", default=DEFAULT_CONFIG, help="configuration (default: %(default)s)")
    parser.add_argument("--version", action="version", version=__version__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", metavar="FILE", help="check a configuration; status 1 if it is wrong")
    what.add_argument(
        "--release",
        action="store_true",
        help="for removal, after the service was stopped: release the locks, masks and holds on disk, and set the "
        "Node's condition to False; status 1 if something could not be released, or if there are holds on disk",
    )
    parser.add_argument("--even-held", action="store_true", help="with --release: also if there are holds on disk")
    return parser


def _log(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logging.getLogger("urllib3").setLevel(logging.WARNING)

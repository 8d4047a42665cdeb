# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the report of a run, as JSON for programs and as an HTML page for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._api.errors import HoldfastError
from .page_rules import page


class NotWritten(HoldfastError):
    """The report could not be written."""

    kind = "not_written"


def write(report: Mapping[str, Any], *, as_json: str, as_html: str) -> None:
    """Write the report to each of these files whose path is not empty.

    Raises:
        NotWritten: A file can't be written.
    """
    if as_json:
        _write(as_json, json.dumps(report, indent=4, sort_keys=True, default=str) + "\n")
    if as_html:
        _write(as_html, page(report))


def _write(path: str, text: str) -> None:
    file = Path(path).expanduser()
    try:
        # A text of others may have half of a surrogate pair, which UTF-8 can't have.
        file.write_text(text, encoding="utf-8", errors="replace")
        file.chmod(0o644)
    except OSError as error:
        raise NotWritten(f"Can't write the report to {file}: {error.strerror}. Set another file.") from error

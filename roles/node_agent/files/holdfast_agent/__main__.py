# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Started as a directory: ``python3 -I -B .../holdfast_agent``."""

from __future__ import annotations

import sys
from pathlib import Path

# Python put this directory first, where its modules would hide others; the package is found from the one above.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from holdfast_agent.cli import main  # noqa: E402

sys.exit(main(sys.argv[1:]))

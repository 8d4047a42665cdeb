# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the lab and its tests wait for something that must happen."""

from __future__ import annotations

# In seconds. A busy machine is no failure: the limit is long enough that only a real failure reaches it. It costs
# nothing when things work.
PATIENCE = 600

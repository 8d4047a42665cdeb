# Copyright (c) 2026 holdfast contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""How long the lab, and its tests, wait for what has to come."""

from __future__ import annotations

# Seconds. A busy machine is no failure: who waits this long waits in vain. It costs nothing when things work.
PATIENCE = 600

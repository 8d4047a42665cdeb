# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins for metal3 and a storage vendor: BareMetalHosts that switch the lab's nodes, volumes that attach."""

from __future__ import annotations

# Copyright (c) 2026 holdfast contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""What metal3 and a storage vendor would bring: BareMetalHosts that switch the lab's nodes, volumes that attach."""

from __future__ import annotations

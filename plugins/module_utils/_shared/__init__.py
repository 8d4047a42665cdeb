# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that the collection and the node agent share, so that both read a Lease alike.

The agent has each of these files as a link of the same name. They import only each other and Python's own library,
Python 3.9 is enough, and they do no I/O and read no clock.
"""

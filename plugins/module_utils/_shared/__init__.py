# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that the collection and the node agent share, so that both read a Lease in the same way.

The agent links each of these files under the same name. They import only each other and Python's standard library, run
on Python 3.9, do no I/O and read no clock.
"""

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Whether the task can run in C(check_mode) and report what it would do without doing it.
  diff_mode:
    description: Whether the result says what changed, or would change, when diff mode is on.
  idempotent:
    description: Whether a second run right after the first changes nothing.
"""

    ACTIONGROUP_ALL = r"""
options: {}
attributes:
  action_group:
    description: Use C(group/holdfast.kubernetes.all) in C(module_defaults) to set the options of this module together
      with those of the others.
    support: full
    membership:
      - holdfast.kubernetes.all
"""

    INFO_MODULE = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - This module changes nothing.
  diff_mode:
    support: N/A
    details:
      - This module changes nothing.
  idempotent:
    support: full
    details:
      - This module changes nothing.
"""

    CHANGE_MODULE = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - Writes are sent as server-side dry runs, so that check mode also fails if the API server would refuse a write.
  diff_mode:
    support: full
  idempotent:
    support: full
"""

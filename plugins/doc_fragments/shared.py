# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """Options that several modules share. ``module_utils/_api/shared_options.py`` has their argument specs."""

    NODE = r"""
options:
  name:
    description:
      - Name of the Node.
    type: str
    required: true
"""

    RUN = r"""
options:
  run:
    description:
      - Id of the run.
    type: str
    required: true
"""

    CLAIMANT = r"""
options:
  run:
    description:
      - Id of the run that works on the node. If set, this run must have claimed the node. If not set, no run may have
        claimed it. See M(holdfast.kubernetes.node_claim).
    type: str
"""

    WAITING_RUN = r"""
options:
  run:
    description:
      - Id of the run that waits. Its Lease is renewed during the wait, so that the run counts as live.
    type: str
"""

    HOLDER = r"""
options:
  holder:
    description:
      - Who the run is, for people, for example V(alice@bastion) or the number of the AWX job.
    type: str
"""

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node agent: while a Lease holds this node, nobody switches it off, not even root by a slip.

It runs on the node's own Python (3.9 and later) with python3-dbus, python3-gi, python3-urllib3 (which python3-requests
brings; the agent spares itself the rest of that, 7 MB) and python3-yaml.

How it is installed:

- This directory lies at ``/usr/local/lib/holdfast-agent/holdfast_agent`` and is started by
  ``/usr/bin/python3 -I -B /usr/local/lib/holdfast-agent/holdfast_agent``.
- ``/etc/holdfast/agent.yaml`` is its configuration, see :mod:`.config`. It is read at the start only: restart the
  unit after a change. Locks and masks outlast restarts.
- ``holdfast-agent.service``, from the template of that name. The template's variables: ``node_agent_textfile`` (path
  of the metrics file, or empty) and ``__node_agent_systemd_version`` (a number; from 254 on the locks outlast a plain
  stop).
- ``/var/lib/holdfast-agent`` (holds.json, alerts.json) and ``/run/holdfast-agent`` (masks.json) are made by the unit.

Commands:

- ``--check FILE``: looks at a configuration; status 1, and each mistake on a line of standard error, if it is wrong.
- ``--version``
- ``--release``, for removal, after the unit was stopped: lets locks, masks and holds on disk go, removes the metrics
  file and sets the Node's condition to "nobody holds". Says on standard output what it let go, nothing where there was
  nothing. Status 1 if something could not be let go, for example because the API is away; it does the rest, and may
  be run again.

Metrics, in the text file: ``holdfast_agent_info{version,enforcement}``, ``holdfast_agent_holds``,
``holdfast_agent_hold_held_seconds{namespace,holder}`` and ``holdfast_agent_hold_overdue{namespace,holder}`` (1 past
``alert_timeout``), both for the oldest 250 holds, ``holdfast_agent_holds_left_out``, ``holdfast_agent_locks``,
``holdfast_agent_masked_units``, ``holdfast_agent_failed_masks``, ``holdfast_agent_failed_locks``,
``holdfast_agent_api_up``, ``holdfast_agent_last_sync_timestamp_seconds``, ``holdfast_agent_shutting_down``,
``holdfast_agent_written_timestamp_seconds``.

Event: type Warning, reason ``ShutdownInhibitedTooLong``, on the Node, in the namespace ``default``.

Three layers, one direction: rules (config, holds, condition, plan, alerts, metrics: no I/O, no clock), then what
talks to the API, to logind, to systemd and to the disk, then the daemon.
"""

from __future__ import annotations

__version__ = "0.1.0"

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node agent: prevents a shutdown of this node while a Lease holds it, even one by root.

It runs on the node's own Python (3.9 and later) with python3-dbus, python3-gi, python3-urllib3 and python3-yaml.
python3-requests brings python3-urllib3; the agent does not import requests itself, which would take 7 MB of memory.

How it is installed:

- ``/usr/local/lib/holdfast-agent/holdfast_agent`` is this directory. The unit runs
  ``/usr/bin/python3 -I -B /usr/local/lib/holdfast-agent/holdfast_agent``.
- ``/etc/holdfast/agent.yaml`` is the configuration, see :mod:`.config`. The agent reads it at its start only: restart
  the unit after a change. Locks and masks survive restarts.
- ``holdfast-agent.service`` is the unit, made from the role's template. With systemd 254 or later the locks survive a
  stop of the unit too.
- ``/var/lib/holdfast-agent`` (holds.json, alerts.json) and ``/run/holdfast-agent`` (masks.json) are created by the
  unit.

Commands:

- ``--check FILE``: checks a configuration. If it is wrong: status 1, and a line on standard error for each mistake.
- ``--version``
- ``--release``, for removal, after the unit was stopped: releases the locks, masks and holds on disk, removes the
  metrics file and sets the Node's condition to False. Lists on standard output what it released. Status 1 if something
  could not be released, for example because the API is unavailable. It then releases the rest, and can be run again.
  If there are holds on disk, it releases nothing, unless ``--even-held`` is given.

Metrics, in the text file: ``holdfast_agent_info{version,enforcement}``, ``holdfast_agent_holds``,
``holdfast_agent_hold_held_seconds{namespace,holder}`` and ``holdfast_agent_hold_overdue{namespace,holder}`` (1 past
``alert_timeout``), both for the oldest 250 holds, ``holdfast_agent_holds_left_out``, ``holdfast_agent_locks``,
``holdfast_agent_masked_units``, ``holdfast_agent_failed_masks``, ``holdfast_agent_failed_locks``,
``holdfast_agent_api_up``, ``holdfast_agent_last_sync_timestamp_seconds``, ``holdfast_agent_shutting_down``,
``holdfast_agent_written_timestamp_seconds``.

Event: type Warning, reason ``ShutdownInhibitedTooLong``, on the Node, in the namespace ``default``.

Three layers, each of which imports only those before it:

- rules, without I/O or a clock: bounds and hold_rules (shared with the collection), holds, config, condition, plan,
  alerts, metrics;
- access to the API (access, api, watch, publisher), to systemd and logind (notify, units, logind) and to the disk
  (store, textfile);
- the service: agent receives news and applies the plan; executor and masks carry out its acts; reports and overdue
  report; daemon is the process.
"""

from __future__ import annotations

__version__ = "0.1.0"

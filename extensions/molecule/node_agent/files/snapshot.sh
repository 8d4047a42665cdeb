#!/bin/sh
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Lists everything that the role and the agent could leave behind.
set -eu
# Ansible gives scripts a terminal.
export SYSTEMD_PAGER=cat

for place in /etc/holdfast /etc/systemd/system /usr/local/lib /var/lib/holdfast-agent /run/holdfast-agent \
    /run/systemd/system /run/molecule-metrics; do
    [ ! -e "$place" ] || find "$place" -name '*.scope*' -prune -o -printf '%p %y %l\n'
done | sort
systemd-inhibit --list --no-legend --no-pager | grep -c holdfast || true
systemctl show --property LoadState,ActiveState holdfast-agent.service
systemctl show --property LoadState reboot.target systemd-poweroff.service

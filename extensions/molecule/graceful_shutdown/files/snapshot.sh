#!/bin/sh
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Lists everything that the role could change or leave behind.
set -eu

for place in /var/lib/kubelet/config.yaml /etc/systemd/logind.conf.d /var/lib/holdfast \
    /run/holdfast-graceful-shutdown.json; do
    [ ! -e "$place" ] || find "$place" -type f -exec stat -c '%n %a %u %g' {} + -exec sha256sum {} +
done | sort
manager="org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"
# shellcheck disable=SC2086 # three words
busctl get-property $manager InhibitDelayMaxUSec

#!/bin/sh
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Counts the looks at the node, and the looks at which no lock was held or a reboot was not masked.
set -eu

manager="org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"
looks=0
gaps=0
while :; do
    looks=$((looks + 1))
    # shellcheck disable=SC2086 # three words
    if ! busctl call $manager ListInhibitors | grep -q holdfast || [ ! -L /run/systemd/system/reboot.target ]; then
        gaps=$((gaps + 1))
    fi
    echo "$looks $gaps" >/run/molecule-watch.new
    mv /run/molecule-watch.new /run/molecule-watch
    sleep 0.05
done

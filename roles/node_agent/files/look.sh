#!/bin/sh
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Says what the role has to know of a node before it changes anything, one NAME=VALUE a line.
#   look.sh PROGRAM APPLIED DIRECTORY TARGETS FILE...
# PROGRAM: directory of the version to be installed; APPLIED: file that says what the agent was started with; DIRECTORY:
# that of the metrics, or empty; TARGETS: to be masked, separated by commas; FILE: what the agent reads.
set -eu

program=$1
applied=$2
directory=$3
targets=$4
shift 4

echo "boot_id=$(cat /proc/sys/kernel/random/boot_id)"
echo "systemd=$(systemctl --version 2>/dev/null | sed -n '1s/^systemd \([0-9]*\).*/\1/p')"
echo "python=$(/usr/bin/python3 -c 'import sys; print(int(sys.version_info >= (3, 9)))' 2>/dev/null || true)"

# Made as the role makes it of its own files.
echo "program=$(cd "$program" 2>/dev/null && LC_ALL=C sha256sum -- *.py 2>/dev/null | sha256sum | cut -c1-12)"

# Written when the agent was restarted: what a run wrote that died before is seen here, too.
echo "applied=$(sha256sum "$applied" 2>/dev/null | cut -c1-64)"

missing=
for file in "$@"; do
    [ -r "$file" ] || missing="$missing $file"
done
echo "missing=${missing# }"

if [ -z "$directory" ] || [ -d "$directory" ]; then echo directory=1; else echo directory=0; fi

# A file of the same name in /etc beats a mask in /run, unless it is a mask itself.
beating=
for target in $(echo "$targets" | tr , ' '); do
    for unit in "$target.target" "systemd-$target.service"; do
        file=/etc/systemd/system/$unit
        if [ -e "$file" ] && [ -s "$file" ] && [ "$(readlink -f "$file")" != /dev/null ]; then
            beating="$beating $file"
        fi
    done
done
echo "beating=${beating# }"

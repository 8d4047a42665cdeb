#!/bin/sh
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Prints what the role needs to know about a node before it changes anything, as lines NAME=VALUE.
#   look.sh APPLIED LINK UNIT CONFIGURATION MASKS PROGRAM DIRECTORY TARGETS FILE...
# APPLIED: file that records what the agent was started with; LINK, UNIT, CONFIGURATION: the installed program, its unit and
# its configuration; MASKS: file in which the agent records its masks; PROGRAM: directory of the version to install;
# DIRECTORY: directory of the metrics, or empty; TARGETS: targets to mask, separated by commas; FILE: a file that the agent
# reads.
set -eu

applied=$1
link=$2
unit=$3
configuration=$4
masks=$5
program=$6
directory=$7
targets=$8
shift 8

# Also for a link that leads nowhere.
there() { if [ -e "$1" ] || [ -L "$1" ]; then echo 1; else echo 0; fi; }

echo "has_link=$(there "$link")"
echo "has_unit=$(there "$unit")"
echo "has_configuration=$(there "$configuration")"
# The Node of the installed agent. The line may have quotes and a comment.
node=$(sed -n 's/^node_name: *//p' "$configuration" 2>/dev/null | tail -n 1 | sed "s/ *#.*//; s/[\"' ]//g")
echo "node=$node"
# A JSON list of units.
echo "masks=$({ tr -d '[]",\n' <"$masks"; } 2>/dev/null)"
# An earlier version does not have this option.
echo "even_held=$(grep -qs -e --even-held "$link/cli.py" && echo 1)"

echo "uid=$(id -u)"
echo "boot_id=$(cat /proc/sys/kernel/random/boot_id)"
echo "systemd=$(systemctl --version 2>/dev/null | sed -n '1s/^systemd \([0-9]*\).*/\1/p')"
echo "python=$(/usr/bin/python3 -c 'import sys; print(int(sys.version_info >= (3, 9)))' 2>/dev/null || true)"

# The same digest as the one that the role makes of its files.
digest() { (cd "$1" 2>/dev/null && LC_ALL=C sha256sum -- *.py 2>/dev/null | sha256sum | cut -c1-12); }
echo "program=$(digest "$program")"

# The role writes this file after the restart, so the next run repeats a restart that a killed run left out. If a person or
# a killed run has changed a file since, the agent may run with that, so the record does not count.
records() { [ "$(sed -n "s/^$1 //p" "$applied" 2>/dev/null)" = "$2" ]; }
sum() { sha1sum "$1" 2>/dev/null | cut -c1-40; }
if records program "$(digest "$link")" && records configuration "$(sum "$configuration")" &&
    records unit "$(sum "$unit")"; then
    echo "applied=$(sha256sum "$applied" | cut -c1-64)"
else
    echo "applied="
fi

missing=
for file in "$@"; do
    [ -r "$file" ] || missing="$missing $file"
done
echo "missing=${missing# }"

if [ -z "$directory" ] || [ -d "$directory" ]; then echo directory=1; else echo directory=0; fi

# A file of the same name in /etc overrides a mask in /run, unless it is a mask itself.
overriding=
for target in $(echo "$targets" | tr , ' '); do
    for unit in "$target.target" "systemd-$target.service"; do
        file=/etc/systemd/system/$unit
        if [ -e "$file" ] && [ -s "$file" ] && [ "$(readlink -f "$file")" != /dev/null ]; then
            overriding="$overriding $file"
        fi
    done
done
echo "overriding=${overriding# }"

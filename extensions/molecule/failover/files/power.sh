#!/bin/sh
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# power.sh PYTHON on|off|status: the power of the lab's node HOLDFAST_NODE.
set -eu
cd "$(dirname "$0")/../../../.."
export PYTHONPATH=tests
case $2 in
on | off) exec "$1" -m lab power "$2" "$HOLDFAST_NODE" ;;
status) "$1" -m lab status | sed -n "s/^$HOLDFAST_NODE:.*power /$HOLDFAST_NODE is /p" ;;
esac

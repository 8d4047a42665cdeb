#!/bin/sh
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Checks the distribution's own sign that this machine needs a reboot. Prints "yes: why", "no" or "unknown: why".
# Debian family: /run/reboot-required, which packages and unattended-upgrades write. RHEL family: needs-restarting -r
# from dnf-utils (or the dnf plugin), which exits 1 if a reboot is needed.
# HOLDFAST_ROOT: another root directory, for tests.

root=${HOLDFAST_ROOT:-}

for sign in /run/reboot-required /var/run/reboot-required; do
    if [ -e "$root$sign" ]; then
        packages=$(sort -u "$root$sign.pkgs" 2>/dev/null | paste -sd ' ' -)
        echo "yes: $sign${packages:+ (by $packages)}"
        exit 0
    fi
done

if [ -e "$root/etc/debian_version" ]; then
    echo no
    exit 0
fi

if command -v needs-restarting >/dev/null 2>&1; then
    said=$(LC_ALL=C needs-restarting -r 2>&1)
    code=$?
elif command -v dnf >/dev/null 2>&1; then
    said=$(LC_ALL=C dnf -q needs-restarting -r 2>&1)
    code=$?
else
    echo "unknown: neither a Debian system nor one with needs-restarting (package dnf-utils)"
    exit 0
fi

said=$(echo "$said" | paste -sd ' ' -)

# dnf without the plugin exits 1, too.
case "$code $said" in
    "0 "*) echo no ;;
    "1 "*"Reboot is required"*) echo "yes: needs-restarting -r: $said" ;;
    *) echo "unknown: needs-restarting -r exited $code: $said" ;;
esac

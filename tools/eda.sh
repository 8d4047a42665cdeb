#!/usr/bin/env bash
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Make a virtual environment with ansible-rulebook once, and see that there is the Java 17 that its rule engine needs.
#
#   tools/eda.sh DIRECTORY
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=$1
case $target in /*) ;; *) target=$root/$target ;; esac

has_java() {
    local java=java version
    [ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
    version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p') || return 1
    [ "${version:-0}" -ge 17 ]
}

install_java() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "No Java 17: installing Debian's default-jre-headless."
        apt-get update -qq
        # 17 on Debian 12, a later one on later releases.
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends default-jre-headless
    fi
}

mkdir -p "$(dirname "$target")"
{
    # Several tests may want it at once.
    flock 8
    has_java || install_java >&2
    if ! has_java; then
        echo "ansible-rulebook needs Java 17 or later. Install it (Debian, Ubuntu: apt-get install default-jre-headless)," >&2
        echo "or set JAVA_HOME to where it is." >&2
        exit 1
    fi
} 8>"$target.java.lock"

exec "$root/tools/venv.sh" "$target" requirements/eda.txt --constraint requirements/constraints.txt

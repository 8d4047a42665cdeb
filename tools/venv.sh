#!/usr/bin/env bash
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Make a virtual environment once, and again only when what it was made from has changed.
#
#   tools/venv.sh DIRECTORY REQUIREMENTS [--constraint FILE]
#
# The interpreter is $PYTHON if that is set, otherwise the first of $PYTHONS, by default of the usual ones and of pyenv's,
# that the wanted ansible-core supports and that can make a virtual environment. $OLDEST_PYTHON (3.11) says what it needs
# at least.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=$1
shift
requirements=$1
shift
pip_options=("$@")

cd "$root"
case $target in /*) ;; *) target=$root/$target ;; esac

oldest=${OLDEST_PYTHON:-3.11}

suitable() {
    "$1" -c "import sys; sys.exit(not (3, ${oldest#3.}) <= sys.version_info[:2] <= (3, 13))" 2>/dev/null
}

can_make_venv() {
    suitable "$1" && "$1" -c 'import ensurepip, venv' 2>/dev/null
}

find_python() {
    # Not the one in the environment that is about to be replaced.
    local candidate PATH=${PATH//"$target/bin:"/}
    local usual="python3.12 python3.11 python3.13 python3 $HOME/.pyenv/versions/3.1[123].*/bin/python3"
    for candidate in ${PYTHON:-${PYTHONS:-$usual}}; do
        if can_make_venv "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

link_collection() { # DIRECTORY: the parent of ansible_collections
    local namespace=$1/ansible_collections/holdfast
    mkdir -p "$namespace"
    if [ "$(readlink -f "$namespace/kubernetes")" != "$root" ]; then
        ln -sfn "$root" "$namespace/kubernetes"
    fi
}

made_from() {
    # The place counts as well: the scripts of a virtual environment name it.
    cat "$requirements" requirements/constraints.txt | sha256sum | cut -d' ' -f1
    echo "$target"
}

of_wanted_python() { # An interpreter that was asked for once stays, until another one is.
    local tell='import sys; print(sys.base_prefix, sys.version)'
    [ -z "${PYTHON:-}" ] || [ "$("$PYTHON" -c "$tell")" = "$("$target/bin/python" -c "$tell")" ]
}

mkdir -p "$(dirname "$target")"
exec 9>"$target.lock"
flock 9

link_collection "$root/build/collections"
if [ -x "$target/bin/python" ] && [ "$(cat "$target/made-from" 2>/dev/null)" = "$(made_from)" ] && of_wanted_python; then
    exit 0
fi

if ! python=$(find_python); then
    # Debian keeps ensurepip in a package of its own.
    if [ -z "${PYTHON:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "No Python $oldest to 3.13 with venv: installing Debian's python3-venv." >&2
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv >&2
    fi
    if ! python=$(find_python); then
        echo "$requirements needs a Python $oldest to 3.13 that can make virtual environments." >&2
        echo "Install it (Debian 13, Ubuntu 24.04: apt-get install python3-venv; or pyenv install 3.13) or name one: PYTHON=/path/to/python3.13" >&2
        exit 1
    fi
fi

echo "Making ${target#"$root"/} with $("$python" --version) from $requirements"
rm -rf "$target"
"$python" -m venv "$target"
PIP_DISABLE_PIP_VERSION_CHECK=1 "$target/bin/python" -m pip install --quiet -r "$requirements" "${pip_options[@]}"
# Ansible looks for collections next to its own package, and so does a plain import.
link_collection "$("$target/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
made_from >"$target/made-from"

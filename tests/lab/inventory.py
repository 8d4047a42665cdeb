# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory for Ansible: real nodes over ssh, simulated ones through the API alone."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from .node import Node
from .paths import PACKAGE, Paths

HEADER = "# Written by the lab, again after each change.\n"


def inventory(paths: Paths, nodes: Sequence[Node], simulated: Iterable[str]) -> dict[str, Any]:
    """The inventory as data."""
    real: dict[str, Any] = {
        "hosts": {node.name: {"ansible_host": node.address, "lab_suite": node.suite} for node in nodes},
        "vars": {
            "ansible_user": "root",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_ssh_private_key_file": str(paths.ssh_key),
        },
    }
    if nodes:
        # The nodes' host keys change with every lab.
        real["vars"]["ansible_ssh_common_args"] = shlex.join(nodes[0].ssh_arguments())
    return {
        "all": {
            "vars": {
                "lab_kubeconfig": str(paths.kubeconfig),
                "lab_kubectl": str(paths.bin / "kubectl"),
            },
            "children": {
                "real": real,
                "simulated": {
                    "hosts": {name: {} for name in simulated},
                    "vars": {
                        "ansible_connection": "local",
                        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
                        "rolling_reboot_method": "command",
                        "rolling_reboot_command_tasks": str(PACKAGE / "simulated_reboot.yml"),
                    },
                },
            },
        }
    }


def write(paths: Paths, nodes: Sequence[Node], simulated: Iterable[str]) -> None:
    """Write it atomically, because a playbook may read it at any moment."""
    text = HEADER + yaml.safe_dump(inventory(paths, nodes, simulated), sort_keys=False, width=1000)
    temporary = paths.inventory.with_name(f"{paths.inventory.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.rename(paths.inventory)

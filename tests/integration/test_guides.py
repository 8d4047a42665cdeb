# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands and manifests of README and guides, as they are written, on the real API server.

What reboots, installs, fences or configures has tests of its own. tests/unit/test_guides.py checks how it is written.
"""

from __future__ import annotations

import re

import pytest
import yaml
from guide_blocks import CHECKOUT, blocks

# They need no node but its object.
PLAYBOOKS = {"status", "report", "hold", "release"}
MODULES = {"lease_hold_info", "node_condition", "status_info", "reboot_operation_info"}
# The nodes and namespaces of the guides.
NODES = re.compile(r"\b(?:worker|node|docs)-\d\b")
NAMESPACES = re.compile(r"(?<![\w.-])(?:firmware|shop|holdfast)(?=/|$)")
CRDS = ("monitoring.coreos.com/",)


def runnable(words):
    """Whether a command can run here and now: it reads, or takes and releases a hold."""
    text = " ".join(words)
    if words[0] == "kubectl":
        return words[1:3] == ["get", "node"]
    playbook = re.search(r"holdfast\.kubernetes\.(\w+)", text)
    if not playbook:
        return False
    if words[0] == "ansible":
        return "localhost" in words and playbook[1] in MODULES
    planned = "--check" in words and playbook[1] in ("doctor", "rolling_reboot") and "nodes.yml" not in words
    return words[0] == "ansible-playbook" and (playbook[1] in PLAYBOOKS or planned)


def commands():
    """The commands in their order; those that only read once."""
    found = []
    for words in (words for block in blocks() if not block.language and not block.why for words in block.commands):
        changes = bool({"holdfast.kubernetes.hold", "holdfast.kubernetes.release"} & set(words))
        if runnable(words) and (changes or words not in found):
            found.append(words)
    return found


@pytest.mark.long
def test_commands_work_as_they_are_written(world, ansible, lab):
    node = world.nodes(1)[0]
    hosts = {node: {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}}
    (ansible.folder / "inventory.yml").write_text(yaml.safe_dump({"workers": {"hosts": hosts}}))
    written = commands()
    assert len(written) > 15
    for program, *arguments in written:
        own = [NAMESPACES.sub(world.namespace, NODES.sub(node, word)) for word in arguments]
        # As a shell does.
        own = [word.replace("$PWD", str(ansible.folder)) for word in own]
        # No agent confirms it.
        own += ["-e", "hold_wait=false"] if any("hold_holder" in word for word in own) else []
        # Without a group, it reports the latest operation of the cluster, which may be another test's.
        own += ["-e", f"report_group={world.namespace}"] if "holdfast.kubernetes.report" in own else []
        if program == "kubectl":
            lab.kubectl(*own)
        else:
            done = ansible.command(program, *own, KUBECONFIG=lab.kubeconfig)
            assert done.returncode == 0, f"{program} {own}\n{done.stdout}{done.stderr}"


def manifests():
    for path in sorted((CHECKOUT / "docs").glob("*.yml")):
        for number, loaded in enumerate(yaml.safe_load_all(path.read_text())):
            yield pytest.param(loaded, id=f"{path.name}-{number}")
    for block in blocks():
        if block.language == "yaml":
            yield from (pytest.param(loaded, id=block.where) for loaded in yaml.safe_load_all(block.text))
        for text in block.documents:
            time = "2026-11-23T00:00:00.000000Z"
            yield pytest.param(yaml.safe_load(re.sub(r"\$\([^()]*\)", time, text)), id=block.where)


@pytest.mark.parametrize(
    "manifest",
    [
        found
        for found in manifests()
        if isinstance(found.values[0], dict) and not found.values[0].get("apiVersion", CRDS[0]).startswith(CRDS)
    ],
)
def test_the_api_server_accepts_the_manifests(world, ansible, lab, manifest):
    text = re.sub(r"(?<=namespace: )\S+", world.namespace, yaml.safe_dump(manifest))
    path = ansible.folder / "manifest.yml"
    path.write_text(text)
    lab.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename", str(path))

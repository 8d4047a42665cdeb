# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""inhibitor_lock and inhibitor_lock_info on real nodes, over ssh. Nothing is rebooted."""

from __future__ import annotations

import json
import secrets

import pytest
import yaml
from integration.support.lock_watch import fewest_locks

pytestmark = pytest.mark.nodes

# systemd 252 and systemd 257.
OLD, NEW = "node-1", "node-2"
WHY = 'it costs $HOME ${HOME} $$, 100% %n; "é" isn\'t `it`'
MODULE = "holdfast.kubernetes.inhibitor_lock"
INFO = "holdfast.kubernetes.inhibitor_lock_info"
LIST = (
    "busctl --json=short call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager "
    "ListInhibitors"
)


class Node:
    """A real node, and tasks on it by ansible-playbook."""

    def __init__(self, name, lab, ansible):
        self.name, self.lab, self._ansible = name, lab, ansible
        self.lock = f"test-{secrets.token_hex(5)}"

    def ssh(self, command):
        return self.lab.ssh(self.name, command)

    def tasks(self, *tasks):
        """Results of tasks, failed ones too."""
        results, output = self._ansible.tasks(list(tasks), f"--inventory={self.lab.inventory}", hosts=self.name)
        assert "UNREACHABLE" not in output
        return results

    def task(self, check_mode=False, **options):
        """A task on this test's lock."""
        asked = {"name": self.lock, "why": "a test", **options}
        return {"name": "Lock", MODULE: asked, "check_mode": check_mode, "diff": True}

    @property
    def listed(self):
        """What logind lists of this test's lock."""
        found = json.loads(self.ssh(LIST))["data"][0]
        return [tuple(item[:5]) for item in found if item[1] == self.lock]

    @property
    def units(self):
        return self.ssh(
            f"systemctl list-units --all --plain --no-legend 'holdfast-lock-{self.lock}*' | cut -d' ' -f1"
        ).split()

    def client_refuses(self):
        """Whether a client that asks would reboot; it only reports."""
        return self.ssh("systemctl reboot --dry-run --check-inhibitors=yes >/dev/null 2>&1; echo $?").strip() != "0"


@pytest.fixture(params=[OLD, NEW])
def node(request, lab, ansible):
    found = Node(request.param, lab, ansible)
    yield found
    found.ssh(f"systemctl stop 'holdfast-lock-{found.lock}*'")


@pytest.mark.long_on("node-2")
def test_a_lock_stays_until_it_is_released(node):
    checked, info, taken, again, predicted = node.tasks(
        node.task(check_mode=True, why=WHY),
        {"name": "Look", INFO: {}},
        node.task(why=WHY),
        node.task(why=WHY),
        node.task(check_mode=True, state="absent"),
    )
    # Check mode took nothing and released nothing.
    assert node.lock not in {lock["who"] for lock in info["locks"]}
    assert (checked["changed"], checked["diff"]) == (True, taken["diff"])
    assert (predicted["changed"], predicted["lock"]) == (True, None)
    assert (taken["changed"], again["changed"], again["lock"]) == (True, False, taken["lock"])
    assert taken["unit"] == f"holdfast-lock-{node.lock}.service"

    # The module has ended, and so has its connection.
    lock = ("shutdown", node.lock, WHY, "block", 0)
    assert node.listed == [lock]
    assert node.units == [taken["unit"]]
    assert node.client_refuses()
    assert WHY in node.ssh("systemctl reboot --dry-run --check-inhibitors=yes 2>&1; true")
    with fewest_locks(node.ssh, node.lock) as seen:
        node.ssh("systemctl daemon-reload")
        assert node.listed == [lock]
        pid = node.ssh(f"systemctl show --property=MainPID --value {taken['unit']}").strip()
        assert pid == str(taken["lock"]["pid"])
        node.ssh(f"kill -KILL {pid}")
        node.ssh(f"until [ $(systemctl show --property=NRestarts --value {taken['unit']}) = 1 ]; do sleep 0.1; done")
        node.ssh(f"until systemctl is-active {taken['unit']}; do sleep 0.1; done")
    assert seen[node.lock] >= 1, seen
    assert node.listed == [lock]

    info, gone, again = node.tasks({"name": "Look", INFO: {}}, node.task(state="absent"), node.task(state="absent"))
    (found,) = [item for item in info["locks"] if item["who"] == node.lock]
    assert (found["unit"], found["why"], found["what"]) == (taken["unit"], WHY, ["shutdown"])
    assert info["shutdown_blocked"]
    assert (gone["changed"], gone["lock"], gone["unit"], again["changed"]) == (True, None, None, False)
    assert node.listed == []
    assert node.units == []


@pytest.mark.long_on("node-2")
def test_a_lock_takes_the_place_of_another_without_a_gap(node):
    (first,) = node.tasks(node.task())
    with fewest_locks(node.ssh, node.lock) as seen:
        second, third, checked, fourth = node.tasks(
            node.task(why="another reason"),
            node.task(why="another reason", mode="delay", what=["sleep", "shutdown"]),
            node.task(check_mode=True),
            node.task(),
        )
    assert (seen[node.lock], seen["looks"] > 10) == (1, True), seen

    assert [item["changed"] for item in (second, third, checked, fourth)] == [True] * 4
    assert second["unit"] != first["unit"]
    assert (third["lock"]["what"], third["lock"]["mode"]) == (["shutdown", "sleep"], "delay")
    assert second["diff"]["before"] == first["diff"]["after"]
    assert node.listed == [("shutdown", node.lock, "a test", "block", 0)]
    assert node.units == [fourth["unit"]]


@pytest.mark.long
@pytest.mark.long_on("node-2")
def test_a_delay_does_not_refuse(node):
    (taken,) = node.tasks(node.task(mode="delay"))

    assert node.listed == [("shutdown", node.lock, "a test", "delay", 0)]
    blocks = [item for item in json.loads(node.ssh(LIST))["data"][0] if item[3] == "block" and "shutdown" in item[0]]
    assert node.client_refuses() == bool(blocks)
    (info,) = node.tasks({"name": "Look", INFO: {}})
    assert info["inhibit_delay_max"] > 0
    assert info["systemd_version"] == int(node.ssh("systemctl --version").split()[1])
    assert not info["preparing_for_shutdown"]
    assert taken["lock"] in info["locks"]


@pytest.mark.long_on("node-2")
def test_what_is_refused_leaves_the_node_as_it_is(node):
    unit = f"holdfast-lock-{node.lock}.service"
    node.ssh(f"systemd-run --quiet --unit={unit} sleep infinity")
    pid = node.ssh(f"systemctl show --property=MainPID --value {unit}")
    *foreign, name, agent, why, control, backslash, idle, what, mode = node.tasks(
        node.task(),
        node.task(check_mode=True),
        node.task(state="absent"),
        node.task(name=f"{node.lock}@x"),
        node.task(name="holdfast"),
        node.task(why=" "),
        node.task(why="a\nb"),
        node.task(why="a\\"),
        node.task(mode="delay", what=["shutdown", "idle"]),
        node.task(what=["reboot"]),
        node.task(mode="block-weak"),
    )

    assert node.ssh(f"systemctl show --property=MainPID --value {unit}") == pid
    assert node.listed == []
    for result in foreign:
        assert (result["failed"], result["changed"], result["error"], result["unit"]) == (True, False, "refused", unit)
        assert "not a lock of this module" in result["msg"]
    for result in (name, agent, why, control, backslash, idle):
        assert (result["failed"], result["error"]) == (True, "invalid_input"), result
    for result in (what, mode):
        assert result["failed"]
        assert "must be one" in result["msg"]


@pytest.mark.long
@pytest.mark.long_on("node-2")
def test_callers_at_once_leave_one_lock(node, lab, ansible):
    real = yaml.safe_load(lab.inventory.read_text())["all"]["children"]["real"]
    host = {**real["vars"], **real["hosts"][node.name]}
    hosts = {f"caller-{number}": {**host, "why": f"caller {number}"} for number in range(6)}
    inventory = ansible.folder / "callers.yml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    results, _output = ansible.tasks([node.task(why="{{ why }}")], f"--inventory={inventory}", "--forks=6", hosts="all")

    assert results[0]["changed"]
    ((what, _who, why, mode, _uid),) = node.listed
    assert (what, mode) == ("shutdown", "block")
    assert why in {item["why"] for item in hosts.values()}
    assert len(node.units) == 1


@pytest.mark.long
@pytest.mark.long_on("node-2")
def test_the_distribution_s_python_is_used(node):
    python = f"/run/test-{node.lock}"
    node.ssh(f"python3 -m venv --without-pip {python}")
    try:
        assert "No module named" in node.ssh(f"{python}/bin/python -c 'import dbus' 2>&1; true")
        chosen = {"vars": {"ansible_python_interpreter": f"{python}/bin/python"}}
        info, taken = node.tasks({"name": "Look", INFO: {}, **chosen}, {**node.task(), **chosen})
    finally:
        node.ssh(f"rm -rf {python}")
    assert not info.get("failed"), info
    assert not taken.get("failed"), taken
    assert node.listed == [("shutdown", node.lock, "a test", "block", 0)]

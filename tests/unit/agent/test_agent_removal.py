# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The removal of the agent: of the right one, in an order in which the controller may pause between any two tasks."""

from __future__ import annotations

import hashlib
import importlib
import shutil
import subprocess
import sys
import types
from pathlib import Path

import jinja2
import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from holdfast_agent.config import Config
from holdfast_agent.holds import Hold
from holdfast_agent.store import State

ROLE = Path(__file__).resolve().parents[3] / "roles/node_agent"
TASKS = ROLE / "tasks"
INCLUDE, SERVICE = "ansible.builtin.include_tasks", "ansible.builtin.systemd_service"


def looks_at_holds(task):
    return task.get(INCLUDE) == "held.yml" or any(looks_at_holds(item) for item in task.get("block", []))


def test_the_holds_are_looked_at_before_the_agent_stops_and_before_the_release():
    tasks = yaml.safe_load((TASKS / "absent.yml").read_text())
    names = [task["name"] for task in tasks]
    stop, release = names.index("Stop the agent"), names.index("Release locks, masks and holds")

    assert any(map(looks_at_holds, tasks[:stop]))
    # No hold is confirmed after the stop, so this look is the last that is needed.
    again = next(task for task in tasks[stop:release] if looks_at_holds(task))
    started, failed = again["rescue"]
    assert (started[SERVICE]["state"], started[SERVICE]["enabled"]) == ("started", True)
    assert "ansible.builtin.fail" in failed


def look(folder, *, configuration=None, program=None):
    """What the script of the role finds."""
    for name, content in {"agent.yaml": configuration, "program/cli.py": program}.items():
        if content is not None:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(content)
    places = [str(folder / name) for name in ("applied", "program", "unit", "agent.yaml", "masks.json", "program")]
    done = subprocess.run(
        ["/bin/sh", str(ROLE / "files/look.sh"), *places, "", ""], capture_output=True, text=True, check=True
    )
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def not_ours(found, *, name="worker-1", node_boot_id=None):
    """The refusal of a removal, from the variables of the role."""
    variables = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    known = {
        "inventory_hostname": "host-1",
        "__node_agent_found": found,
        "__node_agent_settings": {"node_name": name},
        "__node_agent_configuration": variables["__node_agent_configuration"],
        "__node_agent_has_configuration": found["has_configuration"] == "1",
        "__node_agent_seen": {
            "boot_id": node_boot_id,
            "condition": None if node_boot_id is None else {"status": "True"},
        },
    }
    for variable in ("__node_agent_other", "__node_agent_not_ours"):
        known[variable] = jinja2.Environment(autoescape=False).from_string(variables[variable]).render(known)
    return known["__node_agent_not_ours"].strip()


@pytest.mark.parametrize(
    "line",
    ["node_name: worker-1", "node_name: 'worker-1'", 'node_name:  "worker-1"  # mine', "a: b\nnode_name: worker-1"],
)
def test_the_name_of_the_installed_agent_is_read(tmp_path, line):
    assert look(tmp_path, configuration=f"{line}\nenforcement: strict\n")["node"] == "worker-1"


def test_what_is_not_installed_is_not_found(tmp_path):
    found = look(tmp_path)
    assert (found["node"], found["has_link"], found["has_unit"], found["has_configuration"]) == ("", "0", "0", "0")
    assert not_ours(found) == ""


def test_an_earlier_program_is_not_given_an_option_that_it_does_not_have(tmp_path):
    assert look(tmp_path, program="'--release'")["even_held"] == ""
    shutil.rmtree(tmp_path / "program")
    assert look(tmp_path, program=(ROLE / "files/holdfast_agent/cli.py").read_text())["even_held"] == "1"


@pytest.mark.parametrize("units", [["reboot.target", "systemd-reboot.service"], []])
def test_the_masks_of_an_agent_without_its_program_are_removed_before_their_record(tmp_path, units):
    State(tmp_path, tmp_path).write_masks(units)
    loader = DataLoader()
    variables = loader.load_from_file(str(ROLE / "vars/main.yml"), trusted_as_template=True)
    tasks = loader.load_from_file(str(TASKS / "absent.yml"), trusted_as_template=True)
    templar = Templar(loader, {**variables, "__node_agent_found": look(tmp_path)})
    names = [task["name"] for task in tasks]
    unmask = tasks[names.index("Remove the masks of an agent without its program")]

    assert names.index(unmask["name"]) < names.index("Remove what the role and the agent made")
    assert all(map(templar.evaluate_conditional, unmask["when"])) is bool(units)
    assert templar.template(unmask["ansible.builtin.command"]["argv"]) == ["systemctl", "unmask", "--runtime", *units]
    # The holds of the node count then, too.
    for task in filter(looks_at_holds, tasks):
        assert templar.evaluate_conditional(task["when"]) is bool(units)


def test_the_agent_of_another_node_is_not_removed(tmp_path):
    found = look(tmp_path, configuration="node_name: worker-1\n")

    assert not_ours(found) == "", "also a Node that was deleted"
    assert not_ours(found, node_boot_id=found["boot_id"]) == ""
    refusal = (
        "The agent of host host-1 belongs to Node worker-1, not to Node host-1. Set node_agent_node_name to worker-1."
    )
    assert refusal in not_ours(found, name="host-1")
    assert "host-1 is not Node worker-1: its boot ID is" in not_ours(found, node_boot_id="another")


def test_a_configuration_that_names_no_node_is_not_removed(tmp_path):
    assert "does not say which Node" in not_ours(look(tmp_path, configuration="enforcement: strict\n"))


def test_the_name_is_compared_before_the_holds_are_looked_at():
    tasks = yaml.safe_load((TASKS / "absent.yml").read_text())
    refused = next(number for number, task in enumerate(tasks) if "__node_agent_not_ours" in str(task))
    assert refused < next(number for number, task in enumerate(tasks) if looks_at_holds(task))


@pytest.fixture
def release(monkeypatch, tmp_path):
    """Runs the program's own removal, on a bus in memory, without an API server."""
    before = set(sys.modules)
    cleaned = []

    class Bus:
        def get_object(self, *_name, **_options):
            return self

        def LoadUnit(self, _unit):  # noqa: N802
            return "/unit"

        def Get(self, _interface, name):  # noqa: N802
            return 1 if name == "NFileDescriptorStore" else "inactive"

        def CleanUnit(self, unit, _what):  # noqa: N802
            cleaned.append(unit)

    bus = types.SimpleNamespace(SystemBus=Bus, Interface=lambda found, _name: found, DBusException=OSError)
    monkeypatch.setitem(sys.modules, "dbus", bus)
    module = importlib.import_module("holdfast_agent.release")
    monkeypatch.setattr(module, "_condition", lambda _config: [])
    config = Config("worker-1", state_directory=str(tmp_path))

    def run(**options):
        return module.release(config, **options), cleaned

    yield run
    for name in set(sys.modules) - before:
        if name.startswith("holdfast_agent."):
            del sys.modules[name]


def test_the_program_releases_nothing_while_holds_are_on_disk(release, tmp_path, capsys):
    State(tmp_path).write_holds([Hold("shop", "alice", "2026-01-02T03:04:05.000000Z")])

    assert release(even_held=False) == (1, [])
    assert "Node worker-1 is held by shop/alice" in capsys.readouterr().err
    assert State(tmp_path).holds()

    assert release(even_held=True) == (0, ["holdfast-agent.service"])
    assert not State(tmp_path).holds()
    assert release(even_held=False)[0] == 0


@pytest.mark.parametrize("changed", ["", "agent.yaml", "unit", "abc123/holdfast_agent/cli.py", "applied", "program"])
def test_the_record_of_the_start_counts_while_its_files_are_unchanged(tmp_path, changed):
    """A person or a killed run may have changed them since, and the agent may run with that."""
    program = tmp_path / "abc123/holdfast_agent"
    program.mkdir(parents=True)
    for path in (tmp_path / "agent.yaml", tmp_path / "unit", program / "cli.py"):
        path.write_text(path.name)
    (tmp_path / "program").symlink_to(program)
    sums = {name: hashlib.sha1((tmp_path / name).read_bytes()).hexdigest() for name in ("agent.yaml", "unit")}
    files = f"{hashlib.sha256((program / 'cli.py').read_bytes()).hexdigest()}  cli.py\n"
    digest = hashlib.sha256(files.encode()).hexdigest()[:12]
    record = f"program {digest}\nconfiguration {sums['agent.yaml']}\nunit {sums['unit']}\n"
    (tmp_path / "applied").write_text(record)
    if changed in ("applied", "program"):
        (tmp_path / changed).unlink()
    elif changed:
        (tmp_path / changed).write_text("by hand")

    assert look(tmp_path)["applied"] == ("" if changed else hashlib.sha256(record.encode()).hexdigest())

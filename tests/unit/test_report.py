# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of rolling_reboot in a real ansible-playbook, while the API server is unavailable."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot import report as reboot_report
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _run_hosts

CHECKOUT = Path(__file__).resolve().parents[2]
# Ansible has the variables of hosts after its first play.
BEGIN = {"hosts": "nodes", "gather_facts": False}
# No server listens on this port.
AWAY = {"host": "https://127.0.0.1:9", "api_key": "none", "api_timeout": 0}
BEGAN = "2026-11-21T09:00:00.000000Z"
HOME = {"auth": AWAY, "management": {}, "began": BEGAN}


def long(*values):
    return pytest.param(*values, marks=pytest.mark.long)


def of(name, result, operation="kernel", **more):
    return {
        "__rolling_reboot_turn": {"result": {"name": name, "result": result, "detail": result}, **more},
        "__rolling_reboot_begun": {
            "operation": operation,
            "run": "run-1",
            "group": "default",
            "began": BEGAN,
            "own_host": "",
            "resumes": [],
            "canaries": ["node-1"],
        },
        "__rolling_reboot_home": HOME,
    }


@pytest.fixture
def report(tmp_path):
    """Runs the last plays of the playbook over hosts with these results.

    Returns the exit status, the report that was written, and all that was printed.
    """
    plays = yaml.safe_load((CHECKOUT / "playbooks/plays/run_rolling_reboot.yml").read_text())
    first = next(number for number, play in enumerate(plays) if play["name"] == "Report")
    # The passes, with a task that connects to the nodes.
    passes = {
        play["tasks"][0]["vars"]["__rolling_reboot_pass"]: {
            **play,
            "tasks": [{"ansible.builtin.raw": "true", "when": play["tasks"][0]["when"]}],
        }
        for play in plays[1:first]
    }

    def run(hosts, written=tmp_path / "report.json", *arguments, connects=""):
        (tmp_path / "play.yml").write_text(
            yaml.safe_dump([BEGIN, *([passes[connects]] if connects else []), *plays[first:]])
        )
        group = hosts if "children" in hosts else {"hosts": hosts}
        (tmp_path / "inventory.yml").write_text(yaml.safe_dump({"nodes": group}))
        env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        collections = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or str(CHECKOUT / "build/collections")
        env |= {
            "ANSIBLE_COLLECTIONS_PATH": collections,
            "ANSIBLE_HOME": str(tmp_path / "home"),
            "ANSIBLE_SHOW_CUSTOM_STATS": "true",
        }
        files = {"report": str(written), "html": str(written.with_suffix(".html"))}
        variables = {"hosts": ["nodes"], **files}
        extra = json.dumps({f"rolling_reboot_{name}": value for name, value in variables.items()})
        program = str(Path(sys.executable).parent / "ansible-playbook")
        done = subprocess.run(
            [program, "-i", "inventory.yml", "-e", extra, *arguments, "play.yml"],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        found = json.loads(written.read_text()) if written.exists() else None
        return done.returncode, found, done.stdout

    return run


def test_an_operation_that_can_not_be_ended_fails_the_playbook_and_hides_no_result(report, tmp_path):
    lost = {"name": "node-3", "group": "default", "reason": "no boot", "healthy": False, "run": "run-1"}
    code, written, output = report(
        {
            "node-1": of("node-1", "rebooted"),
            "node-2": {},
            "node-3": of("node-3", "failed", uncounted=[lost]),
        }
    )

    assert code != 0
    assert written["summary"]["rebooted"] == ["node-1"]
    assert (written["about"]["run"], "ansible-core" in written["about"]["versions"]) == ("run-1", True)
    page = (tmp_path / "report.html").read_text()
    assert "<title>Rolling reboot kernel</title>" in page
    assert "What needs attention" in page
    assert "rolling_reboot_rebooted" in output
    assert "OPERATION kernel COULD NOT BE ENDED: The API server https://127.0.0.1:9 did not answer" in output
    assert "run holdfast.kubernetes.doctor, or run this again" in output
    assert "No result for node-2" in output
    assert "The failure of node-3 could not be counted" in output


def test_a_run_that_loses_all_hosts_is_reported(report):
    nowhere = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_connection": "ssh"}
    hosts = {name: {**of(name, "rebooted", operation=""), **nowhere} for name in ("node-1", "node-2")}
    code, written, output = report(hosts, connects="first")

    assert (code, output.count("UNREACHABLE!")) == (4, 2)
    assert written["summary"]["rebooted"] == ["node-1", "node-2"]


@pytest.mark.parametrize("limit", [[], long(["--limit=node-1,node-2"]), long(["--limit=node-1,localhost"])])
def test_a_pass_that_loses_its_only_host_does_not_end_the_playbook(report, tmp_path, limit):
    nowhere = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_connection": "ssh"}
    hosts = {name: {**of(name, "rebooted", operation=""), **nowhere} for name in ("node-1", "node-2")}
    code, written, output = report(hosts, tmp_path / "report.json", *limit, connects="canary")

    assert (code, output.count("UNREACHABLE!")) == (4, 1), output
    assert written["summary"]["rebooted"] == (["node-1"] if "localhost" in str(limit) else ["node-1", "node-2"])


@pytest.mark.parametrize(
    "pattern",
    ["!node-2", *(long(variant) for variant in (["nodes", "&first"], "nodes:!node-2", "node-1,", "&first"))],
)
def test_a_pattern_selects_the_same_hosts_with_localhost(report, tmp_path, pattern):
    nowhere = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_connection": "ssh"}
    hosts = {name: {**of(name, "rebooted", operation=""), **nowhere} for name in ("node-1", "node-2")}
    hosts = {"hosts": hosts, "children": {"first": {"hosts": {"node-1": {}}}}}
    extra = json.dumps({"rolling_reboot_hosts": pattern})
    code, written, output = report(hosts, tmp_path / "report.json", "-e", extra, connects="first")

    assert (code, output.count("UNREACHABLE!")) == (4, 1), output
    assert written["summary"]["rebooted"] == ["node-1"]


@pytest.mark.parametrize("pattern", [[], long(["", " "])])
def test_an_empty_list_is_no_host(report, tmp_path, pattern):
    extra = json.dumps({"rolling_reboot_hosts": pattern})
    code, written, output = report({"node-1": of("node-1", "failed")}, tmp_path / "report.json", "-e", extra)

    assert (code, written) == (2, None), output
    assert "There is no host to reboot: rolling_reboot_hosts is all:!all" in output
    assert "node-1" not in output


def test_several_hosts_in_a_limit_are_reported_and_none_fails(report, tmp_path):
    hosts = {f"node-{number}": of(f"node-{number}", "rebooted", operation="") for number in range(1, 4)}
    code, written, output = report(hosts, tmp_path / "report.json", "--limit=node-1,node-2")

    assert code == 0, output
    assert written["summary"]["rebooted"] == ["node-1", "node-2"]


def test_a_report_that_fails_does_not_hide_which_nodes_failed(report, tmp_path):
    code, written, output = report(
        {
            "node-1": of("node-1", "rebooted", operation=""),
            "node-2": of("node-2", "failed", operation=""),
        },
        written=tmp_path / "no-such-directory/report.json",
    )

    assert code != 0
    assert written is None
    assert "Node node-2 failed: failed" in output
    assert "Node node-1" not in output
    assert "no-such-directory" in output.rpartition("Fail if the report failed]")[2]


def test_a_report_that_fails_makes_the_playbook_fail_if_no_node_failed(report, tmp_path):
    code, _written, _output = report(
        {"node-1": of("node-1", "rebooted", operation="")},
        written=tmp_path / "no-such-directory/report.json",
    )

    assert code != 0


LATER = "2026-11-21T10:00:00.000000Z"


def test_a_playbook_that_imports_this_one_twice_gets_two_reports(report):
    """A host that dropped out of the first run has its variables, and may be of another cluster."""
    later = {"operation": "second", "run": "run-2", "group": "default", "began": LATER}
    second = {
        **of("node-2", "rebooted", run="run-2"),
        "__rolling_reboot_begun": later,
        "__rolling_reboot_home": {"auth": {**AWAY, "host": "https://127.0.0.1:10"}, "began": LATER},
    }
    code, written, output = report({"node-1": of("node-1", "rebooted", run="run-1"), "node-2": second})

    assert code != 0
    assert (written["about"]["run"], written["summary"]["operation"]) == ("run-2", "second")
    assert (written["summary"]["rebooted"], written["summary"]["not_reported"]) == (["node-2"], ["node-1"])
    assert "OPERATION second COULD NOT BE ENDED: The API server https://127.0.0.1:10 did not answer" in output


def test_a_host_sees_the_other_hosts_of_its_run_only():
    hosts = {
        "a": of("node-a", "rebooted", run="run-1"),
        "b": of("node-b", "failed", run="run-1", uncounted=[{"name": "node-b"}]),
    }
    # Host b was in an earlier play of the run.
    play = {"ansible_play_hosts_all": ["a"], "ansible_play_hosts": ["a"], "hostvars": hosts}

    first = _run_hosts.others({**play, "__rolling_reboot_begun": {"run": "run-1", "hosts": "a\nb"}}, ["b"])
    second = _run_hosts.others({**play, "__rolling_reboot_begun": {"run": "run-2", "hosts": "a\nb"}}, ["b"])

    assert [host["result"]["name"] for host in first["hosts"]] == ["node-b"]
    assert (first["uncounted"], first["canary_results"][0]["result"]) == ([{"name": "node-b"}], "failed")
    assert second == {"hosts": [{}], "uncounted": [], "canary_results": [{}]}


def test_without_the_playbook_a_host_sees_the_runs_of_the_others():
    hosts = {name: of(name, "failed", run=f"run/{name}") for name in ("a", "b")}
    for name, host in hosts.items():
        host["__rolling_reboot_begun"] = {"run": f"run/{name}", "hosts": "a\nb"}
    play = {"ansible_play_hosts_all": ["a", "b"], "ansible_play_hosts": ["a"], "hostvars": hosts, **hosts["a"]}

    assert _run_hosts.others(play, ["b"], alone=True)["canary_results"][0]["result"] == "failed"


@pytest.mark.parametrize(("settings", "undone"), [({"node_name": "node-2"}, ["node-2"]), ({}, [])])
def test_the_nodes_that_are_left_are_named_if_all_are_known(settings, undone):
    done = {"host": "a", "turn": {"node": "node-1", "result": {"name": "node-1", "result": "rebooted"}}, "settings": {}}
    error = {"host": "b", "turn": {}, "settings": settings, "settings_error": "invalid"}
    entries = {"a": {"result": "rebooted"}, "b": {"result": "stopped"}}

    assert reboot_report._undone([done, error], entries) == undone


BEGUN = {"run": "run-2", "own_host": "own", "resumes": ["midway", "early"], "canaries": ["canary", "early"]}


@pytest.fixture
def plays_passes(tmp_path):
    """Runs the passes of the playbook over hosts that say what the role answers, and which passes they expect."""
    plays = yaml.safe_load((CHECKOUT / "playbooks/plays/run_rolling_reboot.yml").read_text())
    passes = [play for play in plays if "__rolling_reboot_step" in play.get("vars", {})]
    for play in passes:
        (task,) = play["tasks"]
        del task["ansible.builtin.include_role"]
        answer = f"{{{{ (answers | default({{}})).{task['vars']['__rolling_reboot_pass']} | default('done') }}}}"
        task["ansible.builtin.set_fact"] = {
            "went": "{{ went | default([]) + [__rolling_reboot_pass] }}",
            "__rolling_reboot_turn": {"run": "run-2", "step": answer},
        }
    check = {"ansible.builtin.assert": {"that": "went == expected", "fail_msg": "{{ went }}"}}
    passes.append({"hosts": "nodes", "gather_facts": False, "tasks": [check]})
    (tmp_path / "play.yml").write_text(yaml.safe_dump([BEGIN, *passes]))

    def run(hosts, *arguments):
        known = {name: {**given, "__rolling_reboot_begun": BEGUN} for name, given in hosts.items()}
        (tmp_path / "inventory.yml").write_text(yaml.safe_dump({"nodes": {"hosts": known}}))
        program = str(Path(sys.executable).parent / "ansible-playbook")
        env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        return subprocess.run(
            [program, "-i", "inventory.yml", "-e", "rolling_reboot_hosts=nodes", *arguments, "play.yml"],
            cwd=tmp_path,
            env={**env, "ANSIBLE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize(("limit", "skipped"), [([], 0), long(["--limit=nodes"], 4)])
def test_each_host_has_its_pass(plays_passes, limit, skipped):
    """Nodes that an earlier run has begun come first. A node that is put off gets one more pass."""
    done = plays_passes(
        {
            "plain": {"expected": ["first"]},
            "held": {"expected": ["first", "last"], "answers": {"first": "put_off"}},
            "midway": {"expected": ["resume"]},
            "early": {"expected": ["resume", "canary"], "answers": {"resume": "put_off"}},
            "canary": {"expected": ["canary"]},
            "own": {"expected": ["own"]},
            "earlier": {"expected": ["first"], "__rolling_reboot_turn": {"run": "run-1", "step": "done"}},
        },
        *limit,
    )
    assert done.returncode == 0, done.stdout
    recaps = dict(re.findall(r"^(plain|held) .* skipped=(\d+)", done.stdout, re.MULTILINE))
    assert recaps == {"plain": str(skipped), "held": str(skipped // 4 * 3)}

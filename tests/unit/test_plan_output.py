# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan prints: a real ansible-playbook over nodes of an API server that only answers reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
NAMES = ["node-1", "node-2", "node-3"]


def node(name):
    status = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": f"{name}-1"}}
    metadata = {"name": name, "uid": name, "resourceVersion": "1", "creationTimestamp": "2026-11-21T09:00:00Z"}
    return {"metadata": metadata, "spec": {}, "status": status}


class Handler(BaseHTTPRequestHandler):
    """Nodes, and no other objects; what is written (a dry run) comes back as it was sent."""

    def log_message(self, *_arguments):
        pass

    def answer(self, body, status=200):
        data = json.dumps({"kind": "Thing", **body}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.server.asked.append(path)
        last = path.rpartition("/")[2]
        if path.startswith("/api/v1/nodes/"):
            self.answer(node(last))
        elif "as=Table" in self.headers["Accept"]:
            rows = [{"cells": [name, "Ready"]} for name in NAMES]
            columns = [{"name": "Name"}, {"name": "Status"}]
            self.answer({"metadata": {"resourceVersion": "1"}, "columnDefinitions": columns, "rows": rows})
        elif last.endswith("s"):
            found = [node(name) for name in NAMES] if last == "nodes" else []
            self.answer({"metadata": {"resourceVersion": "1"}, "items": found})
        else:
            self.answer({"message": "none"}, 404)

    def do_POST(self):
        self.server.asked.append(self.path)
        self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    do_PUT = do_PATCH = do_POST  # noqa: N815 - named by http.server


@pytest.fixture
def api():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


@pytest.fixture
def plan(tmp_path, api):
    """Plans a rolling reboot of three nodes: the exit status, and the lines that it prints."""
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "rolling_reboot_when": "always",
        "rolling_reboot_graceful_shutdown": "ignore",
        "rolling_reboot_auth": {"host": f"http://127.0.0.1:{api.server_port}", "api_key": "none"},
    }
    (tmp_path / "inventory.yml").write_text(
        yaml.safe_dump({"nodes": {"hosts": dict.fromkeys(NAMES), "vars": variables}})
    )
    program = str(Path(sys.executable).parent / "ansible-playbook")
    env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    collections = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or str(CHECKOUT / "build/collections")

    def run(*options):
        done = subprocess.run(
            [program, "--check", "-i", "inventory.yml", "holdfast.kubernetes.rolling_reboot", *options],
            cwd=tmp_path,
            env={**env, "ANSIBLE_COLLECTIONS_PATH": collections, "ANSIBLE_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout.splitlines()

    return run


def test_a_plan_fits_on_a_screen_and_asks_once_for_all_nodes(plan, api, tmp_path):
    code, lines = plan("-e", f"rolling_reboot_report={tmp_path}/report.json")
    text = "\n".join(lines)

    assert code == 0, text
    assert [name for name in NAMES if f"Node {name}: now (rolling_reboot_when is always)" not in lines] == []
    assert [line for line in lines if line.startswith("3 nodes: 3 now; ")] != []
    assert "Reboot one node" not in text
    assert len(lines) <= 30
    assert len([line for line in lines if line.startswith("TASK [")]) == 3
    listed = [path for path in api.asked if path in ("/api/v1/nodes", "/api/v1/pods")]
    # How many Nodes there are, all of them, the group as a table, the control plane by its two labels, and whether
    # there is another one.
    assert sorted(listed) == ["/api/v1/nodes"] * 6 + ["/api/v1/pods"]
    report = json.loads((tmp_path / "report.json").read_text())
    assert [(node["name"], node["verdict"]) for node in report["nodes"]] == [(name, "now") for name in NAMES]
    assert report["api"]["requests"] == len(api.asked)


@pytest.mark.parametrize("pattern", ["nobody", [], [""]])
def test_a_plan_of_nobody_is_no_success(plan, pattern):
    code, lines = plan("-e", json.dumps({"rolling_reboot_hosts": pattern}))

    assert code != 0
    assert any("There is no host to plan. Check rolling_reboot_hosts" in line for line in lines), lines


def test_a_node_that_does_not_say_fails_alone(plan):
    command = "sh -c 'exit {{ 3 if inventory_hostname == \"node-2\" else 1 }}'"
    code, lines = plan("-e", json.dumps({"rolling_reboot_when": "command", "rolling_reboot_when_command": command}))

    assert code != 0
    assert "Node node-1: not needed (no reboot is required)" in lines
    why = "rolling_reboot_when_command of node node-2 exited 3; 0 means yes, 1 means no. Correct the command, or set"
    assert f"node-2: failed ({why} rolling_reboot_when to required or always.)" in lines
    assert any(line.startswith("3 nodes: 2 not needed, 1 failed") for line in lines)
    recap = {line.split()[0]: line for line in lines if "failed=" in line}
    assert [name for name, line in recap.items() if "failed=0" not in line] == ["node-2"]

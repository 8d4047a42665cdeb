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
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        path = self.path.partition("?")[0]
        last = path.rpartition("/")[2]
        if path.startswith("/api/v1/nodes/"):
            self.answer(node(last))
        elif last.endswith("s"):
            found = [node(name) for name in NAMES] if last == "nodes" else []
            self.answer({"metadata": {"resourceVersion": "1"}, "items": found})
        else:
            self.answer({"message": "none"}, 404)

    def do_POST(self):
        self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    do_PUT = do_PATCH = do_POST  # noqa: N815 - named by http.server


@pytest.fixture
def plan(tmp_path):
    """The lines that a plan of three nodes prints."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    variables = {
        "ansible_connection": "local",
        "rolling_reboot_when": "always",
        "rolling_reboot_graceful_shutdown": "ignore",
        "rolling_reboot_auth": {"host": f"http://127.0.0.1:{server.server_port}", "api_key": "none"},
    }
    (tmp_path / "inventory.yml").write_text(
        yaml.safe_dump({"nodes": {"hosts": dict.fromkeys(NAMES), "vars": variables}})
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    collections = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or str(CHECKOUT / "build/collections")
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "ansible-playbook"),
            "--check",
            "-i",
            "inventory.yml",
            "holdfast.kubernetes.rolling_reboot",
        ],
        cwd=tmp_path,
        env={**env, "ANSIBLE_COLLECTIONS_PATH": collections, "ANSIBLE_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    server.shutdown()
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_a_plan_is_short_and_says_nothing_of_passes_that_it_does_not_make(plan):
    text = "\n".join(plan)

    assert [name for name in NAMES if f"{name}: now" not in text] == []
    assert "Reboot one node" not in text
    assert len(plan) <= 90
    # One heading for all nodes, not one for each.
    assert len([line for line in plan if line.startswith("TASK [") and ": Plan]" in line]) == 1

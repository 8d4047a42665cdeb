# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run asked of the API server, node by node."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import runner
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline, Follower
from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress import traffic_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.end_rules import line_of
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils import _api_action, _report_files, _traffic
from lab.patience import PATIENCE

NEWS = [
    {"type": "ADDED", "object": {"metadata": {"name": f"node-{number}", "resourceVersion": f"{number}"}}}
    for number in (2, 3)
]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_arguments):
        pass

    def do_GET(self):
        lines = [{"kind": "ThingList", "metadata": {"resourceVersion": "1"}, "items": []}]
        data = "\n".join(map(json.dumps, NEWS if "watch=" in self.path else lines)).encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        # The client may have the answer before this thread continues.
        self.server.sent.append(len(data))
        self.wfile.write(data)


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.sent = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def test_what_is_asked_and_watched_is_counted_even_if_it_fails(server):
    counted = []

    def operation(context, _params):
        follower = Follower(context.cluster, "/api/v1/nodes", Deadline(PATIENCE))
        for number, _news in enumerate(follower):
            if number == len(NEWS):
                raise Refused("enough")

    options = {"host": f"http://127.0.0.1:{server.server_port}", "api_key": "none"}
    result = runner.run_operation(operation, options, check_mode=False, warn=print, count=counted.append)

    assert result["msg"] == "enough"
    assert counted == [{"requests": 2, "bytes": sum(server.sent)}]


@pytest.mark.parametrize("same", [True, False])
def test_a_management_cluster_is_counted_once(same):
    context = runner.Context({})
    cluster, other = (SimpleNamespace(requests=number, received=100 * number) for number in (3, 4))
    vars(context).update(cluster=cluster, management=cluster if same else other)
    assert context.traffic() == ({"requests": 3, "bytes": 300} if same else {"requests": 7, "bytes": 700})


def test_each_task_of_a_run_adds_to_its_node(tmp_path, monkeypatch):
    monkeypatch.setattr(_traffic.constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    assert _traffic.totals() == {}
    for node, requests in (("node-1", 3), ("node-2", 5), ("node-1", 4), ("", 2), ("node-3", 0)):
        _traffic.add(node, {"requests": requests, "bytes": 10 * requests})
    _traffic.add("node-1", {})

    found = _traffic.totals()

    assert found == {
        "": {"requests": 2, "bytes": 20},
        "node-1": {"requests": 7, "bytes": 70},
        "node-2": {"requests": 5, "bytes": 50},
    }
    assert traffic_rules.total(found, "node-1", "node-9") == found["node-1"]
    assert traffic_rules.total(found, *found) == {"requests": 14, "bytes": 140}


def test_a_torn_line_is_left_out(tmp_path, monkeypatch):
    """The disk was full for a moment."""
    monkeypatch.setattr(_traffic.constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    (tmp_path / _traffic._FILE).write_text('["node-1", 3, ["node-1", 1, 9]\n["node-2", 5, 50]\n')
    assert _traffic.totals() == {"node-2": {"requests": 5, "bytes": 50}}


def test_a_folder_that_is_gone_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(_traffic.constants, "DEFAULT_LOCAL_TMP", str(tmp_path / "gone"))
    _traffic.add("node-1", {"requests": 1, "bytes": 1})
    assert _traffic.totals() == {}


def test_the_report_says_it():
    node = {"name": "node-1", "result": "rebooted", "detail": "a kernel"}
    assert line_of({**node, "api": {"requests": 61, "bytes": 209_800}}).endswith("(a kernel); 61 requests, 210 kB")
    assert line_of({**node, "api": {"requests": 0, "bytes": 0}}).endswith("(a kernel)")


def test_a_failovers_report_has_the_requests_of_each_node(tmp_path, monkeypatch):
    monkeypatch.setattr(_traffic.constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    _traffic.add("node-1", {"requests": 3, "bytes": 30})
    _traffic.add("", {"requests": 1, "bytes": 10})
    counted = {"name": "node-3", "api": {"requests": 9, "bytes": 90}}

    report = _report_files.complete({"nodes": [{"name": "node-1"}, {"name": "node-2"}, counted]}, {}, [])

    assert report["nodes"] == [{"name": "node-1", "api": {"requests": 3, "bytes": 30}}, {"name": "node-2"}, counted]
    assert report["api"] == {"requests": 4, "bytes": 40}


@pytest.mark.parametrize(
    ("options", "node"),
    [
        ({"name": "a", "turn": {"node": "b"}}, "a"),
        ({"node": "a"}, "a"),
        ({"turn": {"node": "a"}}, "a"),
        ({"turn": {}}, ""),
        ({"turn": None}, ""),
        ({"turn": '{"node": "a"}'}, ""),
    ],
)
def test_the_node_that_a_task_is_about(options, node):
    assert _api_action._node_of(options) == node

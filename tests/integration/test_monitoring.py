# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Silences, metrics, notifications and alert rules, with a real Alertmanager, push gateway and Prometheus."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration.support.halts import Halt

from ansible_collections.holdfast.kubernetes.plugins.modules import metrics
from lab import Lab, packages
from lab.patience import PATIENCE
from lab.prometheus import PACKAGE, Alertmanager, Pushgateway

RULES = Path(__file__).resolve().parents[2] / "docs/monitoring/alerts.yml"
# Seconds after which a silence expires. Extended each 2 s.
EXPIRES = 10


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    """A proxy of the machine can't reach a server on the machine's loopback."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,10.0.0.0/8")
    monkeypatch.setenv("no_proxy", "127.0.0.1,10.0.0.0/8")


@pytest.fixture
def server(lab: Lab, tmp_path: Path) -> Iterator[Any]:
    """Start servers; end them after the test."""
    started = []

    def start(kind: Any) -> Any:
        folder = tmp_path / kind.PACKAGE
        folder.mkdir()
        found = kind(packages.program(lab.paths.cache, kind.PACKAGE), folder)
        started.append(found)
        found.start()
        return found

    yield start
    for found in started:
        found.stop()


@pytest.fixture
def promtool(lab: Lab) -> str:
    return str(packages.program(lab.paths.cache, PACKAGE).with_name("promtool"))


def until(condition: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


class TestRun:
    """The alerts of a node while a run works on it."""

    @pytest.mark.long
    def test_silences_notifies_and_publishes(self, world, rolling, server, tmp_path, promtool):
        # A cluster has more than one node.
        node, _other = world.nodes(2)
        alertmanager, halt = server(Alertmanager), Halt(tmp_path / "halt")
        for labels in ({"node": node}, {"instance": f"{node}:9100"}, {"instance": f"{node}0:9100"}):
            alertmanager.alert(alertname="Down", **labels)
        said = tmp_path / "said"
        tell = {
            "ansible.builtin.shell": f"echo '{{{{ holdfast_event | to_json }}}}' >>{said}",
            "changed_when": False,
        }
        fail = {"ansible.builtin.fail": {"msg": "nobody listens"}}
        run = rolling.start(
            {node: {"rolling_reboot_before_reboot_tasks": rolling.tasks("stay", halt.command)}},
            "-e",
            # The report runs on localhost.
            json.dumps(
                {
                    "rolling_reboot_notify": rolling.tasks("tell", {"name": "Tell", **tell}, {"name": "Fail", **fail}),
                    "rolling_reboot_notify_phases": ["cordon", "drain", "reboot", "ready", "end", "report"],
                    "rolling_reboot_metrics_file": str(tmp_path / "holdfast.prom"),
                }
            ),
            alertmanager={"url": alertmanager.url, "expires_after": 2 * EXPIRES},
        )
        run.until(lambda: halt.reached, "the run at its halt")
        until(lambda: sorted(alertmanager.firing("Down")) == ["active", "suppressed", "suppressed"], "two are silenced")
        first = {item["id"]: item["endsAt"] for item in alertmanager.silences()}
        # The same silences, with a later end: the process that renews the Lease of the run extends them.
        until(
            lambda: all(item["endsAt"] > first[item["id"]] for item in alertmanager.silences()) and first,
            "they are extended",
        )
        assert {item["id"] for item in alertmanager.silences()} == set(first)
        halt.resume()
        done = run.done().good()

        assert done.results == {node: "rebooted"}
        assert alertmanager.silences() == []
        until(lambda: alertmanager.firing("Down") == ["active"] * 3, "the alerts are back")
        events = [json.loads(line) for line in said.read_text().splitlines()]
        assert [event["phase"] for event in events] == ["cordon", "drain", "reboot", "ready", "end", "report"]
        assert events[4]["text"].startswith(f"Node {node}: rebooted (")
        assert events[5]["text"].endswith(": 1 rebooted")
        assert done.output.count("WARNING: The notification of the phase") == len(events)
        text = (tmp_path / "holdfast.prom").read_text()
        assert f'holdfast_reboot_required{{node="{node}"}} 0\n' in text
        assert f'run="{events[0]["run"]}",result="rebooted"}} 1\n' in text
        checked = subprocess.run(
            [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr

    def test_a_run_that_is_killed_silences_nothing_for_long(self, world, rolling, server, tmp_path):
        # A cluster has more than one node.
        node, _other = world.nodes(2)
        alertmanager, halt = server(Alertmanager), Halt(tmp_path / "halt")
        alertmanager.alert(alertname="Down", node=node)
        run = rolling.start(
            {node: {"rolling_reboot_before_drain_tasks": rolling.tasks("stay", halt.command)}},
            alertmanager={"url": alertmanager.url, "expires_after": EXPIRES},
        )
        run.until(lambda: halt.reached, "the run at its halt")
        until(lambda: alertmanager.firing("Down") == ["suppressed"], "it is silenced")
        run.kill()

        until(lambda: alertmanager.silences() == [], "the silences expire")
        until(lambda: alertmanager.firing("Down") == ["active"], "the alert is back")


@pytest.mark.long
def test_a_plan_publishes_metrics(world, rolling, tmp_path):
    node, other = world.nodes(2)
    rolling.hold(node)
    path = tmp_path / "holdfast.prom"

    rolling.run([node, other], "--check", metrics_file=str(path)).good()

    text = path.read_text()
    assert f'holdfast_reboot_required{{node="{node}"}} 1\n' in text
    assert f'namespace="{world.namespace}",holder="app"}}' in text


class Hook(ThreadingHTTPServer):
    """A webhook that keeps what it gets."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Post)
        self.got: list[tuple[str, Any]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Post(BaseHTTPRequestHandler):
    server: Hook

    def log_message(self, *_arguments: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, json.loads(body)))
        self.send_response(202)
        self.end_headers()


@pytest.mark.long
def test_the_ready_notifications(ansible):
    hook = Hook()
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    event = {"phase": "end", "text": "Node a: rebooted (a kernel)", "node": "a", "result": {"result": "rebooted"}}
    kinds = ("webhook", "slack", "teams")
    steps = [
        {
            "name": f"Notify by {kind}",
            "ansible.builtin.include_role": {
                "name": "holdfast.kubernetes.rolling_reboot",
                "tasks_from": f"notify_{kind}",
                "rolespec_validate": False,
            },
            "vars": {"holdfast_event": event, "rolling_reboot_notify_to": {"url": f"{hook.url}/{kind}"}},
        }
        for kind in kinds
    ]
    book = ansible.folder / "notify.yml"
    book.write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": steps}]))

    done = ansible.command("ansible-playbook", str(book))
    hook.shutdown()

    assert done.returncode == 0, done.stdout
    assert [path for path, _body in hook.got] == ["/webhook", "/slack", "/teams"]
    webhook, slack, teams = [body for _path, body in hook.got]
    assert (webhook, slack) == (event, {"text": event["text"]})
    assert teams["attachments"][0]["content"]["body"] == [{"type": "TextBlock", "text": event["text"], "wrap": True}]


class TestMetrics:
    def test_of_the_cluster_in_a_push_gateway(self, world, server, promtool):
        (node,) = world.nodes(1)
        gateway = server(Pushgateway)
        world.create("leases", node, {"spec": {"holderIdentity": "app", "acquireTime": "2026-01-02T03:04:05.000000Z"}})
        options = {"url": gateway.url, "validate_certs": True, "timeout": PATIENCE}
        results = [{"name": node, "result": "planned", "required": True}]

        found = world.run(metrics, pushgateway=options, results=results, operation="kernel", run="4711")

        assert not found.get("failed"), found
        pushed = gateway.metrics()
        assert f'holdfast_reboot_required{{instance="",job="holdfast",node="{node}"}} 1' in pushed
        assert (
            'holdfast_run_nodes{instance="",job="holdfast",operation="kernel",result="planned",run="4711"} 1' in pushed
        )
        hold = f'holder="app",instance="",job="holdfast",namespace="{world.namespace}",node="{node}"'
        assert f"holdfast_hold_timestamp_seconds{{{hold}}} 1.767323045e+09" in pushed
        # What is not pushed again is gone.
        world.run(metrics, pushgateway=options)
        assert "holdfast_reboot_required" not in gateway.metrics()

    def test_a_gateway_that_is_away(self, world, server):
        gateway = server(Pushgateway)
        gateway.stop()
        options = {"url": gateway.url, "validate_certs": True, "timeout": 1}

        assert world.run(metrics, pushgateway=options)["error"] == "not_published"
        assert not world.run(metrics, pushgateway=options, best_effort=True).get("failed")

    def test_a_file_is_replaced_and_readable(self, world, tmp_path):
        path = tmp_path / "holdfast.prom"
        path.write_text("old")
        path.chmod(0o600)

        found = world.run(metrics, file=str(path))

        assert path.read_text() == found["metrics"] != ""
        assert (path.stat().st_mode & 0o777, list(tmp_path.iterdir())) == (0o644, [path])
        assert world.run(metrics, file=str(tmp_path / "no/such.prom"))["error"] == "not_published"


def series(**values: str) -> list[dict[str, str]]:
    known = {
        'reboot_required{node="a"}': "0x300",
        'node_phase_timestamp_seconds{node="a", phase="drain"}': "0+60x300",
        'node_phase_timestamp_seconds{node="b", phase="slot"}': "0+60x300",
        'slots{group="g", state="failed"}': "0x300",
        'run_last_sign_timestamp_seconds{run="r"}': "0+60x300",
        'hold_timestamp_seconds{node="a"}': "0+60x300",
        "written_timestamp_seconds": "0+60x300",
    }
    changed = {next(name for name in known if name.startswith(key)): value for key, value in values.items()}
    return [{"series": f"holdfast_{name}", "values": value} for name, value in {**known, **changed}.items()]


@pytest.mark.parametrize(
    ("metrics_", "interval", "firing"),
    [
        (series(), "1m", ()),
        (series(reboot_required="1x300"), "1h", "HoldfastRebootRequired"),
        (series(slots="1x300"), "1m", "HoldfastNodeFailed"),
        (series(node_phase="0x300"), "1m", "HoldfastNodeStuck"),
        (series(run_last="0x300"), "1m", "HoldfastRunDead"),
        (series(hold_timestamp="-90000x300"), "1m", "HoldfastHoldLong"),
        (series(written="0x300"), "1m", "HoldfastMetricsOld"),
        # Nothing was published since minute 0. What worked then may have ended well.
        (
            series(node_phase="-60x300", run_last="-30x300", hold_timestamp="-60x300", written="0x300"),
            "1m",
            "HoldfastMetricsOld",
        ),
    ],
)
def test_alert_rules(promtool, tmp_path, metrics_, interval, firing):
    names = [rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    minutes = {"1m": 300, "1h": 300 * 60}[interval]
    wanted = {firing} if firing else set()
    if interval == "1h":
        # The other timestamps are of minutes.
        names = [firing]
    expectations = [
        {
            "expr": f'count(count by (alertname) (ALERTS{{alertname="{name}", alertstate="firing"}})) or vector(0)',
            "eval_time": f"{minutes}m",
            "exp_samples": [{"labels": "{}", "value": int(name in wanted)}],
        }
        for name in names
    ]
    book = tmp_path / "test.yml"
    test = {"interval": interval, "input_series": metrics_, "promql_expr_test": expectations}
    book.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": interval, "tests": [test]}))

    done = subprocess.run([promtool, "test", "rules", str(book)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node agent without the API, after a power loss, in a shutdown, with a wrong clock, and with many Leases."""

from __future__ import annotations

import contextlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from integration.support.agent import UNITS, until
from integration.support.faults import BROKEN, ENDED, Proxy

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.times import from_text
from lab.certificates import Authority
from lab.patience import PATIENCE

pytestmark = pytest.mark.long

# One systemd is as good as the other.
on_one = pytest.mark.parametrize("installed", ["node-1"], indirect=True)
CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
CUT = """[Unit]
DefaultDependencies=no
After=lab-prepare.service
Before=holdfast-agent.service kubelet.service

[Service]
Type=oneshot
ExecStart=iptables --insert OUTPUT --protocol tcp --dport 6443 --jump REJECT --reject-with tcp-reset

[Install]
WantedBy=multi-user.target
"""


@pytest.fixture
def spaces(stage):
    return [stage()[0].namespace for _count in range(3)]


def test_while_the_api_is_away_everything_stays_and_then_catches_up(agent, spaces):
    first, second, third = spaces
    agent.hold(first)
    agent.hold(second)
    agent.until(f"{first}/me,{second}/me", "True")
    with agent.cut_off():
        # The next event breaks the open connection.
        agent.end_hold(first)
        agent.hold(third)
        until(lambda: agent.metrics()["holdfast_agent_api_up"] == 0)
        agent.hold(second, holder="heir")
        time.sleep(10)
        assert agent.locks() == sorted([f"{first}/me", f"{second}/me"])
        assert agent.masked() == UNITS
        assert agent.metrics()["holdfast_agent_holds"] == 2
        assert "The API server is unavailable, so the agent changes nothing" in agent.journal()
        assert "API away" in agent.ssh("systemctl show -P StatusText holdfast-agent")
    agent.until(f"{third}/me,{second}/heir", "True")
    until(lambda: agent.locks() == sorted([f"{second}/heir", f"{third}/me"]), agent.locks)
    assert agent.metrics()["holdfast_agent_api_up"] == 1


def test_power_is_lost_while_held_and_the_api_is_away(agent, world):
    agent.hold(world.namespace)
    agent.until(f"{world.namespace}/me", "True")
    before = agent.boot_id
    agent.send(CUT, "cat > /etc/systemd/system/lab-cut.service && systemctl enable --quiet lab-cut && sync")
    try:
        agent.lab.power_off(agent.name)
        agent.end_hold(world.namespace)
        agent.lab.power_on(agent.name)
        until(lambda: agent.lab.node(agent.name).wait_boot_id() != before)
        until(lambda: agent.ssh("systemctl is-active kubelet || true").strip() == "active")
        began = agent.ssh("systemctl show -P ActiveEnterTimestampMonotonic holdfast-agent kubelet").split()
        assert int(began[0]) <= int(began[1]), "the kubelet began first"
        assert agent.locks() == [f"{world.namespace}/me"]
        assert agent.masked() == UNITS
        assert agent.ssh("systemctl reboot >/dev/null 2>&1; echo $?").strip() == "1"
        assert agent.condition()["reason"] == f"{world.namespace}/me"
    finally:
        agent.ssh("systemctl disable --quiet lab-cut; rm /etc/systemd/system/lab-cut.service; iptables --flush OUTPUT")
    # Released meanwhile; the API says so now.
    agent.until_free()
    agent.lab.wait_ready([agent.name])


@pytest.fixture
def agent_proxy(agent, lab, tmp_path):
    """A proxy between the agent and the API server."""
    pair = Authority(lab.paths.pki).server("proxy", [], [lab.network.gateway])
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    found = Proxy(lab.kubeconfig, tmp_path, address=lab.network.gateway, pair=tmp_path / "pair.pem")
    authority = "/etc/holdfast/proxy.crt"
    agent.send((lab.paths.pki / "ca.crt").read_text(), f"cat > {authority}")
    access = {"certificate_authority": authority, "client_certificate": CERTIFICATE, "client_key": CERTIFICATE}
    agent.configure(server=found.url, **access)
    try:
        yield found
    finally:
        agent.configure()
        agent.restart()
        found.close()


@on_one
@pytest.mark.parametrize("fault", [ENDED, BROKEN], ids=["ended", "broken"])
def test_watches_that_do_not_last_cause_few_requests_and_miss_no_hold(agent, agent_proxy, world, fault):
    agent_proxy.faults.watches = fault
    agent.restart()
    until(lambda: agent_proxy.faults.log)
    time.sleep(10)
    # Without growing pauses there are 75 or more. A busy machine only makes them fewer.
    assert len(agent_proxy.faults.log) < 20
    agent.hold(world.namespace)
    agent.until(f"{world.namespace}/me", "True")

    agent_proxy.faults.watches = ""
    agent.end_hold(world.namespace)
    agent.until_free()


@on_one
def test_a_rotated_certificate_is_read_again(agent, lab, world):
    kept = agent.ssh(f"cat {CERTIFICATE}")
    fresh = Authority(lab.paths.pki).client(f"system:node:{agent.name}", ["system:nodes"])
    try:
        with agent.cut_off():
            until(lambda: agent.metrics()["holdfast_agent_api_up"] == 0)
            agent.send("nothing\n", f"cat > {CERTIFICATE}")
            # A connection that starts now with the old certificate must not succeed.
            until(lambda: "The certificates can't be read" in agent.journal())
        rotated = (fresh.certificate + fresh.key).decode()
        agent.send(rotated, f"umask 077; cat > {CERTIFICATE}.new && mv {CERTIFICATE}.new {CERTIFICATE}")
        until(lambda: agent.metrics()["holdfast_agent_api_up"] == 1)
        agent.hold(world.namespace)
        agent.until(f"{world.namespace}/me", "True")
    finally:
        agent.send(kept, f"cat > {CERTIFICATE}")


@on_one
def test_a_node_whose_clock_is_a_day_ahead(agent, world):
    """Nodes of the lab share the machine's clock: the test adds a day to the time that the agent reads."""
    program = (
        "import runpy, sys, time; real = time.time; time.time = lambda: real() + 86400; "
        "sys.argv = [sys.argv[0], '--config', '/etc/holdfast/agent.yaml']; "
        "runpy.run_path('/usr/local/lib/holdfast-agent/holdfast_agent', run_name='__main__')"
    )
    unit = f'[Service]\nExecStart=\nExecStart=/usr/bin/python3 -I -B -c "{program}"\n'
    drop_in = "/etc/systemd/system/holdfast-agent.service.d"
    agent.send(unit, f"mkdir -p {drop_in} && cat > {drop_in}/skew.conf && systemctl daemon-reload")
    try:
        agent.configure(alert_timeout=3600)
        agent.restart()
        agent.hold(world.namespace)
        found = agent.until(f"{world.namespace}/me", "True")
        assert abs(from_text(found["lastTransitionTime"]) - agent.cluster.now()) < timedelta(hours=12)
        time.sleep(3)
        assert [item for item in agent.events() if world.namespace in item["message"]] == []
        assert [value for name, value in agent.metrics().items() if "overdue" in name] == [0]
    finally:
        agent.ssh(f"rm -r {drop_in}; systemctl daemon-reload")
        agent.configure()
        agent.restart()


def test_a_shutdown_under_way_is_not_stopped_by_a_lease_and_the_next_boot_is(agent, world):
    before = agent.boot_id
    # A delay lock of another program, so that there is time to look. The drop-in goes with this boot.
    delay = "systemd-inhibit --mode=delay --what=shutdown --who=test --why=test sleep infinity"
    agent.ssh(
        "mkdir -p /run/systemd/logind.conf.d; "
        f"printf '[Login]\\nInhibitDelayMaxSec={PATIENCE}\\n' > /run/systemd/logind.conf.d/zz-test.conf; "
        "systemctl kill --signal=HUP --kill-whom=main systemd-logind; "
        f"systemd-run --quiet --collect --unit=delay {delay}"
    )
    until(lambda: "test" in agent.ssh("systemd-inhibit --list --no-pager"))
    agent.ask_to_reboot()
    until(lambda: "A shutdown is under way" in agent.journal())
    agent.hold(world.namespace)
    until(lambda: "Leases matter again after the boot" in agent.journal())
    assert agent.locks() == []
    assert agent.masked() == set()
    assert agent.condition()["reason"] == "KubeletShutdownAllowed"
    agent.lab.node(agent.name).ask_to_end("systemctl stop delay")
    until(lambda: agent.lab.node(agent.name).wait_boot_id() != before)
    agent.until(f"{world.namespace}/me", "True")
    assert agent.locks() == [f"{world.namespace}/me"]
    agent.lab.wait_ready([agent.name])


def test_a_shutdown_without_logind_is_not_stopped_by_a_lease(agent, world):
    """PID 1 gets the signal itself, as from kured. A unit that ends before the agent leaves time to look."""
    before = agent.boot_id
    agent.send(
        "until test -e /run/end; do sleep 0.2; done\n",
        "cat > /run/wait.sh; systemd-run --quiet --unit=slow --property='After=holdfast-agent.service ssh.service' "
        f"--property=TimeoutStopSec={PATIENCE} --property='ExecStop=/bin/sh /run/wait.sh' sleep infinity",
    )
    agent.lab.node(agent.name).ask_to_end("kill -s RTMIN+5 1")
    until(lambda: "start" in agent.ssh("systemctl list-jobs --no-legend shutdown.target"))
    agent.hold(world.namespace)
    until(lambda: "PID 1 shuts the node down" in agent.journal())
    assert agent.locks() == []
    assert agent.masked() == set()
    assert agent.condition()["reason"] == "KubeletShutdownAllowed"
    agent.lab.node(agent.name).ask_to_end("touch /run/end")
    until(lambda: agent.lab.node(agent.name).wait_boot_id() != before)
    agent.until(f"{world.namespace}/me", "True")
    agent.lab.wait_ready([agent.name])


@on_one
def test_held_too_long_is_reported_once_and_nothing_is_released(agent, world):
    hold = f"{world.namespace}/me"

    def alerts():
        return [item for item in agent.events() if hold in item["message"]]

    agent.configure(alert_timeout=3)
    agent.restart()
    try:
        agent.hold(world.namespace)
        agent.until(f"{world.namespace}/me", "True")
        until(lambda: len(alerts()) == 1)
        until(lambda: [value for name, value in agent.metrics().items() if "overdue" in name] == [1])
        for _count in range(3):
            agent.restart()
            time.sleep(3)
        # Also after it lost its record.
        agent.ssh("rm /var/lib/holdfast-agent/alerts.json")
        agent.restart()
        time.sleep(3)
        assert len(alerts()) == 1
        assert agent.locks() == [f"{world.namespace}/me"]
        # After a new acquisition, the alert may be sent again.
        agent.hold(world.namespace)
        until(lambda: len(alerts()) == 2)
    finally:
        agent.configure()
        agent.restart()


@on_one
def test_ten_thousand_leases_of_others_do_not_matter(agent, world):
    leases = paths.leases(world.namespace)
    before = agent.memory

    def make(number):
        spec = {"holderIdentity": "me", "acquireTime": "2026-01-02T03:04:05.000000Z"}
        agent.cluster.create(leases, {"metadata": {"name": f"other-{number}"}, "spec": spec})

    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(make, range(10000)))
    try:
        agent.restart()
        agent.hold(world.namespace)
        agent.until(f"{world.namespace}/me", "True")
        assert agent.locks() == [f"{world.namespace}/me"]
        assert agent.memory < 40
        assert agent.memory < before + 3
    finally:
        with contextlib.suppress(Exception):
            agent.cluster.delete(leases)


# An API server in which one Lease is renewed without end: run on the node, as fast as the agent reads.
FLOOD = r"""
import json, ssl, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

EVENTS, PATCHES, SENT = 100000, [], []
SPEC = {"holderIdentity": "me", "acquireTime": "2026-01-02T03:04:05.000000Z"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments):
        pass

    def say(self, content):
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_PATCH(self):
        PATCHES.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.say({})

    def do_GET(self):
        if "watch=true" not in self.path:
            counts = {"sent": len(SENT), "patches": len(PATCHES)}
            return self.say({"metadata": {"resourceVersion": "1"}, "items": [], **counts})
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for version in range(2, EVENTS + 2):
            metadata = {"name": "x", "namespace": "apps", "resourceVersion": str(version)}
            item = {"metadata": metadata, "spec": {**SPEC, "renewTime": str(version)}}
            data = json.dumps({"type": "MODIFIED", "object": item}).encode() + b"\n"
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            SENT.append(None)
        import time
        time.sleep(600)


server = ThreadingHTTPServer(("127.0.0.1", 7443), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/root/flood.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.daemon_threads = True
server.serve_forever()
"""


@on_one
def test_a_hundred_thousand_events_leave_no_trace_in_memory(agent, lab):
    pair = Authority(lab.paths.pki).server("flood", [], ["127.0.0.1"])
    agent.send((pair.certificate + pair.key).decode(), "cat > /root/flood.pem")
    agent.send(FLOOD, "cat > /root/flood.py && systemd-run --quiet --collect --unit=flood python3 /root/flood.py")
    said = (
        'python3 -c "import ssl,urllib.request as u; c=ssl._create_unverified_context(); '
        "print(u.urlopen('https://127.0.0.1:7443/', context=c).read().decode())\""
    )
    try:
        agent.configure(
            server="https://127.0.0.1:7443",
            certificate_authority="/etc/kubernetes/pki/ca.crt",
            client_certificate=CERTIFICATE,
            client_key=CERTIFICATE,
        )
        agent.restart()
        until(lambda: json.loads(agent.ssh(said))["sent"] == 100000)
        until(lambda: agent.locks() == ["apps/me"])
        assert agent.memory < 40
        assert json.loads(agent.ssh(said))["patches"] == 2
    finally:
        agent.ssh("systemctl stop flood")
        agent.configure()
        agent.restart()

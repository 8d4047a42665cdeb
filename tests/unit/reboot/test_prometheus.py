# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a Prometheus is asked, and what blocks where it does not tell."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import os
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from unit.serving import reserved_address, serving

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import web
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import run_operation
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.watch import Deadline
from ansible_collections.holdfast.kubernetes.plugins.module_utils._reboot.prometheus import Prometheus
from ansible_collections.holdfast.kubernetes.plugins.modules import node_blockers
from lab.patience import PATIENCE

NODE = "node-1"
FIRING = {"labels": {"alertname": "DiskFull"}, "state": "firing", "activeAt": "2026-11-21T09:00:00Z"}
RULES = {"status": "success", "data": {"groups": []}}


def alerts(*found: Any) -> dict[str, Any]:
    return {"status": "success", "data": {"alerts": list(found)}}


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    """None of this machine's own."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


class Server(ThreadingHTTPServer):
    """Answers as told, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[Handler] = []
        self.code = 200
        self.headers: dict[str, str] = {}
        self.bodies: dict[str, bytes] = {}
        self.tell(alerts())
        self.drip = 0.0
        self.done = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def tell(self, answer: Any, rules: Any = None) -> None:
        for name, content in (("alerts", answer), ("rules", RULES if rules is None else rules)):
            self.bodies[name] = content if isinstance(content, bytes) else json.dumps(content).encode()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        server = self.server
        server.seen.append(self)
        body = server.bodies["rules" if "/rules" in self.path else "alerts"]
        self.send_response(server.code)
        for key, value in server.headers.items():
            self.send_header(key, value)
        self.end_headers()
        if not server.drip:
            self.wfile.write(body)
            return
        for _part in range(100):
            if server.done.wait(server.drip):
                return
            try:
                self.wfile.write(b" ")
                self.wfile.flush()
            except OSError:
                return


def prometheus(server: Server) -> Iterator[Server]:
    with serving(server):
        yield server
        server.done.set()


@pytest.fixture
def server() -> Iterator[Server]:
    yield from prometheus(Server())


@pytest.fixture
def nobody() -> Iterator[str]:
    """A URL where nobody listens."""
    with reserved_address() as (host, port):
        yield f"http://{host}:{port}"


def asked(url: str, **options: Any) -> Prometheus:
    spec = {"alerts": node_blockers.SPEC["argument_spec"]["alerts"]}
    validation = ArgumentSpecValidator(spec).validate({"alerts": {"url": url, "timeout": PATIENCE, **options}})
    assert not validation.error_messages, validation.error_messages
    return Prometheus(validation.validated_parameters["alerts"], NODE)


def names(prometheus: Prometheus) -> list[str]:
    return [blocker.name for blocker in prometheus.blockers()]


def why_not(prometheus: Prometheus) -> str:
    """The reason of the one blocker that a Prometheus is which does not tell."""
    (blocker,) = prometheus.blockers()
    assert (blocker.kind, blocker.name) == ("alert", prometheus.url)
    assert "does not report its alerts" in blocker.reason
    return blocker.reason


class TestAnswers:
    def test_alerts(self, server):
        server.tell(alerts(FIRING))

        assert names(asked(server.url)) == ["DiskFull"]

    def test_none(self, server):
        assert names(asked(server.url)) == []

    def test_rules_are_asked_for_before_alerts(self, server):
        names(asked(server.url))

        # The other way round, one evaluated in between would have neither.
        assert [seen.path for seen in server.seen] == ["/api/v1/rules?type=alert", "/api/v1/alerts"]

    def test_a_rule_that_was_not_evaluated_yet_blocks(self, server):
        rule = {"name": "Later", "type": "alerting", "health": "unknown"}
        server.tell(alerts(), {"status": "success", "data": {"groups": [{"rules": [rule]}]}})

        assert names(asked(server.url)) == ["Later"]
        assert names(asked(server.url, ignore="Later")) == []

    def test_a_base_url_with_a_path(self, server):
        names(asked(f"{server.url}/team/prometheus/"))

        assert server.seen[-1].path == "/team/prometheus/api/v1/alerts"


class TestNobodyKnows:
    def test_nobody_listens(self, nobody):
        assert "refused" in why_not(asked(nobody))

    def test_no_such_host(self):
        assert why_not(asked("http://prometheus.invalid"))
        assert why_not(asked("http://no..host"))

    def test_no_answer_in_time(self, server):
        server.drip = PATIENCE

        assert "timed out" in why_not(asked(server.url, timeout=1))

    def test_an_answer_that_does_not_end_in_time(self, server, monkeypatch):
        # Passed already, so that the answer is late on a fast machine, and the connection in time on a busy one.
        monkeypatch.setattr(web, "Deadline", lambda seconds: Deadline(seconds, float("-inf")))
        server.drip = 0.05

        assert f"not complete after {PATIENCE} s" in why_not(asked(server.url))

    @pytest.mark.parametrize(("code", "words"), [(503, "503 Service Unavailable"), (401, "401 Unauthorized")])
    def test_a_status_that_is_not_success(self, server, code, words):
        server.code = code

        assert words in why_not(asked(server.url))

    def test_its_message_is_reported(self, server):
        server.code = 500
        server.tell(b"", {"status": "error", "error": "out of order"})

        assert "500 Internal Server Error: out of order" in why_not(asked(server.url))

    def test_a_redirect_is_not_followed(self, server):
        server.code, server.headers = 302, {"Location": "https://login.invalid/"}

        assert "302 Found with a redirect to https://login.invalid/" in why_not(asked(server.url, token="secret-1"))
        assert len(server.seen) == 1

    @pytest.mark.parametrize("body", [b"", b"<html>Please log in</html>", b"\xff\xfe", b"[" * 100_000, b"{"])
    def test_no_json(self, server, body):
        server.tell(body)
        assert "not JSON" in why_not(asked(server.url))

        server.tell(alerts(), body)
        assert "not JSON" in why_not(asked(server.url))

    @pytest.mark.parametrize("content", [[], {}, {"status": "success", "data": {}}, {"status": "error"}])
    def test_json_without_alerts(self, server, content):
        server.tell(content)

        assert why_not(asked(server.url))

    def test_a_part_of_an_answer(self, server):
        server.headers = {"Content-Length": "100000"}

        assert why_not(asked(server.url))

    def test_an_answer_without_end(self, server, monkeypatch):
        monkeypatch.setattr(web, "_LARGEST", 1000)
        server.tell(alerts(*[FIRING] * 100))

        assert "bigger than 1000 bytes" in why_not(asked(server.url))

    def test_it_is_asked_again_each_time(self, server):
        prometheus = asked(server.url)
        server.code = 503
        assert why_not(prometheus)

        server.code = 200
        assert names(prometheus) == []


class TestOptions:
    @pytest.mark.parametrize(
        "url",
        [
            "",
            "prometheus:9090",
            "prometheus",
            "ftp://prometheus",
            "http://",
            "http:///path",
            "http://prometheus:port",
            "http://prometheus:99999",
            "http://[::1",
            "http://a b",
            "http://a\n",
            "http://prometheus/?query=1",
            "http://prometheus/#graph",
        ],
    )
    def test_what_is_no_base_url_is_refused(self, url):
        with pytest.raises(InvalidInput, match=r"alerts\.url"):
            asked(url)

    def test_a_password_in_the_url_is_refused_and_not_shown(self):
        with pytest.raises(InvalidInput, match=r"alerts\.username") as caught:
            asked("http://me:secret-1@prometheus")

        assert "secret-1" not in caught.value.message

    @pytest.mark.parametrize("token", ["secret-1 \n more", "secret-ü"])
    def test_what_is_no_token_is_refused_and_not_shown(self, token):
        with pytest.raises(InvalidInput, match=r"alerts\.token") as caught:
            asked("http://prometheus", token=token)

        assert "secret" not in caught.value.message

    @pytest.mark.parametrize("options", [{"timeout": 0}, {"only": "("}, {"ignore": "("}, {"ca_cert": "/not/there"}])
    def test_others_that_can_never_work(self, options):
        with pytest.raises(InvalidInput, match=f"alerts.{next(iter(options))}"):
            asked("https://prometheus", **options)

    def test_are_refused_before_any_cluster_is_asked(self):
        spec = node_blockers.SPEC["argument_spec"]
        given = {"name": NODE, "host": "https://127.0.0.1:1", "api_key": "a"}
        for wrong in (
            {"alerts": {"url": "nonsense"}},
            {"alerts": {"url": "http://a", "only": "("}},
            {"pods": [{"selector": " "}]},
            {"wait_timeout": -1},
            {"interval": 0},
        ):
            validation = ArgumentSpecValidator(spec).validate({**given, **wrong})
            result = run_operation(
                node_blockers.OPERATION, validation.validated_parameters, check_mode=False, warn=lambda message: None
            )
            assert result["error"] == "invalid_input", result

    @pytest.mark.parametrize(
        "options", [{"token": "a", "username": "b", "password": "c"}, {"username": "b"}, {"password": "c"}, {}]
    )
    def test_contradictions_are_refused(self, options):
        url = {"url": "http://a"} if options else {}
        spec = {"alerts": node_blockers.SPEC["argument_spec"]["alerts"]}

        assert ArgumentSpecValidator(spec).validate({"alerts": {**url, **options}}).error_messages


class TestIdentity:
    def test_none(self, server):
        names(asked(server.url))

        assert "Authorization" not in server.seen[-1].headers

    def test_token(self, server):
        names(asked(server.url, token="secret-1\n"))

        assert server.seen[-1].headers["Authorization"] == "Bearer secret-1"

    def test_password(self, server):
        names(asked(server.url, username="jö", password="a:b"))

        given = server.seen[-1].headers["Authorization"].removeprefix("Basic ")
        assert base64.b64decode(given).decode() == "jö:a:b"


class TestProxies:
    def test_of_the_environment(self, server, monkeypatch):
        monkeypatch.setenv("HTTP_PROXY", server.url)

        assert names(asked("http://prometheus.invalid:9090")) == []
        assert server.seen[-1].path == "http://prometheus.invalid:9090/api/v1/alerts"

    def test_exceptions_of_the_environment(self, server, nobody, monkeypatch):
        monkeypatch.setenv("HTTP_PROXY", nobody)
        assert why_not(asked(server.url))

        monkeypatch.setenv("NO_PROXY", "example.com,127.0.0.0/8")
        assert names(asked(server.url)) == []


class TestTls:
    @pytest.fixture
    def certificate(self, tmp_path):
        """A self-signed one, with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "prometheus")])
        now = datetime.datetime.now(datetime.timezone.utc)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
            .sign(key, hashes.SHA256())
        )
        path = tmp_path / "tls.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + made.public_bytes(serialization.Encoding.PEM)
        )
        return path

    @pytest.fixture
    def secure(self, certificate):
        server = Server()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.url = server.url.replace("http:", "https:")
        yield from prometheus(server)

    def test_a_server_that_nobody_vouches_for_blocks(self, secure):
        assert "certificate" in why_not(asked(secure.url)).lower()

    def test_the_certificate_s_authority(self, secure, certificate):
        assert names(asked(secure.url, ca_cert=str(certificate))) == []

    @pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
    def test_not_to_be_verified(self, secure):
        assert names(asked(secure.url, validate_certs=False)) == []

    def test_a_file_without_certificates_is_refused(self, tmp_path):
        path = tmp_path / "ca.pem"
        path.write_text("nothing")
        with pytest.raises(InvalidInput, match=r"alerts\.ca_cert"):
            asked("https://prometheus", ca_cert=str(path))

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificates and the key of a kubeconfig, against a server that asks for them."""

from __future__ import annotations

import base64
import ssl
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from kubernetes import config
from kubernetes.client import Configuration
from unit.serving import serving

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import cluster as api_cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import connection
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.connection import connect
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import InvalidInput, Unreachable
from lab.certificates import Authority, Pair, kubeconfig, kubeconfig_text
from lab.patience import PATIENCE


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        subject = dict(pair[0] for pair in self.connection.getpeercert()["subject"])  # type: ignore[attr-defined]
        self.server.seen.append(subject["commonName"])  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"kind": "Thing"}')


@pytest.fixture(autouse=True)
def _long_requests(monkeypatch):
    """On a busy machine, a handshake may take longer than the seconds for a connection."""
    monkeypatch.setattr(api_cluster, "Timeout", lambda **_seconds: PATIENCE)


@pytest.fixture
def authority(tmp_path) -> Authority:
    folder = tmp_path / "authority"
    folder.mkdir()
    return Authority(folder)


@pytest.fixture
def server(authority) -> Iterator[Any]:
    """Knows a user by the client certificate, as an API server does."""
    authority.server("server", ["localhost"], ["127.0.0.1"]).write(authority.directory, "server")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.directory / "ca.crt"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(authority.directory / "server.crt", authority.directory / "server.key")
    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
    httpd.seen = []  # type: ignore[attr-defined]
    httpd.url = f"https://127.0.0.1:{httpd.server_address[1]}"  # type: ignore[attr-defined]
    with serving(httpd):
        yield httpd


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    """The temporary directory of this process, empty at first."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def options(content: bytes) -> dict[str, Any]:
    return {"kubeconfig": yaml.safe_load(content), "api_timeout": 0}


def data(text: bytes) -> str:
    return base64.b64encode(text).decode()


def test_no_key_stays_in_the_temporary_directory(server, authority, temporary):
    # The second client has the same content: the library remembers the files that it has written.
    for _client in range(2):
        cluster = Cluster(options(kubeconfig(server.url, authority.certificate, authority.client("jo"))))
        assert not list(temporary.iterdir())
        cluster.get("/version")

    assert server.seen == ["jo", "jo"]
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_other_users_of_the_library_in_this_process_keep_their_files(server, authority, temporary, first):
    content = yaml.safe_load(kubeconfig(server.url, authority.certificate, authority.client("jo")))
    if first == "ours":
        Cluster({"kubeconfig": content})
    theirs = Configuration()
    config.load_kube_config_from_dict(content, client_configuration=theirs)
    Cluster({"kubeconfig": content})

    assert {Path(theirs.ssl_ca_cert), Path(theirs.cert_file), Path(theirs.key_file)} == set(temporary.iterdir())
    config.load_kube_config_from_dict(content, client_configuration=theirs)
    assert len(list(temporary.iterdir())) == 3


def test_two_threads_do_not_share_their_files(server, authority, temporary, monkeypatch):
    # As two event sources in one process do.
    keep = connection._keep_in_memory

    def slow(*arguments):
        time.sleep(0.2)
        keep(*arguments)

    monkeypatch.setattr(connection, "_keep_in_memory", slow)
    given = options(kubeconfig(server.url, authority.certificate, authority.client("jo")))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(Cluster, given)
        second = pool.submit(Cluster, given)
        for cluster in (first.result(), second.result()):
            cluster.get("/version")

    assert server.seen == ["jo", "jo"]
    assert not list(temporary.iterdir())


def test_a_certificate_in_a_file_may_change(server, authority, tmp_path, temporary):
    authority.client("before").write(tmp_path, "user")
    user = {"client-certificate": str(tmp_path / "user.crt"), "client-key": str(tmp_path / "user.key")}
    cluster = Cluster(options(kubeconfig_text(_with_authority(server, authority), user)))
    cluster.get("/version")
    authority.client("after").write(tmp_path, "user")
    cluster.get("/version")

    assert server.seen == ["before", "after"]


def test_an_authority_in_a_file(server, authority, temporary):
    pair = authority.client("jo")
    user = {"client-certificate-data": data(pair.certificate), "client-key-data": data(pair.key)}
    cluster = {"server": server.url, "certificate-authority": str(authority.directory / "ca.crt")}
    Cluster(options(kubeconfig_text(cluster, user))).get("/version")

    assert server.seen == ["jo"]


def test_a_server_of_another_authority_is_refused(server, tmp_path, temporary):
    other = Authority(tmp_path)
    cluster = Cluster(options(kubeconfig(server.url, other.certificate, other.client("jo"))))

    with pytest.raises(Unreachable, match="certificate verify failed"):
        cluster.get("/version")
    assert server.seen == []


def test_a_server_is_not_verified_if_the_kubeconfig_says_so(server, authority, temporary):
    pair = authority.client("jo")
    user = {"client-certificate-data": data(pair.certificate), "client-key-data": data(pair.key)}
    cluster: dict[str, Any] = {"server": server.url, "insecure-skip-tls-verify": True}
    Cluster(options(kubeconfig_text(cluster, user))).get("/version")

    assert server.seen == ["jo"]


class TestRefused:
    def test_an_authority_that_is_no_certificate(self, authority, temporary):
        self._refused(kubeconfig("https://one.example", b"no PEM", authority.client("jo")), temporary)

    def test_the_key_of_another_certificate(self, authority, temporary):
        pair = Pair(authority.client("jo").certificate, authority.client("jo").key)
        self._refused(kubeconfig("https://one.example", authority.certificate, pair), temporary)

    def test_a_key_with_a_password(self, authority, temporary):
        pair = authority.client("jo")
        key = serialization.load_pem_private_key(pair.key, None).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
        self._refused(kubeconfig("https://one.example", authority.certificate, Pair(pair.certificate, key)), temporary)

    @staticmethod
    def _refused(content: bytes, temporary: Path) -> None:
        with pytest.raises(InvalidInput, match=r"in the kubeconfig can't be used: .*Give PEM"):
            connect(options(content))
        assert not list(temporary.iterdir())


def _with_authority(server: Any, authority: Authority) -> dict[str, str]:
    return {"server": server.url, "certificate-authority-data": data(authority.certificate)}

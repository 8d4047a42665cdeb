# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the common options, and their environment variables, to requests."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from unit.serving import serving

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import cluster as api_cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import connection
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import NAMES, auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.connection import connect
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import (
    ApiFailure,
    HoldfastError,
    InvalidInput,
    MissingLibrary,
    NotFound,
    Unreachable,
)
from lab.patience import PATIENCE


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path):
    """Nothing of this machine's own ways to a cluster."""
    for name in [name for name in os.environ if name.startswith("K8S_AUTH_") or name == "KUBECONFIG"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.server.seen.append(self)  # type: ignore[attr-defined]
        code, body, headers = self.server.answer  # type: ignore[attr-defined]
        if self.server.valid not in ("", self.headers["Authorization"]):  # type: ignore[attr-defined]
            code = 401
        self.send_response(code)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()


@pytest.fixture
def server() -> Iterator[Any]:
    """Shows what a client sends."""
    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    httpd.seen = []  # type: ignore[attr-defined]
    httpd.answer = (200, b'{"kind": "Thing"}', {})  # type: ignore[attr-defined]
    # The only valid value of the header Authorization; empty if each one is valid.
    httpd.valid = ""  # type: ignore[attr-defined]
    httpd.url = f"http://127.0.0.1:{httpd.server_address[1]}"  # type: ignore[attr-defined]
    with serving(httpd):
        yield httpd


def kubeconfig(host="https://one.example:6443", name="one", token="secret-of-one"):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": host}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def validated(**arguments):
    validation = ArgumentSpecValidator(auth_options()).validate(arguments)
    assert not validation.error_messages
    return {name: validation.validated_parameters.get(name) for name in NAMES}


def headers_of(server, options):
    Cluster(options).get("/version")
    return server.seen[-1].headers


class TestKubeconfig:
    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(kubeconfig()))
        return path

    def test_path(self, path):
        assert connect({"kubeconfig": str(path)}).configuration.host == "https://one.example:6443"

    def test_path_in_the_home(self, path, monkeypatch):
        monkeypatch.setenv("HOME", str(path.parent))

        assert connect({"kubeconfig": "~/config"}).configuration.host == "https://one.example:6443"

    def test_dict(self):
        given = kubeconfig()
        client = connect({"kubeconfig": given})

        assert client.configuration.host == "https://one.example:6443"
        assert given == kubeconfig(), "the user's own dict was changed"

    def test_content_as_text(self):
        assert connect({"kubeconfig": json.dumps(kubeconfig())}).configuration.host == "https://one.example:6443"
        with pytest.raises(InvalidInput) as caught:
            connect({"kubeconfig": '{"users": "secret-of-one'})
        assert "secret-of-one" not in caught.value.message

    @pytest.mark.parametrize("as_list", [True, False])
    def test_several_paths_are_merged(self, path, tmp_path, as_list):
        second = tmp_path / "second"
        second.write_text(yaml.safe_dump(kubeconfig("https://two.example", "two")))
        paths = [str(path), str(second)] if as_list else f"{path}{os.pathsep}{second}"

        assert connect({"kubeconfig": paths, "context": "one"}).configuration.host == "https://one.example:6443"
        assert connect({"kubeconfig": paths, "context": "two"}).configuration.host == "https://two.example"

    def test_variable_of_kubectl(self, path, monkeypatch):
        monkeypatch.setenv("KUBECONFIG", str(path))

        assert connect({}).configuration.host == "https://one.example:6443"

    def test_default_place(self, tmp_path):
        place = tmp_path / "home/.kube/config"
        place.parent.mkdir(parents=True)
        place.write_text(yaml.safe_dump(kubeconfig("https://home.example")))

        assert connect({}).configuration.host == "https://home.example"

    def test_the_host_beats_it_in_each_request(self, server):
        cluster = Cluster({"kubeconfig": kubeconfig("http://one.invalid"), "host": server.url})
        cluster.get("/version")
        cluster.get("/version")

        assert [seen.headers["Authorization"] for seen in server.seen] == ["Bearer secret-of-one"] * 2

    def test_options_beat_it(self, path):
        client = connect({"kubeconfig": str(path), "host": "https://other.example/", "validate_certs": False})

        assert client.configuration.host == "https://other.example"
        assert client.configuration.verify_ssl is False


class TestBadInput:
    @pytest.mark.parametrize(
        "content", ["", "just text", "[1, 2]", "a: [", "{}", "apiVersion: v1\ncurrent-context: gone\ncontexts: []\n"]
    )
    def test_file_that_is_not_a_kubeconfig(self, tmp_path, content):
        path = tmp_path / "broken"
        path.write_text(content)

        with pytest.raises(InvalidInput, match="Set kubeconfig") as caught:
            connect({"kubeconfig": str(path)})
        assert str(path) in caught.value.message

    def test_file_that_is_not_there(self):
        with pytest.raises(InvalidInput, match="/not/there"):
            connect({"kubeconfig": "/not/there"})

    @pytest.mark.parametrize("value", [{}, {"clusters": 1}, {**kubeconfig(), "current-context": "gone"}])
    def test_dict_that_is_none(self, value):
        with pytest.raises(InvalidInput, match="the given content"):
            connect({"kubeconfig": value, "context": "gone"})

    def test_context_that_is_not_there(self):
        with pytest.raises(InvalidInput, match="nowhere"):
            connect({"kubeconfig": kubeconfig(), "context": "nowhere"})

    def test_a_value_of_another_type(self):
        with pytest.raises(HoldfastError, match="not int"):
            connect({"kubeconfig": 5})

    def test_an_invalid_kubeconfig_is_not_hidden_by_host(self):
        with pytest.raises(InvalidInput):
            connect({"kubeconfig": "/not/there", "host": "https://other.example"})

    def test_nothing_at_all(self):
        with pytest.raises(InvalidInput, match="K8S_AUTH_KUBECONFIG"):
            connect({})


def test_an_old_library_is_named(monkeypatch):
    monkeypatch.setattr(connection.kubernetes, "__version__", "30.1.0")
    with pytest.raises(MissingLibrary, match=r"kubernetes is version 30\.1\.0.*31 or later is needed"):
        connect({"host": "https://one.example", "api_key": "abc"})


class TestIdentity:
    def test_api_key(self, server):
        assert headers_of(server, {"host": server.url, "api_key": "abc"})["Authorization"] == "Bearer abc"

    def test_username_and_password(self, server):
        headers = headers_of(server, {"host": server.url, "username": "me", "password": "p:ss"})

        assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"me:p:ss"

    def test_api_key_beats_the_kubeconfig(self, server):
        headers = headers_of(server, {"kubeconfig": kubeconfig(server.url), "api_key": "abc"})

        assert headers["Authorization"] == "Bearer abc"

    def test_token_of_the_kubeconfig(self, server):
        assert headers_of(server, {"kubeconfig": kubeconfig(server.url)})["Authorization"] == "Bearer secret-of-one"

    def test_a_line_break_at_the_end_of_a_token_is_left_out(self, server, tmp_path):
        path = tmp_path / "token"
        path.write_text("from-file\n")
        given = kubeconfig(server.url)
        given["users"][0]["user"] = {"tokenFile": str(path)}

        assert headers_of(server, {"host": server.url, "api_key": "abc\n"})["Authorization"] == "Bearer abc"
        assert headers_of(server, {"kubeconfig": given})["Authorization"] == "Bearer from-file"

    def test_credentials_that_have_expired_are_read_again_but_not_too_often(self, server, tmp_path, monkeypatch):
        monkeypatch.setattr(api_cluster, "_CREDENTIALS_EVERY", PATIENCE)
        path = tmp_path / "token"
        path.write_text("old")
        given = kubeconfig(server.url)
        given["users"][0]["user"] = {"tokenFile": str(path)}
        cluster = Cluster({"kubeconfig": given, "api_timeout": 0})
        server.valid = "Bearer new"
        cluster._connected -= 2 * PATIENCE
        for _request in range(2):
            with pytest.raises(ApiFailure, match="401"):
                cluster.get("/version")
        path.write_text("new")
        cluster._connected -= 2 * PATIENCE
        cluster.get("/version")

        sent = [seen.headers["Authorization"].split()[1] for seen in server.seen]
        assert sent == ["old", "old", "old", "old", "new"]

    def test_a_request_is_sent_again_if_another_thread_has_read_new_credentials(self, server, tmp_path, monkeypatch):
        path = tmp_path / "token"
        path.write_text("old")
        given = kubeconfig(server.url)
        given["users"][0]["user"] = {"tokenFile": str(path)}
        cluster = Cluster({"kubeconfig": given, "api_timeout": 0})
        server.valid = "Bearer new"
        send = cluster._send_once

        def late(*arguments: Any, **options: Any) -> Any:
            answer = send(*arguments, **options)
            if path.read_text() == "old":
                path.write_text("new")
                cluster._client = connect(cluster._options)
            return answer

        monkeypatch.setattr(cluster, "_send_once", late)
        cluster.get("/version")

        assert [seen.headers["Authorization"].split()[1] for seen in server.seen] == ["old", "new"]

    @pytest.mark.parametrize("token", ["sec\nret", "sec\rret", "secr\u00e9t", "sec\x00ret"])
    def test_a_token_with_a_character_that_is_not_allowed_is_refused_and_not_shown(self, server, token):
        with pytest.raises(InvalidInput, match="another character that is not allowed") as caught:
            headers_of(server, {"host": server.url, "api_key": token})
        assert "sec" not in caught.value.message
        assert server.seen == []

    def test_impersonation_with_two_groups(self, server):
        options = {"host": server.url, "api_key": "a", "impersonate_user": "jo", "impersonate_groups": ["ops", "dev"]}
        headers = headers_of(server, options)

        assert headers["Impersonate-User"] == "jo"
        assert headers.get_all("Impersonate-Group") == ["ops", "dev"]

    def test_client_certificate_needs_no_kubeconfig(self, tmp_path):
        client = connect({"host": "http://x.example", "client_cert": "cert", "client_key": "key"})

        assert (client.configuration.cert_file, client.configuration.key_file) == ("cert", "key")

    def test_proxy_gets_the_request_and_its_own_headers(self, server):
        options = {
            "host": "http://cluster.invalid",
            "api_key": "abc",
            "proxy": server.url,
            "proxy_headers": {"proxy_basic_auth": "u:p", "basic_auth": None, "user_agent": None},
        }
        headers = headers_of(server, options)

        assert server.seen[-1].path == "http://cluster.invalid/version"
        assert headers["Proxy-Authorization"].startswith("Basic ")
        assert headers["Authorization"] == "Bearer abc"

    @pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
    def test_proxies_of_the_environment_are_ignored(self, server, monkeypatch, variable):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")

        assert headers_of(server, {"host": server.url, "api_key": "abc"})
        assert headers_of(server, {"kubeconfig": kubeconfig(server.url)})

    def test_no_proxy(self, server):
        options = {"host": server.url, "api_key": "abc", "proxy": "http://proxy.invalid:1", "no_proxy": "127.0.0.1"}

        assert headers_of(server, options)


class TestEnvironment:
    @pytest.mark.parametrize(
        ("variable", "value", "option", "expected"),
        [
            ("K8S_AUTH_KUBECONFIG", "/a", "kubeconfig", "/a"),
            ("K8S_AUTH_CONTEXT", "c", "context", "c"),
            ("K8S_AUTH_HOST", "https://x", "host", "https://x"),
            ("K8S_AUTH_API_KEY", "k", "api_key", "k"),
            ("K8S_AUTH_USERNAME", "u", "username", "u"),
            ("K8S_AUTH_PASSWORD", "p", "password", "p"),
            ("K8S_AUTH_VERIFY_SSL", "no", "validate_certs", False),
            ("K8S_AUTH_VALIDATE_CERTS", "no", "validate_certs", False),
            ("K8S_AUTH_SSL_CA_CERT", "/ca", "ca_cert", "/ca"),
            ("K8S_AUTH_CERT_FILE", "/crt", "client_cert", "/crt"),
            ("K8S_AUTH_KEY_FILE", "/key", "client_key", "/key"),
            ("K8S_AUTH_PROXY", "http://p", "proxy", "http://p"),
            ("K8S_AUTH_NO_PROXY", "x", "no_proxy", "x"),
            ("K8S_AUTH_PROXY_HEADERS_USER_AGENT", "me", "proxy_headers", {"user_agent": "me"}),
            ("K8S_AUTH_API_TIMEOUT", "7", "api_timeout", 7),
            ("K8S_AUTH_IMPERSONATE_USER", "jo", "impersonate_user", "jo"),
            ("K8S_AUTH_IMPERSONATE_GROUPS", "a,b", "impersonate_groups", ["a", "b"]),
        ],
    )
    def test_each_option(self, monkeypatch, variable, value, option, expected):
        monkeypatch.setenv(variable, value)
        found = validated()[option]
        if isinstance(found, dict):
            found = {key: value for key, value in found.items() if value is not None}

        assert found == expected

    def test_options_beat_variables(self, monkeypatch):
        monkeypatch.setenv("K8S_AUTH_HOST", "https://variable")

        assert validated(host="https://option")["host"] == "https://option"

    def test_as_awx_gives_them(self, monkeypatch, server):
        monkeypatch.setenv("K8S_AUTH_HOST", server.url)
        monkeypatch.setenv("K8S_AUTH_API_KEY", "of-awx")
        monkeypatch.setenv("K8S_AUTH_VERIFY_SSL", "False")

        assert headers_of(server, validated())["Authorization"] == "Bearer of-awx"

    @pytest.mark.parametrize("name", ["kubeconfig", "api_key", "password"])
    def test_secrets_are_marked(self, name):
        assert auth_options()[name]["no_log"] is True


class TestRequests:
    @pytest.fixture
    def cluster(self, server):
        return Cluster({"host": server.url, "api_key": "abc", "api_timeout": 0})

    def test_the_server_s_words_are_reported(self, server, cluster):
        body = {"kind": "Status", "reason": "TooManyRequests", "message": "slow down", "details": {"causes": [{}]}}
        server.answer = (429, json.dumps(body).encode(), {"Retry-After": "3"})
        with pytest.raises(ApiFailure, match="slow down") as caught:
            cluster.create("/x", {})

        error = caught.value
        assert (error.status, error.reason, error.retry_after, error.causes) == (429, "TooManyRequests", 3.0, [{}])
        assert len(server.seen) == 1, "tried again, though api_timeout is 0"

    def test_an_answer_that_is_not_a_status(self, server, cluster):
        server.answer = (502, b"<html>Bad Gateway</html>", {})

        with pytest.raises(ApiFailure, match="Bad Gateway"):
            cluster.create("/x", {})

    @pytest.mark.parametrize("body", [b"", b"<html>Welcome</html>", b'{"status": "ok"}', b"[]", b"null", b'"ok"'])
    def test_an_answer_of_something_else_is_not_taken_for_an_empty_list(self, server, cluster, body):
        server.answer = (200, body, {})

        for ask in (
            cluster.get,
            cluster.find,
            lambda path: list(cluster.items(path)),
            lambda path: list(cluster.rows(path)),
        ):
            with pytest.raises(ApiFailure, match="is not an object of Kubernetes"):
                ask("/apis/coordination.k8s.io/v1/leases")

    def test_an_error_of_something_else_is_reported(self, server, cluster):
        server.answer = (503, b'["maintenance"]', {})

        with pytest.raises(ApiFailure, match="maintenance"):
            cluster.get("/x")

    def test_not_found(self, server, cluster):
        server.answer = (404, b"{}", {})

        assert cluster.find("/x") is None
        with pytest.raises(NotFound):
            cluster.get("/x")

    def test_dry_run_marks_writes_and_no_reads(self, server):
        cluster = Cluster({"host": server.url, "api_key": "abc"}, dry_run=True)
        cluster.get("/x")
        cluster.create("/x", {})
        cluster.delete("/x")

        assert ["dryRun=All" in seen.path for seen in server.seen] == [False, True, True]

    def test_the_clock_is_learned_by_asking(self, server, cluster):
        server.answer = (200, b"{}", {})

        assert cluster.now().tzinfo is not None
        assert cluster.requests == 1

    def test_no_server_answers(self, server):
        cluster = Cluster({"host": "http://127.0.0.1:1", "api_key": "abc", "api_timeout": 0})

        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
            cluster.get("/x")

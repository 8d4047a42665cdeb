# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for metal3's validating webhook, limited to reboot annotations. Not every cluster has it."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ..certificates import Authority
from .reboot_keys import complaints

_PATH = "/validate-metal3-io-v1alpha1-baremetalhost"
_NAME = "baremetalhost.metal3.io"


def review(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer. It checks all annotations, also those that were there before."""
    annotations = request["object"]["metadata"].get("annotations") or {}
    found = complaints(annotations)
    answer: dict[str, Any] = {"uid": request["uid"], "allowed": not found}
    if found:
        text = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
        answer["status"] = {"code": 403, "reason": "Forbidden", "message": text}
    return answer


def configuration(namespace: str, port: int, authority: bytes) -> dict[str, Any]:
    """The configuration for the hosts of one namespace."""
    hook = {
        "name": _NAME,
        "clientConfig": {
            "url": f"https://127.0.0.1:{port}{_PATH}",
            "caBundle": base64.b64encode(authority).decode(),
        },
        "rules": [
            {
                "apiGroups": ["metal3.io"],
                "apiVersions": ["v1alpha1"],
                "resources": ["baremetalhosts"],
                "operations": ["CREATE", "UPDATE"],
            }
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"lab-{namespace}"},
        "webhooks": [hook],
    }


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"apiVersion": asked["apiVersion"], "kind": asked["kind"], "response": review(asked["request"])}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Log nothing: no one reads it."""


@contextlib.contextmanager
def serving(pki: Path, folder: Path) -> Iterator[int]:
    """Serve on a free loopback port, with a certificate of the lab's authority; yield the port."""
    Authority(pki).server("webhook", [], ["127.0.0.1"]).write(folder, "webhook")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "webhook.crt", folder / "webhook.key")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

# This is a stand-in for the API of AWX, which can not run in a test: it keeps objects in memory for awx.awx.
# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of AWX's REST API that the modules of awx.awx use: lists with filters, objects, associations, surveys."""

from __future__ import annotations

import itertools
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN = "the-right-token"
_PATH = re.compile(r"/api/v2/(?P<kind>\w+)/(?:(?P<id>\d+)/(?:(?P<sub>\w+)/)?)?")
# AWX returns these fields even if nobody has set them.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "job_templates": {"survey_enabled": False, "extra_vars": "", "execution_environment": None},
    "workflow_job_templates": {"survey_enabled": False, "extra_vars": ""},
    "workflow_job_template_nodes": {"all_parents_must_converge": False, "job_type": None, "job_slice_count": None},
}
_BELOW = {
    "job_templates": ("survey_spec", "credentials"),
    "workflow_job_templates": ("survey_spec",),
    "workflow_job_template_nodes": ("create_approval_template", "success_nodes", "always_nodes"),
}
_UNIFIED = ("job_templates", "workflow_job_templates", "workflow_approval_templates")


class Awx:
    """The server and its objects; each kind has its list."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[int, dict[str, Any]]] = {}
        self.links: dict[tuple[str, int, str], list[int]] = {}
        self.surveys: dict[tuple[str, int], dict[str, Any]] = {}
        self.writes: list[str] = []
        self.refused = 0
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}") if length else {}
                with outer._lock:
                    status, answer = outer._answer(self.command, self.path, body, self.headers.get("Authorization", ""))
                content = json.dumps(answer).encode() if answer is not None else b""
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("X-API-Product-Name", "AWX")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

            def log_message(self, *_arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def create(self, kind: str, /, **fields: Any) -> dict[str, Any]:
        """Create an object, as a person does in AWX."""
        number = next(self._ids)
        url = f"/api/v2/{kind}/{number}/"
        related = {"survey_spec": f"{url}survey_spec/"}
        if fields.get("unified_job_template"):
            related["unified_job_template"] = self._unified(fields["unified_job_template"])["url"]
        found = {"id": number, "type": kind[:-1], "url": url, "related": related, **_DEFAULTS.get(kind, {}), **fields}
        self.objects.setdefault(kind, {})[number] = found
        return found

    def named(self, kind: str) -> dict[str, dict[str, Any]]:
        """The objects of a kind by their names."""
        return {item.get("name") or item["identifier"]: item for item in self.objects.get(kind, {}).values()}

    def linked(self, item: dict[str, Any], sub: str) -> list[dict[str, Any]]:
        """The objects that are associated with one."""
        kind = "credentials" if sub == "credentials" else "workflow_job_template_nodes"
        own = f"{item['type']}s"
        return [self.objects[kind][number] for number in self.links.get((own, item["id"], sub), [])]

    def survey(self, item: dict[str, Any]) -> dict[str, Any]:
        return self.surveys.get((f"{item['type']}s", item["id"]), {})

    def _unified(self, number: int) -> dict[str, Any]:
        return next(self.objects[kind][number] for kind in _UNIFIED if number in self.objects.get(kind, {}))

    def _answer(self, method: str, path: str, body: dict[str, Any], authorization: str) -> tuple[int, Any]:
        if authorization != f"Bearer {TOKEN}":
            self.refused += 1
            return 401, {"detail": "Authentication credentials were not provided."}
        parts = urlsplit(path)
        found = _PATH.fullmatch(parts.path)
        if not found:
            return 404, {"detail": "Not found."}
        if method != "GET":
            self.writes.append(f"{method} {parts.path}")
        kind, number, sub = found["kind"], int(found["id"] or 0), found["sub"]
        if not number:
            return self._collection(method, kind, body, dict(parse_qsl(parts.query)))
        if number not in self.objects.get(kind, {}):
            return 404, {"detail": "Not found."}
        if sub and sub not in _BELOW.get(kind, ()):
            return 404, {"detail": "Not found."}
        if sub:
            return self._below(method, kind, number, sub, body)
        return self._single(method, kind, number, body)

    def _collection(self, method: str, kind: str, body: dict[str, Any], query: dict[str, str]) -> tuple[int, Any]:
        if method == "POST":
            return 201, self.create(kind, **body)
        kinds = _UNIFIED if kind == "unified_job_templates" else (kind,)
        every = [item for name in kinds for item in self.objects.get(name, {}).values()]
        results = [item for item in every if all(str(item.get(key)) == value for key, value in query.items())]
        return 200, {"count": len(results), "next": None, "previous": None, "results": results}

    def _single(self, method: str, kind: str, number: int, body: dict[str, Any]) -> tuple[int, Any]:
        if method == "DELETE":
            del self.objects[kind][number]
            if kind == "workflow_job_templates":
                nodes = self.objects.get("workflow_job_template_nodes", {})
                for node in [item for item in nodes.values() if item["workflow_job_template"] == number]:
                    del nodes[node["id"]]
            return 204, None
        if method == "PATCH":
            self.objects[kind][number].update(body)
        return 200, self.objects[kind][number]

    def _below(self, method: str, kind: str, number: int, sub: str, body: dict[str, Any]) -> tuple[int, Any]:
        if sub == "survey_spec":
            if method == "POST":
                if not body["spec"]:
                    return 400, {"error": "'spec' doesn't contain any items."}
                self.surveys[kind, number] = body
            if method == "DELETE":
                self.surveys.pop((kind, number), None)
            return 200, self.surveys.get((kind, number), {})
        if sub == "create_approval_template":
            made = self.create("workflow_approval_templates", **body)
            node = self.objects[kind][number]
            node["unified_job_template"] = made["id"]
            node["related"]["unified_job_template"] = made["url"]
            return 201, made
        linked = self.links.setdefault((kind, number, sub), [])
        if method == "GET":
            return 200, {"count": len(linked), "next": None, "previous": None, "results": [{"id": at} for at in linked]}
        if body.get("disassociate"):
            linked.remove(body["id"])
        else:
            linked.append(body["id"])
        return 204, None

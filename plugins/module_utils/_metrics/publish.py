# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Publish the metrics of a cluster: to a file for node_exporter, and to a push gateway."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile

from .._api.errors import HoldfastError
from .._api.runner import Context, Params, Result
from .._api.web import RequestFailed, WebServer
from .._doctor.doctor import take_snapshot
from .._doctor.rules import examine
from .._holds.leases import list_holds
from . import rules

_EXAMPLE = "the base URL of a push gateway, for example http://pushgateway.monitoring:9091"
_JOB = "/metrics/job/"
_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class NotPublished(HoldfastError):
    """The metrics could not be written or sent."""

    kind = "not_published"


def metrics(context: Context, params: Params) -> Result:
    """Publish the metrics; see the module of the same name."""
    wanted = params.get("file") or params.get("pushgateway")
    if not wanted and params["best_effort"]:
        return {"changed": False, "metrics": ""}
    try:
        text = rules.text(_facts(context, params))
        if params.get("pushgateway"):
            _push(params, text)
        if params.get("file"):
            _write(Path(params["file"]).expanduser(), text)
    except HoldfastError as error:
        if not params["best_effort"]:
            raise
        context.warn(f"The metrics are not published: {error.message}")
        text = ""
    # Metrics describe the cluster. To publish them changes nothing in it, so check mode does it, too.
    return {"changed": False, "metrics": text}


def _facts(context: Context, params: Params) -> rules.Facts:
    snapshot = take_snapshot(context.cluster)
    return rules.Facts(
        snapshot,
        findings=examine(snapshot),
        holds=list_holds(context.cluster, None, None),
        results=params["results"],
        operation=params.get("operation") or "",
        run=params.get("run") or "",
    )


def _push(params: Params, text: str) -> None:
    server = WebServer(params["pushgateway"], "pushgateway", _EXAMPLE)
    path = "" if _JOB in server.url else f"{_JOB}holdfast"
    try:
        # PUT replaces all metrics of the job, so those of nodes that are gone do not stay.
        server.send("PUT", path, text.encode(), _TYPE)
    except RequestFailed as error:
        raise NotPublished(f"{server.url}{error}. Check pushgateway.") from error


def _write(path: Path, text: str) -> None:
    """Replace the file in one step: the collector never reads half of it."""
    fresh = ""
    try:
        with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8") as file:
            fresh = file.name
            file.write(text)
        # The collector does not run as root.
        os.chmod(fresh, 0o644)
        os.replace(fresh, path)
    except OSError as error:
        if fresh and os.path.exists(fresh):
            os.unlink(fresh)
        raise NotPublished(f"Can't write {path}: {error.strerror}. Set another file.") from error

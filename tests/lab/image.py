# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one container image of the lab: busybox, as a docker archive, which needs no registry."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

from .commands import run

NAME = "localhost/lab/app:1"
BUSYBOX = Path("/bin/busybox")
# The first process of a container ignores SIGTERM unless it handles it.
COMMAND = ["/bin/sh", "-c", "trap 'exit 0' TERM INT; sleep infinity & wait"]


def make(archive: Path) -> None:
    """Write the archive if it is missing."""
    if archive.exists():
        return
    layer = _layer(BUSYBOX.read_bytes(), run([BUSYBOX, "--list"]).split())
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps(
        {
            "architecture": run(["dpkg", "--print-architecture"]).strip(),
            "os": "linux",
            "config": {"Cmd": COMMAND, "Env": ["PATH=/bin"], "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "history": [{"created_by": "holdfast lab"}],
        }
    ).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    layer_name = f"{digest}/layer.tar"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [NAME], "Layers": [layer_name]}]).encode()
    temporary = archive.with_name(archive.name + ".new")
    with tarfile.open(temporary, "w") as tar:
        for name, data in ((config_name, config), (layer_name, layer), ("manifest.json", manifest)):
            tar.addfile(_file(name, len(data), 0o644), io.BytesIO(data))
    temporary.rename(archive)


def _layer(busybox: bytes, applets: list[str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, mode in (("bin", 0o755), ("etc", 0o755), ("root", 0o700), ("tmp", 0o1777)):
            tar.addfile(_entry(name, tarfile.DIRTYPE, mode))
        tar.addfile(_file("bin/busybox", len(busybox), 0o755), io.BytesIO(busybox))
        for applet in sorted(set(applets) - {"busybox"}):
            link = _entry(f"bin/{applet}", tarfile.SYMTYPE, 0o777)
            link.linkname = "busybox"
            tar.addfile(link)
        passwd = b"root:x:0:0:root:/root:/bin/sh\n"
        tar.addfile(_file("etc/passwd", len(passwd), 0o644), io.BytesIO(passwd))
    return buffer.getvalue()


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, mode
    return entry


def _file(name: str, size: int, mode: int) -> tarfile.TarInfo:
    entry = _entry(name, tarfile.REGTYPE, mode)
    entry.size = size
    return entry

# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Access to the API with the kubelet's kubeconfig and client certificate, which rotates."""

from __future__ import annotations

import base64
import binascii
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .config import Config
from .store import RUNTIME_DIRECTORY, write


class AccessError(Exception):
    """The kubeconfig or a certificate is missing or wrong."""


@dataclass(frozen=True)
class Access:
    """The API server, and the identity of the agent there."""

    server: str
    certificate: str
    key: str
    authority: str = ""
    authority_data: str = ""
    server_name: str = ""

    def context(self) -> ssl.SSLContext:
        """Read the files.

        Raises:
            AccessError: A file can't be read, or is not a certificate or key.
        """
        try:
            context = ssl.create_default_context(cafile=self.authority or None, cadata=self.authority_data or None)
            # urllib3 then compares the names itself, and IP addresses too: tests/unit/agent/test_agent_api.py.
            context.check_hostname = False
            # Python 3.13 is stricter than the kubelet, and refuses the certificates of many clusters.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ValueError) as error:
            files = ", ".join(sorted({path for path in (self.authority, self.certificate, self.key) if path}))
            raise AccessError(f"The certificates can't be read ({error}): {files}") from error
        return context


Signature = tuple[tuple[str, int, int], ...]


def signature(config: Config, access: Access | None) -> Signature:
    """Changes when one of the files changes, or the target of a link."""
    paths = [config.kubeconfig or config.certificate_authority]
    if access:
        paths += [access.authority, access.certificate, access.key]
    found = []
    for path in sorted({path for path in paths if path}):
        try:
            state = Path(path).stat()
        except OSError:
            continue
        found.append((path, state.st_mtime_ns, state.st_ino))
    return tuple(found)


def access_of(config: Config) -> Access:
    """The access that the configuration describes.

    Raises:
        AccessError: The kubeconfig is missing or can't be used.
    """
    if config.server:
        return Access(config.server, config.client_certificate, config.client_key, config.certificate_authority)
    path = Path(config.kubeconfig)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        context = _named(content, "contexts", "context", content["current-context"])
        cluster = _named(content, "clusters", "cluster", context["cluster"])
        user = _named(content, "users", "user", context["user"])
        return _access(path, cluster, user)
    except FileNotFoundError as error:
        raise AccessError(
            f"There is no {path}: the node has not joined a cluster yet, or the setting kubeconfig is wrong."
        ) from error
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise AccessError(f"{path} can't be used as a kubeconfig ({error!r}).") from error


def _named(content: dict[str, Any], many: str, one: str, name: str) -> dict[str, Any]:
    for item in content[many]:
        if item["name"] == name:
            return dict(item[one])
    raise ValueError(f"no {one} is named {name}")


def _access(path: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Access:
    if not str(cluster["server"]).startswith("https://"):
        raise AccessError(f"{path}: the server must have an https URL, it is {cluster['server']!r}.")
    for key in ("insecure-skip-tls-verify", "proxy-url"):
        if cluster.get(key):
            raise AccessError(f"{path}: {key} is not supported.")
    certificate = _file(path, user, "client-certificate")
    key_file = _file(path, user, "client-key")
    if not certificate or not key_file:
        raise AccessError(
            f"{path} has no client certificate and key, and the agent needs those of the kubelet. Set server, "
            "certificate_authority, client_certificate and client_key instead of kubeconfig."
        )
    authority = str(cluster.get("certificate-authority") or "")
    data = str(cluster.get("certificate-authority-data") or "")
    return Access(
        server=str(cluster["server"]),
        certificate=certificate,
        key=key_file,
        authority=str(path.parent / authority) if authority and not data else "",
        authority_data=_decoded(data).decode("ascii") if data else "",
        server_name=str(cluster.get("tls-server-name") or ""),
    )


def _file(path: Path, user: dict[str, Any], key: str) -> str:
    """The path of a file that the kubeconfig names or contains."""
    data = user.get(f"{key}-data")
    if data:
        # Python's ssl module reads it from a file only.
        copy = RUNTIME_DIRECTORY / f"{key}.pem"
        write(copy, _decoded(str(data)).decode("ascii"))
        return str(copy)
    return str(path.parent / user[key]) if user.get(key) else ""


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ValueError(f"invalid base64: {error}") from error

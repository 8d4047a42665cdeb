# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates that a strict verifier accepts, as Python's is by default from 3.13 on."""

from __future__ import annotations

import contextlib
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from lab.certificates import Authority, Pair


def _context(folder: Path, purpose: ssl.Purpose, name: str, pair: Pair) -> ssl.SSLContext:
    """One side of a connection: it has this pair, and trusts only the authority."""
    context = ssl.create_default_context(purpose, cafile=str(folder / "ca.crt"))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.verify_mode = ssl.CERT_REQUIRED
    pair.write(folder, name)
    context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    return context


def _handshake(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> None:
    """Connect the two in memory; each verifies the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _round in range(3):
        for side in sides:
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    assert all(side.getpeercert() for side in sides)


@pytest.mark.parametrize("host", ["localhost", "10.213.9.1"])
def test_both_sides_accept_each_other(tmp_path: Path, host: str) -> None:
    authority = Authority(tmp_path)
    user = authority.client("system:node:node-1", ["system:nodes"])
    serving = authority.server("kube-apiserver", ["localhost"], ["127.0.0.1", "10.213.9.1"])
    client = _context(tmp_path, ssl.Purpose.SERVER_AUTH, "client", user)
    _handshake(client, _context(tmp_path, ssl.Purpose.CLIENT_AUTH, "server", serving), host)


def test_another_authority_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    client = _context(tmp_path, ssl.Purpose.SERVER_AUTH, "client", Authority(tmp_path).client("admin"))
    serving = Authority(other).server("kube-apiserver", ["localhost"], [])
    with pytest.raises(ssl.SSLCertVerificationError):
        _handshake(client, _context(other, ssl.Purpose.CLIENT_AUTH, "server", serving), "localhost")


def test_only_the_authority_signs(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    for pem, signs in ((authority.certificate, True), (authority.client("admin").certificate, False)):
        certificate = x509.load_pem_x509_certificate(pem)
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
        assert usage.critical
        assert usage.value.key_cert_sign is signs
        assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is signs

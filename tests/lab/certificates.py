# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's own authority, and one identity for each component, as in a real cluster."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, atomically."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    temporary.rename(path)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _name(common_name: str, groups: Sequence[str] = ()) -> x509.Name:
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, authority: bool) -> x509.KeyUsage:
    """The usages of a key. Python 3.13 refuses an authority that does not say that it signs certificates."""
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, authority: bool = False
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A day back, because a test may change a clock.
        .not_valid_before(now - DAY)
        .not_valid_after(now + 3650 * DAY)
        .add_extension(_usage(authority=authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes

    def write(self, directory: Path, name: str) -> None:
        write_private(directory / f"{name}.key", self.key)
        (directory / f"{name}.crt").write_bytes(self.certificate)


class Authority:
    """The authority that signs identities. Made once for a lab and read from its files afterwards."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        certificate, key = directory / "ca.crt", directory / "ca.key"
        if not (certificate.exists() and key.exists()):
            self._make().write(directory, "ca")
        self.certificate = certificate.read_bytes()
        self._certificate = x509.load_pem_x509_certificate(self.certificate)
        loaded = serialization.load_pem_private_key(key.read_bytes(), None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            raise TypeError("the lab's authority has a key of another kind")
        self._key = loaded

    @staticmethod
    def _make() -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("holdfast-lab")
        certificate = (
            _builder(name, name, key, authority=True)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, hashes.SHA256())
        )
        return Pair(certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key))

    def _sign(self, builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> Pair:
        issuer = self._key.public_key()
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Pair(certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key))

    def client(self, user: str, groups: Sequence[str] = ()) -> Pair:
        """A client certificate that the API server accepts."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(user, groups), self._certificate.subject, key).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        return self._sign(builder, key)

    def server(self, name: str, names: Sequence[str], addresses: Sequence[str]) -> Pair:
        """A server certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives: list[x509.GeneralName] = [x509.DNSName(text) for text in names]
        alternatives += [x509.IPAddress(ipaddress.ip_address(text)) for text in addresses]
        builder = (
            _builder(_name(name), self._certificate.subject, key)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        )
        return self._sign(builder, key)


def signing_keys(directory: Path) -> None:
    """The key pair of service account tokens; a change would make every token invalid."""
    private = directory / "service-account.key"
    if private.exists():
        return
    key = ec.generate_private_key(ec.SECP256R1())
    (directory / "service-account.pub").write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM,
            serialization.PublicFormat.SubjectPublicKeyInfo,
        )
    )
    write_private(private, _key_pem(key))


def kubeconfig(server: str, authority: bytes, pair: Pair) -> bytes:
    """A kubeconfig that needs no other file, so it can be copied."""

    def encode(data: bytes) -> str:
        return base64.b64encode(data).decode()

    user = {"client-certificate-data": encode(pair.certificate), "client-key-data": encode(pair.key)}
    return kubeconfig_text({"server": server, "certificate-authority-data": encode(authority)}, user)


def kubeconfig_text(cluster: dict[str, str], user: dict[str, str]) -> bytes:
    """A kubeconfig of one cluster and one user."""
    text: str = yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": "lab", "user": user}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
            "current-context": "lab",
        }
    )
    return text.encode()

"""TLS for those who come over the network: a certificate given to us, or one of our own making."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import socket
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from bough.errors import InputError

#: One of our own making is good for so long, and made anew when less than the other is left.
DAYS, DAYS_LEFT = 825, 30


class Papers(NamedTuple):
    """A certificate, and the key to it."""

    certificate: Path
    key: Path


def papers_of(home: Path, given: Papers | None, hosts: Iterable[str]) -> Papers:
    """Those that are given, or our own, made if need be."""
    if given is not None:
        return given
    own = Papers(home / "tls" / "certificate.pem", home / "tls" / "key.pem")
    if not _is_good(own):
        make(own, sorted(set(hosts)))
    return own


def context_of(papers: Papers) -> ssl.SSLContext:
    """What a server speaks TLS with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(papers.certificate, papers.key)
    except FileNotFoundError:
        missing = papers.key if papers.certificate.exists() else papers.certificate
        raise InputError("there is no such file", file=str(missing)) from None
    except PermissionError:
        raise InputError("may not be read", file=str(papers.key)) from None
    except (ssl.SSLError, OSError, ValueError) as error:
        what = "is no certificate in PEM form, or the key is another one's"
        raise InputError(f"{what}: {error}", file=str(papers.certificate)) from None
    return context


def fingerprint(papers: Papers) -> str:
    """SHA-256 of the certificate, by which a client recognises it."""
    text = papers.certificate.read_text(encoding="ascii")
    begin = text.index("-----BEGIN CERTIFICATE-----")
    end = text.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----")
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(text[begin:end])).hexdigest()


def make(papers: Papers, hosts: Iterable[str]) -> None:
    """A key, and a certificate signed by itself; clients pin its fingerprint."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
    except ImportError:
        hint = "pip install 'bough[tls]', or give your own with --certificate and --key"
        raise InputError("a certificate cannot be made here", field="listen", hint=hint) from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, socket.gethostname()[:64])])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    papers.key.parent.mkdir(mode=0o700, exist_ok=True)
    _write(papers.key, secret)
    _write(papers.certificate, certificate.public_bytes(serialization.Encoding.PEM))


def _write(path: Path, data: bytes) -> None:
    """For its owner alone; whole or not at all."""
    fresh = path.with_suffix(".part")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(data)
    os.replace(fresh, path)


def _is_good(papers: Papers) -> bool:
    """It is there, and good for a while yet."""
    if not (papers.certificate.exists() and papers.key.exists()):
        return False
    try:
        from cryptography import x509
    except ImportError:  # nobody could make a new one
        return True
    try:
        found = x509.load_pem_x509_certificate(papers.certificate.read_bytes())
    except ValueError:
        return False
    return found.not_valid_after_utc - datetime.now(UTC) > timedelta(days=DAYS_LEFT)

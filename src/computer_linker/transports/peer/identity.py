"""This machine's key: made once, kept private, known to others by the digest of its certificate."""

import hashlib
import secrets
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from computer_linker.config.store import write_whole
from computer_linker.transports.peer.key_store import keep_key, read_key

_CERT = "peer-cert.pem"


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key and its self-signed certificate. Peers pin the certificate; no authority is asked."""

    key_pem: bytes = field(repr=False)
    cert_path: Path
    cert_pem: str

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.cert_pem)


_KNOWN: dict[tuple[Path, str], Identity] = {}
"""Asking a keyring takes a moment, and every new link needs the key."""


def own_identity(home: Path, machine_id: str) -> Identity:
    """This machine's identity, made on first use."""
    cert_path = home / _CERT
    if not cert_path.exists():
        key_pem, cert_pem = _generated(machine_id)
        keep_key(home, key_pem)
        write_whole(home, _CERT, cert_pem)
    cert = cert_path.read_text("ascii")
    known = _KNOWN.get((home, cert))
    if known is None:
        known = _KNOWN[(home, cert)] = Identity(read_key(home), cert_path, cert)
    return known


def fingerprint_of(cert_pem: str) -> str:
    """SHA-256 of the certificate's bytes."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(cert_pem)).hexdigest()


def _generated(machine_id: str) -> tuple[bytes, bytes]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    # A name of its own for each key: of two certificates with one name the system would try only the first.
    called = f"{machine_id[:40]} {secrets.token_hex(8)}"
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, called)])
    now = datetime.now(UTC)
    public = key.public_key()
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        # Pinned, so an end of validity would only break links; unpairing is what ends trust.
        .not_valid_after(now + timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return key_pem, cert.public_bytes(serialization.Encoding.PEM)

"""This machine's key and certificate, and TLS 1.3 contexts that accept only pinned certificates."""

import hashlib
import secrets
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from computer_linker.config.store import write_whole
from computer_linker.errors import ProviderUnavailable
from computer_linker.system import os
from computer_linker.vault import keyring

_CERT = "peer-cert.pem"


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key and its self-signed certificate. Peers pin the certificate; there is no authority."""

    key_pem: bytes = field(repr=False)
    cert_path: Path
    cert_pem: str

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.cert_pem)


_KNOWN: dict[tuple[Path, str], Identity] = {}
"""Cached: reading a keyring is slow, and every new link needs the key."""


def own_identity(home: Path, machine_id: str) -> Identity:
    """This machine's identity, created on first use."""
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
    # A unique name for each key: of two certificates with the same name OpenSSL would try only the first.
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
        # Pinned, so an expiry would only break links; unpairing is what ends trust.
        .not_valid_after(now + timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return key_pem, cert.public_bytes(serialization.Encoding.PEM)


SERVER_NAME = "peer.computer-linker.internal"
"""The server name of links in TLS; the pinned certificate, not this name, identifies the peer."""


def client_context(own: Identity, peer_cert_pem: str) -> ssl.SSLContext:
    """The context for calling a paired machine: only its pinned certificate is accepted, and ours is presented."""
    context = _tls13(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=peer_cert_pem)
    _show(context, own)
    return context


def pairing_context() -> ssl.SSLContext:
    """The context for the pairing exchange, in which the code, not the channel, authenticates."""
    context = _tls13(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def server_context(own: Identity, pinned: list[str]) -> ssl.SSLContext:
    """The context for accepting: a client certificate must be a pinned one; a client without one can only pair."""
    context = _tls13(ssl.PROTOCOL_TLS_SERVER)
    _show(context, own)
    context.verify_mode = ssl.CERT_OPTIONAL
    for cert in pinned:
        trust(context, cert)
    return context


def trust(context: ssl.SSLContext, cert_pem: str) -> None:
    """Accept this certificate from the next handshake on. Whether its machine is still paired is checked afterwards."""
    context.load_verify_locations(cadata=cert_pem)


def _show(context: ssl.SSLContext, own: Identity) -> None:
    with as_file(own.key_pem) as key_path:
        context.load_cert_chain(own.cert_path, key_path)


def _tls13(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    return context


# Storage of this machine's private key: in the system's keyring where there is one, else in a private file.

_IN_KEYRING = "peer key"
_FILE = "peer-key.pem"


def keep_key(home: Path, key_pem: bytes) -> None:
    """Store a new key: in the keyring when it can be read back, else in a file only we can read."""
    if not keyring.store(home, _IN_KEYRING, key_pem.decode("ascii")):
        write_whole(home, _FILE, key_pem)


def read_key(home: Path) -> bytes:
    """Read the key. Raises ProviderUnavailable while its keyring is locked; a locked key is never replaced by a new one."""
    path = home / _FILE
    if path.exists():
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
        return path.read_bytes()
    found = keyring.read(home, _IN_KEYRING)
    if found is None:
        raise ProviderUnavailable(
            "This computer's key for other computers is in the system's keyring, which cannot be opened now. "
            "Unlock it (sign in to the desktop), then try again.",
            remedy="unlock the keyring",
        )
    return found.encode("ascii")


@contextmanager
def as_file(key_pem: bytes) -> Iterator[str]:
    """The key at a path while the body runs: the TLS library reads keys only from files."""
    with tempfile.TemporaryDirectory() as private:
        path = Path(private) / "key.pem"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key_pem)
        yield str(path)

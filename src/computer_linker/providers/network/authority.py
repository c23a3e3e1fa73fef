"""A certificate authority of one command: its key exists in this process alone, its certificate in that sandbox alone."""

import os
import ssl
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from computer_linker.model.network import address_of

_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem", "/etc/ssl/cert.pem",
)  # fmt: skip
_LASTS = timedelta(days=30)


class Authority:
    """Signs certificates for these hosts and no others; programs trust it for these alone (name constraints)."""

    def __init__(self, hosts: tuple[str, ...]) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._hosts = hosts
        self._contexts: dict[str, ssl.SSLContext] = {}

    @cached_property
    def _certificate(self) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Computer Linker {os.urandom(6).hex()}")])
        key_use = x509.KeyUsage(
            digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        builder = _builder(name, name, self._key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(key_use, critical=True)
        builder = builder.add_extension(x509.NameConstraints(list(map(_constraint, self._hosts)), None), critical=True)
        return builder.sign(self._key, hashes.SHA256())

    @cached_property
    def pem(self) -> str:
        return self._certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")

    def context(self, host: str) -> ssl.SSLContext:
        """The server's side of TLS for one of the hosts."""
        assert host in self._hosts
        made = self._contexts.get(host)
        if made is None:
            made = self._contexts[host] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            made.minimum_version = ssl.TLSVersion.TLSv1_2
            made.set_alpn_protocols(["http/1.1"])
            made.num_tickets = 0
            _load(made, self.signed(host))
        return made

    def signed(self, host: str) -> bytes:
        """A new key and its certificate, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(x509.Name([]), self._certificate.subject, key)
        builder = builder.add_extension(x509.SubjectAlternativeName([_name(host)]), critical=True)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        signed = builder.add_extension(issuer, critical=False).sign(self._key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return private + signed.public_bytes(serialization.Encoding.PEM)


def upstream_context(authority: str | None) -> ssl.SSLContext:
    """The client's side of TLS to a host: the given certificates alone are trusted, or those of the system.

    Not `create_default_context`, which would write session keys to a file that the environment names.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if authority is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=authority)
    return context


def system_bundle() -> str | None:
    """The file with the certificates that the system trusts; None where there is none."""
    return next((path for path in _BUNDLES if Path(path).is_file()), None)


def bundle_text(path: str | None) -> str:
    """Its text, each character a byte."""
    if path is None:
        return ""
    return _text_of(path, Path(path).stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _text_of(path: str, _changed_at: int) -> str:
    return Path(path).read_bytes().decode("latin-1")


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    """Load a key and its certificate from memory: the library reads files only."""
    fd = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(fd, pem)
        context.load_cert_chain(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _LASTS)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _name(host: str) -> x509.GeneralName:
    ip = address_of(host)
    return x509.DNSName(host) if ip is None else x509.IPAddress(ip)


def _constraint(host: str) -> x509.GeneralName:
    import ipaddress

    ip = address_of(host)
    return x509.DNSName(host) if ip is None else x509.IPAddress(ipaddress.ip_network(str(ip)))

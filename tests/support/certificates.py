"""A certificate authority of the test's own, and the certificates it gives out."""

import base64
import datetime
import hashlib
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Certificate:
    """Files of a certificate and its key."""

    file: Path
    key: Path

    @property
    def pin(self) -> str:
        """The digest of its public key, by which a browser can be told to trust this certificate alone."""
        public = x509.load_pem_x509_certificate(self.file.read_bytes()).public_key()
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return base64.b64encode(hashlib.sha256(public.public_bytes(serialization.Encoding.DER, form)).digest()).decode()


class Authority:
    """Signs certificates that whoever trusts `file` trusts, and nobody else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("test authority")
        mine = _builder(self._name, self._name, self._key).add_extension(x509.BasicConstraints(True, 0), critical=True)
        self._certificate = mine.sign(self._key, hashes.SHA256())
        self.file = folder / "authority.pem"
        self.file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def certificate(self, *names: str, is_expired: bool = False) -> Certificate:
        """A certificate for these names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(names[0]), self._name, key, is_expired=is_expired)
        builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), False)
        signed = builder.sign(self._key, hashes.SHA256())
        found = Certificate(self._folder / f"{names[0]}.pem", self._folder / f"{names[0]}.key")
        found.file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        found.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return found


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_expired: bool = False
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 3 * _DAY)
        .not_valid_after(now - _DAY if is_expired else now + _DAY)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)

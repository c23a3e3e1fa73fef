"""An SSH private key: its public part, signatures with it, and the parts of it that must not be seen."""

import base64
import binascii
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from computer_linker.errors import InvalidRequest, ProviderUnavailable
from computer_linker.extras import remedy
from computer_linker.vault.ssh_wire import Unreadable, Wire, number, string

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

    Private = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_BEGIN = "-----BEGIN OPENSSH PRIVATE KEY-----"
_CURVES = {"secp256r1": b"nistp256", "secp384r1": b"nistp384", "secp521r1": b"nistp521"}
_RSA_SHA2_256, _RSA_SHA2_512 = 2, 4
"""Flags of a request for a signature (RFC draft-miller-ssh-agent, section 3.6.1)."""
_PIECE = 32


@dataclass(frozen=True, slots=True)
class SshKey:
    """A private key that is loaded."""

    public: bytes
    """The public key as the protocol has it."""
    private: "Private"

    def signed(self, data: bytes, flags: int) -> bytes:
        """The signature of these bytes, as the protocol has it. RSA signs with SHA-2 alone."""
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, utils

        if isinstance(self.private, ed25519.Ed25519PrivateKey):
            return string(b"ssh-ed25519") + string(self.private.sign(data))
        if isinstance(self.private, ec.EllipticCurvePrivateKey):
            name = b"ecdsa-sha2-" + _CURVES[self.private.curve.name]
            both = utils.decode_dss_signature(self.private.sign(data, ec.ECDSA(_hash_of(name))))
            return string(name) + string(b"".join(map(number, both)))
        name = b"rsa-sha2-512" if flags & _RSA_SHA2_512 or not flags & _RSA_SHA2_256 else b"rsa-sha2-256"
        return string(name) + string(self.private.sign(data, padding.PKCS1v15(), _hash_of(name)))


def canonical_key(text: str) -> str:
    """The key in OpenSSH's own format, without a comment. Raises InvalidRequest for what is not an open SSH private key."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = _private(text)
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode("ascii")


@lru_cache(maxsize=64)
def load_key(text: str) -> SshKey:
    """The key of a text that `canonical_key` made."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    private = _private(text)
    line = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return SshKey(base64.b64decode(line.split()[1]), private)


def _private(text: str) -> "Private":
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
        from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key
    except ImportError:
        raise ProviderUnavailable("Secrets need a further package.", remedy=remedy("secrets")) from None
    raw = f"{text.strip()}\n".encode()
    load = load_ssh_private_key if text.lstrip().startswith(_BEGIN) else load_pem_private_key
    try:
        key = load(raw, None)
    except TypeError:
        raise InvalidRequest(
            "The key has a passphrase, which the service could not ask for.",
            hint="make one for this host alone: ssh-keygen -t ed25519 -N '' -f FILE",
            field="value",
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidRequest("This is not an SSH private key that can be read.", field="value") from None
    known = isinstance(key, ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey)
    if not known or (isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name not in _CURVES):
        raise InvalidRequest("An SSH key is Ed25519, ECDSA of a NIST curve, or RSA.", field="value")
    return key  # type: ignore[return-value]  # checked above


def is_signed_by(public: bytes, signature: bytes, data: bytes) -> bool:
    """Whether a host's key made a signature, both as the protocol has them. False for certificates and SHA-1."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    try:
        kind = Wire(public).string()
        parts = Wire(signature)
        name, made = parts.string(), parts.string()
        parts.finish()
        key = load_ssh_public_key(kind + b" " + base64.b64encode(public))
        if isinstance(key, ed25519.Ed25519PublicKey) and name == kind:
            key.verify(made, data)
        elif isinstance(key, ec.EllipticCurvePublicKey) and name == kind:
            both = Wire(made)
            encoded = utils.encode_dss_signature(both.number(), both.number())
            both.finish()
            key.verify(encoded, data, ec.ECDSA(_hash_of(name)))
        elif isinstance(key, rsa.RSAPublicKey) and name in (b"rsa-sha2-256", b"rsa-sha2-512"):
            key.verify(made, data, padding.PKCS1v15(), _hash_of(name))
        else:
            return False
    except (Unreadable, ValueError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def public_blob(line: str) -> bytes:
    """The key of `TYPE BASE64 [COMMENT]`. Raises ValueError for anything else."""
    words = line.split()
    try:
        blob = base64.b64decode(words[1], validate=True)
        if Wire(blob).string() == words[0].encode():
            return blob
    except (IndexError, binascii.Error, Unreadable):
        pass
    raise ValueError("it is not a public key of SSH")


def host_name(host: str, port: int) -> str:
    """The name of a host in `known_hosts`."""
    return host if port == 22 else f"[{host}]:{port}"


def secret_parts(text: str) -> list[bytes]:
    """The private numbers of a key in pieces that are found in every file format that has them, as base64 or hex."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    key = load_key(text).private
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return [key.private_bytes_raw()]
    if isinstance(key, ec.EllipticCurvePrivateKey):
        numbers = [key.private_numbers().private_value]
    else:
        found = key.private_numbers()
        numbers = [found.d, found.p, found.q, found.dmp1, found.dmq1, found.iqmp]
    return [piece for each in numbers for piece in _pieces(each.to_bytes((each.bit_length() + 7) // 8, "big"))]


def _pieces(raw: bytes) -> list[bytes]:
    """Pieces of about equal length: a file breaks a longer one into more than two lines."""
    count = -(-len(raw) // _PIECE)
    return [raw[len(raw) * at // count : len(raw) * (at + 1) // count] for at in range(count)]


def _hash_of(name: bytes) -> "HashAlgorithm":
    from cryptography.hazmat.primitives import hashes

    if name.endswith((b"nistp521", b"512")):
        return hashes.SHA512()
    return hashes.SHA384() if name.endswith(b"nistp384") else hashes.SHA256()

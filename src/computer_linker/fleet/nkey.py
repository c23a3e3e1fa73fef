"""NATS's user keys: Ed25519 keys in its own base-32 writing, used with `cryptography`."""

import base64
import binascii
from dataclasses import dataclass

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from computer_linker.errors import InvalidRequest

_SEED, _USER = 18 << 3, 20 << 3


@dataclass(frozen=True, slots=True)
class UserKey:
    """One user of a NATS server."""

    seed: str
    public: str
    _key: Ed25519PrivateKey

    def answer(self, nonce: str) -> bytes:
        """The answer to the server's question, as its protocol wants it."""
        return base64.b64encode(self._key.sign(nonce.encode()))


def new_user() -> UserKey:
    """A fresh user."""
    return _user(Ed25519PrivateKey.generate())


def user_of(seed: str) -> UserKey:
    """The user of a seed (`SU...`). Raises InvalidRequest for anything else."""
    try:
        raw = base64.b32decode(seed.strip() + "=" * (-len(seed.strip()) % 8))
    except binascii.Error:
        raise InvalidRequest("The credentials hold no NATS user seed.") from None
    body, check = raw[:-2], raw[-2:]
    # The prefix says seed (5 bits), then whose (5 bits), so that the text begins with SU.
    is_user_seed = len(raw) == 36 and raw[0] == _SEED | _USER >> 5 and raw[1] == (_USER & 31) << 3
    # The last letter has two spare bits: only the spelling that encoding gives is a seed.
    if not is_user_seed or _checksum(body) != check or _text(body) != seed.strip():
        raise InvalidRequest("The credentials hold no NATS user seed.")
    return _user(Ed25519PrivateKey.from_private_bytes(body[2:]))


def _user(key: Ed25519PrivateKey) -> UserKey:
    raw = key.private_bytes(serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption())
    public = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    seed = bytes([_SEED | _USER >> 5, (_USER & 31) << 3]) + raw
    return UserKey(_text(seed), _text(bytes([_USER]) + public), key)


def _text(body: bytes) -> str:
    return base64.b32encode(body + _checksum(body)).rstrip(b"=").decode()


def _checksum(body: bytes) -> bytes:
    # CRC-16 as XMODEM has it, least significant byte first.
    return binascii.crc_hqx(body, 0).to_bytes(2, "little")

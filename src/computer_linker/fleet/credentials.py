"""Access to NATS servers: address checks, TLS everywhere but on loopback, private credential files, user keys."""

import base64
import binascii
import json
import re
import ssl
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import Field, ValidationError

from computer_linker.config.private import READABLE_BY_OTHERS
from computer_linker.errors import InvalidRequest
from computer_linker.fleet.settings import Fingerprint, Seat, ServerAddress
from computer_linker.model.base import Model
from computer_linker.system import os

_SEED_PREFIX, _USER_PREFIX = 18 << 3, 20 << 3


@dataclass(frozen=True, slots=True)
class UserKey:
    """The key of one user of a NATS server."""

    seed: str
    public: str
    _key: Ed25519PrivateKey

    def answer(self, nonce: str) -> bytes:
        """The response to the server's nonce, in its protocol's encoding."""
        return base64.b64encode(self._key.sign(nonce.encode()))


def new_user() -> UserKey:
    """Create a new user key."""
    return _user(Ed25519PrivateKey.generate())


def user_of(seed: str) -> UserKey:
    """The user of a seed (`SU...`). Raises InvalidRequest for anything else."""
    try:
        raw = base64.b32decode(seed.strip() + "=" * (-len(seed.strip()) % 8))
    except binascii.Error:
        raise InvalidRequest("The credentials hold no NATS user seed.") from None
    body, check = raw[:-2], raw[-2:]
    # The prefix encodes `seed` (5 bits), then the key's type (5 bits), so that the text begins with SU.
    is_user_seed = len(raw) == 36 and raw[0] == _SEED_PREFIX | _USER_PREFIX >> 5 and raw[1] == (_USER_PREFIX & 31) << 3
    # The last letter has two spare bits: only the canonical encoding is a seed.
    if not is_user_seed or _checksum(body) != check or _encoded(body) != seed.strip():
        raise InvalidRequest("The credentials hold no NATS user seed.")
    return _user(Ed25519PrivateKey.from_private_bytes(body[2:]))


def _user(key: Ed25519PrivateKey) -> UserKey:
    raw = key.private_bytes(serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption())
    public = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    seed = bytes([_SEED_PREFIX | _USER_PREFIX >> 5, (_USER_PREFIX & 31) << 3]) + raw
    return UserKey(_encoded(seed), _encoded(bytes([_USER_PREFIX]) + public), key)


def _encoded(body: bytes) -> str:
    return base64.b32encode(body + _checksum(body)).rstrip(b"=").decode()


def _checksum(body: bytes) -> bytes:
    # CRC-16/XMODEM, least significant byte first.
    return binascii.crc_hqx(body, 0).to_bytes(2, "little")


_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_MAX_FILE = 64 * 1024
_JWT = re.compile(r"-----BEGIN NATS USER JWT-----\s*([\w.=-]+)\s*-+END NATS USER JWT-+")
_SEED = re.compile(r"-----BEGIN USER NKEY SEED-----\s*(SU[A-Z2-7]+)\s*-+END USER NKEY SEED-+")


class Invitation(Model):
    """An invitation file of a hub: the server's address, the hub's key, and a secret that proves the invitation."""

    computer_linker_invitation: Literal[1]
    url: str
    seat: Seat
    nkey_seed: str
    hub: Fingerprint
    hub_name: Annotated[str, Field(max_length=40)]
    name: Annotated[str, Field(max_length=40)] | None = None
    secret: str


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials for a NATS server."""

    user: UserKey
    jwt: str | None = None
    invitation: Invitation | None = None


def is_loopback(host: str | None) -> bool:
    """True for a loopback host."""
    return host in _LOOPBACK


def checked_url(url: str) -> str:
    """Return the address if it may be used. Raises InvalidRequest."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("nats", "tls") or not parts.hostname or port == -1:
        raise InvalidRequest("The address of a NATS server is tls://HOST:PORT.")
    if parts.username or parts.password or parts.path.strip("/") or parts.query or parts.fragment:
        raise InvalidRequest("The address holds nothing but host and port; credentials go in a file: --creds FILE.")
    if parts.scheme == "nats" and not is_loopback(parts.hostname):
        raise InvalidRequest("A NATS server elsewhere is used with TLS alone: tls://HOST:PORT.")
    return url


def tls_of(place: ServerAddress) -> ssl.SSLContext | None:
    """The TLS settings for this server; None on loopback without TLS."""
    if urlsplit(place.url).scheme != "tls":
        return None
    try:
        context = ssl.create_default_context(cafile=place.ca)
    except (OSError, ssl.SSLError) as error:
        raise InvalidRequest(f"The file {place.ca} holds no certificates: {error}.") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def credentials_of(path: str | None) -> Credentials | None:
    """Read a credentials file. Raises InvalidRequest for one that others can read, or that holds no credentials."""
    if path is None:
        return None
    text = _private_text(Path(path))
    if text.lstrip().startswith("{"):
        try:
            invitation = Invitation.from_wire(json.loads(text))
        except (ValidationError, ValueError):
            raise InvalidRequest(f"{path} is no invitation of a hub.") from None
        return Credentials(user_of(invitation.nkey_seed), invitation=invitation)
    seed, jwt = _SEED.search(text), _JWT.search(text)
    if seed is None and re.fullmatch(r"SU[A-Z2-7]+", text.strip()):
        return Credentials(user_of(text.strip()))
    if seed is None or jwt is None:
        raise InvalidRequest(f"{path} holds no NATS credentials.")
    return Credentials(user_of(seed[1]), jwt[1])


def _private_text(path: Path) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise InvalidRequest(f"The credentials file {path} cannot be opened: {error.strerror}.") from error
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_FILE:
            raise InvalidRequest(f"{path} is no credentials file.")
        if found.st_uid != os.geteuid():
            raise InvalidRequest(f"The credentials file {path} belongs to another user.")
        if found.st_mode & READABLE_BY_OTHERS:
            raise InvalidRequest(f"The credentials file {path} can be used by others. Run: chmod 600 {path}")
        return os.read(handle, _MAX_FILE).decode("ascii")
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path} is no credentials file.") from None
    finally:
        os.close(handle)


def may_be_plain(place: ServerAddress, host: str | None) -> bool:
    """Whether this host may be connected to without TLS: only on loopback, and never when TLS was requested."""
    return urlsplit(place.url).scheme != "tls" and is_loopback(host)

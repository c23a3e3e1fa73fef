"""Signed messages: one body, signed with the sender's machine key, so that the server need not be trusted."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgpack
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

from computer_linker.errors import Conflict, InvalidRequest, LimitExceeded, PermissionDenied
from computer_linker.model.envelope import Reply
from computer_linker.transports.peer.identity import Identity

VERSION = 1
MAX_MESSAGE = 24 * 1024 * 1024
_MAX_CERT = 4096
_MAX_CONTAINERS = 100_000
_DOMAIN = b"computer-linker fleet 1 "
_ALGORITHM = ec.ECDSA(Prehashed(hashes.SHA256()))
"""The digest is computed beforehand without the GIL, so that other threads run while a long message is read."""


@dataclass(frozen=True, slots=True)
class Message:
    """A verified message: its kind, the fingerprint of the signer's certificate, and its body."""

    kind: str
    signer: str
    body: dict[str, Any]


class Signer:
    """This machine's key, and the certificate that identifies it."""

    def __init__(self, identity: Identity) -> None:
        key = serialization.load_pem_private_key(identity.key_pem, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey), "machine keys are on a curve"
        self._key = key
        self._certificate = x509.load_pem_x509_certificate(identity.cert_pem.encode()).public_bytes(
            serialization.Encoding.DER
        )
        self.fingerprint = identity.fingerprint

    def sealed(self, kind: str, body: dict[str, Any]) -> bytes:
        """The bytes of a message. The signature covers the kind too, so that no message can be used as another kind."""
        raw = bytes(msgpack.packb(body, use_bin_type=True))
        signature = self._key.sign(_digest(kind, raw), _ALGORITHM)
        return bytes(msgpack.packb([VERSION, kind, self._certificate, raw, signature], use_bin_type=True))


def opened(raw: bytes, is_known: Callable[[str], bool]) -> Message:
    """Parse a message from the wire and verify its signature. A message of an unknown key is not parsed.

    Raises:
        PermissionDenied: the key is not known, or did not sign this.
        InvalidRequest: it is not a message.
    """
    if len(raw) > MAX_MESSAGE:
        raise InvalidRequest("A fleet message is too large.", rule="oversized")
    match unpacked(raw, most=1):
        case [version, str(kind), bytes(certificate), bytes(body), bytes(signature)]:
            pass
        case _:
            raise InvalidRequest("A fleet message is version, kind, certificate, body and signature.", rule="malformed")
    if version != VERSION:
        raise InvalidRequest(f"This machine speaks version {VERSION} of the fleet protocol.", rule="version")
    signer = hashlib.sha256(certificate).hexdigest()
    if len(certificate) > _MAX_CERT or not is_known(signer):
        raise PermissionDenied("The key of this message is not known here.", rule="unknown_key")
    try:
        _public_key(certificate).verify(signature, _digest(kind, body), _ALGORITHM)
    except InvalidSignature:
        raise PermissionDenied("The signature of this message does not fit it.", rule="forged") from None
    content = unpacked(body)
    if type(content) is not dict:
        raise InvalidRequest("The body of a fleet message is a map.", rule="malformed")
    return Message(kind, signer, content)


def signer_of(raw: bytes) -> str:
    """The fingerprint a message claims to be signed by; nothing is checked."""
    match unpacked(raw, most=1):
        case [_, str(), bytes(certificate), bytes(), bytes()]:
            return hashlib.sha256(certificate).hexdigest()
    raise InvalidRequest("A fleet message is version, kind, certificate, body and signature.", rule="malformed")


def _digest(kind: str, body: bytes) -> bytes:
    """Return the digest that is signed: of kind and body."""
    digest = hashlib.sha256(_DOMAIN + kind.encode() + b"\0")
    digest.update(body)
    return digest.digest()


@lru_cache(maxsize=4096)
def _public_key(certificate: bytes) -> ec.EllipticCurvePublicKey:
    try:
        key = x509.load_der_x509_certificate(certificate).public_key()
    except ValueError:
        raise PermissionDenied("The certificate of this message cannot be read.", rule="unknown_key") from None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise PermissionDenied("The key of this message is of another kind than machines have.", rule="unknown_key")
    return key


def unpacked(raw: bytes, most: int = _MAX_CONTAINERS) -> Any:
    """Decode bytes with a bound on nested lists and maps. Raises InvalidRequest."""
    left = most

    def counted(found: Any) -> Any:
        # Each takes a byte of the message and sixty of memory.
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError("too many parts")
        return found

    try:
        return msgpack.unpackb(
            raw, raw=False, strict_map_key=True, max_str_len=MAX_MESSAGE, max_bin_len=MAX_MESSAGE, max_map_len=100_000,
            max_array_len=100_000, max_ext_len=0, list_hook=counted, object_hook=counted,
        )  # fmt: skip
    except (ValueError, TypeError, msgpack.exceptions.UnpackException, RecursionError):
        raise InvalidRequest("A fleet message could not be read.", rule="malformed") from None


# Replay protection and idempotency: each message is accepted once, each keyed call is executed once.

_MAX_NONCES = 100_000
_MAX_ACTS = 20_000
_KEEP_ANSWER_S = 120.0
_MAX_UNDER_WAY = 64


class Ledger:
    """One run of one machine. A new run has another epoch, so that nothing of an earlier run need be stored."""

    def __init__(self) -> None:
        self._nonces: dict[str, float] = {}
        self._acts: dict[str, tuple[float, float, asyncio.Task[Reply] | None]] = {}
        self._running: set[asyncio.Task[Reply]] = set()
        self._tidy_at = 0.0

    def spend(self, nonce: str, until: float) -> None:
        """Record a message's nonce. Raises PermissionDenied for a repeated one."""
        self._tidy()
        if nonce in self._nonces:
            raise PermissionDenied("This message came before.", rule="replayed")
        if len(self._nonces) >= _MAX_NONCES:
            raise LimitExceeded("Too many messages are remembered; wait a little.")
        self._nonces[nonce] = until

    def act(self, key: str, until: float, work: Callable[[], Awaitable[Reply]]) -> asyncio.Task[Reply]:
        """Return the task of this key: the running or finished one, or a new one."""
        known = self._acts.get(key)
        if known is not None:
            if known[2] is None:
                raise Conflict("This was done before; its answer is no longer kept.", effect="unverifiable")
            return known[2]
        if len(self._running) >= _MAX_UNDER_WAY or len(self._acts) >= _MAX_ACTS:
            raise LimitExceeded("Too many calls of the fleet are under way on this machine.", limit=_MAX_UNDER_WAY)
        task = asyncio.ensure_future(_as_coroutine(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        self._acts[key] = (until, time.time() + _KEEP_ANSWER_S, task)
        return task

    def cancel(self, key: str) -> None:
        """Cancel a running call."""
        known = self._acts.get(key)
        if known is not None and known[2] is not None:
            known[2].cancel()

    async def aclose(self) -> None:
        """Cancel what is running."""
        for task in list(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(list(self._running), timeout=10)

    def _tidy(self) -> None:
        now = time.time()
        if now < self._tidy_at:
            return
        self._tidy_at = now + 5
        self._nonces = {nonce: until for nonce, until in self._nonces.items() if until > now}
        for key, (until, keep_until, task) in list(self._acts.items()):
            if task is not None and not task.done():
                continue
            if until <= now:
                del self._acts[key]
            elif keep_until <= now:
                self._acts[key] = (until, keep_until, None)


async def _as_coroutine(work: Callable[[], Awaitable[Reply]]) -> Reply:
    return await work()

"""TLS connections that the gate opens, to hosts a secret is for: there a program's placeholder becomes the secret."""

import asyncio
import base64
import binascii
import ssl
from typing import NamedTuple, Protocol

from computer_linker.providers.network.forward import Forward, Outside, status_line
from computer_linker.providers.network.messages import BadMessage, Framing, Head, refusal
from computer_linker.providers.network.passage import Upstream
from computer_linker.providers.network.reach import Refused
from computer_linker.providers.network.scanned import copy_scanned, decoder
from computer_linker.providers.network.stream import Stream
from computer_linker.providers.network.tls import TlsStream
from computer_linker.vault.mask import Mask, MaskedStream

_BASIC = b"basic "
_PARTIAL = (b"range", b"if-range", b"accept-encoding")
"""A part of an answer, or a compressed one, could not be scanned."""


class Handle(NamedTuple):
    """A secret that a request to its host may use: its placeholder, its value, and the header fields it may stand in."""

    name: str
    placeholder: str
    value: str
    headers: tuple[str, ...]


class Secrets(Protocol):
    """The secrets of one command for one host, as the owner allows them at this moment."""

    def handles(self) -> list[Handle]: ...

    def mask(self) -> Mask:
        """Replaces every secret that was ever sent there by its placeholder."""
        ...

    def inside(self) -> ssl.SSLContext:
        """The server's side of TLS, towards the program."""
        ...

    async def outside(self) -> ssl.SSLContext:
        """The client's side of TLS, towards the host."""
        ...


class Opened:
    """Judges and connects as the gate does, with TLS to the host."""

    def __init__(self, gate: Outside, secrets: Secrets) -> None:
        self._gate = gate
        self._secrets = secrets

    async def judge(self, host: str, port: int) -> tuple[str, list[str]]:
        return await self._gate.judge(host, port)

    async def connect(self, host: str, port: int) -> Upstream:
        upstream = await self._gate.connect(host, port)
        try:
            await self._secure(upstream)
        except BaseException:
            upstream.close()
            raise
        return upstream

    def refused(self, refused: Refused) -> None:
        self._gate.refused(refused)

    def exchanges(self) -> None:
        """Every request and answer is searched for secrets."""

    async def serve(self, client: Stream, upstream: Upstream) -> None:
        """Serve a client whose TLS hello is held, for the host of this connection."""
        shown = TlsStream(client, self._secrets.inside())
        try:
            await self._serve(shown, upstream)
        finally:
            shown.close()

    async def _serve(self, shown: TlsStream, upstream: Upstream) -> None:
        await shown.handshake()
        try:
            await self._secure(upstream)
        except (OSError, TimeoutError) as error:
            why = getattr(error, "verify_message", "") or getattr(error, "reason", "") or type(error).__name__
            await shown.send(refusal(f"{upstream.passage.host} has no TLS that is trusted: {why}.", "502 Bad Gateway"))
        else:
            await _OpenedForward(shown, self, upstream, self._secrets).run()
        await shown.finish()

    async def _secure(self, upstream: Upstream) -> None:
        secured = TlsStream(upstream.stream, await self._secrets.outside(), server_name=upstream.passage.host)
        try:
            await secured.handshake()
        except (OSError, TimeoutError) as error:
            upstream.fail(f"its TLS is not trusted ({type(error).__name__})")
            raise
        upstream.stream = secured


class _OpenedForward(Forward):
    """Requests to a host that has secrets."""

    def __init__(self, client: Stream, outside: Outside, upstream: Upstream, secrets: Secrets) -> None:
        super().__init__(client, outside, upstream, default_port=443)
        self._secrets = secrets

    def _outgoing(self, request: Head, upstream: Upstream) -> None:
        handles = self._secrets.handles()
        fields = [field for field in request.fields if field[0] not in _PARTIAL]
        for handle in handles:
            made = [
                (name, _swapped(value, handle) if name.decode("ascii") in handle.headers else value)
                for name, value in fields
            ]
            if made != fields:
                upstream.passage.secrets.add(handle.name)
                fields = made
        request.fields = [*fields, (b"accept-encoding", b"identity")]

    def _shown(self, head: bytes) -> bytes:
        return self._secrets.mask().masked(head)

    def _upgrade(self, request: Head) -> list[tuple[bytes, bytes]]:
        """None: the frames that would follow are not scanned."""
        return []

    async def _deliver(self, request: Head, response: Head, framing: Framing, upstream: Upstream) -> bool:
        self._has_begun = False
        named = (part.strip().lower() for value in response.all(b"content-encoding") for part in value.split(b","))
        codings = [coding for coding in named if coding not in (b"", b"identity")]
        if len(codings) > 1:
            raise BadMessage("the answer is encoded more than once, and cannot be checked")
        coding = b"" if framing == 0 else b"".join(codings)
        framed = framing
        if coding:
            framed = "chunked" if request.minor else "end"
            dropped = (b"content-encoding", b"content-length", b"transfer-encoding")
            response.fields = [field for field in response.fields if field[0] not in dropped]
            if framed == "chunked":
                response.fields.append((b"transfer-encoding", b"chunked"))
        keeps = request.keeps and response.keeps and "end" not in (framing, framed)
        head = response.forwarded(status_line(response), [] if keeps else [(b"connection", b"close")])
        mask = self._secrets.mask()
        decode = decoder(coding)
        self._has_begun = True
        await self._client.send(mask.masked(head))
        if framing:
            scan = MaskedStream(mask)
            await copy_scanned(upstream.stream, self._client, (framing, framed), scan, upstream.received, decode)
        return keeps


def _swapped(value: bytes, handle: Handle) -> bytes:
    """A field's value with the secret in the place of its placeholder, also within Basic credentials."""
    placeholder, secret = handle.placeholder.encode("ascii"), handle.value.encode("ascii")
    if placeholder in value:
        return value.replace(placeholder, secret)
    if value[: len(_BASIC)].lower() != _BASIC:
        return value
    try:
        login = base64.b64decode(value[len(_BASIC) :].strip(), validate=True)
    except binascii.Error:
        return value
    if placeholder not in login:
        return value
    return value[: len(_BASIC)] + base64.b64encode(login.replace(placeholder, secret))


async def made_in_thread(authority: str | None) -> ssl.SSLContext:
    """The context of a host; to read all certificates of a system takes long."""
    from computer_linker.providers.network.authority import upstream_context

    return await asyncio.to_thread(upstream_context, authority)

"""Calling a paired machine: one link, concurrent calls, resumed after a drop without executing anything twice."""

import asyncio
import hashlib
import itertools
import json
import secrets
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from pydantic_core import to_json
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage

from computer_linker.computer.remote.flow import Flow
from computer_linker.computer.remote.link import Offer, RemoteReply
from computer_linker.errors import (
    InvalidRequest,
    LimitExceeded,
    LinkError,
    PermissionDenied,
    ProviderUnavailable,
    TimedOut,
    wire_codes,
)
from computer_linker.model.envelope import Attachment, Reply, error_in, is_envelope
from computer_linker.model.principal import FarClient
from computer_linker.registry.context import Progress
from computer_linker.transports.peer.bulk import TICKET, dialer
from computer_linker.transports.peer.frames import (
    MAX_FRAME,
    MAX_ITEM,
    VERSION,
    Exchange,
    Piece,
    packed,
    received,
    unpacked,
)
from computer_linker.transports.peer.identity import SERVER_NAME, Identity, client_context
from computer_linker.transports.peer.listener import PING_S, PONG_S, REFUSED, UNPAIRED
from computer_linker.transports.peer.offer import parse_offer, refuse_drift
from computer_linker.transports.peer.table import Peer

CONNECT_S = 10.0
_RESUME_S = 20.0
_PAUSE_S = 0.2
_FACET_S = 75.0
_MAX_CALLS = 48
"""Calls running at once, a little below what the other side accepts; more wait here."""
_WINDOW = 64
"""Items of a stream that may be in transit; a machine that sends more is disconnected."""


@dataclass(frozen=True, slots=True)
class Own:
    """This machine as it presents itself to a peer: its key, its id, and its current offer."""

    identity: Identity
    machine_id: str
    offer: Callable[[], Offer]
    learnt: Callable[[Offer], None] = field(default=lambda _: None)
    """Called with the other machine's offer, before it is checked."""


class PeerLink:
    """The link to one paired machine, opened on first use and reopened after a drop."""

    def __init__(self, own: Own, peer: Peer) -> None:
        self._own, self._peer = own, peer
        self._link: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._ids = itertools.count(1)
        self._keys, self._key_numbers = secrets.token_hex(12), itertools.count(1)
        """Prefix of the idempotency keys: the other machine executes none twice, however often it is requested."""
        self._room = asyncio.Semaphore(_MAX_CALLS)
        self._waiting: dict[int, Exchange] = {}
        self._offer: Offer | None = None
        self._boot = ""

    @property
    def offer(self) -> Offer:
        """The machine's offer when the link was last opened."""
        if self._offer is None:
            raise ProviderUnavailable(f"The link to {self._peer.name} was not opened yet.", computer=self._peer.name)
        return self._offer

    async def opened(self) -> "PeerLink":
        """Open the link now, so that the offer is available."""
        await self._opened(CONNECT_S)
        return self

    async def call(
        self, call: dict[str, Any], deadline_s: float, report: Progress | None = None, *, is_safe: bool = False,
        flow: Flow | None = None, far: FarClient | None = None,
    ) -> Reply:  # fmt: skip
        """Run one operation there. After a broken link an unknown outcome is reported as unknown."""
        frame: dict[str, Any] = {"call": call, **({} if far is None else {"for": [far.id, far.name]})}
        if flow is None:
            return await self._call_reply(frame, deadline_s, report, is_safe)
        ticket = frame["bulk"] = secrets.token_bytes(TICKET)
        flow.carried_by(dialer(self._own.identity, self._peer, ticket))
        return await flow.until(self._call_reply(frame, deadline_s, report, is_safe))

    async def ask(self, scope: str, method: str, params: dict[str, Any], *, is_safe: bool) -> RemoteReply:
        """Call a facet method there."""
        call = {"scope": scope, "method": method, "params": params}
        reply = _reply(*await self._answered({"call": call, "on": "facets"}, _FACET_S, None, is_safe))
        if not reply.ok:
            raise error_in(reply.envelope)
        return RemoteReply(reply.envelope["data"], [item.data for item in reply.attachments])

    async def stream(self, scope: str, method: str, params: dict[str, Any]) -> AsyncIterator[Any]:
        """The items that machine pushes; at most a window of them is held here."""
        link = await self._opened(CONNECT_S)
        call_id = next(self._ids)
        exchange = self._waiting[call_id] = Exchange(_future(), items=asyncio.Queue(_WINDOW))
        call = {"scope": scope, "method": method, "params": params}
        try:
            await link.send(
                packed({"t": "call", "id": call_id, "key": secrets.token_hex(16), "call": call, "on": "facets"})
            )
            await link.send(packed({"t": "credit", "id": call_id, "n": _WINDOW}))
            async for item in self._items(link, call_id, exchange):
                yield item
        except ConnectionClosed:
            raise ProviderUnavailable(f"The link to {self._peer.name} was lost.", computer=self._peer.name) from None
        finally:
            self._waiting.pop(call_id, None)
            with suppress(ConnectionClosed), anyio.CancelScope(shield=True):
                await link.send(packed({"t": "cancel", "id": call_id}))

    async def aclose(self) -> None:
        """End the link."""
        if self._link is not None:
            await self._link.close()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader], timeout=5)

    async def _items(self, link: ClientConnection, call_id: int, exchange: Exchange) -> AsyncIterator[Any]:
        items, taken = exchange.items, 0
        assert items is not None, "a stream has a queue"
        while True:
            getting = asyncio.ensure_future(items.get())
            try:
                await asyncio.wait([getting, exchange.answered], return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not getting.done():
                    getting.cancel()
            if not getting.done() or getting.cancelled():
                frame = exchange.answered.result()
                reply = _reply(frame, [])
                if not reply.ok:
                    raise error_in(reply.envelope)
                return
            yield getting.result()
            taken += 1
            if taken % (_WINDOW // 2) == 0:
                await link.send(packed({"t": "credit", "id": call_id, "n": _WINDOW // 2}))

    async def _call_reply(
        self, frame: dict[str, Any], deadline_s: float, report: Progress | None, is_safe: bool
    ) -> Reply:
        return _readable(_reply(*await self._answered(frame, deadline_s, report, is_safe)))

    async def _answered(
        self, frame: dict[str, Any], deadline_s: float, report: Progress | None, is_safe: bool
    ) -> tuple[dict[str, Any], list[bytes]]:
        key, sent_to = f"{self._keys}-{next(self._key_numbers)}", ""
        until = asyncio.get_running_loop().time() + deadline_s
        try:
            while True:
                try:
                    link = self._live()
                    if link is None:
                        async with asyncio.timeout_at(until):
                            link = await self._opened(within_s=_RESUME_S if sent_to else CONNECT_S)
                    if sent_to and sent_to != self._boot and not is_safe:
                        # That service was restarted and has no stored keys: repeating the call could execute it twice.
                        raise self._unknown("was started anew", True, ProviderUnavailable)
                    sent_to = self._boot
                    async with self._room:
                        return await self._exchange(link, key, frame, report, until)
                except ConnectionClosed:
                    await asyncio.sleep(_PAUSE_S)
        except TimeoutError:
            raise self._unknown("did not answer in time", bool(sent_to), TimedOut) from None
        except ProviderUnavailable as error:
            if "effect" in error.details or not sent_to:
                raise
            raise self._unknown("was lost", True, ProviderUnavailable) from None

    async def _exchange(
        self, link: ClientConnection, key: str, frame: dict[str, Any], report: Progress | None, until: float
    ) -> tuple[dict[str, Any], list[bytes]]:
        call_id = next(self._ids)
        exchange = self._waiting[call_id] = Exchange(_future(), report)
        # A bare timer: a timeout around every call would cost more than the call's own bookkeeping.
        timer = asyncio.get_running_loop().call_at(until, _expire, exchange.answered)
        try:
            await link.send(packed({"t": "call", "id": call_id, "key": key, **frame}))
            answer = await exchange.answered
            return answer, exchange.joined()
        except (asyncio.CancelledError, TimeoutError):
            with suppress(ConnectionClosed):
                await link.send(packed({"t": "cancel", "id": call_id}))
            raise
        finally:
            timer.cancel()
            del self._waiting[call_id]

    def _live(self) -> ClientConnection | None:
        """The link, while it is open."""
        return self._link if self._reader is not None and not self._reader.done() else None

    async def _opened(self, within_s: float) -> ClientConnection:
        async with self._opening:
            if (link := self._live()) is not None:
                return link
            deadline, pause, cut_off = asyncio.get_running_loop().time() + within_s, 0.1, 0
            while True:
                try:
                    self._link = await self._connect()
                    self._reader = asyncio.ensure_future(self._read(self._link))
                    return self._link
                except (OSError, InvalidHandshake, ConnectionClosed, TimeoutError) as error:
                    cut_off += isinstance(error, InvalidMessage)
                    self._raise_refusal(error, is_cut_off=cut_off > 1)
                    if asyncio.get_running_loop().time() + pause > deadline:
                        raise ProviderUnavailable(
                            f"{self._peer.name} cannot be reached. Is it on, and does it listen for peers?",
                            computer=self._peer.name,
                        ) from error
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, 2)

    def _raise_refusal(self, error: Exception, *, is_cut_off: bool) -> None:
        """Raise a refusal of the other machine, so that it is not retried."""
        name = self._peer.name
        if isinstance(error, ConnectionClosed) and error.rcvd is not None and error.rcvd.code in (REFUSED, UNPAIRED):
            raise PermissionDenied(
                f"{name} refused this computer: {error.rcvd.reason}", rule="refused_there"
            ) from error
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ssl.SSLError):
            cause = cause.__cause__ or cause.__context__
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise PermissionDenied(
                f"{name} shows another key than the one that was paired.", rule="other_key"
            ) from error
        if is_cut_off or (isinstance(cause, ssl.SSLError) and "alert" in str(cause)):
            # An unknown key ends the connection right after the handshake.
            raise PermissionDenied(f"{name} does not know this computer's key.", rule="refused_there") from error

    async def _connect(self) -> ClientConnection:
        link = await connect(
            f"wss://{self._peer.address}/", ssl=client_context(self._own.identity, self._peer.cert_pem),
            server_hostname=SERVER_NAME, max_size=MAX_FRAME, compression=None, open_timeout=CONNECT_S,
            ping_interval=PING_S, ping_timeout=PONG_S, proxy=None,
        )  # fmt: skip
        try:
            await self._greet(link)
            return link
        except BaseException:
            await link.close()
            raise

    async def _greet(self, link: ClientConnection) -> None:
        """Exchange HELLO; the pinned key, id and manifest decide whether this is the machine that was paired."""
        name = self._peer.name
        shown = link.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        if hashlib.sha256(shown).hexdigest() != self._peer.fingerprint:
            raise PermissionDenied(f"{name} shows another key than the one that was paired.", rule="other_key")
        async with asyncio.timeout(CONNECT_S):
            challenge = unpacked(await link.recv())
            nonce = secrets.token_bytes(16)
            own = {"machineId": self._own.machine_id, "offer": self._own.offer().to_wire()}
            await link.send(packed({"t": "hello", "v": VERSION, "nonce": challenge.get("nonce"), "own": nonce, **own}))
            hello = unpacked(await link.recv())
        if hello["t"] != "hello" or hello.get("v") != VERSION or hello.get("machineId") != self._peer.machine_id:
            raise PermissionDenied(
                f"{name} calls itself another machine than the one that was paired.", rule="other_name"
            )
        if hello.get("nonce") != nonce:
            raise PermissionDenied(f"{name} sent a greeting made for another connection.", rule="replayed_hello")
        offer = parse_offer(hello.get("offer"))
        self._own.learnt(offer)
        refuse_drift(self._peer, offer)
        self._offer, self._boot = offer, str(hello.get("boot"))

    async def _read(self, link: ClientConnection) -> None:
        try:
            async for raw in link:
                frame = received(raw)
                if not isinstance(frame, Piece) and frame["t"] == "item" and len(raw) > MAX_ITEM:
                    raise LimitExceeded("An item is larger than was agreed.")
                call_id = frame.call_id if isinstance(frame, Piece) else frame.get("id")
                exchange = self._waiting.get(call_id) if type(call_id) is int else None
                if exchange is not None:
                    exchange.take(frame)
        except ConnectionClosed:
            pass
        except (InvalidRequest, LimitExceeded) as error:
            # A protocol violation ends the link; calls then report an unknown outcome.
            await link.close(REFUSED, error.message[:100])
        finally:
            for exchange in self._waiting.values():
                if not exchange.answered.done():
                    exchange.answered.set_exception(ConnectionClosed(None, None))
                    # A stream may have ended already and not read it.
                    exchange.answered.exception()

    def _unknown(self, how: str, sent: bool, kind: type[LinkError]) -> LinkError:
        if not sent:
            return kind(f"{self._peer.name} {how}; nothing was sent.", computer=self._peer.name)
        return kind(
            f"{self._peer.name} {how} after the call was sent. Whether it was done there is not known; its own history tells.",
            computer=self._peer.name,
            effect="unverifiable",
        )


def _expire(answered: asyncio.Future[dict[str, Any]]) -> None:
    if not answered.done():
        answered.set_exception(TimeoutError())


def _future() -> asyncio.Future[dict[str, Any]]:
    return asyncio.get_running_loop().create_future()


def _reply(frame: dict[str, Any], blobs: list[bytes]) -> Reply:
    if frame["t"] == "error":
        kind = wire_codes().get(str(frame.get("code")), ProviderUnavailable)
        is_unknown = frame.get("effect") == "unverifiable"
        raise kind(str(frame.get("message"))[:500], **({"effect": "unverifiable"} if is_unknown else {}))
    listed = frame.get("attachments") or []
    envelope = frame.get("envelope")
    is_list = type(listed) is list and all(type(one) is dict for one in listed)
    if (
        type(envelope) is not dict
        or not is_envelope(envelope)
        or (envelope["ok"] and "data" not in envelope)
        or not is_list
        or [one.get("size") for one in listed] != [len(blob) for blob in blobs]
    ):
        raise _unreadable()
    attachments = [Attachment(str(one.get("mime")), blob) for one, blob in zip(listed, blobs, strict=True)]
    return Reply(envelope, attachments)


def _readable(reply: Reply) -> Reply:
    """The reply, if it can be encoded as JSON, which has neither raw bytes nor NaN."""
    try:
        text = to_json(reply.envelope)
        if b"NaN" in text or b"Infinity" in text:
            json.dumps(reply.envelope, allow_nan=False)
    except (ValueError, TypeError):
        raise _unreadable() from None
    return reply


def _unreadable() -> ProviderUnavailable:
    return ProviderUnavailable("The other computer's answer cannot be read.", effect="unverifiable")

"""Plain HTTP through the gate: each request is read, judged by the host that it names, and written anew."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol
from urllib.parse import urlsplit

from computer_linker.model.network import address_of, split_host
from computer_linker.providers.network.exchanges import ANSWER_S, Exchange, Exchanges, request_pattern
from computer_linker.providers.network.messages import (
    BadMessage,
    Framing,
    Head,
    copy_body,
    framing_of,
    parsed_request,
    read_request,
    read_response,
    refusal,
)
from computer_linker.providers.network.passage import Upstream
from computer_linker.providers.network.pour import join
from computer_linker.providers.network.reach import Refused
from computer_linker.providers.network.stream import IDLE_S, Ended, Stream

_HEAD_S = 15.0
_BODILESS = (b"204", b"304")
_FUTILE = 2


class Outside(Protocol):
    """What judges hosts and connects to them."""

    async def judge(self, host: str, port: int) -> tuple[str, list[str]]: ...

    async def connect(self, host: str, port: int) -> Upstream: ...

    def refused(self, refused: Refused) -> None: ...

    def exchanges(self) -> Exchanges | None:
        """What serves plain requests outside the loop; None where all are judged there."""
        ...


class Forward:
    """The requests of one connection. `upstream` is where it was opened to; None for a proxy's client, which names one each."""

    def __init__(
        self, client: Stream, outside: Outside, upstream: Upstream | None = None, default_port: int = 80
    ) -> None:
        self._client = client
        self._outside = outside
        self._origin = None if upstream is None else (upstream.passage.host, upstream.passage.port)
        self._default_port = default_port
        self._upstream = upstream
        self._place = self._origin
        self._is_new = upstream is not None
        self._has_begun = False
        """The answer to the present request has begun, so that no other can be given."""
        self._futile = -1
        """How often in a row nothing was served outside the loop; less than 0 while there was one request only."""

    async def run(self) -> None:
        """Serve requests until either side ends the connection."""
        try:
            wait_s = _HEAD_S
            while await self._one(wait_s) and await self._exchanged():
                wait_s = IDLE_S
        except Refused as refused:
            await self._client.send(refusal(str(refused)))
        except BadMessage as bad:
            if not self._has_begun:
                await self._client.send(refusal(f"not forwarded: {bad}.", "400 Bad Request"))
        finally:
            if self._upstream is not None:
                self._upstream.close()

    async def _exchanged(self) -> bool:
        """Let plain requests be served outside the loop, until one needs it; False when the connection is over."""
        client, upstream, place = self._client, self._upstream, self._place
        if self._futile < 0:
            # Most connections have no second one.
            self._futile = 0
            return True
        exchanges = self._outside.exchanges() if self._futile < _FUTILE else None
        if exchanges is None or upstream is None or place is None or client.held or upstream.stream.held:
            return True
        pattern = request_pattern(_authority(place, self._default_port), is_proxy=self._origin is None)
        exchange = Exchange(client, upstream, pattern, place)
        await exchanges.serve(exchange)
        self._futile = 0 if exchange.served else self._futile + 1
        await client.send(exchange.untaken)
        await upstream.send(exchange.unsent)
        if exchange.request is None:
            return True
        request = parsed_request(exchange.request)
        self._has_begun = False
        return await self._answer(request, upstream, is_upgrade=False)

    async def _one(self, wait_s: float) -> bool:
        """Forward one request and its response; False when the connection is over."""
        self._has_begun = False
        limit = self._client.limit
        limit.set(wait_s)
        if not self._client.held and not await self._client.more():
            return False
        limit.set(_HEAD_S)
        request = await read_request(self._client)
        # What follows has limits of its own, or waits for the owner.
        limit.set(None)
        if request is None:
            return False
        try:
            place, path = self._destination(request)
        except Refused as refused:
            self._outside.refused(refused)
            raise
        framing = framing_of(request, 0)
        upgrade = self._upgrade(request)
        upstream = await self._upstream_for(place)
        extra = [(b"host", _authority(place, self._default_port)), *upgrade]
        request.fields = [field for field in request.fields if field[0] != b"host"]
        self._outgoing(request, upstream)
        await upstream.send(request.forwarded(b"%b %b HTTP/1.1" % (request.first[0], path), extra))
        answer = self._answer(request, upstream, is_upgrade=bool(upgrade))
        if not framing:
            return await answer
        return await self._with_body(
            copy_body(self._client, upstream.stream, framing, upstream.sent, self._client.limit), answer
        )

    async def _with_body(self, body: Coroutine[Any, Any, None], answer: Coroutine[Any, Any, bool]) -> bool:
        """Send the body while the answer may come already; a body that fails ends both."""
        sending, answering = asyncio.ensure_future(body), asyncio.ensure_future(answer)
        try:
            await asyncio.wait((sending, answering), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
            keeps = await answering
            # A host may answer before it has the whole body; then what is left of it is not a next request.
            return keeps and sending.done()
        finally:
            for task in (sending, answering):
                task.cancel()
            await asyncio.gather(sending, answering, return_exceptions=True)

    async def _answer(self, request: Head, upstream: Upstream, *, is_upgrade: bool) -> bool:
        while True:
            upstream.stream.acknowledge()
            self._client.limit.set(ANSWER_S)
            response = await read_response(upstream.stream)
            status = response.first[1]
            first = status_line(response)
            if status == b"101":
                if not is_upgrade:
                    raise BadMessage("the server changed the protocol unasked")
                await self._client.send(response.forwarded(first, _upgrade(response)))
                await join(self._client, upstream.stream, upstream.sent, upstream.received)
                return False
            if not status.startswith(b"1"):
                break
            await self._client.send(self._shown(response.forwarded(first, [])))
        bodiless = request.first[0] == b"HEAD" or status in _BODILESS
        framing = 0 if bodiless else framing_of(response, "end")
        self._has_begun = True
        return await self._deliver(request, response, framing, upstream)

    async def _deliver(self, request: Head, response: Head, framing: Framing, upstream: Upstream) -> bool:
        """Send the response; True when the connection stays open."""
        keeps = request.keeps and response.keeps and framing != "end"
        head = response.forwarded(status_line(response), [] if keeps else [(b"connection", b"close")])
        if isinstance(framing, int) and framing <= len(upstream.stream.held):
            # What is here already goes with the head: the client wakes up once.
            head += upstream.stream.take(framing)
            upstream.received(framing)
            framing = 0
        await self._client.send(head)
        if not framing:
            return keeps
        upstream.stream.acknowledge()
        await copy_body(upstream.stream, self._client, framing, upstream.received, self._client.limit)
        return keeps

    def _outgoing(self, request: Head, upstream: Upstream) -> None:
        """Change a request before it is sent."""

    def _shown(self, head: bytes) -> bytes:
        """The head of an interim response, as the client gets it."""
        return head

    def _upgrade(self, request: Head) -> list[tuple[bytes, bytes]]:
        """The fields of an upgrade that is asked for and let through."""
        return _upgrade(request)

    def _destination(self, request: Head) -> tuple[tuple[str, int], bytes]:
        """The host and port of a request, and its path. All that name a host must name the same one."""
        method, target, _ = request.first
        hosts = request.all(b"host")
        if method == b"CONNECT" or len(hosts) > 1:
            raise BadMessage("its host is ambiguous")
        path, place = target, self._origin
        if not target.startswith(b"/") and target != b"*":
            named, path = self._absolute(target)
            place = place or named
            _refuse_other(place, named)
        if place is None:
            raise BadMessage("a proxy needs the whole address")
        for host in hosts:
            _refuse_other(place, _place(host.decode("latin-1"), 0))
        return place, path

    def _absolute(self, target: bytes) -> tuple[tuple[str, int], bytes]:
        try:
            parts = urlsplit(target.decode("ascii"))
        except ValueError:
            raise BadMessage("its address cannot be read") from None
        if parts.scheme.lower() != "http" or "@" in parts.netloc:
            raise BadMessage("only plain http addresses without a password are forwarded; https goes by CONNECT")
        path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
        if not path.startswith("/"):
            path = f"/{path}"
        return _place(parts.netloc, self._default_port), path.encode("ascii")

    async def _upstream_for(self, place: tuple[str, int]) -> Upstream:
        """The open connection to this host, judged again because the rules may have changed, or a new one."""
        try:
            if self._upstream is not None and self._place == place:
                if self._is_new:
                    # Judged a moment ago, when it was opened for this request.
                    self._is_new = False
                    return self._upstream
                await self._outside.judge(*place)
                if self._upstream.is_usable():
                    return self._upstream
            if self._upstream is not None:
                self._upstream.close()
                self._upstream = None
            self._upstream = await self._outside.connect(*place)
        except (OSError, TimeoutError):
            await self._client.send(refusal(f"{place[0]} did not answer.", "502 Bad Gateway"))
            raise Ended from None
        self._place = place
        return self._upstream


def status_line(response: Head) -> bytes:
    """The first line of a response, as it is sent on."""
    return b"HTTP/1.1 %b %b" % response.first[1:]


def _refuse_other(place: tuple[str, int], named: tuple[str, int]) -> None:
    """Refuse a request that names another host too, or another port where it names one."""
    if _same(named[0]) != _same(place[0]) or named[1] not in (0, place[1]):
        raise Refused(*named, f"the request is for {place[0]}:{place[1]}")


def _same(host: str) -> str:
    """The host, by one name for this machine."""
    ip = address_of(host)
    return "localhost" if ip is not None and ip.is_loopback else host


def _place(text: str, port: int) -> tuple[str, int]:
    try:
        return split_host(text, port)
    except ValueError:
        raise Refused(text, port, "it is not a plain host name") from None


def _authority(place: tuple[str, int], default_port: int) -> bytes:
    host = f"[{place[0]}]" if ":" in place[0] else place[0]
    return (host if place[1] == default_port else f"{host}:{place[1]}").encode("ascii")


def _upgrade(head: Head) -> list[tuple[bytes, bytes]]:
    """The fields that ask for, or grant, a WebSocket. Every other upgrade is left out, HTTP/2 in clear text above all."""
    if head.tokens(b"upgrade") == {b"websocket"} and b"upgrade" in head.tokens(b"connection"):
        return [(b"connection", b"Upgrade"), (b"upgrade", b"websocket")]
    return []

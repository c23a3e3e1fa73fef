"""The connection to the NATS server: outbound, kept up for as long as it is wanted, never plain where it must not be."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext

from computer_linker.errors import LinkError, ProviderUnavailable
from computer_linker.fleet.lasting import bounded, end, lasting
from computer_linker.fleet.place import credentials_of, may_be_plain, tls_of
from computer_linker.fleet.settings import Place

log = logging.getLogger(__name__)

LOST = (OSError, NatsError, TimeoutError)
"""What the client library raises when the server cannot be used."""
Take = Callable[[Msg], Awaitable[None]]
Turn = Callable[[], Awaitable[None]]
_CONNECT_S = 5
_PING_S = 5
_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class Wants:
    """What a link is for: what it listens to, and what happens when it comes up (again) or goes down."""

    listens: Mapping[str, Take]
    up: Turn
    down: Turn


class FleetLink:
    """One client of the server. Reconnects by itself; what was under way is the caller's business."""

    def __init__(self, place: Place, inbox: str, wants: Wants) -> None:
        self._place, self._inbox, self._wants = place, inbox, wants
        self._client: _GuardedClient | None = None
        self._lasting: list[asyncio.Task[None]] = []
        self._first = asyncio.Event()
        self.problem: str | None = None
        """Why it is not up, in the server's or the system's words."""

    @property
    def is_up(self) -> bool:
        return self._client is not None and self._client.is_connected

    @property
    def largest(self) -> int:
        """The most bytes the server takes in one message."""
        return self._client.max_payload if self._client is not None else 0

    def start(self) -> None:
        """Begin to connect, and go on until closed."""
        self._lasting = [lasting(self._keep, "the fleet's connection")]

    async def wait_up(self, seconds: float) -> bool:
        """True once it is up; False when that did not happen in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._first.wait()
        except TimeoutError:
            return False
        return self.is_up

    async def aclose(self) -> None:
        """Let go of the server."""
        await end(self._lasting)
        await self._let_go()

    async def publish(self, subject: str, payload: bytes, reply: str = "") -> None:
        """Hand one message to the server. Raises ProviderUnavailable when there is none."""
        if self._client is None or not self._client.is_connected:
            raise ProviderUnavailable("The fleet's server cannot be reached now.", reason=self.problem)
        try:
            await self._client.publish(subject, payload, reply)
        except LOST as error:
            raise ProviderUnavailable(f"The fleet's server did not take a message: {error}.") from error

    def jetstream(self, timeout_s: float = 5) -> JetStreamContext:
        """The server's store of streams."""
        if self._client is None:
            raise ProviderUnavailable("The fleet's server cannot be reached now.", reason=self.problem)
        return self._client.jetstream(timeout=timeout_s)

    async def flush(self) -> None:
        """Return once the server has everything that was published."""
        if self._client is not None and self._client.is_connected:
            await bounded(self._client.flush(timeout=_CONNECT_S), _CONNECT_S + 1)

    async def _keep(self) -> None:
        while True:
            closed = asyncio.Event()
            try:
                client = self._client = _GuardedClient(self._place)
                await self._connect(client, closed)
                # From here on a problem is one of the subjects, which the server may not let us hear.
                self.problem = None
                for subject, take in self._wants.listens.items():
                    await client.subscribe(subject, cb=take)
                await client.flush(timeout=_CONNECT_S)
            except (*LOST, LinkError) as error:
                self.problem = str(error) or type(error).__name__
                await self._let_go()
                await asyncio.sleep(_PAUSE_S)
                continue
            self._first.set()
            await self._wants.up()
            # The library reconnects by itself; it gives up only when the server turns it away for good.
            await closed.wait()
            await asyncio.sleep(_PAUSE_S)

    async def _let_go(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            try:
                await bounded(client.close(), _CONNECT_S)
            except LOST as error:
                log.debug("the fleet's server was left without a goodbye: %s", error)

    async def _connect(self, client: "_GuardedClient", closed: asyncio.Event) -> None:
        async def on_error(error: Exception) -> None:
            self.problem = str(error) or type(error).__name__

        async def on_closed() -> None:
            closed.set()

        async def on_down() -> None:
            # One that we let go of ourselves was not lost.
            if self._client is client:
                await self._wants.down()

        await client.connect(
            self._place.url, name="computer-linker", inbox_prefix=self._inbox, tls=tls_of(self._place),
            connect_timeout=_CONNECT_S, ping_interval=_PING_S, max_outstanding_pings=2, reconnect_time_wait=0.25,  # type: ignore[arg-type]  # seconds, parts of them too
            max_reconnect_attempts=-1, error_cb=on_error, closed_cb=on_closed, reconnected_cb=self._wants.up,
            disconnected_cb=on_down, signature_cb=client.signature, user_jwt_cb=client.jwt,
        )  # fmt: skip


class _GuardedClient(Client):
    """The library's client, which by itself would tell a server its credentials in the clear if that server says no TLS."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._place = place
        credentials = credentials_of(place.creds)
        self.signature = credentials.user.answer if credentials is not None else None
        self.jwt: Callable[[], bytes] | None = None
        if credentials is not None and credentials.jwt is not None:
            self.jwt = credentials.jwt.encode
        elif credentials is not None:
            self._public_nkey = credentials.user.public

    def _connect_command(self) -> bytes:
        # The first thing a client says. The greeting before it is not protected, so whoever is in between could have
        # taken the server's wish for TLS out of it, or pointed to another server.
        server = self._current_server
        writer = getattr(self._transport, "_io_writer", None)
        is_tls = writer is not None and writer.get_extra_info("ssl_object") is not None
        if not is_tls and not may_be_plain(self._place, server.uri.hostname if server is not None else None):
            raise NatsError("the server does not speak TLS; nothing was told to it")
        return super()._connect_command()

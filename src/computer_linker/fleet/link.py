"""The connection to the NATS server: outbound, kept up while it is wanted, with TLS wherever it is required."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext

from computer_linker.errors import LinkError, ProviderUnavailable
from computer_linker.fleet.credentials import credentials_of, may_be_plain, tls_of
from computer_linker.fleet.settings import ServerAddress
from computer_linker.fleet.tasks import bounded, cancel, restarting_task

log = logging.getLogger(__name__)

LOST = (OSError, NatsError, TimeoutError)
"""Exceptions of the client library when the server cannot be used."""
Handler = Callable[[Msg], Awaitable[None]]
Turn = Callable[[], Awaitable[None]]
_CONNECT_S = 5
_PING_S = 5
_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class Wants:
    """The subscriptions of a link, and its callbacks for connect, reconnect and disconnect."""

    listens: Mapping[str, Handler]
    up: Turn
    down: Turn


class FleetLink:
    """One client connection to the server. Reconnects by itself; calls in flight are up to the caller."""

    def __init__(self, place: ServerAddress, inbox: str, wants: Wants) -> None:
        self._place, self._inbox, self._wants = place, inbox, wants
        self._client: _GuardedClient | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._first = asyncio.Event()
        self.problem: str | None = None
        """Why it is not connected: the server's or the system's error text."""

    @property
    def is_up(self) -> bool:
        return self._client is not None and self._client.is_connected

    @property
    def largest(self) -> int:
        """The server's maximum message size in bytes."""
        return self._client.max_payload if self._client is not None else 0

    def start(self) -> None:
        """Begin to connect, and keep reconnecting until closed."""
        self._tasks = [restarting_task(self._run, "the fleet's connection")]

    async def wait_up(self, seconds: float) -> bool:
        """True once it is connected; False when that did not happen in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._first.wait()
        except TimeoutError:
            return False
        return self.is_up

    async def aclose(self) -> None:
        """Disconnect."""
        await cancel(self._tasks)
        await self._close()

    async def publish(self, subject: str, payload: bytes, reply: str = "") -> None:
        """Publish one message. Raises ProviderUnavailable without a connection."""
        if self._client is None or not self._client.is_connected:
            raise ProviderUnavailable("The fleet's server cannot be reached now.", reason=self.problem)
        try:
            await self._client.publish(subject, payload, reply)
        except LOST as error:
            raise ProviderUnavailable(f"The fleet's server did not take a message: {error}.") from error

    def jetstream(self, timeout_s: float = 5) -> JetStreamContext:
        """The server's JetStream context."""
        if self._client is None:
            raise ProviderUnavailable("The fleet's server cannot be reached now.", reason=self.problem)
        return self._client.jetstream(timeout=timeout_s)

    async def flush(self) -> None:
        """Return once the server has received everything that was published."""
        if self._client is not None and self._client.is_connected:
            await bounded(self._client.flush(timeout=_CONNECT_S), _CONNECT_S + 1)

    async def _run(self) -> None:
        while True:
            closed = asyncio.Event()
            try:
                client = self._client = _GuardedClient(self._place)
                await self._connect(client, closed)
                # From here on a problem concerns the subjects, for which the server may deny permission.
                self.problem = None
                for subject, take in self._wants.listens.items():
                    await client.subscribe(subject, cb=take)
                await client.flush(timeout=_CONNECT_S)
            except (*LOST, LinkError) as error:
                self.problem = str(error) or type(error).__name__
                await self._close()
                await asyncio.sleep(_PAUSE_S)
                continue
            self._first.set()
            await self._wants.up()
            # The library reconnects by itself; it gives up only when the server rejects it permanently.
            await closed.wait()
            await asyncio.sleep(_PAUSE_S)

    async def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            try:
                await bounded(client.close(), _CONNECT_S)
            except LOST as error:
                log.debug("the connection to the fleet's server was not closed in order: %s", error)

    async def _connect(self, client: "_GuardedClient", closed: asyncio.Event) -> None:
        async def on_error(error: Exception) -> None:
            self.problem = str(error) or type(error).__name__

        async def on_closed() -> None:
            closed.set()

        async def on_down() -> None:
            # A connection that we closed ourselves was not lost.
            if self._client is client:
                await self._wants.down()

        await client.connect(
            self._place.url, name="computer-linker", inbox_prefix=self._inbox, tls=tls_of(self._place),
            connect_timeout=_CONNECT_S, ping_interval=_PING_S, max_outstanding_pings=2, reconnect_time_wait=0.25,  # type: ignore[arg-type]  # seconds, parts of them too
            max_reconnect_attempts=-1, error_cb=on_error, closed_cb=on_closed, reconnected_cb=self._wants.up,
            disconnected_cb=on_down, signature_cb=client.signature, user_jwt_cb=client.jwt,
        )  # fmt: skip


class _GuardedClient(Client):
    """The library's client with TLS enforced: by itself it would send credentials in the clear to a server that offers no TLS."""

    def __init__(self, place: ServerAddress) -> None:
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
        # The first message of a client. The INFO before it is not protected, so a man in the middle could have
        # removed the server's TLS requirement from it, or named another server.
        server = self._current_server
        writer = getattr(self._transport, "_io_writer", None)
        is_tls = writer is not None and writer.get_extra_info("ssl_object") is not None
        if not is_tls and not may_be_plain(self._place, server.uri.hostname if server is not None else None):
            raise NatsError("the server does not speak TLS; nothing was told to it")
        return super()._connect_command()

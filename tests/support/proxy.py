"""A network between two computers that can be cut: a TCP relay of the test's own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Relay:
    """Passes bytes on. `cut` ends what is open; after `stop` nobody gets through; `cut_after` cuts once by itself."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._open: set[asyncio.StreamWriter] = set()
        self.server: asyncio.Server | None = None
        self.passed = 0
        self.cuts = 0
        self.cut_after: int | None = None
        self.address = ""

    def cut(self) -> None:
        """End every connection as a broken network does."""
        self.cuts += 1
        for writer in list(self._open):
            writer.transport.abort()

    def stop(self) -> None:
        """Cut, and let nobody in again."""
        if self.server is not None:
            self.server.close()
        self.cut()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
            self._open |= {writer, back}
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                self.passed += len(data)
                if self.cut_after is not None and self.passed > self.cut_after:
                    self.cut_after = None
                    self.cut()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            self._open.discard(writer)
            writer.close()


@asynccontextmanager
async def relay_to(port: int) -> AsyncIterator[Relay]:
    """A relay in front of a port of this machine."""
    relay = Relay(port)
    relay.server = await asyncio.start_server(relay.take, "127.0.0.1", 0)
    relay.address = f"127.0.0.1:{relay.server.sockets[0].getsockname()[1]}"
    try:
        yield relay
    finally:
        relay.stop()
        await asyncio.sleep(0)  # what was cancelled ends

"""TLS over a stream, from either side, without a file of keys and without a transport of asyncio's own."""

import asyncio
import ssl

from computer_linker.providers.network.stream import Stream

_PIECE = 262_144
_HANDSHAKE_S = 20.0


class TlsStream(Stream):
    """A stream whose bytes are encrypted on the socket; it takes the socket and the held bytes of another one."""

    can_splice = False

    def __init__(self, under: Stream, context: ssl.SSLContext, *, server_name: str | None = None) -> None:
        """`server_name` is the host whose certificate is demanded; None on the server's side."""
        super().__init__(under.handed_on(), under.limit)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._in.write(under.take(len(under.held)))
        is_server = server_name is None
        self._tls = context.wrap_bio(self._in, self._out, server_side=is_server, server_hostname=server_name)
        self._encrypted = memoryview(bytearray(_PIECE))
        self._flushing = asyncio.Lock()

    async def handshake(self) -> None:
        """Raises ssl.SSLError, or OSError and TimeoutError where the other side ends or is silent."""
        async with asyncio.timeout(_HANDSHAKE_S):
            while True:
                try:
                    self._tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    await self._flush()
                    await self._fill()
                except ssl.SSLError:
                    # The other side should see why.
                    await self._flush()
                    raise
            await self._flush()

    async def read_into(self, room: memoryview) -> int:
        count = 0
        while count < len(room):
            try:
                # At most one record of 16 KB at a time.
                got = self._tls.read(len(room) - count, room[count:])
            except ssl.SSLWantReadError:
                if count:
                    break
                await self._flush()
                await self._fill()
                continue
            except ssl.SSLZeroReturnError:
                break
            if not got:
                break
            count += int(got)
            if not self._tls.pending() and not self._in.pending:
                # To ask for more would raise, which costs as much as a small record.
                break
        return count

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        self._tls.write(data)
        await self._flush()

    async def finish(self) -> None:
        """Send the end of the encrypted stream, then that of the socket."""
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass
        await self._flush()
        await super().finish()

    def is_quiet(self) -> bool:
        """True while nothing but messages of TLS itself, such as tickets, waits to be read."""
        while not self.held:
            try:
                got = self.sock.recv(_PIECE)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not got:
                return False
            self._in.write(got)
            try:
                self.held += self._tls.read(1)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
        return False

    async def _fill(self) -> None:
        count = await self._received(self._encrypted)
        if count:
            self._in.write(self._encrypted[:count])
        else:
            self._in.write_eof()

    async def _flush(self) -> None:
        if not self._out.pending:
            return
        # What one task has encrypted must not stand within what another one sends.
        async with self._flushing:
            while self._out.pending:
                await super().send(self._out.read(_PIECE * 4))

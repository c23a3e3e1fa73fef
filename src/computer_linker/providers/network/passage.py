"""One connection through the gate: what it was for, how it was judged, and how much went through."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from computer_linker.providers.network.stream import Stream

_CONNECT_S = 20.0
Verdict = Literal["allowed", "refused", "failed"]


@dataclass(slots=True)
class Passage:
    """What the history keeps of a connection. Never a path, a header or a body."""

    host: str
    port: int
    verdict: Verdict
    why: str = ""
    entry: str | None = None
    """The entry of the scope's list that would allow what was refused."""
    sent: int = 0
    received: int = 0
    secrets: set[str] = field(default_factory=set)
    """Names of the secrets that a request used."""


class Upstream:
    """The connection to a host. Its passage is reported once, when it is closed."""

    def __init__(self, stream: Stream, passage: Passage, report: Callable[[Passage], None]) -> None:
        self.stream = stream
        self.passage = passage
        self._report: Callable[[Passage], None] | None = report

    async def send(self, data: bytes) -> None:
        self.sent(len(data))
        await self.stream.send(data)

    def sent(self, count: int) -> None:
        self.passage.sent += count

    def received(self, count: int) -> None:
        self.passage.received += count

    def refuse(self, why: str) -> None:
        """It was open, and what came then is not let through."""
        self.passage.verdict, self.passage.why = "refused", why

    def fail(self, why: str) -> None:
        """It was open, and its host cannot be trusted."""
        self.passage.verdict, self.passage.why = "failed", why

    def is_usable(self) -> bool:
        """True while it is open and idle, so that another request can follow."""
        return self.stream.is_quiet()

    def close(self) -> None:
        self.stream.close()
        report, self._report = self._report, None
        if report is not None:
            report(self.passage)


async def connected(addresses: list[str], port: int) -> Stream:
    """A connection to the first of these addresses that answers. Raises the last one's OSError."""
    error: OSError = OSError("the name has no address")
    for address in addresses:
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            try:
                # On this machine it is connected at once.
                sock.connect(_numeric(address, port))
            except BlockingIOError:
                async with asyncio.timeout(_CONNECT_S):
                    await asyncio.get_running_loop().sock_connect(sock, _numeric(address, port))
            return Stream(sock)
        except OSError as failed:
            sock.close()
            error = failed
        except BaseException:
            sock.close()
            raise
    raise error


@lru_cache(maxsize=1024)
def _numeric(address: str, port: int) -> tuple[str, int] | tuple[str, int, int, int]:
    """A socket address that needs no resolver."""
    plain, _, zone = address.partition("%")
    if ipaddress.ip_address(plain).version == 4:
        return plain, port
    return plain, port, 0, int(zone) if zone.isdigit() else 0

"""The bridge's socket. The server behind it is imported with the first connection: few services ever need it."""

import asyncio
import hashlib
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from computer_linker import home as places
from computer_linker.computer.base import Computer
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.model.principal import Principal
from computer_linker.services import Services
from computer_linker.system import channel, os, peer_ids, process_name, started_at, user_name
from computer_linker.transports.bridge import MAX_LINE
from computer_linker.transports.local_callers import LocalCallers

if TYPE_CHECKING:
    from computer_linker.transports.bridge.server import Bridge

_ENDS_S = 5.0


class BridgeListener:
    """Accepts local programs that speak the bridge's protocol."""

    def __init__(self, services: Services, dispatcher: Dispatcher, computer: Computer) -> None:
        self._parts = (services, dispatcher, computer)
        self._callers = LocalCallers(dispatcher)
        self._bridge: Bridge | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._close: Callable[[], None] = lambda: None
        self.last_active = time.monotonic()

    @property
    def connections(self) -> int:
        return len(self._connections)

    async def listen(self, home: Path) -> None:
        """Accept on the private socket beneath the state folder. The caller holds the service's lock."""
        listener = socket.socket(fileno=places.listen(os.fspath(home), places.BRIDGE_NAME).detach())
        self._close = lambda: channel.remove(os.fspath(home), places.BRIDGE_NAME, listener)
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=MAX_LINE)

    async def aclose(self) -> None:
        """Close every connection and cancel its requests."""
        if self._server is None:
            return
        self._server.close()
        self._close()
        for task in list(self._connections):
            task.cancel()
        if self._connections:
            await asyncio.wait(list(self._connections), timeout=_ENDS_S)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from computer_linker.transports.bridge.server import Bridge, refused

        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            link = writer.get_extra_info("socket")
            refusal = await self._callers.refusal(link)
            peer = peer_of(link)
            if refusal:
                writer.write(refused(refusal))
            elif peer is not None and refusal is None:
                if self._bridge is None:
                    self._bridge = Bridge(*self._parts)
                await self._bridge.serve(peer, reader, writer)
        except (ConnectionError, TimeoutError):
            pass
        except asyncio.CancelledError:
            # Only `aclose` cancels a connection; the streams module would log it as a failure.
            return
        finally:
            self._connections.discard(task)
            self.last_active = time.monotonic()
            writer.close()


# The process at the other end of the bridge's socket, from kernel credentials: its start time tells a reused pid
# apart.


@dataclass(frozen=True, slots=True)
class Peer:
    """One process: its pid, start time and user."""

    pid: int
    uid: int
    started: int

    @property
    def digest(self) -> str:
        """A short name of this process for people to compare; no check relies on it."""
        return hashlib.sha256(self._name.encode()).hexdigest()[:16]

    @property
    def is_there(self) -> bool:
        """False once the process has ended, also when another process has its pid by now."""
        return started_at(self.pid) == self.started

    def principal(self) -> Principal:
        """The caller. Tokens are bound to this process: a later one with the same pid is another connection."""
        return Principal(
            f"bridge:{user_name(self.uid)}", "bridge", self._name, self._name, f"bridge:{process_name(self.pid)[:80]}"
        )

    def shown(self) -> dict[str, object]:
        return {"pid": self.pid, "auditTokenDigest": self.digest}

    @property
    def _name(self) -> str:
        return f"bridge:{self.uid}:{self.pid}:{self.started}"


def peer_of(link: socket.socket) -> Peer | None:
    """The process that connected; None when it is another user's, or has ended."""
    pid, uid = peer_ids(link)
    started = started_at(pid)
    if uid not in (os.getuid(), 0) or started is None:
        return None
    return Peer(pid, uid, started)

"""The check at every TCP port of the service: a process that a command started is not answered, whatever it presents."""

import asyncio
import socket

import anyio
from anyio import to_thread

from computer_linker.computer.base import Computer
from computer_linker.computer.local.linux.tcp_callers import Address, Commands, TcpCallers
from computer_linker.transports.refusals import STARTED_BY_SERVICE, RefusalNotes

_AT_ONCE = 2
"""Looks under way at a time: a command that opens many connections must not keep the service busy."""


class TcpEntrance:
    """Decides once for each connection, for as long as it lives."""

    def __init__(self, computer: Computer, notes: RefusalNotes, *, for_tunnel: bool = False) -> None:
        is_known = computer.capabilities().facets["processes"].backend == "launcher"
        commands: Commands | None = computer.processes if is_known else None  # type: ignore[assignment]  # the launcher's
        self._callers = TcpCallers(commands, for_tunnel=for_tunnel) if commands is not None else None
        self._notes = notes
        self._noting: set[asyncio.Task[None]] = set()
        self._limiter = anyio.CapacityLimiter(_AT_ONCE)

    @property
    def is_needed(self) -> bool:
        """False while no command has been started: then there is nothing to refuse."""
        return self._callers is not None and self._callers.is_needed

    def at_once(self, here: Address, there: Address | None) -> bool | None:
        """Whether a connection may come in; None when that has to be found out by `after_a_look`."""
        return self._callers.at_once(here, there) if self._callers is not None else True

    async def after_a_look(self, here: Address, there: Address) -> bool:
        """Whether a connection may come in, by a look at what every process has open."""
        if self._callers is None:
            return True
        return await to_thread.run_sync(self._callers.after_a_look, here, there, limiter=self._limiter)

    async def admits(self, link: socket.socket, peer: str) -> bool:
        """Whether a connection may come in; one that may not is in the history."""
        try:
            here, there = link.getsockname(), link.getpeername()
        except OSError:
            return False
        found = self.at_once(here, there) if self.is_needed else True
        if found is None:
            found = await self.after_a_look(here, there)
        if not found:
            self.note(peer)
        return found

    def note(self, peer: str) -> None:
        """Have a refusal written to the history."""
        task = asyncio.get_running_loop().create_task(self._notes.note(peer, STARTED_BY_SERVICE))
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)

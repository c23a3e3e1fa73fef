"""The check at every TCP port of the service: a process that a command started is refused, whatever it presents."""

import asyncio
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread

from computer_linker.computer.base import Computer
from computer_linker.transports.refusals import STARTED_BY_SERVICE, RefusalNotes

if TYPE_CHECKING:
    from computer_linker.computer.local.linux.tcp_callers import Address, Commands, Link, TcpCallers

_SCANS, _PAUSE_S = 3, 0.02
"""How often the owner of a connection is searched for, and the pause between the searches."""


@dataclass(slots=True)
class _Waiting:
    """A connection whose owner is not known yet."""

    link: "Link"
    verdict: "asyncio.Future[bool]"
    scans: int = 0


class TcpEntrance:
    """Decides once for each connection, for its lifetime."""

    def __init__(self, computer: Computer, notes: RefusalNotes, *, for_tunnel: bool = False) -> None:
        self._computer, self._callers = computer, _callers(computer, for_tunnel)
        self._notes = notes
        self._noting: set[asyncio.Task[None]] = set()
        self._waiting: list[_Waiting] = []
        self._scanning: asyncio.Task[None] | None = None

    @property
    def is_needed(self) -> bool:
        """False while no command has been started: then there is nothing to refuse."""
        return self._callers is not None and self._callers.is_needed

    def check_fast(self, local: "Address", remote: "Address | None") -> bool | None:
        """Whether a connection is admitted; None when that needs a scan by `check_by_scan`."""
        return self._callers.check_fast(local, remote) if self._callers is not None else True

    async def check_by_scan(self, local: "Address", remote: "Address") -> bool:
        """Whether a connection is admitted, by a scan of the open files of every process.

        One scan serves all connections that wait for it, so that each waits for at most two scans.
        """
        if self._callers is None:
            return True
        loop = asyncio.get_running_loop()
        waiting = _Waiting((local, remote), loop.create_future())
        self._waiting.append(waiting)
        if self._scanning is None or self._scanning.done():
            self._scanning = loop.create_task(self._scan(self._callers))
        return await waiting.verdict

    async def _scan(self, callers: "TcpCallers") -> None:
        batch: list[_Waiting] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await self._answer(batch, await to_thread.run_sync(callers.check_by_scan, [one.link for one in batch]))
        finally:
            # Whatever happens here, a waiting connection gets a verdict.
            for one in (*batch, *self._waiting):
                if not one.verdict.done():
                    one.verdict.set_result(False)
            self._waiting = []

    async def _answer(self, batch: list[_Waiting], verdicts: list[bool | None]) -> None:
        for one, verdict in zip(batch, verdicts, strict=True):
            one.scans += 1
            if one.verdict.done():
                continue
            if verdict is None and one.scans < _SCANS:
                self._waiting.append(one)
            else:
                one.verdict.set_result(verdict is True)
        if self._waiting and all(one.scans for one in self._waiting):
            await asyncio.sleep(_PAUSE_S)

    async def is_of_application(self, local: "Address", remote: "Address") -> bool:
        """Whether an application that a client opened is at the other end: it may show pages, and is never the owner."""
        if self._callers is None or not getattr(self._computer.apps, "has_opened", False):
            return False
        return await to_thread.run_sync(self._callers.is_of_application, local, remote)

    async def admits(self, link: socket.socket, peer: str) -> bool:
        """Whether a connection is admitted; a refused one is audited."""
        try:
            local, remote = link.getsockname(), link.getpeername()
        except OSError:
            return False
        found = self.check_fast(local, remote) if self.is_needed else True
        if found is None:
            found = await self.check_by_scan(local, remote)
        if not found:
            self.note(peer)
        return found

    def note(self, peer: str) -> None:
        """Audit a refusal."""
        task = asyncio.get_running_loop().create_task(self._notes.note(peer, STARTED_BY_SERVICE))
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)


def _callers(computer: Computer, for_tunnel: bool) -> "TcpCallers | None":
    """The check by the launcher's processes; None on systems without a launcher."""
    if computer.capabilities().facets["processes"].backend != "launcher":
        return None
    from computer_linker.computer.local.linux.tcp_callers import TcpCallers

    commands: Commands = computer.processes  # type: ignore[assignment]  # the launcher's
    return TcpCallers(commands, for_tunnel=for_tunnel)

"""Callers admitted to a private socket: processes of this user that the service did not start itself."""

import socket

from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.system import comes_from_below, os, peer_ids, process_name
from computer_linker.transports.refusals import STARTED_BY_SERVICE, RefusalNotes

STARTED_HERE = (
    "This program was started by the service itself (through a command, an agent or an application), or has ended: "
    "such a program is never taken for the owner. Start it from a terminal or a client of your own."
)
WRONG_KEY = (
    "This program did not prove that it knows the owner's key: "
    "use the computer-linker of the service's version, with the same state folder."
)


class LocalCallers:
    """Distinguishes the owner's programs from others, and audits the refused ones."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._notes = RefusalNotes(dispatcher, "socket")

    async def refusal(self, link: socket.socket) -> str | None:
        """Why the process at the other end is refused, empty where it gets no reply at all; None when it is admitted."""
        if peer_ids(link)[1] not in (os.getuid(), 0):
            await self.note(link, "another_user")
            return ""
        if comes_from_below(link, os.getpid()):
            await self.note(link, STARTED_BY_SERVICE)
            return STARTED_HERE
        return None

    async def note(self, link: socket.socket, rule: str) -> None:
        """Audit one refused process."""
        pid, _ = peer_ids(link)
        await self._notes.note(f"{pid}-{process_name(pid)[:40]}", rule)

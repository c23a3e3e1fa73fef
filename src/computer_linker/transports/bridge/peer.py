"""Who is at the other end of the bridge's socket, as the kernel says: a process, not a number that can be reused."""

import hashlib
import os
import pwd
import socket
import struct
from dataclasses import dataclass

from computer_linker.computer.local.linux.proc import process_name, started_at
from computer_linker.model.principal import Principal


@dataclass(frozen=True, slots=True)
class Peer:
    """One process: its id, when it started, and whose it is."""

    pid: int
    uid: int
    started: int

    @property
    def digest(self) -> str:
        """A short name of this process for people to compare; never what a check relies on."""
        return hashlib.sha256(self._name.encode()).hexdigest()[:16]

    @property
    def is_there(self) -> bool:
        """False once the process has ended, also when another one has its id by now."""
        return started_at(self.pid) == self.started

    def principal(self) -> Principal:
        """The caller. Tokens are bound to this very process: a later one of the same id is another connection."""
        return Principal(
            f"bridge:{_user(self.uid)}", "bridge", self._name, self._name, f"bridge:{process_name(self.pid)[:80]}"
        )

    def shown(self) -> dict[str, object]:
        return {"pid": self.pid, "auditTokenDigest": self.digest}

    @property
    def _name(self) -> str:
        return f"bridge:{self.uid}:{self.pid}:{self.started}"


def peer_of(link: socket.socket) -> Peer | None:
    """The process that connected; None when it is another user's, or already gone."""
    raw = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    started = started_at(pid)
    if uid not in (os.getuid(), 0) or started is None:
        return None
    return Peer(pid, uid, started)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)

"""The process at the other end of the bridge's socket, from kernel credentials: its start time tells a reused pid apart."""

import hashlib
import os
import pwd
import socket
from dataclasses import dataclass

from computer_linker.model.principal import Principal
from computer_linker.system import peer_ids, process_name, started_at


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
            f"bridge:{_user(self.uid)}", "bridge", self._name, self._name, f"bridge:{process_name(self.pid)[:80]}"
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


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)

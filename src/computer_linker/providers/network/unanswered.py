"""Connections inside a program's own network that nothing accepted, such as one to `localhost:5432` that the list does not name.

They never reach the gate: the kernel refuses them inside. A packet socket of that network receives its answers alone.
"""

import ipaddress
import socket
from collections.abc import Iterator

AF_PACKET = getattr(socket, "AF_PACKET", None)
_RST = 0x04
_MAX_PLACES = 1024
_BYTES = 96

Place = tuple[str, int]


class Unanswered:
    """Which places refused a connection and accepted none since: a program may wait for its own server to come up."""

    def __init__(self, sock: socket.socket) -> None:
        """`sock` receives the answers to connections, and belongs to this object from now on."""
        sock.setblocking(False)
        self._sock = sock
        self._refused: dict[Place, Place] = {}
        self._is_known: set[Place] = set()

    def taken(self) -> list[Place]:
        """The places of refusals since the last call, each once."""
        for address, port, is_refused in self._answers():
            # This machine is one place in both families: a name is tried at ::1 and then at 127.0.0.1.
            key = ("" if ipaddress.ip_address(address).is_loopback else address, port)
            if not is_refused:
                self._refused.pop(key, None)
                self._is_known.add(key)
            elif key not in self._is_known and len(self._refused) < _MAX_PLACES:
                self._refused.setdefault(key, (address, port))
        self._is_known.update(self._refused)
        found, self._refused = list(self._refused.values()), {}
        return found

    def close(self) -> None:
        self._sock.close()

    def _answers(self) -> Iterator[tuple[str, int, bool]]:
        # The socket's buffer bounds how many there are.
        while True:
            try:
                packet = self._sock.recv(_BYTES)
            except OSError:
                return
            if packet[0] >> 4 == 4:
                start, family, source = (packet[0] & 15) * 4, socket.AF_INET, packet[12:16]
            else:
                start, family, source = 40, socket.AF_INET6, packet[8:24]
            port = int.from_bytes(packet[start : start + 2], "big")
            yield socket.inet_ntop(family, source), port, bool(packet[start + 13] & _RST)

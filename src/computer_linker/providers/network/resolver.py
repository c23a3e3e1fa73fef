"""The resolver inside a program's network: allowed names get an address of that network, every other name does not exist.

It forwards no query, so that a name carries nothing out. The host's real address is resolved when a connection comes.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Callable

from computer_linker.computer.facets.processes import NAMED_RANGE
from computer_linker.model.network import canonical_host
from computer_linker.providers.network.reach import NOT_LISTED, Reach, Refused

_A, _ANY, _IN = 1, 255, 1
_NO_NAME, _FAILED = 3, 2
_TTL_S = 60
_MAX_NAMES = 4096
_FIRST = ipaddress.IPv4Address(NAMED_RANGE[0]) + 256


class Resolver:
    """Gives names their addresses, and finds the name of each."""

    def __init__(self, reach: Reach, refused: Callable[[Refused], None]) -> None:
        self._reach = reach
        self._refused = refused
        self._addresses: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._asked: set[str] = set()

    def name_of(self, address: str, port: int = 0) -> str:
        """The name that an address stands for, `localhost` for one of this machine's that is not listed; or itself."""
        ip = ipaddress.ip_address(address)
        plain = (ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None) or ip
        own = str(plain)
        if plain.is_loopback and not any(entry.covers(own, port) for entry in self._reach.rules().entries):
            return "localhost"
        return self._names.get(own, own)

    def listen(self, sock: socket.socket) -> None:
        """Answer queries at a socket, which belongs to the resolver from now on."""
        sock.setblocking(False)
        self._sock = sock
        asyncio.get_running_loop().add_reader(sock.fileno(), self._answer_one)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._sock.fileno())
        self._sock.close()

    def _answer_one(self) -> None:
        try:
            query, sender = self._sock.recvfrom(4096)
            answer = self.answer(query)
            if answer:
                self._sock.sendto(answer, sender)
        except OSError:
            return

    def answer(self, query: bytes) -> bytes:
        """The response to a query; empty for what is no query."""
        if len(query) < 12 or query[2] & 0x80 or int.from_bytes(query[4:6], "big") != 1:
            return b""
        try:
            name, end = _name_in(query)
        except (IndexError, ValueError):
            return b""
        kind, family = int.from_bytes(query[end : end + 2], "big"), int.from_bytes(query[end + 2 : end + 4], "big")
        question = query[12 : end + 4]
        address = self._address(name) if family == _IN else None
        if address is None:
            return _response(query, question, _NO_NAME)
        if kind not in (_A, _ANY):
            # The name exists; for IPv6, services and the rest there is nothing.
            return _response(query, question, 0)
        record = b"\xc0\x0c\0\1\0\1" + _TTL_S.to_bytes(4, "big") + b"\0\4" + ipaddress.IPv4Address(address).packed
        return _response(query, question, 0, record)

    def _address(self, asked: str) -> str | None:
        try:
            name = canonical_host(asked)
        except ValueError:
            return None
        if name == "localhost":
            return "127.0.0.1"
        rules = self._reach.rules()
        if not (rules.everything or rules.asks or rules.names(name)):
            if name not in self._asked and len(self._asked) < _MAX_NAMES and not name.endswith(".arpa"):
                self._asked.add(name)
                self._refused(Refused(name, 0, NOT_LISTED, name))
            return None
        if name not in self._addresses:
            if len(self._addresses) >= _MAX_NAMES:
                return None
            address = str(_FIRST + len(self._addresses))
            self._addresses[name], self._names[address] = address, name
        return self._addresses[name]


def _name_in(query: bytes) -> tuple[str, int]:
    """The name of the question, and where its type begins."""
    labels, at = [], 12
    while size := query[at]:
        if size > 63:
            raise ValueError
        # A dot within a label is no separator; as any other character there, it makes the name unknown.
        labels.append(query[at + 1 : at + 1 + size].decode("latin-1").replace(".", "\0"))
        at += 1 + size
    if len(query) < at + 5:
        raise IndexError
    return ".".join(labels), at + 1


def _response(query: bytes, question: bytes, code: int, record: bytes = b"") -> bytes:
    flags = (0x8180 | (query[2] & 0x79) << 8 | code).to_bytes(2, "big")
    return query[:2] + flags + b"\0\1" + (1 if record else 0).to_bytes(2, "big") + bytes(4) + question + record

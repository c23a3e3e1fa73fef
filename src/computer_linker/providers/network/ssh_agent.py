"""An SSH agent inside one command's sandbox: it signs a login to the one host that a key is for, and nothing else.

A client binds its connection to a session first (`session-bind@openssh.com`, OpenSSH 8.9 and later): the host's own signature
of the session proves which host it is with. It must be a key that the owner recorded, and the gate must have seen that
signature on an open connection of this command to that host, so that no session elsewhere can be logged in.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from computer_linker.providers.network.passage import Passage, Upstream
from computer_linker.providers.network.stream import Stream
from computer_linker.vault.ssh_key import SshKey, is_signed_by
from computer_linker.vault.ssh_wire import Unreadable, Wire, string

log = logging.getLogger(__name__)
_FAILURE, _SUCCESS = b"\5", b"\6"
_REQUEST_IDENTITIES, _IDENTITIES = 11, b"\x0c"
_SIGN_REQUEST, _SIGNED = 13, b"\x0e"
_EXTENSION, _SESSION_BIND = 27, b"session-bind@openssh.com"
_USERAUTH_REQUEST = b"\x32"
_PLAIN, _HOSTBOUND = b"publickey", b"publickey-hostbound-v00@openssh.com"
_MAX_MESSAGE = 262_144
_WATCHED = 65_536
"""Bytes of a host in which its signature of the session is: version, algorithms, and the end of the key exchange."""


class AgentKey(NamedTuple):
    """A key, and the only place where it logs in."""

    name: str
    host: str
    port: int
    user: str
    """Empty for every user."""
    host_keys: frozenset[bytes]
    key: SshKey


class Witness:
    """What hosts sent at the start of each SSH connection that is open through the gate."""

    def __init__(self, hosts: Callable[[], frozenset[tuple[str, int]]]) -> None:
        self._hosts = hosts
        self._open: dict[_Watched, Passage] = {}

    def watch(self, upstream: Upstream) -> None:
        """Keep the start of what a host that has a key sends."""
        passage = upstream.passage
        if (passage.host, passage.port) in self._hosts():
            watched = _Watched(upstream.stream, lambda one: self._open.pop(one, None))
            self._open[watched] = passage
            upstream.stream = watched

    def passage(self, host: str, port: int, signature: bytes) -> Passage | None:
        """The open connection to this host on which this signature came."""
        wanted = string(signature)
        return next(
            (
                passage
                for stream, passage in self._open.items()
                if (passage.host, passage.port) == (host, port) and wanted in stream.seen and stream.sock.fileno() >= 0
            ),
            None,
        )


class _Watched(Stream):
    """A stream that keeps the first bytes it reads."""

    def __init__(self, under: Stream, closed: "Callable[[_Watched], object]") -> None:
        super().__init__(under.handed_on(), under.limit)
        self.held = under.held
        self.seen = bytearray(under.held)
        self._closed = closed

    async def read_into(self, room: memoryview) -> int:
        count = await super().read_into(room)
        if len(self.seen) < _WATCHED:
            self.seen += room[:count]
        return count

    def close(self) -> None:
        super().close()
        self._closed(self)


class SshAgent:
    """Serves the connections of one command. Keys are looked up for each message, so that a revocation applies at once."""

    def __init__(self, keys: Callable[[], list[AgentKey]]) -> None:
        self.loaded = keys
        self.witness = Witness(lambda: frozenset((each.host, each.port) for each in keys()))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer messages until the client ends, or sends one that is too long."""
        conversation = _Conversation(self)
        while 0 < (size := int.from_bytes(await reader.readexactly(4), "big")) <= _MAX_MESSAGE:
            try:
                answer = conversation.answer(await reader.readexactly(size))
            except Unreadable:
                answer = _FAILURE
            writer.write(string(answer))
            await writer.drain()


class _Bound(NamedTuple):
    """The session that a connection is bound to."""

    session: bytes
    host_key: bytes
    passage: Passage

    def is_for(self, key: AgentKey) -> bool:
        is_there = (self.passage.host, self.passage.port) == (key.host, key.port)
        return is_there and self.host_key in key.host_keys


class _Conversation:
    """One connection to the agent."""

    def __init__(self, agent: SshAgent) -> None:
        self._agent = agent
        self._bound: _Bound | None = None
        self._is_over = False
        """A second host is named on it, or it is forwarded to one: nothing is signed on it any more."""

    def answer(self, message: bytes) -> bytes:
        """The answer to a message. Raises Unreadable for a malformed one."""
        wire = Wire(message)
        match wire.take(1)[0]:
            case kind if kind == _REQUEST_IDENTITIES:
                wire.finish()
                keys = self._usable()
                listed = (string(each.key.public) + string(each.name.encode()) for each in keys)
                return _IDENTITIES + len(keys).to_bytes(4, "big") + b"".join(listed)
            case kind if kind == _SIGN_REQUEST:
                return self._signed(wire.string(), wire.string(), wire)
            case kind if kind == _EXTENSION and wire.string() == _SESSION_BIND:
                return self._bind(wire)
            case kind:
                # To add, remove or lock keys, and to sign for anything but a login.
                log.debug("the SSH agent of a command refused message %d", kind)
                return _FAILURE

    def _usable(self) -> list[AgentKey]:
        bound = self._bound
        return [] if bound is None or self._is_over else [each for each in self._agent.loaded() if bound.is_for(each)]

    def _bind(self, wire: Wire) -> bytes:
        host_key, session, signature, is_forwarded = wire.string(), wire.string(), wire.string(), wire.flag()
        wire.finish()
        if self._bound is not None or is_forwarded:
            self._is_over = True
            return _FAILURE
        for key in self._agent.loaded():
            if host_key in key.host_keys and is_signed_by(host_key, signature, session):
                passage = self._agent.witness.passage(key.host, key.port, signature)
                if passage is not None:
                    self._bound = _Bound(session, host_key, passage)
                    return _SUCCESS
        log.info("the SSH agent of a command refused a session that is not with the host of one of its keys")
        return _FAILURE

    def _signed(self, public: bytes, data: bytes, wire: Wire) -> bytes:
        flags = wire.uint32()
        wire.finish()
        key = next((each for each in self._usable() if each.key.public == public), None)
        if key is None or self._bound is None or not _is_login(data, key, self._bound):
            log.info("the SSH agent of a command refused to sign what is not a login to the host of its key")
            return _FAILURE
        self._bound.passage.secrets.add(key.name)
        return _SIGNED + string(key.key.signed(data, flags))


def _is_login(data: bytes, key: AgentKey, bound: _Bound) -> bool:
    """Whether the data to sign is a login with this key in the bound session, and nothing else (RFC 4252 section 7)."""
    wire = Wire(data)
    try:
        is_session = wire.string() == bound.session and wire.take(1) == _USERAUTH_REQUEST
        user, service, method = wire.string(), wire.string(), wire.string()
        is_whole = wire.flag()
        wire.string()
        is_key = wire.string() == key.key.public
        is_host = method == _PLAIN or (method == _HOSTBOUND and wire.string() == bound.host_key)
        wire.finish()
    except Unreadable:
        return False
    is_user = not key.user or user == key.user.encode()
    return is_session and is_user and service == b"ssh-connection" and is_whole and is_key and is_host

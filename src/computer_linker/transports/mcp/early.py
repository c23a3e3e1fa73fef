"""Answers the opening of a connection for the stdio shim, from a prepared file, while the service starts.

The shim imports this while a client waits: only C modules of the standard library.
"""

from __future__ import annotations

import select
import time
from _json import encode_basestring_ascii, make_scanner
from binascii import crc32

from computer_linker import __version__
from computer_linker.system import os, write_all
from computer_linker.transports.mcp.handshake import META_RENDER, META_SURFACE, Opening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from computer_linker.transports.mcp.handshake import Era

FILE_NAME = f"answers-{__version__}.json"
"""In the state folder; `prepared.py` writes it."""
_MAX_FILE = 4_000_000
_MAX_PENDING = 1_000_000
_MAX_ID = 256
_INTERNAL = -32603
_RENDERS = ("json", "model")


class _Parsing:
    """What the C scanner reads of a JSON decoder; the `json` module around it would cost a fifth of the shim's start."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # the scanner clears it


_scan = make_scanner(_Parsing())  # type: ignore[arg-type]  # the stub asks for a scanner, CPython for its context


class EarlyAnswers(Opening):
    """One client's connection until the service takes it: what was answered, and what waits."""

    era: Era = "undecided"
    version: str | None = None
    handshake: dict[str, Any] | None = None

    def __init__(self, prepared: dict[str, Any], render: str, surface: str) -> None:
        self._prepared = prepared
        self._render, self._surface = render, surface
        self._chosen: str | None = None
        self._shown = "json"
        """The rendering of this client's results."""
        self._partial = b""
        self._is_open = True
        self.answered: list[bytes] = []
        """The requests that were answered here, which the service needs to know the client."""
        self.waiting: list[bytes] = []
        """Messages that only the service can take."""
        self.digest = 0
        """Of the list of tools that was given; the service compares it with its own."""

    def meet(self, client: str | None, capabilities: dict[str, Any], meta: Any) -> None:
        """Choose the list of tools by the client's name, unless it asks for one in its own request."""
        name = (client or "").lower()
        rows = self._prepared["profiles"]
        render, size = next((row[1:] for row in rows if name.startswith(row[0])), ("json", ""))
        asks = type(meta) is dict and (META_RENDER in meta or META_SURFACE in meta)
        if asks and meta.get(META_RENDER) in _RENDERS:
            self._render = meta[META_RENDER]
        self._shown = self._render if self._render in _RENDERS else render
        self._chosen = None if asks else f"{self._surface}{size}"

    def initialized(self, version: str) -> bytes:
        found: str = self._prepared["initialize"][version]
        return found.encode()

    def discovered(self) -> bytes:
        found: str = self._prepared["discover"]
        return found.encode()

    def listed(self, known: Any) -> bytes | None:
        found: str | None = self._prepared["lists"].get(self._chosen)
        if found is None:
            return None
        self.digest = crc32(found.encode())
        return found.encode()

    def modern_tail(self) -> bytes:
        found: str = self._prepared["modernTail"]
        return found.encode()

    def wait(self, other: int | None, within_s: float) -> bool:
        """Answer until the other descriptor can be read (True), or for so long (False).

        Raises BrokenPipeError when the client has left and waits for no answer.
        """
        deadline = time.monotonic() + within_s
        while True:
            watched = ([] if other is None else [other]) + ([0] if self._reads() else [])
            left_s = deadline - time.monotonic()
            ready = select.select(watched, [], [], max(0.0, left_s))[0]
            if 0 in ready:
                self.read()
            if other in ready:
                return True
            if not self._is_open and not self.waiting:
                raise BrokenPipeError(32, "the client has left")
            if left_s <= 0:
                return False

    def _reads(self) -> bool:
        return self._is_open and sum(map(len, self.waiting)) + len(self._partial) < _MAX_PENDING

    def read(self) -> bool:
        """Read what the client sent and answer what can be answered; False at the end of its input."""
        data = os.read(0, 65536)
        self._is_open = bool(data)
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self._take(line)
        return self._is_open

    def _take(self, line: bytes) -> None:
        message = _message(line)
        if message is not None and message.get("method") == "notifications/initialized" and self.handshake is not None:
            # It belongs to the handshake that was answered here.
            return
        handle = None if message is None else _handle(message)
        result = None if message is None or handle is None else self.answer(message, self)
        if result is None or handle is None:
            self.waiting.append(line)
            return
        self.answered.append(line)
        write_all(1, b'{"jsonrpc":"2.0","id":' + handle + b',"result":' + result + b"}\n")

    def refuse(self, reason: str, hint: str) -> None:
        """Answer every waiting request with the reason why there is no service."""
        text = encode_basestring_ascii(f"provider_unavailable: {reason}\nhint: {hint}").encode()
        for line in self.waiting:
            message = _message(line)
            handle = None if message is None else _handle(message)
            if message is None or handle is None:
                continue
            if message.get("method") == "tools/call":
                body = b'"result":' + self._refused_call(message.get("params"), reason, hint)
            else:
                body = b'"error":{"code":%d,"message":%b}' % (_INTERNAL, text)
            write_all(1, b'{"jsonrpc":"2.0","id":' + handle + b"," + body + b"}\n")
        self.waiting.clear()

    def _refused_call(self, params: Any, reason: str, hint: str) -> bytes:
        # It imports what the start of the shim must not wait for.
        from computer_linker.transports.mcp.early_refusal import refused_call

        is_modern = self.is_modern(params, self)
        return refused_call(params, reason, hint, render=self._shown, is_modern=is_modern)

    def handed_over(self) -> tuple[bytes, bytes]:
        """The answered requests, and everything that the service is to read before the client's own pipe."""
        lines = b"".join(line + b"\n" for line in self.answered)
        return lines, b"".join(line + b"\n" for line in self.waiting) + self._partial


def load(home: str, environment: dict[str, str]) -> EarlyAnswers | None:
    """The answers that a service of this version prepared in this state folder; None when there are none."""
    from computer_linker.home import chosen

    try:
        fd = os.open(os.path.join(home, FILE_NAME), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if os.fstat(fd).st_uid not in (os.getuid(), 0):
            return None
        raw = os.read(fd, _MAX_FILE)
    finally:
        os.close(fd)
    prepared = _message(raw)
    if prepared is None or not prepared.keys() >= {"profiles", "initialize", "discover", "lists", "modernTail"}:
        return None
    choices = chosen(environment)
    return EarlyAnswers(prepared, choices.get("render", ""), choices.get("surface", "default"))


def _message(line: bytes) -> dict[str, Any] | None:
    """A JSON object; None for anything else, which is left to the service's own parser."""
    try:
        text = line.decode().strip(" \t\r\n")
        value, end = _scan(text, 0)
    except (ValueError, StopIteration, RecursionError):
        return None
    return value if type(value) is dict and end == len(text) else None


def _handle(message: dict[str, Any]) -> bytes | None:
    """The id of a well-formed request, as JSON; None for a notification or an answer."""
    handle = message.get("id")
    if message.get("jsonrpc") != "2.0" or type(message.get("method")) is not str or "result" in message:
        return None
    if type(handle) is int:
        return str(handle).encode()
    return encode_basestring_ascii(handle).encode() if type(handle) is str and len(handle) <= _MAX_ID else None

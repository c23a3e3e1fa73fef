"""The Wayland wire protocol: requests and events over one socket, with descriptors beside them."""

import array
import os
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from computer_linker.errors import ExecutionFailed, ProviderUnavailable, UnsupportedPlatform

Handler = Callable[["Event"], None]
_TIMEOUT_S = 5.0
_AT_ONCE = 3_500
_DISPLAY = 1


@dataclass
class Event:
    """One event: its opcode, and its packed arguments."""

    opcode: int
    body: bytes
    wire: "Wire"
    _at: int = 0

    def unsigned(self) -> int:
        """The next unsigned number."""
        (value,) = struct.unpack_from("=I", self.body, self._at)
        self._at += 4
        return int(value)

    def signed(self) -> int:
        """The next signed number."""
        (value,) = struct.unpack_from("=i", self.body, self._at)
        self._at += 4
        return int(value)

    def text(self) -> str:
        """The next string."""
        length = self.unsigned()
        raw = self.body[self._at : self._at + max(0, length - 1)]
        self._at += length + -length % 4
        return raw.decode("utf-8", errors="replace")

    def descriptor(self) -> int:
        """The next descriptor that came with the events; the caller closes it."""
        if not self.wire.descriptors:
            raise ExecutionFailed("The compositor promised a descriptor and sent none.")
        return self.wire.descriptors.pop(0)


class Wire:
    """A connection to a compositor. Not for use by two threads at once."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.descriptors: list[int] = []
        self.globals: dict[str, list[tuple[int, int]]] = {}
        self._rest = b""
        self._batch: bytearray | None = None
        self._next_id = 1
        self._handlers: dict[int, Handler | None] = {_DISPLAY: self._from_display}
        self.socket = _connected(environ)
        self._registry = self.new(self._from_registry)
        self.request(_DISPLAY, 1, "n", self._registry)
        self.roundtrip()

    def new(self, handler: Handler | None = None) -> int:
        """A new object's id."""
        self._next_id += 1
        self._handlers[self._next_id] = handler
        return self._next_id

    def adopt(self, number: int, handler: Handler) -> None:
        """Listen to an object that the compositor created."""
        self._handlers[number] = handler

    def bind(self, interface: str, version: int, handler: Handler | None = None, which: int = 0) -> int:
        """Bind a global of the compositor.

        Raises:
            UnsupportedPlatform: the compositor does not offer it.
        """
        offered = self.globals.get(interface, [])
        if which >= len(offered):
            raise UnsupportedPlatform(f"This compositor does not offer {interface}.")
        name, highest = offered[which]
        number = self.new(handler)
        self.request(self._registry, 0, "usun", name, interface, min(version, highest), number)
        return number

    def request(self, target: int, opcode: int, signature: str = "", *values: int | str | float) -> None:
        """Send a request; `h` in the signature is a descriptor."""
        body, descriptors = _packed(signature, values)
        message = struct.pack("=II", target, (8 + len(body)) << 16 | opcode) + body
        if self._batch is not None and not descriptors:
            self._batch += message
            if len(self._batch) > _AT_ONCE:
                self._send_batch()
            return
        try:
            if descriptors:
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
                self.socket.sendmsg([message], rights)
            else:
                self.socket.sendall(message)
        except OSError as error:
            raise _gone() from error

    @contextmanager
    def batched(self) -> Iterator[None]:
        """Send the requests of the body together, so that the compositor forwards their events together too.

        The compositor buffers a few hundred messages for a slow application, however small, and disconnects it beyond that.
        """
        self._batch = bytearray()
        try:
            yield
        finally:
            self._send_batch()
            self._batch = None

    def roundtrip(self) -> None:
        """Wait until the compositor has processed everything sent; a protocol error is raised by then."""
        done: list[bool] = []
        callback = self.new(lambda _event: done.append(True))
        self.request(_DISPLAY, 0, "n", callback)
        self.until(lambda: bool(done))

    def until(self, done: Callable[[], bool]) -> None:
        """Dispatch events until `done`; raises when the compositor sends nothing for several seconds."""
        while not done():
            self.pump()

    def pump(self) -> None:
        """Dispatch what has arrived, waiting for at least one event."""
        try:
            data, ancillary, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(28 * 4))
        except TimeoutError as error:
            raise ProviderUnavailable("The compositor does not answer.") from error
        except OSError as error:
            raise _gone() from error
        if not data:
            raise _gone()
        for level, kind, raw in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self.descriptors.extend(array.array("i", raw[: len(raw) - len(raw) % 4]))
        self._rest += data
        self._dispatch()

    def forget(self, number: int) -> None:
        """Ignore further events of an object that was destroyed."""
        self._handlers.pop(number, None)

    def close(self) -> None:
        """Close the socket and all received descriptors that were not consumed."""
        self.socket.close()
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()

    def _send_batch(self) -> None:
        batch, self._batch = self._batch, bytearray()
        try:
            self.socket.sendall(batch or b"")
        except OSError as error:
            raise _gone() from error

    def _dispatch(self) -> None:
        while len(self._rest) >= 8:
            target, word = struct.unpack_from("=II", self._rest)
            size = word >> 16
            if size < 8 or len(self._rest) < size:
                return
            body, self._rest = self._rest[8:size], self._rest[size:]
            handler = self._handlers.get(target)
            if handler is not None:
                handler(Event(word & 0xFFFF, body, self))

    def _from_display(self, event: Event) -> None:
        if event.opcode == 0:
            event.unsigned()
            code = event.unsigned()
            raise ExecutionFailed(f"The compositor refused a request: {event.text()[:200]} ({code}).")
        self._handlers.pop(event.unsigned(), None)

    def _from_registry(self, event: Event) -> None:
        if event.opcode == 0:
            name, interface, version = event.unsigned(), event.text(), event.unsigned()
            self.globals.setdefault(interface, []).append((name, version))
        else:
            gone = event.unsigned()
            for offered in self.globals.values():
                offered[:] = [each for each in offered if each[0] != gone]


def _connected(environ: Mapping[str, str]) -> socket.socket:
    name = environ.get("WAYLAND_DISPLAY", "wayland-0")
    path = name if name.startswith("/") else os.path.join(environ.get("XDG_RUNTIME_DIR", "/run"), name)  # noqa: PTH118  # a socket's name
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_TIMEOUT_S)
    try:
        connection.connect(path)
    except OSError as error:
        connection.close()
        raise ProviderUnavailable("No Wayland compositor answers. Is the desktop still running?") from error
    return connection


def _packed(signature: str, values: tuple[int | str | float, ...]) -> tuple[bytes, list[int]]:
    body, descriptors = b"", []
    for kind, value in zip(signature, values, strict=True):
        match kind:
            case "s":
                raw = str(value).encode() + b"\0"
                body += struct.pack("=I", len(raw)) + raw + b"\0" * (-len(raw) % 4)
            case "f":
                body += struct.pack("=i", round(float(value) * 256))
            case "i":
                body += struct.pack("=i", int(value))
            case "h":
                descriptors.append(int(value))
            case _:
                body += struct.pack("=I", int(value))
    return body, descriptors


def _gone() -> ProviderUnavailable:
    return ProviderUnavailable("The compositor closed the connection. Is the desktop still running?")

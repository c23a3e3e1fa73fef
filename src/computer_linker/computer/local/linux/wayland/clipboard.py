"""Clipboard on compositors with zwlr_data_control, which works without a window."""

import os
import select
import threading
import time
from collections.abc import Mapping

from anyio import to_thread

from computer_linker.computer.facets.clipboard import Clip
from computer_linker.computer.local.linux.wayland.wire import Event, Wire
from computer_linker.errors import LimitExceeded, LinkError, ProviderUnavailable

_TEXT = ("text/plain;charset=utf-8", "UTF8_STRING", "text/plain", "STRING", "TEXT")
_KEPT = ("text/plain", "text/html", "image/png", "text/uri-list", "x-special/gnome-copied-files")
_READ_S = 2.0
_QUIET_S = 0.05


class WaylandClipboard:
    """Clipboard by data control. Written content lasts as long as this object: the compositor stores no copy."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._device: _Device | None = None
        self._lock = threading.Lock()

    async def types(self) -> list[str]:
        """The media types on offer."""
        return await to_thread.run_sync(lambda: _media_types(self._open().types()))

    async def read(self, media_type: str = "text/plain", *, max_bytes: int = 32_000_000) -> bytes | None:
        """The content in one form."""
        return await to_thread.run_sync(lambda: _read(self._open(), media_type, max_bytes), abandon_on_cancel=True)

    async def write(self, clip: Clip) -> None:
        """Offer these forms; an empty clip empties the clipboard."""
        await to_thread.run_sync(lambda: self._open().offer(clip.forms))

    async def snapshot(self, *, max_bytes: int = 32_000_000) -> Clip:
        """The forms that can be restored."""
        return Clip(await to_thread.run_sync(lambda: _snapshot(self._open(), max_bytes), abandon_on_cancel=True))

    async def taken(self, timeout_s: float) -> bool | None:
        """Wait until a client fetched the content; Wayland does not report which."""
        return await to_thread.run_sync(lambda: self._open().wait_taken(timeout_s), abandon_on_cancel=True)

    async def aclose(self) -> None:
        """Release the clipboard."""
        with self._lock:
            device, self._device = self._device, None
        if device is not None:
            await to_thread.run_sync(device.stop)

    def _open(self) -> "_Device":
        with self._lock:
            if self._device is None or not self._device.is_alive:
                self._device = _Device(Wire(self._environ))
            return self._device


class _Device:
    """A thread that receives offers and serves ours. Every use of the wire holds the lock."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._lock = threading.RLock()
        self._news = threading.Condition()
        self._manager = wire.bind("zwlr_data_control_manager_v1", 2)
        seat = wire.bind("wl_seat", 1)
        self._offers: dict[int, list[str]] = {}
        self._current: int | None = None
        self._source: int | None = None
        self._last_taken: float | None = None
        self._device = wire.new(self._from_device)
        wire.request(self._manager, 1, "no", self._device, seat)
        wire.roundtrip()
        self._running = True
        self._thread = threading.Thread(target=self._serve, name="wayland-clipboard", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def types(self) -> list[str]:
        with self._lock:
            self._wire.roundtrip()
            return list(self._offers.get(self._current or 0, []))

    def offer(self, forms: dict[str, bytes]) -> None:
        with self._lock:
            source = self._wire.new() if forms else 0
            with self._news:
                self._last_taken, self._source = None, source
            if forms:
                given = _by_type(forms)
                self._wire.adopt(source, lambda event: self._from_source(source, given, event))
                self._wire.request(self._manager, 0, "n", source)
                for media_type in given:
                    self._wire.request(source, 0, "s", media_type)
            self._wire.request(self._device, 0, "o", source)
            self._wire.roundtrip()

    def receive(self, media_type: str, max_bytes: int) -> bytes | None:
        reader, writer = os.pipe()
        try:
            with self._lock:
                if self._current is None:
                    os.close(writer)
                    return None
                self._wire.request(self._current, 0, "sh", media_type, writer)
            os.close(writer)
            return _drained(reader, max_bytes)
        finally:
            os.close(reader)

    def wait_taken(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        with self._news:
            while True:
                now, last = time.monotonic(), self._last_taken
                if last is not None and now - last >= _QUIET_S:
                    return True
                if now >= deadline:
                    return last is not None
                self._news.wait(min(deadline - now, _QUIET_S if last is not None else 1.0))

    def stop(self) -> None:
        self._running = False
        self._thread.join(2)
        self._wire.close()

    def _serve(self) -> None:
        try:
            while self._running:
                ready, _, _ = select.select([self._wire.socket], [], [], 0.2)
                if ready:
                    with self._lock:
                        # Another thread may have read it meanwhile.
                        if select.select([self._wire.socket], [], [], 0)[0]:
                            self._wire.pump()
        except (LinkError, OSError, ValueError):
            return

    def _from_device(self, event: Event) -> None:
        if event.opcode == 0:
            number = event.unsigned()
            self._offers[number] = []
            self._wire.adopt(number, lambda each: self._offers[number].append(each.text()[:200]))
        elif event.opcode == 1:
            self._current = event.unsigned() or None
            for old in [number for number in self._offers if number != self._current]:
                self._wire.request(old, 1)
                del self._offers[old]
        elif event.opcode == 3:
            primary = event.unsigned()
            if primary in self._offers and primary != self._current:
                self._wire.request(primary, 1)
                del self._offers[primary]

    def _from_source(self, source: int, forms: dict[str, bytes], event: Event) -> None:
        if event.opcode == 0:
            media_type, descriptor = event.text(), event.descriptor()
            # A reader may be slow or never read: it must not block the wire.
            given = (source, descriptor, forms.get(media_type, b""))
            threading.Thread(target=self._give, args=given, daemon=True).start()
        elif event.opcode == 1:
            self._wire.request(source, 1)

    def _give(self, source: int, descriptor: int, raw: bytes) -> None:
        try:
            with os.fdopen(descriptor, "wb") as pipe:
                pipe.write(raw)
        except OSError:
            return
        with self._news:
            # A fetch of earlier content (by ourselves, just before it was replaced) does not prove that the new one arrived.
            if source == self._source:
                self._last_taken = time.monotonic()
                self._news.notify_all()


def _drained(reader: int, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size, deadline = 0, time.monotonic() + _READ_S
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise ProviderUnavailable("The application that owns the clipboard does not answer.")
        piece = os.read(reader, 1 << 16)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
        deadline = time.monotonic() + _READ_S
        if size > max_bytes:
            raise LimitExceeded(f"The clipboard holds more than {max_bytes} bytes.", maxBytes=max_bytes)


def _read(device: _Device, media_type: str, max_bytes: int) -> bytes | None:
    offered = device.types()
    for name in _TEXT if media_type == "text/plain" else (media_type,):
        if name in offered:
            return device.receive(name, max_bytes)
    return None


def _snapshot(device: _Device, max_bytes: int) -> dict[str, bytes]:
    forms: dict[str, bytes] = {}
    for media_type in _KEPT:
        raw = _read(device, media_type, max_bytes)
        if raw is not None:
            forms[media_type] = raw
            max_bytes -= len(raw)
    return forms


def _by_type(forms: dict[str, bytes]) -> dict[str, bytes]:
    given = dict(forms)
    if "text/plain" in forms:
        given.update(dict.fromkeys(_TEXT, forms["text/plain"]))
    return given


def _media_types(names: list[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        kind = "text/plain" if name in _TEXT else name
        if "/" in kind and kind not in found:
            found.append(kind)
    return found

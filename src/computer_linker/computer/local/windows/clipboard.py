"""Clipboard on Windows. Windows stores what is written, also after the service has ended."""

import ctypes
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import wintypes

from anyio import to_thread

from computer_linker.computer.facets.clipboard import Clip, every_form
from computer_linker.computer.local.windows.api import kernel32, user32
from computer_linker.errors import ExecutionFailed, LimitExceeded

_UNICODE_TEXT, _MOVEABLE = 13, 2
_WAIT_S = 2.0


class WindowsClipboard:
    """Text as CF_UNICODETEXT, other forms under their media type's name (PNG under `PNG`, as browsers do)."""

    async def types(self) -> list[str]:
        """The media types on offer that can be read here."""
        return await to_thread.run_sync(_types)

    async def read(self, media_type: str = "text/plain", *, max_bytes: int = 32_000_000) -> bytes | None:
        """The content in one form."""
        return await to_thread.run_sync(_read, media_type, max_bytes)

    async def write(self, clip: Clip) -> None:
        """Replace the content."""
        await to_thread.run_sync(_write, clip.forms)

    async def snapshot(self, *, max_bytes: int = 32_000_000) -> Clip:
        """The forms that can be restored."""
        return await every_form(self, max_bytes)

    async def taken(self, timeout_s: float) -> bool | None:
        """Not observable on Windows."""
        return None


def _formats() -> dict[str, int]:
    named = {"image/png": "PNG", "text/html": "HTML Format"}
    found = {media: user32().RegisterClipboardFormatW(wintypes.LPCWSTR(name)) for media, name in named.items()}
    return {"text/plain": _UNICODE_TEXT, **found}


@contextmanager
def _opened() -> Iterator[None]:
    deadline = time.monotonic() + _WAIT_S
    # Only one program at a time may have it open, usually for a moment.
    while not user32().OpenClipboard(None):
        if time.monotonic() > deadline:
            raise ExecutionFailed("Another program keeps the clipboard open.")
        time.sleep(0.01)
    try:
        yield
    finally:
        user32().CloseClipboard()


def _types() -> list[str]:
    return [media for media, number in _formats().items() if user32().IsClipboardFormatAvailable(number)]


def _read(media_type: str, max_bytes: int) -> bytes | None:
    number = _formats().get(media_type)
    if number is None:
        return None
    with _opened():
        handle = user32().GetClipboardData(number)
        if not handle:
            return None
        size, memory = kernel32().GlobalSize(handle), kernel32().GlobalLock(handle)
        try:
            raw = ctypes.string_at(memory, min(size, max_bytes * 2 + 2))
        finally:
            kernel32().GlobalUnlock(handle)
    if media_type == "text/plain":
        raw = raw.decode("utf-16-le", errors="replace").partition("\0")[0].replace("\r\n", "\n").encode()
    if len(raw) > max_bytes:
        raise LimitExceeded(f"The clipboard holds more than {max_bytes} bytes.", maxBytes=max_bytes)
    return raw


def _write(forms: dict[str, bytes]) -> None:
    formats = _formats()
    with _opened():
        user32().EmptyClipboard()
        for media_type, raw in forms.items():
            if media_type not in formats:
                continue
            if media_type == "text/plain":
                text = raw.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\n", "\r\n")
                raw = text.encode("utf-16-le") + b"\0\0"
            _put(formats[media_type], raw)


def _put(number: int, raw: bytes) -> None:
    handle = kernel32().GlobalAlloc(_MOVEABLE, len(raw))
    memory = kernel32().GlobalLock(handle)
    ctypes.memmove(memory, raw, len(raw))
    kernel32().GlobalUnlock(handle)
    if not user32().SetClipboardData(number, handle):
        kernel32().GlobalFree(handle)
        raise ExecutionFailed("Windows did not take the clipboard's content.")

"""The X11 selections: reading from their owner, owning them, and serving them in every requested form."""

import select
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from computer_linker.computer.facets.clipboard import Clip
from computer_linker.computer.local.linux.x11.connection import Connection
from computer_linker.computer.local.linux.x11.selection_owner import SelectionOwner
from computer_linker.errors import LimitExceeded

if TYPE_CHECKING:
    from Xlib.display import Display

TEXT_TARGETS = ("UTF8_STRING", "text/plain;charset=utf-8", "text/plain", "STRING")
_KEPT_FORMS = ("text/plain", "text/html", "image/png", "text/uri-list", "x-special/gnome-copied-files")


class X11Clipboard:
    """Clipboard on X11. Written content lasts as long as this object: the server stores no copy."""

    def __init__(self, connection: Connection, selection: str = "CLIPBOARD") -> None:
        # A separate connection: a slow owner must not block the pointer.
        self._reader = Connection(connection.name)
        self._selection = selection
        self._owner = SelectionOwner(connection.name, selection)
        self.primary = None if selection == "PRIMARY" else X11Clipboard(connection, "PRIMARY")
        """See `WithPrimary`."""

    async def types(self) -> list[str]:
        """The media types on offer."""
        return _media_types(await self._reader.run(lambda display: targets(display, self._selection)))

    async def read(self, media_type: str = "text/plain", *, max_bytes: int = 32_000_000) -> bytes | None:
        """The content in one form."""
        return await self._reader.run(lambda display: _read(display, self._selection, media_type, max_bytes))

    async def write(self, clip: Clip) -> None:
        """Own the clipboard with these forms; an empty clip empties it."""
        await to_thread.run_sync(self._owner.offer, clip.forms)

    async def snapshot(self, *, max_bytes: int = 32_000_000) -> Clip:
        """The forms that can be restored."""
        return Clip(await self._reader.run(lambda display: _snapshot(display, self._selection, max_bytes)))

    async def taken(self, timeout_s: float) -> bool | None:
        """Wait until the client with the keyboard focus fetched the content."""
        focus = await self._reader.run(_focused_client)
        if focus is None:
            return None
        return await to_thread.run_sync(self._owner.wait_taken, focus, timeout_s)

    async def aclose(self) -> None:
        """Release the selections."""
        if self.primary is not None:
            await self.primary.aclose()
        await to_thread.run_sync(self._owner.close)
        await self._reader.aclose()


def _media_types(names: list[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        kind = "text/plain" if name in TEXT_TARGETS else name
        if "/" in kind and kind not in found:
            found.append(kind)
    return found


def _read(display: "Display", selection: str, media_type: str, max_bytes: int) -> bytes | None:
    offered = targets(display, selection)
    if media_type != "text/plain":
        return read_selection(display, selection, media_type, max_bytes) if media_type in offered else None
    for name in TEXT_TARGETS:
        if name in offered:
            raw = read_selection(display, selection, name, max_bytes)
            return raw if raw is None or name != "STRING" else raw.decode("latin-1").encode()
    return None


def _snapshot(display: "Display", selection: str, max_bytes: int) -> dict[str, bytes]:
    forms: dict[str, bytes] = {}
    for media_type in _KEPT_FORMS:
        raw = _read(display, selection, media_type, max_bytes)
        if raw is not None:
            forms[media_type] = raw
            max_bytes -= len(raw)
    return forms


def _focused_client(display: "Display") -> int | None:
    focus = display.get_input_focus().focus
    return None if isinstance(focus, int) else int(focus.id)


# Reading an X11 selection from its owner, incrementally where it is large, within a bounded time.

_TIMEOUT_S = 2.0
_PROPERTY = "_COMPUTER_LINKER_CLIP"
_LONGS = 1 << 28


def targets(display: "Display", selection: str) -> list[str]:
    """The names of the targets the owner offers; empty without an owner."""
    from Xlib import X

    if display.get_selection_owner(display.intern_atom(selection)) == X.NONE:
        return []
    with _Window(display, selection) as window:
        found = window.convert("TARGETS")
        if found is None or found.format != 32:
            return []
        return [display.get_atom_name(atom) for atom in list(found.value)[:200] if atom]


def read_selection(display: "Display", selection: str, target: str, max_bytes: int) -> bytes | None:
    """A selection in one form, or None when the owner refuses or does not answer in time."""
    with _Window(display, selection) as window:
        found = window.convert(target)
        if found is None:
            return None
        if found.property_type == display.intern_atom("INCR"):
            return window.rest(max_bytes)
        raw = _bytes(found.value)
        if len(raw) > max_bytes:
            raise _too_large(max_bytes)
        return raw


class _Window:
    """A window created to receive one selection."""

    def __init__(self, display: "Display", selection: str) -> None:
        from Xlib import X

        self._display = display
        self._selection = display.intern_atom(selection)
        self._property = display.intern_atom(_PROPERTY)
        self._window = display.screen().root.create_window(
            0, 0, 1, 1, 0, X.CopyFromParent, event_mask=X.PropertyChangeMask
        )

    def __enter__(self) -> "_Window":
        return self

    def __exit__(self, *_error: object) -> None:
        self._window.destroy()
        self._display.sync()

    def convert(self, target: str) -> Any:
        """Request a form from the owner and return its property; None when refused or late."""
        from Xlib import X

        wanted = self._display.intern_atom(target)
        self._window.convert_selection(self._selection, wanted, self._property, X.CurrentTime)
        self._display.flush()
        notice = self._wait(lambda event: event.type == X.SelectionNotify)
        if notice is None or notice.property == X.NONE:
            return None
        return self._taken()

    def rest(self, max_bytes: int) -> bytes | None:
        """The pieces of an incremental transfer (INCR)."""
        from Xlib import X

        pieces: list[bytes] = []
        size = 0

        def is_next(event: Any) -> bool:
            new = event.type == X.PropertyNotify and event.state == X.PropertyNewValue
            return bool(new and event.atom == self._property)

        while True:
            if self._wait(is_next) is None:
                return None
            piece = self._taken()
            if piece is None or not len(piece.value):
                return b"".join(pieces)
            pieces.append(_bytes(piece.value))
            size += len(pieces[-1])
            if size > max_bytes:
                raise _too_large(max_bytes)

    def _taken(self) -> Any:
        from Xlib import X

        # Reading deletes the property, which signals the owner to send the next piece.
        found = self._window.get_property(self._property, X.AnyPropertyType, 0, _LONGS, delete=True)
        self._display.flush()
        return found

    def _wait(self, wanted: Callable[[Any], bool]) -> Any:
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            while self._display.pending_events():
                event: Any = self._display.next_event()
                if getattr(event, "window", None) in (None, self._window) and wanted(event):
                    return event
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            select.select([self._display.fileno()], [], [], left)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else bytes(value)


def _too_large(max_bytes: int) -> LimitExceeded:
    return LimitExceeded(f"The clipboard holds more than {max_bytes} bytes.", maxBytes=max_bytes)

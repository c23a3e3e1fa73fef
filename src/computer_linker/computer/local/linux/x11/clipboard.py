"""The X11 selections: reading from their owner, owning them, and serving them in every requested form."""

from typing import TYPE_CHECKING

from anyio import to_thread

from computer_linker.computer.facets.clipboard import Clip
from computer_linker.computer.local.linux.x11.connection import Connection
from computer_linker.computer.local.linux.x11.selection_owner import SelectionOwner
from computer_linker.computer.local.linux.x11.selection_reader import read_selection, targets

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

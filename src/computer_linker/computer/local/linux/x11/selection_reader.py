"""Reading an X11 selection from its owner, incrementally where it is large, within a bounded time."""

import select
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from computer_linker.errors import LimitExceeded

if TYPE_CHECKING:
    from Xlib.display import Display

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

"""Window properties of an X server, bounded: any client may write anything there."""

from typing import TYPE_CHECKING, Any

from computer_linker.errors import InvalidRequest

if TYPE_CHECKING:
    from Xlib.display import Display

_MAX_LONGS = 65_536
_TITLE_LONGS = 256


class Properties:
    """Reads properties of one display. Atoms are remembered by the connection."""

    def __init__(self, display: "Display") -> None:
        self.display = display

    def atom(self, name: str) -> int:
        """The atom of a name."""
        return self.display.intern_atom(name)

    def window(self, window_id: str) -> Any:
        """The window of an id such as `0x1e00003`. Raises InvalidRequest when it is no id."""
        try:
            number = int(window_id, 16) if window_id.startswith("0x") else -1
        except ValueError:
            number = -1
        if not 0 < number <= 0x1FFFFFFF:
            raise InvalidRequest("A window id looks like 0x1e00003; window.list gives them.")
        return self.display.create_resource_object("window", number)

    def numbers(self, window: Any, name: str) -> list[int]:
        """A list of 32-bit numbers or atoms; empty when there is none."""
        found = self._read(window, name, _MAX_LONGS)
        return list(found.value) if found is not None and found.format == 32 else []

    def number(self, window: Any, name: str) -> int | None:
        """The first number of a property."""
        found = self.numbers(window, name)
        return found[0] if found else None

    def text(self, window: Any, name: str, longs: int = _MAX_LONGS) -> str:
        """A text property; empty when there is none."""
        found = self._read(window, name, longs)
        if found is None or found.format != 8:
            return ""
        raw = found.value if isinstance(found.value, bytes) else bytes(found.value)
        return raw.decode("utf-8", errors="replace")

    def title(self, window: Any) -> str:
        """The title as its client set it, at most a kilobyte of it."""
        return self.text(window, "_NET_WM_NAME", _TITLE_LONGS) or self.text(window, "WM_NAME", _TITLE_LONGS)

    def app(self, window: Any) -> str:
        """The class half of WM_CLASS."""
        parts = self.text(window, "WM_CLASS", _TITLE_LONGS).split("\0")
        return parts[1] if len(parts) > 1 and parts[1] else parts[0]

    def atom_names(self, window: Any, name: str) -> list[str]:
        """A list of atoms by name."""
        return [self.display.get_atom_name(atom) for atom in self.numbers(window, name)[:64]]

    def _read(self, window: Any, name: str, longs: int) -> Any:
        from Xlib import X

        return window.get_property(self.atom(name), X.AnyPropertyType, 0, longs)

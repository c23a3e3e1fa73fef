"""Reads window properties of an X server, bounded: any client may write anything there."""

from typing import TYPE_CHECKING, Any

from computer_linker.errors import InvalidRequest

if TYPE_CHECKING:
    from Xlib.display import Display

_MAX_LONGS = 65_536


class Properties:
    """Reads properties of one display. Atoms are cached by the connection."""

    def __init__(self, display: "Display") -> None:
        self.display = display

    def atom(self, name: str) -> int:
        """The atom of a name."""
        return self.display.intern_atom(name)

    def window(self, window_id: str) -> Any:
        """The window of an id such as `0x1e00003`. Raises InvalidRequest for an invalid id."""
        try:
            number = int(window_id, 16) if window_id.startswith("0x") else -1
        except ValueError:
            number = -1
        if not 0 < number <= 0x1FFFFFFF:
            raise InvalidRequest("A window id looks like 0x1e00003; window.list gives them.")
        return self.display.create_resource_object("window", number)

    def ask(self, window_id: int, name: str, longs: int = _MAX_LONGS) -> Any:
        """Request a property without waiting; `reply()` on the result waits."""
        from Xlib import X
        from Xlib.protocol import request

        return request.GetProperty(
            display=self.display.display, defer=True, delete=False, window=window_id, property=self.atom(name),
            type=X.AnyPropertyType, long_offset=0, long_length=longs,
        )  # fmt: skip

    def numbers(self, window: Any, name: str) -> list[int]:
        """A list of 32-bit numbers or atoms; empty when there is none."""
        return numbers_in(self._read(window, name))

    def number(self, window: Any, name: str) -> int | None:
        """The first number of a property."""
        found = self.numbers(window, name)
        return found[0] if found else None

    def text(self, window: Any, name: str) -> str:
        """A text property; empty when there is none."""
        return text_in(self._read(window, name))

    def _read(self, window: Any, name: str) -> Any:
        pending = self.ask(window.id, name)
        pending.reply()
        return pending


def numbers_in(answer: Any) -> list[int]:
    """The numbers of a property that was read."""
    return [int(value) for value in answer.value[1]] if _is(answer, 32) else []


def text_in(answer: Any) -> str:
    """The text of a property that was read; any client may have written anything there."""
    return bytes(answer.value[1]).decode("utf-8", errors="replace") if _is(answer, 8) else ""


def _is(answer: Any, form: int) -> bool:
    return bool(answer.property_type) and answer.value is not None and answer.value[0] == form

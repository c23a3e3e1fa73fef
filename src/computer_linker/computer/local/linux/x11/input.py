"""Synthetic input through XTEST: what is pressed is always released, also when the job is cancelled."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from computer_linker.computer.facets.keyboard import X11_KEYSYMS, character_keysym, keysym_of
from computer_linker.computer.local.linux.halting import check_halt
from computer_linker.errors import UnsupportedPlatform

if TYPE_CHECKING:
    from Xlib.display import Display


class Fake:
    """Sends key, button and motion events. It sends no press or motion once the caller was cancelled."""

    def __init__(self, display: "Display") -> None:
        if not display.has_extension("XTEST"):
            raise UnsupportedPlatform("This X server takes no input from programs (no XTEST extension).")
        self._display = display

    def move(self, x: int, y: int) -> None:
        from Xlib import X

        check_halt()
        self._send(X.MotionNotify, x=x, y=y)

    def key(self, keycode: int, *, down: bool) -> None:
        from Xlib import X

        if down:
            check_halt()
        self._send(X.KeyPress if down else X.KeyRelease, keycode)

    def button(self, number: int, *, down: bool) -> None:
        from Xlib import X

        if down:
            check_halt()
        self._send(X.ButtonPress if down else X.ButtonRelease, number)

    def click(self, number: int) -> None:
        """Press and release in one packet.

        A window manager that grabs each press first (to focus the window) loses clicks whose release arrives in a
        separate packet: 16 of 100 with openbox, against none of 1000 this way.
        """
        self.button(number, down=True)
        self.button(number, down=False)

    @contextmanager
    def keys_held(self, keycodes: Iterable[int]) -> Iterator[None]:
        """Press keys in order while the body runs; release them in reverse."""
        held: list[int] = []
        try:
            for keycode in keycodes:
                held.append(keycode)
                self.key(keycode, down=True)
            yield
        finally:
            for keycode in reversed(held):
                self.key(keycode, down=False)
            self.sync()

    @contextmanager
    def button_held(self, number: int) -> Iterator[None]:
        """Hold a button while the body runs."""
        try:
            self.button(number, down=True)
            self.sync()
            yield
        finally:
            self.button(number, down=False)
            self.sync()

    def sync(self) -> None:
        """Wait until the server has processed everything; errors are reported by then."""
        self._display.sync()

    def _send(self, kind: int, detail: int = 0, *, x: int = 0, y: int = 0) -> None:
        from Xlib.ext import xtest

        xtest.fake_input(self._display, kind, detail, x=x, y=y)


# The server's current keyboard layout: the key and modifiers of each character.

_LOCK_MASK = 2


@dataclass(frozen=True, slots=True)
class Stroke:
    """One key, and whether the character needs shift."""

    keycode: int
    shifted: bool


class Layout:
    """The first two levels of the layout's active group: what can be typed without a change."""

    def __init__(self, display: "Display") -> None:
        info = display.display.info
        rows = display.get_keyboard_mapping(info.min_keycode, info.max_keycode - info.min_keycode + 1)
        mask = display.screen().root.query_pointer().mask
        group = mask >> 13 & 3
        self.caps_lock = bool(mask & _LOCK_MASK)
        self._strokes: dict[int, Stroke] = {}
        self._any: dict[int, int] = {}
        for number, row in enumerate(rows):
            self._add(info.min_keycode + number, [int(keysym) for keysym in row], group)

    def _add(self, keycode: int, row: list[int], group: int) -> None:
        for keysym in row:
            if keysym:
                self._any.setdefault(keysym, keycode)
        levels = row[2 * group : 2 * group + 2]
        if not any(levels):
            levels = row[:2]
        plain, shifted = [*levels, 0, 0][:2]
        for level, keysym in enumerate((plain, shifted or _upper(plain))):
            if keysym and keysym not in self._strokes:
                self._strokes[keysym] = Stroke(keycode, shifted=level == 1)

    def key(self, name: str) -> Stroke | None:
        """The stroke of a named key or a character as printed on the keyboard."""
        keysym = keysym_of(name)
        found = self._strokes.get(keysym)
        if found is None and name in X11_KEYSYMS and keysym in self._any:
            return Stroke(self._any[keysym], shifted=False)
        return found

    def character(self, character: str) -> Stroke | None:
        """The stroke that enters exactly this character now, with Caps Lock taken into account."""
        stroke = self._strokes.get(character_keysym(character))
        if stroke is not None and self.caps_lock and character.isalpha():
            return Stroke(stroke.keycode, not stroke.shifted)
        return stroke


def _upper(keysym: int) -> int:
    # A row with a single letter means: lower case plain, upper case with shift.
    character = chr(keysym) if 0x20 <= keysym <= 0xFF else ""
    return ord(character.upper()) if character.islower() and len(character.upper()) == 1 else 0

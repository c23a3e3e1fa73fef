"""Synthetic input through XTEST: what is pressed is always released, also when the job is cancelled."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

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

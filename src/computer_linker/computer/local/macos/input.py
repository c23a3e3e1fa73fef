"""Pointer and keyboard on macOS, by Quartz events."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from anyio import to_thread

from computer_linker.computer.facets.keyboard import key_name
from computer_linker.computer.facets.pointer import Button, Modifier
from computer_linker.computer.local.macos.windows import need_accessibility
from computer_linker.errors import InvalidRequest, UnsupportedPlatform
from computer_linker.model.geometry import Point

_STEP = 12
_FLAGS = {"ctrl": 1 << 18, "alt": 1 << 19, "shift": 1 << 17, "super": 1 << 20}
_NUMBERS: dict[Button, int] = {"left": 0, "right": 1, "middle": 2, "back": 3, "forward": 4}
_KEYS = {
    "a": 0, "s": 1, "d": 2, "f": 3, "h": 4, "g": 5, "z": 6, "x": 7, "c": 8, "v": 9, "b": 11, "q": 12, "w": 13, "e": 14,
    "r": 15, "y": 16, "t": 17, "1": 18, "2": 19, "3": 20, "4": 21, "6": 22, "5": 23, "=": 24, "9": 25, "7": 26, "-": 27,
    "8": 28, "0": 29, "]": 30, "o": 31, "u": 32, "[": 33, "i": 34, "p": 35, "enter": 36, "l": 37, "j": 38, "'": 39, "k": 40,
    ";": 41, "\\": 42, ",": 43, "/": 44, "n": 45, "m": 46, ".": 47, "tab": 48, "space": 49, "`": 50, "backspace": 51,
    "escape": 53, "super": 55, "shift": 56, "caps_lock": 57, "alt": 58, "ctrl": 59, "f5": 96, "f6": 97, "f7": 98, "f3": 99,
    "f8": 100, "f9": 101, "f11": 103, "f13": 105, "f14": 107, "f10": 109, "f12": 111, "f15": 113, "home": 115, "page_up": 116,
    "delete": 117, "f4": 118, "end": 119, "f2": 120, "page_down": 121, "f1": 122, "left": 123, "right": 124, "down": 125,
    "up": 126,
}  # fmt: skip
"""Virtual key codes of an American keyboard, which shortcuts follow on every layout."""


class MacPointer:
    """The pointer."""

    async def position(self) -> Point:
        """Where the pointer is."""
        import Quartz

        at = Quartz.CGEventGetLocation(Quartz.CGEventCreate(None))
        return Point(x=at.x, y=at.y)

    async def move(self, to: Point) -> None:
        """Move the pointer."""
        await to_thread.run_sync(lambda: _mouse("moved", to))

    async def click(
        self, at: Point, *, button: Button = "left", count: int = 1, modifiers: Sequence[Modifier] = ()
    ) -> None:
        """Move, then press and release `count` times."""

        def work() -> None:
            _mouse("moved", at)
            for number in range(1, count + 1):
                try:
                    _mouse("down", at, button, modifiers, number)
                finally:
                    _mouse("up", at, button, modifiers, number)

        await to_thread.run_sync(work)

    async def drag(self, path: Sequence[Point], *, button: Button = "left", modifiers: Sequence[Modifier] = ()) -> None:
        """Press at the first point, move through the others, release at the last."""

        def work() -> None:
            last = path[0]
            _mouse("moved", last)
            try:
                _mouse("down", last, button, modifiers)
                for start, end in pairwise(path):
                    for last in _steps(start, end):
                        _mouse("dragged", last, button, modifiers)
            finally:
                _mouse("up", last, button, modifiers)

        await to_thread.run_sync(work)

    async def scroll(self, at: Point, *, dx: int = 0, dy: int = 0, modifiers: Sequence[Modifier] = ()) -> None:
        """Lines of a wheel; positive is right and down."""

        def work() -> None:
            import Quartz

            _mouse("moved", at)
            event = Quartz.CGEventCreateScrollWheelEvent(None, Quartz.kCGScrollEventUnitLine, 2, -dy, -dx)
            _post(Quartz, event, modifiers)

        await to_thread.run_sync(work)


class MacKeyboard:
    """The keyboard. macOS accepts any character directly, whatever the layout."""

    takes_any_character = True

    async def press(self, keys: Sequence[str], *, count: int = 1) -> None:
        """One key or a chord."""
        codes = [_code(key_name(key)) for key in keys]
        flags = sum(_FLAGS[name] for name in {key_name(key) for key in keys} & set(_FLAGS))

        def work() -> None:
            for _ in range(count):
                held: list[int] = []
                try:
                    for code in codes:
                        held.append(code)
                        _key(code, down=True, flags=flags)
                finally:
                    for code in reversed(held):
                        _key(code, down=False, flags=0)

        await to_thread.run_sync(work)

    async def can_type(self, text: str) -> bool:
        """Every character but control characters; a line break is the Return key."""
        return all(character == "\n" or character.isprintable() for character in text)

    async def type_text(self, text: str) -> None:
        """Enter text, character by character."""
        if not await self.can_type(text):
            raise UnsupportedPlatform("Control characters cannot be typed; paste or set this text instead.")
        await to_thread.run_sync(_type, text)


def _code(name: str) -> int:
    if name not in _KEYS:
        raise InvalidRequest(f"The keyboard has no key {name!r}.")
    return _KEYS[name]


def _type(text: str) -> None:
    import Quartz

    need_accessibility()
    for character in text:
        if character == "\n":
            _key(_KEYS["enter"], down=True, flags=0)
            _key(_KEYS["enter"], down=False, flags=0)
            continue
        for down in (True, False):
            event = Quartz.CGEventCreateKeyboardEvent(None, 0, down)
            Quartz.CGEventKeyboardSetUnicodeString(event, len(character.encode("utf-16-le")) // 2, character)
            Quartz.CGEventPost(Quartz.kCGHIDEventTap, event)


def _key(code: int, *, down: bool, flags: int) -> None:
    import Quartz

    need_accessibility()
    event = Quartz.CGEventCreateKeyboardEvent(None, code, down)
    Quartz.CGEventSetFlags(event, flags)
    Quartz.CGEventPost(Quartz.kCGHIDEventTap, event)


def _mouse(kind: str, at: Point, button: Button = "left", modifiers: Sequence[Modifier] = (), count: int = 1) -> None:
    import Quartz

    need_accessibility()
    side = {"left": "Left", "right": "Right"}.get(button, "Other")
    name = {"moved": "kCGEventMouseMoved", "down": f"kCGEvent{side}MouseDown", "up": f"kCGEvent{side}MouseUp",
            "dragged": f"kCGEvent{side}MouseDragged"}[kind]  # fmt: skip
    place = Quartz.CGPointMake(at.x, at.y)
    event = Quartz.CGEventCreateMouseEvent(None, getattr(Quartz, name), place, _NUMBERS[button])
    Quartz.CGEventSetIntegerValueField(event, Quartz.kCGMouseEventClickState, count)
    _post(Quartz, event, modifiers)


def _post(quartz: Any, event: Any, modifiers: Sequence[Modifier]) -> None:
    quartz.CGEventSetFlags(event, sum(_FLAGS[name] for name in modifiers))
    quartz.CGEventPost(quartz.kCGHIDEventTap, event)


def _steps(start: Point, end: Point) -> list[Point]:
    dx, dy = end.x - start.x, end.y - start.y
    count = max(2, int(max(abs(dx), abs(dy)) // _STEP))
    return [Point(x=start.x + dx * step / count, y=start.y + dy * step / count) for step in range(1, count + 1)]

"""Pointer and keyboard on Windows, by SendInput; what Windows accepted is compared with what was sent."""

import ctypes
from collections.abc import Sequence
from ctypes import wintypes
from itertools import pairwise

from anyio import to_thread

from computer_linker.computer.facets.keyboard import key_name
from computer_linker.computer.facets.pointer import Button, Modifier
from computer_linker.computer.local.windows.api import Input, KeyInput, MouseInput, user32
from computer_linker.errors import InvalidRequest, OsPermissionRequired, UnsupportedPlatform
from computer_linker.model.geometry import Point, Rect

_MOUSE, _KEY = 0, 1
_MOVE, _ABSOLUTE, _WHOLE_DESKTOP, _WHEEL, _SIDEWAYS = 0x1, 0x8000, 0x4000, 0x800, 0x1000
_KEY_UP, _UNICODE, _EXTENDED = 0x2, 0x4, 0x1
_NOTCH, _STEP = 120, 12
_BUTTONS: dict[Button, tuple[int, int, int]] = {
    "left": (0x2, 0x4, 0), "right": (0x8, 0x10, 0), "middle": (0x20, 0x40, 0), "back": (0x80, 0x100, 1),
    "forward": (0x80, 0x100, 2),
}  # fmt: skip
_KEYS = {
    "ctrl": 0x11, "alt": 0x12, "shift": 0x10, "super": 0x5B, "enter": 0x0D, "tab": 0x09, "escape": 0x1B, "backspace": 0x08,
    "delete": 0x2E, "insert": 0x2D, "space": 0x20, "up": 0x26, "down": 0x28, "left": 0x25, "right": 0x27, "home": 0x24,
    "end": 0x23, "page_up": 0x21, "page_down": 0x22, "caps_lock": 0x14, "num_lock": 0x90, "scroll_lock": 0x91,
    "print_screen": 0x2C, "pause": 0x13, "menu": 0x5D, **{f"f{number}": 0x6F + number for number in range(1, 25)},
}  # fmt: skip
_EXTENDED_KEYS = {0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x2D, 0x2E, 0x5B, 0x5D, 0x90}


class WindowsPointer:
    """The pointer."""

    async def position(self) -> Point:
        """Where the pointer is."""
        at = wintypes.POINT()
        user32().GetCursorPos(ctypes.byref(at))
        return Point(x=at.x, y=at.y)

    async def move(self, to: Point) -> None:
        """Move the pointer."""
        await _send([_moved(to)], [])

    async def click(
        self, at: Point, *, button: Button = "left", count: int = 1, modifiers: Sequence[Modifier] = ()
    ) -> None:
        """Move, press and release in one call, so that no other input comes between."""
        down, up, data = _BUTTONS[button]
        clicks = [_mouse(down, data), _mouse(up, data)] * count
        held = [_key(_KEYS[name]) for name in modifiers]
        freed = [_key(_KEYS[name], up=True) for name in reversed(modifiers)]
        await _send([_moved(at), *held, *clicks, *freed], [_mouse(up, data), *freed])

    async def drag(self, path: Sequence[Point], *, button: Button = "left", modifiers: Sequence[Modifier] = ()) -> None:
        """Press at the first point, move through the others, release at the last."""
        down, up, data = _BUTTONS[button]
        held = [_key(_KEYS[name]) for name in modifiers]
        freed = [_key(_KEYS[name], up=True) for name in reversed(modifiers)]
        way = [_moved(point) for start, end in pairwise(path) for point in _steps(start, end)]
        await _send(
            [_moved(path[0]), *held, _mouse(down, data), *way, _mouse(up, data), *freed], [_mouse(up, data), *freed]
        )

    async def scroll(self, at: Point, *, dx: int = 0, dy: int = 0, modifiers: Sequence[Modifier] = ()) -> None:
        """Whole notches of the wheel."""
        held = [_key(_KEYS[name]) for name in modifiers]
        freed = [_key(_KEYS[name], up=True) for name in reversed(modifiers)]
        down = [_mouse(_WHEEL, (-_NOTCH if dy > 0 else _NOTCH) & 0xFFFFFFFF)] * abs(dy)
        side = [_mouse(_SIDEWAYS, (_NOTCH if dx > 0 else -_NOTCH) & 0xFFFFFFFF)] * abs(dx)
        await _send([_moved(at), *held, *down, *side, *freed], freed)


class WindowsKeyboard:
    """The keyboard. Windows accepts any character directly, whatever the layout."""

    takes_any_character = True

    async def press(self, keys: Sequence[str], *, count: int = 1) -> None:
        """One key or a chord."""
        codes = [code for key in keys for code in _codes(key_name(key))]
        held, freed = [_key(code) for code in codes], [_key(code, up=True) for code in reversed(codes)]
        await _send([*held, *freed] * count, freed)

    async def can_type(self, text: str) -> bool:
        """Every character but control characters; a line break is the Enter key."""
        return all(character == "\n" or character.isprintable() for character in text)

    async def type_text(self, text: str) -> None:
        """Enter text, character by character."""
        if not await self.can_type(text):
            raise UnsupportedPlatform("Control characters cannot be typed; paste or set this text instead.")
        events: list[Input] = []
        for character in text:
            if character == "\n":
                events += [_key(_KEYS["enter"]), _key(_KEYS["enter"], up=True)]
                continue
            raw = character.encode("utf-16-le")
            for at in range(0, len(raw), 2):
                unit = int.from_bytes(raw[at : at + 2], "little")
                events += [_unit(unit), _unit(unit, up=True)]
        await _send(events, [])


def _codes(name: str) -> list[int]:
    if name in _KEYS:
        return [_KEYS[name]]
    found = user32().VkKeyScanW(wintypes.WCHAR(name))
    if found & 0xFFFF == 0xFFFF:
        raise InvalidRequest(f"The keyboard layout has no key {name!r}.")
    return ([_KEYS["shift"]] if found & 0x100 else []) + [found & 0xFF]


async def _send(events: Sequence[Input], in_any_case: Sequence[Input]) -> None:
    await to_thread.run_sync(_sent, events, in_any_case)


def _sent(events: Sequence[Input], in_any_case: Sequence[Input]) -> None:
    accepted = _give(events)
    if accepted != len(events):
        _give(in_any_case)
        raise OsPermissionRequired(
            "Windows did not take the input: the window in front may run as administrator, or the screen is locked.",
            accepted=accepted,
            sent=len(events),
        )


def _give(events: Sequence[Input]) -> int:
    if not events:
        return 0
    packed = (Input * len(events))(*events)
    return int(user32().SendInput(len(events), packed, ctypes.sizeof(Input)))


def _key(code: int, *, up: bool = False) -> Input:
    flags = (_KEY_UP if up else 0) | (_EXTENDED if code in _EXTENDED_KEYS else 0)
    event = Input(kind=_KEY)
    event.value.key = KeyInput(code, user32().MapVirtualKeyW(code, 0), flags, 0, None)
    return event


def _unit(unit: int, *, up: bool = False) -> Input:
    event = Input(kind=_KEY)
    event.value.key = KeyInput(0, unit, _UNICODE | (_KEY_UP if up else 0), 0, None)
    return event


def _mouse(flags: int, data: int = 0, dx: int = 0, dy: int = 0) -> Input:
    event = Input(kind=_MOUSE)
    event.value.mouse = MouseInput(dx, dy, data, flags, 0, None)
    return event


def _moved(to: Point) -> Input:
    metric = user32().GetSystemMetrics
    whole = Rect(x=metric(76), y=metric(77), width=metric(78), height=metric(79))
    if not whole.contains(to):
        raise InvalidRequest("The point is not on a display.", desktop=whole.to_wire())
    # SendInput maps the whole desktop to 0..65535; the middle of a pixel avoids rounding to its neighbour.
    dx = int((to.x - whole.x + 0.5) * 65536 / whole.width)
    dy = int((to.y - whole.y + 0.5) * 65536 / whole.height)
    return _mouse(_MOVE | _ABSOLUTE | _WHOLE_DESKTOP, 0, dx, dy)


def _steps(start: Point, end: Point) -> list[Point]:
    dx, dy = end.x - start.x, end.y - start.y
    count = max(2, int(max(abs(dx), abs(dy)) // _STEP))
    return [Point(x=start.x + dx * step / count, y=start.y + dy * step / count) for step in range(1, count + 1)]

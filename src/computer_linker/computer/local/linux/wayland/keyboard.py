"""Keyboard on compositors with zwp_virtual_keyboard; spare keys are mapped to the characters a text needs."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import anyio

from computer_linker.computer.facets.keyboard import MODIFIERS, character_keysym, key_name
from computer_linker.computer.local.linux.halting import check_halt
from computer_linker.computer.local.linux.wayland.connection import KEYBOARD, Connection, Seat
from computer_linker.computer.local.linux.wayland.wire import Wire
from computer_linker.errors import InvalidRequest, UnsupportedPlatform

_AT_ONCE = 200
_MASKS = {"shift": 1, "ctrl": 4, "alt": 8, "super": 64}
_ALTGR = 128
_LAST_WHOLE = "\uffff"
_ROOM = 1_000
_CATCH_UP_S = 0.5
_Places = dict[str, tuple[int, bool]]


class VirtualKeyboard:
    """A virtual keyboard: a common layout, whose spare keys are mapped to the other characters of a text."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        seat = Seat(wire)
        had_one = seat.has(KEYBOARD)
        manager = wire.bind("zwp_virtual_keyboard_manager_v1", 1)
        self._keyboard = wire.new()
        wire.request(manager, 0, "on", seat.number, self._keyboard)
        self._spare: _Places | None = None
        # The keyboard becomes visible to clients only once it has a keymap.
        self._use({})
        seat.wait_noticed(had_one)

    def type(self, text: str) -> None:
        """Enter text, with as few layout changes as possible.

        Every application parses a changed layout again, which takes it longer than a hundred keys.
        """
        for run in _runs(text):
            self._use(_places(run))
            for start in range(0, len(run), _AT_ONCE):
                with self._wire.batched():
                    self._strike(run[start : start + _AT_ONCE])
                self._wire.roundtrip()

    def press(self, names: Sequence[str]) -> None:
        """Press a chord."""
        with self.held(list(names)):
            pass
        self._wire.roundtrip()

    @contextmanager
    def held(self, names: list[str]) -> Iterator[None]:
        """Hold keys in order while the body runs; release them in reverse."""
        strokes = [_known(name) for name in names]
        if any(shifted for _, shifted in strokes) and "shift" not in names:
            names = [*names[:-1], "shift", names[-1]]
        down: list[str] = []
        try:
            for name in names:
                self._key(_known(name)[0], down=True)
                down.append(name)
                self._tell_modifiers(down)
            yield
        finally:
            while down:
                self._key(_known(down.pop())[0], down=False)
                self._tell_modifiers(down)

    def _strike(self, characters: str) -> None:
        spare = self._spare or {}
        held = 0
        try:
            for character in characters:
                code, shifted = spare.get(character) or _known(character)
                mask = (_MASKS["shift"] if shifted else 0) | (_ALTGR if character in spare else 0)
                if mask != held:
                    self._hold(mask)
                    held = mask
                self._key(code, down=True)
                self._key(code, down=False)
        finally:
            if held:
                self._hold(0)

    def _key(self, code: int, *, down: bool) -> None:
        if down:
            check_halt()
        self._wire.request(self._keyboard, 1, "uuu", int(time.monotonic() * 1000) & 0xFFFFFFFF, code, int(down))

    def _tell_modifiers(self, down: list[str]) -> None:
        self._hold(sum(_MASKS[name] for name in set(down) & set(MODIFIERS)))

    def _hold(self, mask: int) -> None:
        self._wire.request(self._keyboard, 2, "uuuu", mask, 0, 0, 0)

    def _use(self, spare: _Places) -> None:
        """Map missing characters to spare keys; applications receive the keymap before any key that follows."""
        if self._spare is not None and spare.items() <= self._spare.items():
            return
        raw = keymap({at: character_keysym(character) for character, at in spare.items()}).encode() + b"\0"
        descriptor = os.memfd_create("computer-linker-keymap", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, raw)
            self._wire.request(self._keyboard, 0, "uhu", 1, descriptor, len(raw))
        finally:
            os.close(descriptor)
        self._wire.roundtrip()
        self._spare = spare


class WaylandKeyboard:
    """Keyboard by a virtual device."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def press(self, keys: Sequence[str], *, count: int = 1) -> None:
        """One key or a chord."""
        names = [key_name(key) for key in keys]

        def work(connection: Connection) -> None:
            for _ in range(count):
                connection.part(VirtualKeyboard).press(names)

        await self._connection.run(work)

    async def can_type(self, text: str) -> bool:
        """True without control characters (tab included) and without those Chromium reads only one surrogate of.

        A long text is better pasted: its key events overflow the buffer of a busy application.
        """
        return len(text) <= _ROOM and _typable(text) and all(character <= _LAST_WHOLE for character in text)

    async def type_text(self, text: str) -> None:
        """Enter any text by keys."""
        if not _typable(text):
            raise UnsupportedPlatform("Control characters cannot be typed; paste or set this text instead.")
        for start in range(0, len(text), _ROOM):
            if start:
                await anyio.sleep(_CATCH_UP_S)
            await self._connection.run(partial(_type, text[start : start + _ROOM]))


def _type(text: str, connection: Connection) -> None:
    connection.part(VirtualKeyboard).type(text)


def _typable(text: str) -> bool:
    return all(character == "\n" or character.isprintable() for character in text)


def _known(name: str) -> tuple[int, bool]:
    found = stroke(name)
    if found is None:
        raise InvalidRequest(f"The keyboard layout has no key {name!r}.")
    return found


def _runs(text: str) -> Iterator[str]:
    """Split the text into pieces whose uncommon characters all fit on spare keys."""
    begin, seen = 0, set[str]()
    for place, character in enumerate(text):
        if stroke(character) is not None or character in seen:
            continue
        if len(seen) == len(SPARE):
            yield text[begin:place]
            begin, seen = place, set()
        seen.add(character)
    if begin < len(text):
        yield text[begin:]


def _places(run: str) -> _Places:
    uncommon = (character for character in dict.fromkeys(run) if stroke(character) is None)
    return dict(zip(uncommon, SPARE, strict=False))


# The kernel's key codes of a common keyboard, for the initial layout of the virtual keyboard.

_ROWS = {
    2: "1234567890-=",
    16: "qwertyuiop[]",
    30: "asdfghjkl;'`",
    43: "\\zxcvbnm,./",
}
_SHIFTED = dict(zip("1234567890-=[];'`\\,./", '!@#$%^&*()_+{}:"~|<>?', strict=True))

NAMED: dict[str, int] = {
    "escape": 1, "backspace": 14, "tab": 15, "enter": 28, "ctrl": 29, "shift": 42, "alt": 56, "space": 57, "caps_lock": 58,
    "num_lock": 69, "scroll_lock": 70, "home": 102, "up": 103, "page_up": 104, "left": 105, "right": 106, "end": 107,
    "down": 108, "page_down": 109, "insert": 110, "delete": 111, "pause": 119, "super": 125, "menu": 127, "print_screen": 99,
    **{f"f{number}": 58 + number for number in range(1, 11)}, "f11": 87, "f12": 88,
    **{f"f{number}": 170 + number for number in range(13, 25)},
}  # fmt: skip

PLAIN: dict[str, int] = {" ": 57, "\n": 28} | {
    character: first + position for first, row in _ROWS.items() for position, character in enumerate(row)
}
SHIFTED: dict[str, int] = {
    **{character.upper(): code for character, code in PLAIN.items() if character.isalpha()},
    **{_SHIFTED[character]: code for character, code in PLAIN.items() if character in _SHIFTED},
}

_PRINTING = {
    **{1 + place: f"AE{place:02}" for place in range(1, 13)},
    **{15 + place: f"AD{place:02}" for place in range(1, 13)},
    **{29 + place: f"AC{place:02}" for place in range(1, 12)},
    **{43 + place: f"AB{place:02}" for place in range(1, 11)},
    41: "TLDE",
    43: "BKSL",
}
"""The printing keys by their XKB names."""
SPARE = tuple((code, shifted) for shifted in (False, True) for code in _PRINTING)
"""Positions for other characters: the AltGr levels of the printing keys, without and with shift.

Applications accept these as text. On non-printing keys, Chromium drops the character or performs the key's action.
"""


def keymap(spare: dict[tuple[int, bool], int]) -> str:
    """The common layout as XKB text, with these keysyms on spare keys."""
    return (
        'xkb_keymap {\nxkb_keycodes "linker" { include "evdev+aliases(qwerty)" };\n'
        'xkb_types "linker" { include "complete" };\nxkb_compatibility "linker" { include "complete" };\n'
        f'xkb_symbols "linker" {{ include "pc+us+inet(evdev)"\n{"".join(_symbols(spare))}}};\n}};\n'
    )


def _symbols(spare: dict[tuple[int, bool], int]) -> Iterator[str]:
    common = {code: (character, "") for character, code in PLAIN.items()}
    common |= {code: (common[code][0], character) for character, code in SHIFTED.items()}
    for code in dict.fromkeys(code for code, _ in spare):
        plain, shifted = (ord(character) for character in common[code])
        third, fourth = spare.get((code, False), 0), spare.get((code, True), 0)
        levels = f"{plain:#x}, {shifted:#x}, {third:#x}, {fourth:#x}"
        yield f'key <{_PRINTING[code]}> {{ type = "FOUR_LEVEL", [ {levels} ] }};\n'


def stroke(name: str) -> tuple[int, bool] | None:
    """The key of a name or character, and whether it needs shift; None when this keyboard lacks it."""
    if name in NAMED:
        return NAMED[name], False
    if name in PLAIN:
        return PLAIN[name], False
    return (SHIFTED[name], True) if name in SHIFTED else None

"""Keyboard on compositors with zwp_virtual_keyboard: a keymap of exactly the characters needed, so any text can be typed."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from computer_linker.computer.facets.keys import MODIFIERS, character_keysym, key_name
from computer_linker.computer.local.linux.wayland import evdev
from computer_linker.computer.local.linux.wayland.connection import Connection
from computer_linker.computer.local.linux.wayland.seat import KEYBOARD, Seat
from computer_linker.computer.local.linux.wayland.wire import Wire
from computer_linker.errors import InvalidRequest, UnsupportedPlatform

_MAX_KEYS = 200
_RUN = 500
_MASKS = {"shift": 1, "ctrl": 4, "alt": 8, "super": 64}


class VirtualKeyboard:
    """A keyboard of our own: a common layout for keys and plain text, and a made-up one for all other characters."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        seat = Seat(wire)
        had_one = seat.has(KEYBOARD)
        manager = wire.bind("zwp_virtual_keyboard_manager_v1", 1)
        self._keyboard = wire.new()
        wire.request(manager, 0, "on", seat.number, self._keyboard)
        self._keymap = ""
        # The keyboard exists for others only once it has a keymap.
        self._use(evdev.KEYMAP)
        seat.wait_noticed(had_one)

    def type(self, text: str) -> None:
        """Enter text: runs that the common layout has by its keys, others by a keymap with exactly their characters."""
        for run, is_plain in _runs(text):
            if is_plain:
                self._use(evdev.KEYMAP)
                for character in run:
                    self._plain(character)
            else:
                codes = {character: position for position, character in enumerate(dict.fromkeys(run), start=1)}
                self._use(_made_up(list(codes)))
                for character in run:
                    self._stroke(codes[character])
            self._wire.roundtrip()
        self._use(evdev.KEYMAP)

    def press(self, names: Sequence[str]) -> None:
        """Press a chord."""
        with self.held(list(names)):
            pass
        self._wire.roundtrip()

    @contextmanager
    def held(self, names: list[str]) -> Iterator[None]:
        """Hold keys in order while the body runs; release them in reverse."""
        self._use(evdev.KEYMAP)
        strokes = [_known(name) for name in names]
        if any(shifted for _, shifted in strokes) and "shift" not in names:
            names = [*names[:-1], "shift", names[-1]]
        down: list[str] = []
        try:
            for name in names:
                down.append(name)
                self._key(_known(name)[0], down=True)
                self._tell_modifiers(down)
            yield
        finally:
            while down:
                self._key(_known(down.pop())[0], down=False)
                self._tell_modifiers(down)

    def _plain(self, character: str) -> None:
        code, shifted = _known(character)
        if not shifted:
            self._stroke(code)
            return
        with self.held(["shift"]):
            self._stroke(code)

    def _stroke(self, code: int) -> None:
        self._key(code, down=True)
        self._key(code, down=False)

    def _key(self, code: int, *, down: bool) -> None:
        self._wire.request(self._keyboard, 1, "uuu", int(time.monotonic() * 1000) & 0xFFFFFFFF, code, int(down))

    def _tell_modifiers(self, down: list[str]) -> None:
        mask = sum(_MASKS[name] for name in set(down) & set(MODIFIERS))
        self._wire.request(self._keyboard, 2, "uuuu", mask, 0, 0, 0)

    def _use(self, keymap: str) -> None:
        """Change the keymap where needed; applications are told before any key that follows."""
        if keymap == self._keymap:
            return
        raw = keymap.encode() + b"\0"
        descriptor = os.memfd_create("computer-linker-keymap", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, raw)
            self._wire.request(self._keyboard, 0, "uhu", 1, descriptor, len(raw))
        finally:
            os.close(descriptor)
        self._wire.roundtrip()
        self._keymap = keymap


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
        """Every character but a tab, which would move the focus, and other control characters."""
        return _typable(text)

    async def type_text(self, text: str) -> None:
        """Enter any text by keys."""
        if not _typable(text):
            raise UnsupportedPlatform("Control characters cannot be typed; paste or set this text instead.")
        await self._connection.run(lambda connection: connection.part(VirtualKeyboard).type(text))


def _typable(text: str) -> bool:
    return all(character == "\n" or character.isprintable() for character in text)


def _known(name: str) -> tuple[int, bool]:
    found = evdev.stroke(name)
    if found is None:
        raise InvalidRequest(f"The keyboard layout has no key {name!r}.")
    return found


def _runs(text: str) -> Iterator[tuple[str, bool]]:
    """Pieces of one kind that are not long and need no more keys than a keymap may have."""
    run, seen, plain = "", set[str](), True
    for character in text:
        is_plain = character in evdev.PLAIN or character in evdev.SHIFTED
        if run and (is_plain is not plain or len(run) >= _RUN or len(seen) >= _MAX_KEYS):
            yield run, plain
            run, seen = "", set()
        run, plain = run + character, is_plain
        seen.add(character)
    if run:
        yield run, plain


def _made_up(characters: list[str]) -> str:
    keys = [(f"K{code}", code + 8, character_keysym(character)) for code, character in enumerate(characters, start=1)]
    codes = "".join(f"<{name}> = {code};\n" for name, code, _ in keys)
    symbols = "".join(f"key <{name}> {{ [ {keysym:#x} ] }};\n" for name, _, keysym in keys)
    return (
        f'xkb_keymap {{\nxkb_keycodes "linker" {{\nminimum = 8;\nmaximum = {8 + len(keys)};\n{codes}}};\n'
        'xkb_types "linker" { include "complete" };\nxkb_compatibility "linker" { include "complete" };\n'
        f'xkb_symbols "linker" {{\n{symbols}}};\n}};\n'
    )

"""The characters and keys of the desktop's keyboard layout: a compositor drops all others silently."""

import ctypes
import os
from functools import cache, lru_cache
from typing import Any

from computer_linker.computer.facets.keyboard import character_keysym
from computer_linker.computer.local.linux.wayland.connection import Seat
from computer_linker.computer.local.linux.wayland.wire import Event, Wire
from computer_linker.errors import ProviderUnavailable

_TEXT_V1 = 1
_NO_DEFAULT_INCLUDES = 1
_LEVELS = 3
"""Plain, shift and AltGr: the modifiers that compositors apply for a keysym by themselves."""
_KEYPAD = range(0xFF80, 0xFFBE)
_MOST = 4_000_000


class Layout:
    """The keysyms common to all layouts of a keymap, since the active one is not reported."""

    def __init__(self, keysyms: frozenset[int], characters: dict[str, int]) -> None:
        self.keysyms = keysyms
        self.characters = characters


class LayoutWatch:
    """The last keymap the compositor sent. The seat must have a keyboard."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._keymap = b""
        seat = Seat(wire)
        keyboard = wire.new(self._take)
        wire.request(seat.number, 1, "n", keyboard)

    def now(self) -> Layout:
        """The layout in use."""
        self._wire.roundtrip()
        return read_layout(self._keymap)

    def _take(self, event: Event) -> None:
        if event.opcode != 0:
            return
        event.unsigned()
        descriptor = event.descriptor()
        try:
            self._keymap = os.pread(descriptor, min(event.unsigned(), _MOST), 0).rstrip(b"\0")
        finally:
            os.close(descriptor)


@lru_cache(maxsize=2)
def read_layout(keymap: bytes) -> Layout:
    """Parse a keymap's text.

    Raises:
        ProviderUnavailable: it cannot be read, or the library for it is missing.
    """
    xkb = _library()
    context = xkb.xkb_context_new(_NO_DEFAULT_INCLUDES)
    compiled = xkb.xkb_keymap_new_from_string(context, keymap, _TEXT_V1, 0)
    try:
        if not compiled:
            raise ProviderUnavailable("The desktop's keyboard layout cannot be read.")
        layouts = range(max(1, xkb.xkb_keymap_num_layouts(compiled)))
        keysyms = frozenset.intersection(*(_keysyms(xkb, compiled, layout) for layout in layouts))
        return Layout(keysyms, _characters(xkb, keysyms))
    finally:
        xkb.xkb_keymap_unref(compiled)
        xkb.xkb_context_unref(context)


def _keysyms(xkb: Any, keymap: int, layout: int) -> frozenset[int]:
    found: set[int] = set()
    symbols = ctypes.POINTER(ctypes.c_uint32)()
    for code in range(xkb.xkb_keymap_min_keycode(keymap), xkb.xkb_keymap_max_keycode(keymap) + 1):
        for level in range(min(_LEVELS, xkb.xkb_keymap_num_levels_for_key(keymap, code, layout))):
            count = xkb.xkb_keymap_key_get_syms_by_level(keymap, code, layout, level, ctypes.byref(symbols))
            found.update(symbols[:count])
    return frozenset(found)


def _characters(xkb: Any, keysyms: frozenset[int]) -> dict[str, int]:
    """The keysym of each printing character; some layouts have it under an older number than its own."""
    found: dict[str, int] = {}
    for keysym in sorted(keysyms):
        number = xkb.xkb_keysym_to_utf32(keysym)
        if number < 0x20 or number == 0x7F or keysym in _KEYPAD:
            continue
        character = chr(number)
        if character not in found or keysym == character_keysym(character):
            found[character] = keysym
    return found


@cache
def _library() -> Any:
    try:
        xkb = ctypes.CDLL("libxkbcommon.so.0")
    except OSError as error:
        raise ProviderUnavailable("The keyboard needs libxkbcommon. Install it (Debian: libxkbcommon0).") from error
    for made in ("xkb_context_new", "xkb_keymap_new_from_string"):
        getattr(xkb, made).restype = ctypes.c_void_p
    for name in ("num_layouts", "min_keycode", "max_keycode", "unref", "num_levels_for_key", "key_get_syms_by_level"):
        function = getattr(xkb, f"xkb_keymap_{name}")
        function.argtypes = [ctypes.c_void_p, *_ARGUMENTS.get(name, [])]
    xkb.xkb_keymap_new_from_string.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
    xkb.xkb_context_unref.argtypes = [ctypes.c_void_p]
    xkb.xkb_keysym_to_utf32.restype = ctypes.c_uint32
    return xkb


_ARGUMENTS: dict[str, list[Any]] = {
    "num_levels_for_key": [ctypes.c_uint32] * 2,
    "key_get_syms_by_level": [*[ctypes.c_uint32] * 3, ctypes.c_void_p],
}

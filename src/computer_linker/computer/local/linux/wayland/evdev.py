"""The kernel's key codes of a common keyboard, for the initial layout of the virtual keyboard."""

from collections.abc import Iterator

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

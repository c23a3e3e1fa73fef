"""Where keys lie on a common keyboard: the kernel's numbers, for the plain layout our virtual keyboard starts with."""

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

SPARE = tuple(code for code in (*range(89, 96), *range(117, 125), *range(128, 247)) if code not in NAMED.values())
"""Keys that a common keyboard lacks or that print nothing: free for any other character."""
_FIRST_CODE = 8
"""What XKB adds to the kernel's numbers."""


def keymap(spare: dict[int, int]) -> str:
    """The common layout as XKB text, with these keysyms on spare keys."""
    names = "".join(f"<LK{code}> = {code + _FIRST_CODE};\n" for code in spare)
    symbols = "".join(f"key <LK{code}> {{ [ {keysym:#x} ] }};\n" for code, keysym in spare.items())
    return (
        f'xkb_keymap {{\nxkb_keycodes "linker" {{ include "evdev+aliases(qwerty)"\n{names}}};\n'
        'xkb_types "linker" { include "complete" };\nxkb_compatibility "linker" { include "complete" };\n'
        f'xkb_symbols "linker" {{ include "pc+us+inet(evdev)"\n{symbols}}};\n}};\n'
    )


def stroke(name: str) -> tuple[int, bool] | None:
    """The key of a name or character, and whether shift has to be held; None when this keyboard lacks it."""
    if name in NAMED:
        return NAMED[name], False
    if name in PLAIN:
        return PLAIN[name], False
    return (SHIFTED[name], True) if name in SHIFTED else None

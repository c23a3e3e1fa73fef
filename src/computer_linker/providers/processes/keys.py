"""Keys as a terminal sends them."""

from computer_linker.errors import InvalidRequest

_KEYS = {
    "enter": b"\r", "return": b"\r", "tab": b"\t", "escape": b"\x1b", "esc": b"\x1b", "backspace": b"\x7f", "space": b" ",
    "up": b"\x1b[A", "down": b"\x1b[B", "right": b"\x1b[C", "left": b"\x1b[D", "home": b"\x1b[H", "end": b"\x1b[F",
    "pageup": b"\x1b[5~", "pagedown": b"\x1b[6~", "insert": b"\x1b[2~", "delete": b"\x1b[3~", "shift+tab": b"\x1b[Z",
    "f1": b"\x1bOP", "f2": b"\x1bOQ", "f3": b"\x1bOR", "f4": b"\x1bOS", "f5": b"\x1b[15~", "f6": b"\x1b[17~",
    "f7": b"\x1b[18~", "f8": b"\x1b[19~", "f9": b"\x1b[20~", "f10": b"\x1b[21~", "f11": b"\x1b[23~", "f12": b"\x1b[24~",
}  # fmt: skip


def key_bytes(key: str) -> bytes:
    """The bytes of a key such as `enter`, `up`, `f5`, `ctrl+c` or `alt+x`."""
    name = key.strip().lower().replace("ctrl-", "ctrl+").replace("alt-", "alt+")
    if name in _KEYS:
        return _KEYS[name]
    if name.startswith("ctrl+") and len(name) == 6 and "@" <= name[5].upper() <= "_":
        return bytes([ord(name[5].upper()) & 0x1F])
    if name.startswith("alt+") and len(name) > 4:
        inner = name[4:]
        return b"\x1b" + (inner.encode() if len(inner) == 1 else key_bytes(inner))
    raise InvalidRequest(
        f"There is no key {key[:40]!r}. Use names such as enter, tab, up, f5, ctrl+c or alt+x.", field="key"
    )

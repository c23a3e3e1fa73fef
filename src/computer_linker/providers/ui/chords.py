"""Which key chords may be sent: those an application handles, never those that reach past it to the desktop or the system."""

from collections.abc import Sequence

from computer_linker.computer.facets.keyboard import MODIFIERS, key_name
from computer_linker.errors import InvalidRequest, PermissionDenied

_PRIMARY = frozenset({"cmd", "command", "primary", "mod"})
"""Other systems' names of the shortcut modifier, which is ctrl here."""
_NEVER = frozenset({"print_screen", "pause", "scroll_lock", "caps_lock", "num_lock"})
_WITH_ALT = frozenset({"up", "down", "left", "right", "home", "enter", "backspace"})
_NOT_WITH_CTRL = frozenset({"escape"})
MAX_KEYS = 5
MAX_STROKES = 50


def chord(keys: Sequence[str]) -> list[str]:
    """The chord's key names, modifiers first.

    Raises:
        InvalidRequest: it is not a chord.
        PermissionDenied: the desktop or the system, not an application, would act on it.
    """
    names = [_name(key) for key in keys]
    held = [name for name in MODIFIERS if name in names]
    struck = [name for name in names if name not in MODIFIERS]
    if len(struck) != 1 or len(set(names)) != len(names) or len(names) > MAX_KEYS:
        raise InvalidRequest("A chord is any modifiers, each once, and one other key.", field="input.keys")
    _refuse_beyond(set(held), struck[0])
    return [*held, struck[0]]


def _name(key: str) -> str:
    return "ctrl" if key.strip().lower() in _PRIMARY else key_name(key)


def _refuse_beyond(held: set[str], key: str) -> None:
    is_function = len(key) > 1 and key.startswith("f") and key[1:].isdigit()
    beyond = (
        "super" in held
        or {"ctrl", "alt"} <= held
        or key in _NEVER
        or ("ctrl" in held and key in _NOT_WITH_CTRL)
        or ("alt" in held and not (len(key) == 1 and key.isalnum()) and key not in _WITH_ALT)
        or (is_function and int(key[1:]) > 12)
    )
    if beyond:
        raise PermissionDenied(
            "That chord is handled by the desktop or the system, not by an application. Use window.*, app.* or "
            "clipboard.* operations instead.",
            rule="chord",
        )

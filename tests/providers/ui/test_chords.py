"""Which chords are sent to applications, and which would reach past them."""

import pytest

from computer_linker.errors import InvalidRequest, PermissionDenied
from computer_linker.providers.ui.chords import chord


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        (["enter"], ["enter"]),
        (["cmd", "v"], ["ctrl", "v"]),
        (["shift", "ctrl", "T"], ["ctrl", "shift", "t"]),
        (["alt", "f"], ["alt", "f"]),
        (["alt", "left"], ["alt", "left"]),
        (["f5"], ["f5"]),
        (["shift", "tab"], ["shift", "tab"]),
    ],
)
def test_an_applications_chord_is_sent(keys: list[str], sent: list[str]) -> None:
    assert chord(keys) == sent


@pytest.mark.parametrize(
    "keys",
    [
        ["ctrl", "alt", "f1"],
        ["CTRL", "Alt", "F7"],
        ["control", "option", "del"],
        ["ctrl", "alt", "backspace"],
        ["ctrl", "alt", "t"],
        ["ctrl", "alt", "shift", "x"],
        ["super", "l"],
        ["win", "r"],
        ["meta", "d"],
        ["alt", "f2"],
        ["alt", "f4"],
        ["alt", "tab"],
        ["alt", "space"],
        ["alt", "escape"],
        ["ctrl", "escape"],
        ["alt", "print_screen"],
        ["print_screen"],
        ["f13"],
        ["alt", "shift", "printscreen"],
    ],
)
def test_a_chord_of_the_desktop_or_system_is_refused(keys: list[str]) -> None:
    with pytest.raises(PermissionDenied):
        chord(keys)


@pytest.mark.parametrize("keys", [["ctrl"], ["a", "b"], ["ctrl", "ctrl", "a"], ["ctrl", "nokey"], ["ctrl", "cmd", "a"]])
def test_what_is_no_chord_is_refused(keys: list[str]) -> None:
    with pytest.raises(InvalidRequest):
        chord(keys)

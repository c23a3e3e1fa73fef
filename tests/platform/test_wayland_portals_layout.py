"""What a keyboard layout has, read from keymaps that the system's own compiler made."""

import subprocess

import pytest

from computer_linker.computer.local.linux.wayland.portal.layout import Layout, read_layout
from computer_linker.errors import ProviderUnavailable
from support.desktop import missing


def _layout(symbols: str) -> Layout:
    if lack := missing("xkbcomp"):
        pytest.skip(f"not installed: {lack}")
    source = (
        'xkb_keymap { xkb_keycodes { include "evdev+aliases(qwerty)" }; xkb_types { include "complete" };'
        f'xkb_compatibility {{ include "complete" }}; xkb_symbols {{ include "pc+{symbols}+inet(evdev)" }}; }};'
    )
    made = subprocess.run(
        ["xkbcomp", "-w", "0", "-xkb", "-", "-"], input=source.encode(), capture_output=True, timeout=20, check=True
    )
    return read_layout(made.stdout)


def test_a_layout_has_what_its_keys_give_alone_with_shift_and_with_altgr() -> None:
    german = _layout("de")
    assert {"a", "Z", "ü", "ß", "@", "€"} <= german.characters.keys()
    assert "你" not in german.characters
    assert 0xFF0D in german.keysyms


def test_a_character_under_an_older_number_is_found() -> None:
    russian = _layout("ru")
    assert russian.characters["ф"] == 0x6C6
    assert "a" not in russian.characters


def test_of_two_layouts_only_what_both_have_counts() -> None:
    both = _layout("us+ru:2")
    assert {"a", "ф"}.isdisjoint(both.characters)
    assert {"1", "5"} <= both.characters.keys()
    assert 0xFF0D in both.keysyms


def test_a_digit_is_not_the_keypads() -> None:
    assert _layout("us").characters["7"] == ord("7")


def test_what_is_no_keymap_is_refused() -> None:
    with pytest.raises(ProviderUnavailable):
        read_layout(b"nonsense")

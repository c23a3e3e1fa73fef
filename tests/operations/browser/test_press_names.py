"""browser.press: key names, and an error from which they can be learnt."""

import pytest

from computer_linker.errors import InvalidRequest
from computer_linker.operations.browser.press import chord_of


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("Enter", "Enter"), ("enter", "Enter"), ("return", "Enter"), ("ctrl+a", "Control+a"), ("page_up", "PageUp"),
        ("Control+Shift+down", "Control+Shift+ArrowDown"), ("esc", "Escape"), ("f5", "F5"), ("+", "+"), ("a", "a"),
        ("A", "A"), ("Control++", "Control++"),
    ],
)  # fmt: skip
def test_names_of_desktop_press_are_understood(given: str, meant: str) -> None:
    assert chord_of(given) == meant


@pytest.mark.parametrize("given", ["", "NoSuchKey", "Enter Enter", "--flag", "Control+", "Control", "a+b", "+a", "\n"])
def test_the_error_for_what_is_no_key_names_every_key(given: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        chord_of(given)
    assert "Control+Shift+ArrowDown" in str(refused.value)
    keys = refused.value.details["keys"]
    assert isinstance(keys, list) and {"Enter", "PageDown", "F12"} <= set(keys)
    assert refused.value.details["modifiers"] == ["Control", "Shift", "Alt", "Meta"]
    # Each listed name is itself understood.
    assert [chord_of(key) for key in keys] == keys

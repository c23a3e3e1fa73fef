"""browser.press: press a key on the open page."""

from typing import Annotated

from pydantic import Field

from computer_linker.errors import Conflict, InvalidRequest
from computer_linker.operations.browser.acting import PageActed, PageActOptions, aimed, outcome, page_act
from computer_linker.providers.browser.secret_field import IS_IN_FIELD
from computer_linker.registry import Context, Example, Model

_MODIFIERS = ("Control", "Shift", "Alt", "Meta")
_NAMED = (
    "Enter", "Tab", "Escape", "Backspace", "Delete", "Space", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home",
    "End", "PageUp", "PageDown", *(f"F{number}" for number in range(1, 13)),
)  # fmt: skip
_BY_NAME = {name.lower(): name for name in (*_MODIFIERS, *_NAMED)} | {
    "ctrl": "Control", "cmd": "Meta", "command": "Meta", "super": "Meta", "option": "Alt", "return": "Enter",
    "esc": "Escape", "del": "Delete", "up": "ArrowUp", "down": "ArrowDown", "left": "ArrowLeft", "right": "ArrowRight",
}  # fmt: skip
"""The names as desktop.press has them too, without regard to case, `_` and `-`."""
_KEEPS_TEXT = ("Enter", "Tab", "Shift+Tab", "Escape")


class PressInput(Model):
    key: Annotated[str, Field(max_length=60, description="A character or a key such as Enter, Control+a, ArrowDown.")]


@page_act(
    "browser.press",
    "pressed a key in the browser",
    Example("Send a form.", {"target": "e7.k3f9", "input": {"key": "Enter"}}, runs=False),
)
async def browser_press(
    ctx: Context, target: str, input: PressInput, options: PageActOptions = PageActOptions()
) -> PageActed:
    """Press a key or a combination in an element of the open page, by its reference from browser.snapshot."""
    key = chord_of(input.key)
    async with aimed(ctx, "press", target, options) as aim:
        if aim.session.holds_secret and key not in _KEEPS_TEXT:
            _, found = await aim.session.ask(("focus", aim.at), ("eval", IS_IN_FIELD))
            if found.get("result") is not False:
                # What is left of a secret after a key is found by no mask.
                raise Conflict("The field holds a secret: only Enter, Tab and Escape are pressed there.", key=key)
        _, done = await aim.session.ask(("focus", aim.at), ("press", key))
        return await outcome(ctx, aim, done, options)
    raise AssertionError("the body returns")


def chord_of(given: str) -> str:
    """The key in the browser's spelling, modifiers first.

    Raises:
        InvalidRequest: it is no key; the message has the whole grammar.
    """
    *held, last = _parts(given)
    modifiers = [_BY_NAME.get(_plain(one), "") for one in held]
    key = last if len(last) == 1 and "!" <= last <= "~" else _BY_NAME.get(_plain(last), "")
    if not key or key in _MODIFIERS or any(one not in _MODIFIERS for one in modifiers):
        raise InvalidRequest(
            f"There is no key {given[:30]!r}. A key is one printable character or a name, after modifiers joined by +: "
            "Enter, a, Control+a, Control+Shift+ArrowDown.",
            field="key",
            keys=list(_NAMED),
            modifiers=list(_MODIFIERS),
        )
    return "+".join([*dict.fromkeys(modifiers), key])


def _parts(given: str) -> list[str]:
    """Split at +, which is itself a key at the end."""
    if given == "+":
        return ["+"]
    return [*given[:-2].split("+"), "+"] if given.endswith("++") else given.split("+")


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace("-", "")

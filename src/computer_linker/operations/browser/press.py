"""browser.press: press a key on the open page."""

import re
from typing import Annotated

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.operations.browser.acting import PageActed, PageActOptions, aimed, outcome
from computer_linker.operations.browser.definition import page_act
from computer_linker.registry import Context, Example

_KEY = re.compile(
    r"(?:(?:Control|Shift|Alt|Meta)\+){0,4}"
    r"(?:[!-~]|Enter|Tab|Escape|Backspace|Delete|Space|Arrow(?:Up|Down|Left|Right)|Home|End|Page(?:Up|Down)|F(?:[1-9]|1[0-2]))"
)


class PressInput(Model):
    key: Annotated[str, Field(max_length=60, description="A character or a key such as Enter, Control+a, ArrowDown.")]


@page_act("browser.press", Example("Send a form.", {"target": "e7.k3f9", "input": {"key": "Enter"}}, runs=False))
async def browser_press(
    ctx: Context, target: str, input: PressInput, options: PageActOptions = PageActOptions()
) -> PageActed:
    """Press a key or a combination in an element of the open page, by its reference from browser.snapshot."""
    if not _KEY.fullmatch(input.key):
        raise InvalidRequest("That is no key. Name one character, or a key such as Enter or Control+a.", field="key")
    async with aimed(ctx, "press", target, options) as aim:
        _, done = await aim.session.ask(("focus", aim.at), ("press", input.key))
        return await outcome(ctx, aim, done, options)
    raise AssertionError("the body returns")

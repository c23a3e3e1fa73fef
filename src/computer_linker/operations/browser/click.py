"""browser.click: press something on the open page."""

from typing import Annotated

from pydantic import Field

from computer_linker.operations.browser.acting import PageActed, PageActOptions, aimed, outcome, page_act
from computer_linker.registry import Context, Example, Model


class ClickInput(Model):
    count: Annotated[int, Field(ge=1, le=2, description="2 for a double click.")] = 1


@page_act(
    "browser.click",
    "clicked[ a {role}] in the browser",
    Example("Press a control of the page.", {"target": "e12.k3f9"}, runs=False),
)
async def browser_click(
    ctx: Context, target: str, input: ClickInput = ClickInput(), options: PageActOptions = PageActOptions()
) -> PageActed:
    """Click an element of the open page by its reference from browser.snapshot.

    A reference whose element is gone, or is another one by now, is refused. `effect` is `confirmed` when the page was seen
    to change, and `suspected_noop` when it was not.
    """
    verb = "click" if input.count == 1 else "dblclick"
    async with aimed(ctx, verb, target, options) as aim:
        (done,) = await aim.session.ask((verb, aim.at))
        return await outcome(ctx, aim, done, options)
    raise AssertionError("the body returns")

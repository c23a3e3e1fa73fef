"""browser.fill: put text into a field of the open page."""

from typing import Annotated

from pydantic import Field

from computer_linker.model.base import Model
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect, Known
from computer_linker.operations.browser.acting import PageActed, PageActOptions, acted, aimed
from computer_linker.providers.browser.page import look
from computer_linker.registry import Context, Example, operation


class FillInput(Model):
    text: Annotated[str, Field(max_length=100_000, description="What the field shall hold instead of what it holds.")]


@operation(
    "browser.fill",
    needs={Capability.COMMAND_RUN},
    effect=Effect.ACT,
    boundary="sandboxed",
    examples=[Example("Fill in a name.", {"target": "e7.k3f9", "input": {"text": "Ada"}}, runs=False)],
)
async def browser_fill(
    ctx: Context, target: str, input: FillInput, options: PageActOptions = PageActOptions()
) -> PageActed:
    """Replace what a field of the open page holds, by its reference from browser.snapshot, and read it back.

    The text is neither in the history nor in the answer. `effect` is `confirmed` when the field holds exactly the text,
    and `partial` when the page made something else of it.
    """
    async with aimed(ctx, "fill", target, options) as aim:
        await aim.session.ask(("fill", aim.at, input.text))
        known: Known = "unverifiable"
        if options.verify:
            (held,) = await aim.session.ask(("get", "value", aim.at))
            if type(held.get("value")) is str:
                known = "confirmed" if held["value"] == input.text else "partial"
        ctx.effect = known
        ctx.note(characters=len(input.text))
        return await acted(ctx, aim, await look(aim.session, ctx.scope), options)
    raise AssertionError("the body returns")

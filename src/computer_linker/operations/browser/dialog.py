"""browser.dialog: answer a dialog of the open page."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.errors import NotFound
from computer_linker.operations.browser.paging import page_of
from computer_linker.operations.browser.preview import show_dialog
from computer_linker.providers.browser.page import look
from computer_linker.providers.browser.session import text_in
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class DialogInput(Model):
    text: Annotated[str | None, Field(max_length=10_000, description="What to answer to a prompt.")] = None


class AnsweredDialog(Model):
    type: Annotated[str, Field(description="confirm, prompt, alert or beforeunload.")]
    message: str
    accepted: bool
    url: str
    title: str


@operation(
    "browser.dialog",
    did="answered a page's dialog",
    needs={Capability.COMMAND_RUN},
    effect=Effect.ACT,
    boundary="sandboxed",
    awaits_intent=True,
    shows=show_dialog,
    examples=[
        Example("Say yes.", {"target": "accept"}, runs=False),
        Example("Say no.", {"target": "dismiss"}, runs=False),
    ],
)
async def browser_dialog(
    ctx: Context, target: Literal["accept", "dismiss"], input: DialogInput = DialogInput()
) -> AnsweredDialog:
    """Accept or dismiss the dialog that the open page shows, which holds up everything else on it."""
    answer = ("dialog", target, *([input.text] if input.text is not None and target == "accept" else []))
    async with page_of(ctx, answer) as session:
        (shown,) = await session.ask(("dialog", "status"))
        if not text_in(shown, "type"):
            raise NotFound("The page shows no dialog.")
        await ctx.durable_intent()
        await session.ask(answer)
        page = await look(session, ctx.scope)
    # The page was read again, which is impossible while a dialog is open.
    ctx.effect = "confirmed"
    ctx.note(dialog=text_in(shown, "type", 20), accepted=target == "accept")
    return AnsweredDialog(
        type=text_in(shown, "type", 20),
        message=text_in(shown, "message", 2000),
        accepted=target == "accept",
        url=page.url,
        title=page.title,
    )

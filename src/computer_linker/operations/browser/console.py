"""browser.console: console messages and errors of the open page."""

import json
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from computer_linker.operations.artifact.answer import ArtifactFacts
from computer_linker.operations.browser.paging import KeptInput, keep, may_keep, page_of
from computer_linker.providers.browser.addresses import shown
from computer_linker.providers.browser.page import allowed
from computer_linker.providers.browser.session import text_in
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation

_MAX_LINE = 2000


class ConsoleOptions(Model):
    keep: Annotated[bool, Field(description="Keep it as an artifact, where the scope has artifact:write.")] = False
    max_lines: Annotated[int, Field(ge=1, le=2000)] = 500


class ConsoleLine(TypedDict):
    type: str
    text: str


class PageConsole(Model):
    url: str
    messages: list[ConsoleLine]
    errors: list[str]
    truncated: bool
    artifact: ArtifactFacts | None = None


@operation(
    "browser.console",
    did="read the browser's console",
    needs={Capability.COMMAND_RUN},
    effect=Effect.OBSERVE,
    boundary="sandboxed",
    examples=[Example("Messages and errors of the page.", {}, runs=False)],
)
async def browser_console(
    ctx: Context, input: KeptInput = KeptInput(), options: ConsoleOptions = ConsoleOptions()
) -> PageConsole:
    """What pages said to the console since the browser was opened, and their uncaught errors."""
    async with page_of(ctx, ("console",), ("errors",)) as session:
        where, console, failed = await session.ask(("get", "url"), ("console",), ("errors",))
        url = await allowed(session, ctx.scope, where)
    messages = [
        ConsoleLine(type=text_in(item, "type", 20), text=shown(text_in(item, "text", _MAX_LINE), ctx.scope))
        for item in _items(console, "messages")
    ]
    errors = [shown(text_in(item, "text", _MAX_LINE), ctx.scope) for item in _items(failed, "errors")]
    kept = None
    if options.keep and may_keep(ctx):
        document = json.dumps({"url": url, "messages": messages, "errors": errors}, ensure_ascii=False, indent=1)
        kept = await keep(ctx, document.encode(), "console_logs", f"console of {url}", input.owner)
    ctx.note(messages=len(messages), errors=len(errors))
    return PageConsole(
        url=url,
        messages=messages[-options.max_lines :],
        errors=errors[-options.max_lines :],
        truncated=max(len(messages), len(errors)) > options.max_lines,
        artifact=kept,
    )


def _items(answer: dict[str, Any], name: str) -> list[dict[str, Any]]:
    items = answer.get(name)
    return [item for item in items if type(item) is dict] if type(items) is list else []

"""browser.wait: wait until the open page shows something."""

import time
from typing import Annotated

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.operations.browser.paging import page_of
from computer_linker.providers.browser.page import Page, look
from computer_linker.providers.browser.session import text_in
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation

_BETWEEN_MS = "150"
Words = Annotated[str | None, Field(min_length=1, max_length=500)]


class WaitInput(Model):
    text_appears: Words = None
    text_gone: Words = None
    url_contains: Words = None
    title_contains: Words = None


class WaitOptions(Model):
    timeout_seconds: Annotated[float, Field(gt=0, le=50)] = 15


class PageWaited(Model):
    matched: Annotated[bool, Field(description="False when the time was over first.")]
    elapsed_ms: float
    url: str
    title: str


@operation(
    "browser.wait",
    did="waited for a page",
    needs={Capability.COMMAND_RUN},
    effect=Effect.OBSERVE,
    boundary="sandboxed",
    examples=[Example("Until it says thanks.", {"input": {"textAppears": "Thank you"}}, runs=False)],
)
async def browser_wait(ctx: Context, input: WaitInput, options: WaitOptions = WaitOptions()) -> PageWaited:
    """Wait until the open page shows a text, no longer shows one, or is at an address or title; all that is asked must hold."""
    if input == WaitInput():
        raise InvalidRequest("Say what to wait for: textAppears, textGone, urlContains or titleContains.")
    started = time.monotonic()
    async with page_of(ctx, ("wait",)) as session:
        while True:
            page = await look(session, ctx.scope)
            (answer,) = await session.ask(("get", "text", "body"))
            is_there = _holds(input, page, text_in(answer, "text", 4_000_000))
            elapsed = time.monotonic() - started
            if is_there or elapsed >= options.timeout_seconds:
                return PageWaited(matched=is_there, elapsed_ms=round(elapsed * 1000, 1), url=page.url, title=page.title)
            await session.ask(("wait", _BETWEEN_MS))
    raise AssertionError("the body returns")


def _holds(input: WaitInput, page: Page, text: str) -> bool:
    wanted = (
        (input.text_appears, text, True),
        (input.text_gone, text, False),
        (input.url_contains, page.url, True),
        (input.title_contains, page.title, True),
    )
    return all((words in place) is there for words, place, there in wanted if words is not None)

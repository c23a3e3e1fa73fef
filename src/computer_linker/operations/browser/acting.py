"""Acts on a page: resolving the element by its reference, comparing the page before and after, and the effect word."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from computer_linker.model.scope import Scope
from computer_linker.operations.artifact.answer import ArtifactFacts
from computer_linker.operations.browser.paging import checked_ref, keep, made, may_keep, page_of
from computer_linker.operations.browser.preview import show_page_act
from computer_linker.operations.desktop.acting import ActedOn
from computer_linker.providers.browser.page import Page, look, resolve
from computer_linker.providers.browser.session import Session
from computer_linker.providers.refs import References
from computer_linker.registry import Capability, Context, Effect, Example, Model, Operation, operation
from computer_linker.registry.operation import Shows

_LOOKS = 4
_BETWEEN_MS = "200"


class PageActOptions(Model):
    verify: Annotated[bool, Field(description="Read the effect back; without it the effect is unverifiable.")] = True
    evidence: Annotated[bool, Field(description="Keep a picture from before and one from after.")] = False


class PageActed(Model):
    delivered: Annotated[
        bool, Field(description="The browser took the input; `effect` says what is known of its effect.")
    ]
    element: ActedOn
    url: Annotated[str, Field(description="Where the page is afterwards.")]
    title: str
    dialog_opened: Annotated[bool, Field(description="A dialog of the page waits for browser.dialog.")] = False
    artifacts: Annotated[list[ArtifactFacts], Field(description="With `evidence`: before and after.")] = []


@dataclass(slots=True)
class Aim:
    """One element of the open page, and the page before the act."""

    session: Session
    scope: Scope
    at: str
    """agent-browser's reference."""
    before: Page
    on: ActedOn
    pictures: list[ArtifactFacts]


@asynccontextmanager
async def aimed(ctx: Context, verb: str, target: str, options: PageActOptions) -> AsyncIterator[Aim]:
    """Resolve a reference on the current page. A stale reference is refused."""
    async with page_of(ctx, (verb, "@e1")) as session:
        references = ctx.use(References)
        before = await look(session, ctx.scope)
        at = resolve(references, ctx.scope, session, before, checked_ref(target))
        one = before.seen[at[1:]].element
        pictures: list[ArtifactFacts] = []
        if options.evidence and may_keep(ctx):
            pictures.append(await picture(ctx, session, f"before {ctx.op}"))
        # Inside the page's own queue: what a person saw must hold when the input is sent, not when it was queued.
        await ctx.durable_intent()
        yield Aim(session, ctx.scope, at, before, ActedOn(ref=target, role=one.role, name=one.name[:200]), pictures)


async def acted(ctx: Context, aim: Aim, after: Page, options: PageActOptions) -> PageActed:
    """The reply of an act."""
    if options.evidence and may_keep(ctx):
        aim.pictures.append(await picture(ctx, aim.session, f"after {ctx.op}"))
    ctx.note(method="agent-browser", role=aim.on.role)
    return PageActed(delivered=True, element=aim.on, url=after.url, title=after.title, artifacts=aim.pictures)


async def outcome(ctx: Context, aim: Aim, done: dict[str, Any], options: PageActOptions) -> PageActed:
    """Determine the effect of an act by polling the page until it differs; an act that opened a dialog needs no polling."""
    if done.get("dialogOpened") is True:
        return _by_dialog(ctx, aim)
    if options.verify:
        after, is_changed = await _settled(ctx, aim)
        ctx.effect = "confirmed" if is_changed else "suspected_noop"
    else:
        after, ctx.effect = await look(aim.session, ctx.scope), "unverifiable"
    return await acted(ctx, aim, after, options)


def _by_dialog(ctx: Context, aim: Aim) -> PageActed:
    """The reply of an act that opened a dialog: until that is answered the page cannot be read."""
    ctx.effect = "confirmed"
    ctx.note(method="agent-browser", role=aim.on.role, dialog=True)
    return PageActed(
        delivered=True,
        element=aim.on,
        url=aim.before.url,
        title=aim.before.title,
        dialog_opened=True,
        artifacts=aim.pictures,
    )


async def _settled(ctx: Context, aim: Aim) -> tuple[Page, bool]:
    """The page after an act, and whether anything on it changed; polled a few times, because pages need a moment."""
    after = aim.before
    for number in range(_LOOKS):
        if number:
            await aim.session.ask(("wait", _BETWEEN_MS))
        after = await look(aim.session, ctx.scope)
        if (after.url, after.title, after.outline) != (aim.before.url, aim.before.title, aim.before.outline):
            return after, True
    return after, False


async def picture(ctx: Context, session: Session, title: str) -> ArtifactFacts:
    """Take a screenshot of the page and store it."""
    content = await made(ctx, session, "evidence.png", ("screenshot", session.place("evidence.png")))
    return await keep(ctx, content, "screenshot", title)


# The common definition of acts on a page, so that every one has an approval preview.


def page_act(
    name: str, did: str, example: Example, *, also_needs: Capability | None = None, shows: Shows = show_page_act
) -> Callable[[Callable[..., Awaitable[Any]]], Operation]:
    """Define an act on an element of the open page."""
    return operation(
        name,
        did=did,
        needs={Capability.COMMAND_RUN, *(() if also_needs is None else (also_needs,))},
        effect=Effect.ACT,
        boundary="sandboxed",
        awaits_intent=True,
        shows=shows,
        examples=[example],
    )

"""The approval preview of an act on a page: the element and the page, because a reference means nothing to a person."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import anyio

from computer_linker.approvals.request import Preview
from computer_linker.errors import Conflict, InvalidRequest, NotFound
from computer_linker.model.paths import RootedPath
from computer_linker.operations.browser.paging import checked_ref, request
from computer_linker.policy.digest import digest_of_parts
from computer_linker.providers.browser.addresses import file_url, place_of
from computer_linker.providers.browser.browsers import Browsers
from computer_linker.providers.browser.page import look, resolve
from computer_linker.providers.browser.session import Session, text_in
from computer_linker.providers.refs import References
from computer_linker.registry import Context
from computer_linker.vault.typed import secret_lines

Fits = Callable[[str, Any], None]
"""Raises Conflict where an act with this input cannot be on an element of this role."""


async def show_page_act(
    ctx: Context, target: str, input: object = None, options: object = None, *, fits: Fits | None = None
) -> Preview:
    """The element of an act on the current page. The approval is bound to that element on that page."""
    session = ctx.use(Browsers).find(ctx.scope, ctx.principal)
    async with _busy(session):
        page = await look(session, ctx.scope)
    at = resolve(ctx.use(References), ctx.scope, session, page, checked_ref(target))
    one = page.seen[at[1:]].element
    typed = secret_lines(ctx.services, input)
    lines = (*typed, f'the {one.role} "{one.name}"', f'on the page "{page.title}" at {page.url}')
    holds = {"element": digest_of_parts(one.role, one.name), "page": digest_of_parts(page.url, page.title)}
    try:
        if fits is not None:
            fits(one.role, input)
    except Conflict as error:
        return Preview(lines, holds, obstacle=error)
    return Preview(lines, holds)


async def show_open(ctx: Context, target: str, options: object = None) -> Preview:
    """The page that would be opened. Refused where the scope does not show it."""
    place = place_of(ctx.scope, target, ctx.path)
    if not isinstance(place, RootedPath):
        return Preview((f"opens {place} in the scope's own browser",))
    await page_file(ctx, place)
    return Preview((f"opens the file {place.shown} in the scope's own browser",), paths=(place.shown,))


async def page_file(ctx: Context, path: RootedPath) -> str:
    """The address of a file of the scope. Raises NotFound and InvalidRequest where there is none."""
    found = await ctx.computer.files.stat(path)
    if found.type != "file":
        raise InvalidRequest(f"{path.shown} is not a file.", path=path.shown)
    return file_url(path.root, path.parts)


async def show_page(ctx: Context, command: tuple[str, ...]) -> Preview:
    """The open page, for an operation on all of it. Refused where none is open, or the scope's rules refuse the command."""
    browsers = ctx.use(Browsers)
    session = browsers.find(ctx.scope, ctx.principal)
    await browsers.judge(request(ctx), command)
    async with _busy(session):
        page = await look(session, ctx.scope)
    return Preview((f'of the page "{page.title}" at {page.url}',), {"page": digest_of_parts(page.url, page.title)})


async def show_dialog(ctx: Context, target: str, input: object = None) -> Preview:
    """The open dialog of the page."""
    session = ctx.use(Browsers).find(ctx.scope, ctx.principal)
    async with _busy(session):
        (shown,) = await session.ask(("dialog", "status"))
    kind, message = text_in(shown, "type", 20), text_in(shown, "message", 2000)
    if not kind:
        raise NotFound("The page shows no dialog.")
    return Preview((f"the {kind} of the page:", message), {"dialog": digest_of_parts(kind, message)})


def _busy(session: Session) -> AbstractAsyncContextManager[None]:
    """Lock the page, unless an act that checks again at the last moment holds the lock already."""
    is_ours = session.busy.statistics().owner == anyio.get_current_task()
    return nullcontext() if is_ours else session.busy

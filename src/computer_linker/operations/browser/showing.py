"""What a person sees of an act on a page before they say yes: the element and the page, for a reference says nothing to them."""

from hashlib import sha256
from typing import Any

from computer_linker.operations.browser.paging import checked_ref
from computer_linker.policy.confirm import About
from computer_linker.policy.preview import escaped
from computer_linker.providers.browser.browsers import Browsers
from computer_linker.providers.browser.page import look, resolve
from computer_linker.providers.refs.store import References
from computer_linker.registry import Context


async def show_page_act(ctx: Context, target: str, input: Any = None, options: Any = None) -> About:
    """The element an act is for as the page shows it now. The yes holds for that element on that page."""
    session = ctx.use(Browsers).find(ctx.scope, ctx.principal)
    async with session.busy:
        page = await look(session, ctx.scope)
    at = resolve(ctx.use(References), ctx.scope, session, page, checked_ref(target))
    one = page.seen[at[1:]].element
    lines = (f'the {one.role} "{one.name}"', f'on the page "{page.title}" at {page.url}')
    held = "\0".join((one.role, one.name, page.url))
    return About(tuple(map(escaped, lines)), sha256(held.encode("utf-8", "surrogatepass")).hexdigest())

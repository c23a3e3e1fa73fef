"""browser.open: show a page in the scope's own browser."""

from contextlib import suppress
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from computer_linker.model.paths import RootedPath
from computer_linker.operations.browser.paging import request, warn_of_refusals
from computer_linker.operations.browser.preview import page_file, show_open
from computer_linker.providers.browser.addresses import place_of
from computer_linker.providers.browser.browsers import Browsers
from computer_linker.providers.browser.page import allowed
from computer_linker.providers.browser.session import text_in
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class OpenOptions(Model):
    width: Annotated[int, Field(ge=200, le=4000)] = 1280
    height: Annotated[int, Field(ge=200, le=4000)] = 800


class OpenedPage(Model):
    url: Annotated[str, Field(description="Where it ended, after redirects; of a file, its path in the scope.")]
    title: str
    session: Annotated[str, Field(description="This caller's browser in this scope.")]
    boundary: Annotated[str, Field(description="What the kernel enforces around the browser, or `none`.")]


@operation(
    "browser.open",
    did="opened a page[ of {site}]",
    needs={Capability.COMMAND_RUN},
    effect=Effect.CHANGE,
    boundary="sandboxed",
    deadline_s=90,
    awaits_intent=True,
    shows=show_open,
    examples=[
        Example("Open a page of the scope.", {"target": "dist/index.html"}, runs=False),
        Example("Open a local server.", {"target": "http://localhost:3000/"}, runs=False),
    ],
)
async def browser_open(ctx: Context, target: str, options: OpenOptions = OpenOptions()) -> OpenedPage:
    """Open a page in the scope's own browser: a file of the scope by its path, or an address when the scope has the network.

    The browser runs inside the scope's boundary, sees its files and nothing else of this computer, and reaches the network
    only through a gate that never leads to this service or to a machine's metadata. It is this caller's alone, and ends with
    browser.close, when unused for a quarter of an hour, or with the service.
    """
    # Before it can be refused: the history names the host.
    with suppress(ValueError):
        ctx.note(site=urlsplit(target).hostname or "local file")
    place = place_of(ctx.scope, target, ctx.path)
    url = await page_file(ctx, place) if isinstance(place, RootedPath) else place
    asked = request(ctx, "open", url)
    browsers = ctx.use(Browsers)
    await browsers.judge(asked, ("open", url))
    session = await browsers.start(asked, ctx.principal, ctx.durable_intent)
    ctx.boundary = session.boundary
    ctx.warnings.extend(session.warnings)
    size = ("set", "viewport", str(options.width), str(options.height))
    async with session.busy:
        _, _, where, title = await session.ask(size, ("open", url), ("get", "url"), ("get", "title"), timeout_s=60)
        at = await allowed(session, ctx.scope, where)
    warn_of_refusals(ctx, session)
    ctx.effect = "partial" if at.startswith("chrome-error:") else "confirmed"
    ctx.note(program="agent-browser", site=urlsplit(at).netloc or "local file")
    return OpenedPage(url=at, title=text_in(title, "title"), session=session.id, boundary=session.boundary)

"""browser.close: end the scope's browser."""

from computer_linker.approvals.request import Preview
from computer_linker.providers.browser.browsers import Browsers
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class ClosedBrowser(Model):
    closed: bool


async def _show(ctx: Context) -> Preview:
    """That the browser would end. Refused where there is none: no one need be asked."""
    ctx.use(Browsers).find(ctx.scope, ctx.principal)
    return Preview(("ends the scope's browser, with its pages, cookies and everything it started",))


@operation(
    "browser.close",
    did="closed the browser",
    needs={Capability.COMMAND_RUN},
    effect=Effect.CHANGE,
    boundary="scoped-metadata",
    shows=_show,
    examples=[Example("End the browser.", {})],
)
async def browser_close(ctx: Context) -> ClosedBrowser:
    """End this caller's browser in this scope, with its pages, cookies and everything it started."""
    closed = await ctx.use(Browsers).end((ctx.scope.id, ctx.principal.id))
    ctx.effect = "confirmed" if closed else "suspected_noop"
    return ClosedBrowser(closed=closed)

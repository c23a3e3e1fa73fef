"""browser.pdf: the open page as a document."""

from computer_linker.approvals.request import Preview
from computer_linker.operations.browser.paging import KeptInput, PageFile, keep, made, page_of
from computer_linker.operations.browser.preview import show_page
from computer_linker.providers.browser.page import look
from computer_linker.registry import Capability, Context, Effect, Example, operation, shapes


async def _show(ctx: Context, input: KeptInput = KeptInput()) -> Preview:
    return await show_page(ctx, ("pdf",))


@operation(
    "browser.pdf",
    did="printed a page",
    needs={Capability.COMMAND_RUN, Capability.ARTIFACT_WRITE},
    effect=Effect.CHANGE,
    text=shapes.ARTIFACTS,
    boundary="sandboxed",
    shows=_show,
    examples=[Example("Keep the page as a PDF.", {}, runs=False)],
)
async def browser_pdf(ctx: Context, input: KeptInput = KeptInput()) -> PageFile:
    """Print the open page to a PDF and keep it as an artifact."""
    async with page_of(ctx, ("pdf",)) as session:
        page = await look(session, ctx.scope)
        content = await made(ctx, session, "page.pdf", ("pdf", session.place("page.pdf")))
    kept = await keep(ctx, content, "document", page.title or page.url, input.owner)
    ctx.effect = "confirmed"
    return PageFile(url=page.url, artifact=kept)

"""browser.screenshot: a picture of the open page."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.errors import ExecutionFailed
from computer_linker.operations.artifact.answer import ArtifactFacts
from computer_linker.operations.browser.paging import KeptInput, checked_ref, keep, made, may_keep, page_of
from computer_linker.operations.screen.reply import as_base64
from computer_linker.providers.browser.page import look, resolve
from computer_linker.providers.refs import References
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation

_PNG = b"\x89PNG\r\n\x1a\n"


class ScreenshotOptions(Model):
    full_page: Annotated[bool, Field(description="The whole page, not only what the window shows.")] = False
    return_as: Annotated[
        Literal["bytes", "base64", "none"],
        Field(alias="return", description="bytes: an image block beside the answer; none: only the artifact."),
    ] = "bytes"


class PageScreenshot(Model):
    url: str
    title: str
    format: str
    width: int
    height: int
    artifact: Annotated[ArtifactFacts | None, Field(description="Null where the scope lacks artifact:write.")]
    bytes_base64: str | None = None


@operation(
    "browser.screenshot",
    did="took a picture of a page",
    needs={Capability.COMMAND_RUN},
    effect=Effect.OBSERVE,
    boundary="sandboxed",
    examples=[Example("The whole page.", {"options": {"fullPage": True}}, runs=False)],
)
async def browser_screenshot(
    ctx: Context,
    target: str | None = None,
    input: KeptInput = KeptInput(),
    options: ScreenshotOptions = ScreenshotOptions(),
) -> PageScreenshot:
    """A picture of the open page, or of one element by its reference, as an image and kept as an artifact."""
    async with page_of(ctx, ("screenshot",)) as session:
        page = await look(session, ctx.scope)
        at: tuple[str, ...] = ("--full",) if options.full_page else ()
        if target is not None:
            at = (resolve(ctx.use(References), ctx.scope, session, page, checked_ref(target)),)
        content = await made(ctx, session, "shot.png", ("screenshot", *at, session.place("shot.png")))
    if not content.startswith(_PNG):
        raise ExecutionFailed("The browser made no picture.")
    if options.return_as == "bytes":
        ctx.attach("image/png", content)
    kept = await keep(ctx, content, "screenshot", page.title or page.url, input.owner) if may_keep(ctx) else None
    return PageScreenshot(
        url=page.url,
        title=page.title,
        format="png",
        width=int.from_bytes(content[16:20], "big"),
        height=int.from_bytes(content[20:24], "big"),
        artifact=kept,
        bytes_base64=as_base64(content) if options.return_as == "base64" else None,
    )

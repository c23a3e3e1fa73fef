"""clipboard.read: what was copied."""

import base64
from typing import Annotated, Literal

from pydantic import Field

from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class ClipboardReadOptions(Model):
    format: Literal["text", "image"] = "text"
    max_bytes: Annotated[int, Field(gt=0, le=5_000_000)] = 1_000_000
    returns: Annotated[Literal["bytes", "base64"], Field(alias="return", description="How an image is given.")] = (
        "bytes"
    )


class ClipboardContent(Model):
    types: Annotated[list[str], Field(description="The media types on offer; empty when the clipboard is.")]
    text: Annotated[str | None, Field(description="None when it holds no text, or an image was asked for.")] = None
    bytes_base64: str | None = None
    size: int = 0


@operation(
    "clipboard.read",
    did="read the clipboard",
    needs={Capability.CLIPBOARD_READ},
    effect=Effect.OBSERVE,
    text=shapes.TEXT,
    on="computer",
    deadline_s=15,
    facets=("clipboard",),
    examples=[Example("Read the copied text.", {}, runs=False)],
)
async def clipboard_read(ctx: Context, options: ClipboardReadOptions = ClipboardReadOptions()) -> ClipboardContent:
    """Read the clipboard's text, or its picture as PNG. Neither is kept in the history."""
    types = await ctx.computer.clipboard.types()
    media = "text/plain" if options.format == "text" else "image/png"
    raw = await ctx.computer.clipboard.read(media, max_bytes=options.max_bytes) if media in types else None
    ctx.note(types=len(types), bytes=len(raw or b""))
    if raw is None:
        return ClipboardContent(types=types)
    if options.format == "text":
        return ClipboardContent(types=types, text=raw.decode("utf-8", errors="replace"), size=len(raw))
    if options.returns == "bytes":
        ctx.attach(media, raw)
        return ClipboardContent(types=types, size=len(raw))
    return ClipboardContent(types=types, bytes_base64=base64.b64encode(raw).decode("ascii"), size=len(raw))

"""clipboard.write: put text or a picture on the clipboard."""

import base64
import binascii
from typing import Annotated

from pydantic import Field

from computer_linker.approvals.request import Preview
from computer_linker.computer.facets.clipboard import Clip, text_clip
from computer_linker.errors import InvalidRequest
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation

_PNG = b"\x89PNG\r\n\x1a\n"


class ClipboardWriteInput(Model):
    """One of the two."""

    text: Annotated[str | None, Field(max_length=5_000_000)] = None
    image_base64: Annotated[str | None, Field(max_length=7_000_000, description="A PNG.")] = None


class ClipboardWritten(Model):
    media_type: str
    size: int


async def _show(ctx: Context, input: ClipboardWriteInput) -> Preview:
    """The text that would replace what the clipboard holds. Refused where it is neither a text nor a picture."""
    clip = _clip(input)
    if input.text is None:
        ((_, raw),) = clip.forms.items()
        return Preview((f"puts a picture of {len(raw)} bytes on the clipboard",))
    return Preview(("puts this text on the clipboard:", *input.text.split("\n")))


@operation(
    "clipboard.write",
    did="wrote the clipboard",
    needs={Capability.CLIPBOARD_WRITE},
    effect=Effect.ACT,
    shows=_show,
    on="computer",
    deadline_s=15,
    facets=("clipboard",),
    examples=[Example("Copy a sentence.", {"input": {"text": "Good morning."}}, runs=False)],
)
async def clipboard_write(ctx: Context, input: ClipboardWriteInput) -> ClipboardWritten:
    """Replace what the clipboard holds, by text or by a PNG picture, and read it back."""
    clip = _clip(input)
    ((media_type, raw),) = clip.forms.items()
    await ctx.computer.clipboard.write(clip)
    held = await ctx.computer.clipboard.read(media_type, max_bytes=len(raw) + 1024)
    ctx.effect = "confirmed" if held == raw else "suspected_noop"
    ctx.note(bytes=len(raw), mediaType=media_type)
    return ClipboardWritten(media_type=media_type, size=len(raw))


def _clip(given: ClipboardWriteInput) -> Clip:
    if (given.text is None) == (given.image_base64 is None):
        raise InvalidRequest("Give either `text` or `imageBase64`.")
    if given.text is not None:
        return text_clip(given.text)
    try:
        raw = base64.b64decode(given.image_base64 or "", validate=True)
    except binascii.Error:
        raise InvalidRequest("`imageBase64` is not base64.", field="input.imageBase64") from None
    if not raw.startswith(_PNG):
        raise InvalidRequest("`imageBase64` must be a PNG.", field="input.imageBase64")
    return Clip({"image/png": raw})

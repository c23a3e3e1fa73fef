"""artifact.read: the bytes of one artifact."""

import base64
from typing import Annotated, Literal

from pydantic import Field

from computer_linker.artifacts.broker import ArtifactBroker
from computer_linker.operations.artifact.answer import ArtifactFacts, facts
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class ReadOptions(Model):
    max_bytes: Annotated[int, Field(ge=1, le=4_000_000)] = 1_000_000
    start_byte: Annotated[int, Field(ge=0)] = 0
    return_as: Annotated[
        Literal["auto", "base64", "none"],
        Field(alias="return", description="auto: text as text, a picture as an image block, else base64."),
    ] = "auto"


class ArtifactContent(Model):
    artifact: ArtifactFacts
    text: str | None = None
    bytes_base64: str | None = None
    truncated: bool
    next_byte: int | None


@operation(
    "artifact.read",
    did="read the evidence",
    needs={Capability.ARTIFACT_READ},
    effect=Effect.OBSERVE,
    text=shapes.ARTIFACTS,
    on="any",
    examples=[Example("Read one artifact.", {"target": "art_0123456789abcdef01234567"}, runs=False)],
)
async def artifact_read(ctx: Context, target: str, options: ReadOptions = ReadOptions()) -> ArtifactContent:
    """Read one of the caller's artifacts by its id: text, a picture beside the answer, or base64, in pages when it is large."""
    broker = ctx.use(ArtifactBroker)
    artifact = await broker.find(target, ctx.scope.id, ctx.principal)
    content = await broker.content(artifact) if options.return_as != "none" else b""
    part = content[options.start_byte : options.start_byte + options.max_bytes]
    end = options.start_byte + len(part)
    text = encoded = None
    if options.return_as == "auto" and artifact.media_type.startswith("image/") and len(part) == artifact.size:
        ctx.attach(artifact.media_type, part)
    elif options.return_as == "auto" and artifact.media_type in ("text/plain", "application/json"):
        text = part.decode("utf-8", "replace")
    elif options.return_as != "none":
        encoded = base64.b64encode(part).decode()
    ctx.note(artifact=artifact.id, bytes=len(part))
    more = options.return_as != "none" and end < artifact.size
    return ArtifactContent(
        artifact=facts(artifact), text=text, bytes_base64=encoded, truncated=more, next_byte=end if more else None
    )

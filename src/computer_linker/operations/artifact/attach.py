"""artifact.attach: keep one file of the scope, or a piece of text, as proof."""

from hashlib import sha256
from typing import Annotated

from pydantic import Field

from computer_linker.approvals.request import Preview
from computer_linker.artifacts.broker import ArtifactBroker
from computer_linker.artifacts.kinds import kind_named, kind_of_file, normalised_kind
from computer_linker.artifacts.manifest import stated_of
from computer_linker.artifacts.store import Owner
from computer_linker.errors import InvalidRequest
from computer_linker.operations.artifact.answer import (
    Description,
    KeptArtifact,
    Kind,
    Label,
    Metadata,
    MimeType,
    facts,
    file_content,
)
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class AttachInput(Model):
    kind: Kind = None
    title: Annotated[str | None, Field(max_length=200)] = None
    description: Description = None
    mime_type: MimeType = None
    metadata: Metadata = None
    owner: Label = None
    text: Annotated[str | None, Field(max_length=4_000_000, description="Keep this text instead of a file.")] = None


async def _show(ctx: Context, target: str | None = None, input: AttachInput = AttachInput()) -> Preview:
    """The file that would be kept. Refused where it cannot be read."""
    _check_one(target, input)
    if target is None:
        return Preview((f"keeps a text of {len(input.text or '')} characters as evidence",))
    content = await file_content(ctx, target)
    digest = sha256(content).hexdigest()
    return Preview((f"keeps a copy of {target} as evidence: {len(content)} bytes, sha256 {digest}",), {"file": digest})


def _check_one(target: str | None, input: AttachInput) -> None:
    if (target is None) == (input.text is None):
        raise InvalidRequest("Give either a target inside the scope, or input.text.")


@operation(
    "artifact.attach",
    did="kept[ {target}] as evidence",
    needs={Capability.ARTIFACT_WRITE},
    effect=Effect.CHANGE,
    shows=_show,
    text=shapes.ARTIFACTS,
    on="any",
    boundary="path-enforced",
    examples=[
        Example("Keep a log as proof.", {"target": "notes.txt", "input": {"kind": "console_logs", "owner": "issue-12"}})
    ],
)
async def artifact_attach(ctx: Context, target: str | None = None, input: AttachInput = AttachInput()) -> KeptArtifact:
    """Keep a copy of one file in the scope, or of a text, with its owner and digest. The file itself is not touched.

    A file also needs fs:read.
    """
    _check_one(target, input)
    if target is not None:
        content = await file_content(ctx, target)
        kind = kind_named(input.kind) or kind_of_file(target, content)
    else:
        content = (input.text or "").encode()
        kind = normalised_kind(input.kind, has_text=True)
    owner = Owner(ctx.scope.id, ctx.principal.id, ctx.principal.session, ctx.operation_id, input.owner or "")
    broker = ctx.use(ArtifactBroker)
    stated = stated_of(input.description, input.mime_type, input.metadata)
    kept = await broker.keep(content, kind, input.title or (target or kind).rpartition("/")[2][:200], owner, stated)
    ctx.effect = "confirmed" if await broker.content(kept) == content else "partial"
    ctx.note(artifact=kept.id, kind=kept.kind, bytes=kept.size, sha256=kept.sha256)
    return KeptArtifact(artifact=facts(kept))

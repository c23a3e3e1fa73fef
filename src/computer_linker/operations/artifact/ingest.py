"""artifact.ingest: keep what another program left behind, by its manifest or one by one."""

from hashlib import sha256
from typing import Annotated, Any

from pydantic import Field

from computer_linker.approvals.request import Preview
from computer_linker.artifacts.broker import ArtifactBroker, checked_type
from computer_linker.artifacts.kinds import normalised_kind
from computer_linker.artifacts.manifest import Entry, entries_of, is_answer, parse_manifest, stated_of
from computer_linker.artifacts.store import MAX_BYTES, Owner, Stated
from computer_linker.errors import InvalidRequest, LimitExceeded, PathOutOfScope
from computer_linker.model.json_text import read_json
from computer_linker.operations.artifact.answer import (
    Description,
    KeptMany,
    Kind,
    Label,
    Metadata,
    MimeType,
    facts,
    file_content,
)
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_MAX_MANIFEST = 1_000_000
_MAX_TOTAL = 128 * 1024 * 1024


class IngestInput(Model):
    manifest: Annotated[
        Any, Field(description="A list of artifacts, an object such as {screenshotPath}, or agent-browser's answers.")
    ] = None
    kind: Kind = None
    path: Annotated[str | None, Field(max_length=4096, description="One file inside the scope.")] = None
    text: Annotated[str | None, Field(max_length=4_000_000)] = None
    title: Annotated[str | None, Field(max_length=200)] = None
    description: Description = None
    mime_type: MimeType = None
    metadata: Metadata = None
    owner: Label = None
    backend: Annotated[str | None, Field(max_length=60, description="The program that made it.")] = None


async def _show(ctx: Context, target: str | None = None, input: IngestInput = IngestInput()) -> Preview:
    """The files and texts that would be kept. Refused where one cannot be read."""
    found = [(entry, content, sha256(content).hexdigest()) for entry, content in await _all(ctx, target, input)]
    lines = [
        f"keeps {entry.path or 'a text'} as evidence: {len(content)} bytes, sha256 {d}" for entry, content, d in found
    ]
    return Preview(tuple(lines), {f"{number}": digest for number, (_, _, digest) in enumerate(found, 1)})


async def _all(ctx: Context, target: str | None, input: IngestInput) -> list[tuple[Entry, bytes]]:
    return await _contents(ctx, await _entries(ctx, target, input))


@operation(
    "artifact.ingest",
    did="kept as evidence",
    needs={Capability.ARTIFACT_WRITE},
    effect=Effect.CHANGE,
    shows=_show,
    text=shapes.ARTIFACTS,
    deadline_s=120,
    examples=[
        Example(
            "Take over a console log and a text.",
            {"input": {"manifest": {"consoleLogsPath": "notes.txt", "verificationText": "the page loads"}}},
        )
    ],
)
async def artifact_ingest(ctx: Context, target: str | None = None, input: IngestInput = IngestInput()) -> KeptMany:
    """Keep what a program made: a manifest (file), agent-browser's own answers, one path, or a text.

    Only files inside the scope, or in a folder that the scope's policy `intakeRoots` names, are opened, and only with fs:read.
    A `uri` is a file: URI of this computer; nothing is fetched.
    """
    contents = await _all(ctx, target, input)
    total = sum(len(content) for _, content in contents)
    owner = Owner(
        ctx.scope.id, ctx.principal.id, ctx.principal.session, ctx.operation_id, input.owner or "", input.backend or ""
    )
    broker = ctx.use(ArtifactBroker)
    kept = [await broker.keep(content, entry.kind, entry.title, owner, entry.stated) for entry, content in contents]
    ctx.effect = "confirmed"
    ctx.note(artifacts=len(kept), bytes=total)
    return KeptMany(artifacts=[facts(artifact) for artifact in kept])


async def _entries(ctx: Context, target: str | None, input: IngestInput) -> list[Entry]:
    given = [name for name in ("manifest", "path", "text") if getattr(input, name) is not None]
    if (target is not None) + len(given) != 1:
        raise InvalidRequest("Give exactly one of a manifest file as target, input.manifest, input.path or input.text.")
    stated = stated_of(input.description, input.mime_type, input.metadata)
    if stated != Stated() and (target is not None or input.manifest is not None):
        raise InvalidRequest("Each artifact of a manifest has its own description, mimeType and metadata.")
    if target is not None:
        return _parsed(read_json(await file_content(ctx, target, _MAX_MANIFEST)))
    if input.manifest is not None:
        return _parsed(input.manifest)
    kind = normalised_kind(input.kind, (input.path or "").rpartition(".")[2], has_text=input.text is not None)
    return [Entry(kind, input.title or kind, path=input.path, text=input.text, stated=stated)]


def _parsed(payload: Any) -> list[Entry]:
    return entries_of(payload) if is_answer(payload) else parse_manifest(payload)


async def _contents(ctx: Context, entries: list[Entry]) -> list[tuple[Entry, bytes]]:
    """Read every entry and check all before any is stored. No more is read than one ingest accepts."""
    contents: list[tuple[Entry, bytes]] = []
    left = _MAX_TOTAL
    for entry in entries:
        content = await _content(ctx, entry, left)
        left -= len(content)
        if left < 0:
            raise LimitExceeded(f"One ingest takes at most {_MAX_TOTAL} bytes.", limitBytes=_MAX_TOTAL)
        checked_type(content, entry.kind)
        contents.append((entry, content))
    return contents


async def _content(ctx: Context, entry: Entry, left: int) -> bytes:
    if entry.text is not None:
        return entry.text.encode()
    # One byte is always requested: an empty file at the limit is no reason to refuse.
    try:
        return await file_content(ctx, entry.path or "", max(1, min(MAX_BYTES, left)))
    except PathOutOfScope as error:
        if not entry.is_uri:
            raise
        raise InvalidRequest(
            "The URI names a file outside the scope and its intake roots.", field="uri", **error.details
        ) from None

"""An artifact in the replies of the artifact operations."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from computer_linker.artifacts.kinds import ProofKind
from computer_linker.artifacts.store import MAX_BYTES
from computer_linker.errors import PathOutOfScope, PermissionDenied
from computer_linker.model.artifact import Artifact
from computer_linker.policy.engine import holds
from computer_linker.providers.backends.intake import read_from_intake
from computer_linker.registry import Capability, Context, Model


class ArtifactFacts(Model):
    id: str
    kind: str
    sha256: str
    size: int
    path: Annotated[str, Field(description="A reference of this service, not a path on the disk.")]
    media_type: Annotated[str, Field(description="What the bytes are, by their content.")]
    title: str
    description: str
    mime_type: Annotated[str | None, Field(description="The type that was stated with it; `mediaType` is what it is.")]
    metadata: dict[str, Any]
    owner: dict[str, str]
    created_at: str


class KeptArtifact(Model):
    artifact: ArtifactFacts


class KeptMany(Model):
    artifacts: list[ArtifactFacts]


Kind = Annotated[ProofKind | str | None, Field(max_length=60, description="Left out, it is inferred.")]
Description = Annotated[str | None, Field(max_length=2000)]
MimeType = Annotated[str | None, Field(max_length=200, description="Kept as stated; what the bytes are is found out.")]
Metadata = Annotated[dict[str, Any] | None, Field(description="Further facts, kept as given: 8000 characters of JSON.")]
Label = Annotated[str | None, Field(max_length=120, description="A free label: an issue, a pull request, a run.")]


def facts(artifact: Artifact) -> ArtifactFacts:
    """The wire form."""
    owner = {"scope": artifact.scope, "session": artifact.session, "operation": artifact.operation}
    if artifact.label:
        owner["label"] = artifact.label
    if artifact.backend:
        owner["backend"] = artifact.backend
    return ArtifactFacts(
        id=artifact.id,
        kind=artifact.kind,
        sha256=artifact.sha256,
        size=artifact.size,
        path=f"artifact:{artifact.id}",
        media_type=artifact.media_type,
        title=artifact.title,
        description=artifact.description,
        mime_type=artifact.mime_type or None,
        metadata=json.loads(artifact.metadata),
        owner=owner,
        created_at=datetime.fromtimestamp(artifact.created_at, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z"),
    )


# Reads files for the artifact operations: of the scope, and of the intake roots that the scope's policy names.


async def file_content(ctx: Context, target: str, most: int = MAX_BYTES) -> bytes:
    """Read one whole file of the scope or of one of its intake roots.

    Raises:
        PermissionDenied: the caller may store evidence here but not read files; a copy would bypass that.
    """
    if not holds(ctx.principal, ctx.scope, Capability.FS_READ):
        needed = Capability.FS_READ.value
        raise PermissionDenied(f"Keeping a file needs {needed} in scope {ctx.scope.id}.", missing=[needed])
    try:
        path = ctx.path(target)
    except PathOutOfScope:
        taken = await read_from_intake(ctx.scope, ctx.services.config, ctx.services.home, target, most)
        if taken is None:
            raise
        ctx.note(intake=taken.root)
        return taken.content
    content, found = await ctx.computer.files.read_whole(path, most)
    if found.links > 1:
        ctx.warn(f"{path.shown} is a hardlink: {found.links} names lead to it, and some may lie outside the scope.")
    return content

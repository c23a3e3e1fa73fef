"""An artifact in the replies of the artifact operations."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from computer_linker.artifacts.kinds import ProofKind
from computer_linker.model.artifact import Artifact
from computer_linker.model.base import Model


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

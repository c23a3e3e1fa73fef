"""An artifact: its reference, detected type, and owner."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Artifact:
    """Facts about kept bytes. `path` on the wire is a reference inside the store, never a host path."""

    id: str
    kind: str
    sha256: str
    size: int
    media_type: str
    title: str
    scope: str
    session: str
    operation: str
    label: str
    backend: str
    created_at: float
    principal: str
    """Whose it is; empty in a store of an older version, where only the owner can use it."""
    description: str = ""
    mime_type: str = ""
    """The type that was stated with it; `media_type` is what the bytes are."""
    metadata: str = "{}"
    """Further facts that came with it, as JSON."""

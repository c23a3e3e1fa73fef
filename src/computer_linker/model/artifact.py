"""An artifact: what was kept, what it really is, and whose it is."""

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

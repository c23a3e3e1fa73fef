"""The broker: the only interface to the artifact store."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

import anyio

from computer_linker.artifacts.kinds import HEAD, MIME_BY_KIND, REFUSED_TYPES, media_type
from computer_linker.artifacts.store import ArtifactStore, Bounds, Filter, Owner, Stated
from computer_linker.errors import InvalidRequest
from computer_linker.model.artifact import Artifact
from computer_linker.model.principal import Principal
from computer_linker.services import Services

T = TypeVar("T")


class ArtifactBroker:
    """Validates, stores and returns artifacts."""

    def __init__(self, folder: Path, bounds: Bounds = Bounds()) -> None:
        self._folder = folder
        self._bounds = bounds
        self._store: ArtifactStore | None = None
        self._lock = anyio.Lock()

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.home / "artifacts")

    async def aclose(self) -> None:
        """Close the database."""
        if self._store is not None:
            self._store.close()

    async def keep(self, content: bytes, kind: str, title: str, owner: Owner, stated: Stated = Stated()) -> Artifact:
        """Store bytes as an artifact of this kind. Raises InvalidRequest when they do not match the kind."""
        found = checked_type(content, kind)
        return await self._do(lambda store: store.add(content, kind, found, title, owner, stated))

    async def find(self, artifact_id: str, scope: str, caller: Principal) -> Artifact:
        """One artifact of this scope and caller; the owner may use all."""
        if not artifact_id.startswith("art_") or not artifact_id[4:].isalnum() or len(artifact_id) > 64:
            raise InvalidRequest("An artifact id looks like art_ and hexadecimal digits.")
        return await self._do(lambda store: store.find(artifact_id, scope, None if caller.is_owner else caller.id))

    async def listed(self, wanted: Filter, limit: int = 50) -> list[Artifact]:
        """The newest artifacts that match."""
        return await self._do(lambda store: store.listed(wanted, limit))

    async def content(self, artifact: Artifact) -> bytes:
        """An artifact's bytes."""
        return await self._do(lambda store: store.content(artifact))

    async def _do(self, work: Callable[[ArtifactStore], T]) -> T:
        async with self._lock:
            return await anyio.to_thread.run_sync(lambda: work(self._opened()))

    def _opened(self) -> ArtifactStore:
        if self._store is None:
            self._store = ArtifactStore(self._folder, self._bounds)
            self._store.sweep(time.time())
        return self._store


def checked_type(content: bytes, kind: str) -> str:
    """The media type of bytes that fit this kind. Raises InvalidRequest for any others."""
    found = media_type(content[:HEAD])
    if found in REFUSED_TYPES:
        raise InvalidRequest("Programs and scripts are not kept as artifacts.", mediaType=found)
    wanted = MIME_BY_KIND.get(kind)
    if wanted is not None and found not in wanted:
        raise InvalidRequest(f"A {kind} must be one of {', '.join(wanted)}; these bytes are {found}.", mediaType=found)
    return found

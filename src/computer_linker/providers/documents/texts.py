"""The texts of documents for searching, cached by the digest of their content."""

import time
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import anyio.to_thread

from computer_linker.errors import LinkError
from computer_linker.model.scope import ScopePolicy
from computer_linker.providers.documents.decoder import Decoder
from computer_linker.providers.documents.kinds import HEAD, kind_of
from computer_linker.providers.held import Held, hold
from computer_linker.services import Services
from computer_linker.system import os

ENDINGS = frozenset(
    "pdf docx docm dotx dotm xlsx xlsm xltx pptx pptm ppsx potx odt ods odp odg ott ots otp epub".split()
)
"""Names of documents that a search opens: opening every file to recognise it would be slow."""
MAX_TEXT = 4_000_000
"""The largest text of one document, in bytes, that is searched."""
_MAX_FILE = 1 << 30
_MAX_SHEETS = 50
_MAX_CACHE = 256 << 20
_VERSION = 1
"""Part of the cache's folder: raised when the readers change what they give."""
_MAX_SEEN = 20_000
_UNREADABLE = b""
_PIECE = 1 << 22


class Texts:
    """The cache in the state folder; its loss only costs time."""

    def __init__(self, folder: Path, decoder: Decoder) -> None:
        self._folder = folder
        self._decoder = decoder
        self._seen: dict[tuple[int, int, int, int, int], str] = {}
        self.decoded = 0
        """Documents decoded since the service started."""

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.home / "index" / f"documents-{_VERSION}", services.use(Decoder))

    async def of(self, file: Held, policy: ScopePolicy) -> tuple[Path, bool] | None:
        """The file with a document's text, and whether it was decoded just now; None for no document, or one too large."""
        info = os.fstat(file.fd)
        kind = kind_of(os.pread(file.fd, HEAD, 0))
        if info.st_size > _MAX_FILE or kind not in ("pdf", "package"):
            return None
        key = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        known = self._seen.get(key)
        digest = await anyio.to_thread.run_sync(_digest, file.fd) if known is None else known
        if len(self._seen) > _MAX_SEEN:
            self._seen.clear()
        self._seen[key] = digest
        place = self._folder / digest
        if place.exists():
            return place, False
        text = await self._text(file.fd, kind, policy)
        await anyio.to_thread.run_sync(self._keep, place, text)
        self.decoded += 1
        return place, True

    async def _text(self, fd: int, kind: str, policy: ScopePolicy) -> bytes:
        """All of a document's text; empty, and cached so, for one that cannot be decoded."""
        pieces: list[str] = []
        asked: dict[str, Any] = {"action": "read", "kind": kind, "max_bytes": MAX_TEXT, "page": 1}
        try:
            found = await self._decoder.run(fd, asked, policy)
            pieces.append(str(found.facts.get("content", "")))
            if found.facts.get("unit") == "sheet":
                for page in range(2, min(int(found.facts["count"]), _MAX_SHEETS) + 1):
                    found = await self._decoder.run(fd, {**asked, "page": page}, policy)
                    pieces.append(str(found.facts.get("content", "")))
        except LinkError as error:
            if error.code == "provider_unavailable":
                raise
            return _UNREADABLE
        return "".join(pieces).encode("utf-8", "replace")[: MAX_TEXT * 2]

    def _keep(self, place: Path, text: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._make_room(len(text))
        fresh = place.with_name(f"{place.name}.{os.getpid()}-{time.monotonic_ns()}")
        fresh.write_bytes(text)
        fresh.replace(place)

    def _make_room(self, size: int) -> None:
        """Remove the oldest texts until the new one fits."""
        kept = sorted(((found := path.stat()).st_mtime, found.st_size, path) for path in self._folder.iterdir())
        total = sum(entry[1] for entry in kept) + size
        for _, length, path in kept:
            if total <= _MAX_CACHE:
                return
            path.unlink(missing_ok=True)
            total -= length


def _digest(fd: int) -> str:
    made, at = sha256(), 0
    while piece := os.pread(fd, _PIECE, at):
        made.update(piece)
        at += len(piece)
    return made.hexdigest()


def is_document_name(path: bytes) -> bool:
    """True for a name that documents have."""
    return path.rpartition(b".")[2].lower().decode("ascii", "replace") in ENDINGS


async def text_below(texts: Texts, folder: Held, path: bytes, policy: ScopePolicy) -> tuple[Path, bool] | None:
    """The text of a document below a held folder; None where it cannot be opened or is none."""
    try:
        async with hold(folder.path.child(*os.fsdecode(path).split("/"))) as file:
            return None if file.is_folder else await texts.of(file, policy)
    except (LinkError, OSError) as error:
        if isinstance(error, LinkError) and error.code == "provider_unavailable":
            raise
        return None

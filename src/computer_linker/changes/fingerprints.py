"""Digests of the present state of files and folders, within bounds: shown to a person, and compared before the effect."""

from dataclasses import dataclass, field

from computer_linker.computer.facets.files import Files, Stat
from computer_linker.errors import LinkError, NotFound
from computer_linker.model.paths import RootedPath
from computer_linker.policy.digest import digest_of_parts

_MAX_BYTES = 64_000_000
_MAX_FILES = 1000
_MAX_DEPTH = 16
_LISTED = 40
MISSING = "not there"


@dataclass(slots=True)
class Fingerprints:
    """Fingerprints one path after the other. Beyond the bounds size and time are used, and the lines note it."""

    files: Files
    lines: list[str] = field(default_factory=list)
    holds: dict[str, str] = field(default_factory=dict)
    _bytes: int = _MAX_BYTES
    _files: int = _MAX_FILES

    async def add(self, path: RootedPath, label: str = "") -> None:
        """Fingerprint one path; a folder recursively."""
        before = f"{label} {path.shown}".strip()
        try:
            found = await self.files.stat(path)
        except NotFound:
            self.holds[path.shown] = MISSING
            self.lines.append(f"{before}: {MISSING} now")
            return
        if found.type == "directory":
            await self._folder(path, before)
        else:
            self.holds[path.shown], line = await self._file(path, found)
            self.lines.append(f"{before}: {line}")

    async def add_file(self, path: RootedPath, label: str, *, lists_all: bool = False) -> None:
        """Fingerprint one path that may be a file. Of a folder only its identity counts; a missing path must stay missing."""
        try:
            found = await self.files.stat(path)
        except NotFound:
            self.holds[path.shown] = MISSING
            if lists_all:
                self.lines.append(f"{label} {path.shown}: {MISSING} now")
            return
        if found.type == "directory":
            self.holds[path.shown] = digest_of_parts(str(found.device), str(found.inode))
            if lists_all:
                self.lines.append(f"{label} {path.shown}: a folder")
            return
        self.holds[path.shown], line = await self._file(path, found)
        self.lines.append(f"{label} {path.shown}: {line}")

    async def _file(self, path: RootedPath, found: Stat) -> tuple[str, str]:
        """The digest of a file and a line about it."""
        kind = "" if found.type == "file" else f"a {found.type}, "
        if found.type in ("file", "symlink") and found.size <= self._bytes and self._files > 0:
            self._bytes, self._files = self._bytes - found.size, self._files - 1
            try:
                digest = await self.files.sha256(path)
                return digest_of_parts(
                    found.type, digest, oct(found.mode)
                ), f"{kind}{found.size} bytes, sha256 {digest}"
            except LinkError:
                pass
        return digest_of_parts(
            found.type, repr(found.mark)
        ), f"{kind}{found.size} bytes; held by its size and time only"

    async def _folder(self, path: RootedPath, before: str) -> None:
        most = max(self._files, 1)
        tree = await self.files.tree(path, max_depth=_MAX_DEPTH, max_entries=most, gitignore=False)
        parts: list[str] = []
        unread = 0
        for entry in tree.entries:
            below = entry["path"].removeprefix(path.shown).strip("/") if path.parts else entry["path"]
            digest = ""
            place = path.child(*below.split("/"))
            if entry["type"] == "symlink":
                digest = await self._link(place)
            elif entry["type"] == "file" and entry["size"] <= self._bytes and self._files > 0:
                try:
                    # With the mode: approving a text file does not approve an executable.
                    digest = f"{await self.files.sha256(place)} {(await self.files.stat(place)).mode:o}"
                    self._bytes, self._files = self._bytes - entry["size"], self._files - 1
                except LinkError:
                    unread += 1
            elif entry["type"] == "file":
                unread += 1
            parts += [entry["path"], entry["type"], str(entry["size"]), digest]
        self.holds[path.shown] = digest_of_parts(*parts)
        number = f"{'more than ' if tree.is_truncated else ''}{len(tree.entries)}"
        self.lines.append(f"{before}: a folder with {number} entries")
        self.lines += [f"- {entry['path']}" for entry in tree.entries[:_LISTED]]
        if len(tree.entries) > _LISTED:
            self.lines.append(f"… {len(tree.entries) - _LISTED} more of them")
        if tree.is_truncated:
            self.lines.append(f"Not checked beyond {len(tree.entries)} entries.")
        if unread:
            self.lines.append(f"{unread} files were not read: they are held by their size only.")

    async def _link(self, place: RootedPath) -> str:
        """The link's fingerprint, which includes its whole target."""
        try:
            return repr((await self.files.stat(place)).mark)
        except LinkError:
            return MISSING

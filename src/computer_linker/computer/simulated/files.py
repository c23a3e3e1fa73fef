"""Files in memory, with the same promises as a disk's: links, changes that are all or nothing, and undo."""

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread

from computer_linker.computer.facets.files import (
    Beside,
    Change,
    Changed,
    Gate,
    Keeper,
    ListedEntry,
    Listing,
    Piece,
    Stat,
    Tree,
    TreeEntry,
    Window,
    Write,
)
from computer_linker.computer.facets.gitignore import IgnoreFile, is_ignored, parse_ignore
from computer_linker.computer.facets.lines import MAX_REPLY, cut_text, whole_characters
from computer_linker.computer.simulated.files_change import ChangingDisk
from computer_linker.errors import (
    LimitExceeded,
    NotFound,
    UnsupportedPlatform,
)
from computer_linker.model.paths import RootedPath
from computer_linker.model.times import shown_ns
from computer_linker.policy.names import is_sensitive
from computer_linker.policy.paths import is_denied


class SimulatedFiles(ChangingDisk):
    """A disk in memory. `put` and `link` arrange it; `content` reads what came of it."""

    def put(self, root: str, name: str, content: bytes | str) -> None:
        """Place a file, with the folders above it."""
        raw = content.encode() if isinstance(content, str) else content
        self._set(self._volume(root), tuple(name.split("/")), self._node("file", content=raw))

    def link(self, root: str, name: str, target: str) -> None:
        self._set(self._volume(root), tuple(name.split("/")), self._node("symlink", target=target))

    def content(self, root: str, name: str) -> bytes:
        return self._volume(root).nodes[tuple(name.split("/"))].content

    def names(self, root: str) -> list[str]:
        """Every name beneath a root."""
        return sorted("/".join(parts) for parts in self._volume(root).nodes if parts)

    def protect(self, state: Path) -> None:
        """A disk in memory holds no service's state."""

    async def stat(self, path: RootedPath) -> Stat:
        return self._find(path, follow=False)[1].stat

    async def sha256(self, path: RootedPath) -> str:
        return hashlib.sha256(self._regular(path).content).hexdigest()

    async def read_whole(self, path: RootedPath, limit: int) -> tuple[bytes, Stat]:
        node = self._regular(path)
        if len(node.content) > limit:
            raise LimitExceeded(f"{path.shown} is larger than {limit} bytes.", path=path.shown)
        return node.content, node.stat

    async def read(self, path: RootedPath, window: Window) -> Piece:
        raw = self._regular(path).content
        digest, size = hashlib.sha256(raw).hexdigest(), len(raw)
        if not window.is_text or window.start_byte is not None:
            start = min(window.start_byte or 0, size)
            part = raw[start : start + window.max_bytes]
            if window.is_text and start + len(part) < size:
                part = whole_characters(part) or part
            end = start + len(part)
            return Piece(part, size, digest, None, None, end if end < size else None, 1)
        lines = raw.split(b"\n")
        whole = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
        first = window.start_line or 1
        if window.tail_lines is not None:
            first = max(1, len(whole) - window.tail_lines + 1)
        last = len(whole) if window.line_count is None else first - 1 + window.line_count
        part = cut_text(b"".join(whole[first - 1 : last]), window.max_bytes)
        end = min(size, sum(map(len, whole[: first - 1])) + len(part))
        if end >= size:
            return Piece(part, size, digest, first, None, None, 1)
        return Piece(part, size, digest, first, first + max(1, part.count(b"\n")), end, 1)

    async def list_folder(
        self, path: RootedPath, *, max_results: int, include_hidden: bool = True, after: str | None = None
    ) -> Listing:
        real, volume = self._folder(path), self._volume(path.root)
        prefix = "" if path.shown == "." else path.shown + "/"
        names = [
            name
            for name in volume.names(real.parts)
            if (include_hidden or not name.startswith("."))
            and (after is None or name > after)
            and not is_denied((*real.parts, name), path.rules.denied)
        ]
        page = names[:max_results]
        entries = [_listed(name, prefix, volume.nodes[(*real.parts, name)].stat) for name in page]
        return Listing(entries, page[-1] if len(names) > len(page) else None)

    async def tree(
        self, path: RootedPath, *, max_depth: int, max_entries: int, gitignore: bool, max_bytes: int = MAX_REPLY
    ) -> Tree:
        self._folder(path)
        volume, entries = self._volume(path.root), list[TreeEntry]()
        queue: list[tuple[RootedPath, int, tuple[IgnoreFile, ...]]] = [(path, 1, ())]
        while queue:
            folder, depth, ignores = queue.pop(0)
            if gitignore and (found := volume.nodes.get((*folder.parts, ".gitignore"))):
                base = "".join(part + "/" for part in folder.parts)
                ignores = (*ignores, parse_ignore(found.content.decode("utf-8", "replace"), base))
            for name in volume.names(folder.parts):
                child, node = folder.child(name), volume.nodes[(*folder.parts, name)]
                is_folder = node.type == "directory"
                if gitignore and (name == ".git" or is_ignored(ignores, "/".join(child.parts), is_folder=is_folder)):
                    continue
                if is_denied(child.parts, path.rules.denied):
                    continue
                if len(entries) >= max_entries:
                    return Tree(entries, is_truncated=True)
                entries.append({"path": child.shown, "type": node.type, "size": node.stat.size})
                if is_folder and depth < max_depth and not is_sensitive(child.parts):
                    queue.append((child, depth + 1, ignores))
        return Tree(entries, is_truncated=False)

    async def change(
        self, changes: Sequence[Change], *, gate: Gate, keeper: Keeper | None = None, beside: Beside | None = None
    ) -> list[Changed]:
        if any(isinstance(change, Write) and not isinstance(change.content, bytes) for change in changes):
            # Bytes that stream in are waited for, and never by the event loop.
            rehearsed = await anyio.to_thread.run_sync(self._rehearsed, changes, keeper)
        else:
            rehearsed = self._rehearsed(changes, keeper)
        volumes, steps, results = rehearsed
        await gate()
        if keeper is not None:
            keeper.begun(steps, [])
        self._volumes = volumes
        if keeper is not None:
            keeper.done()
        return results

    async def rehearse(self, changes: Sequence[Change], *, keeper: Keeper | None = None) -> None:
        self._rehearsed(changes, keeper)

    async def keep(self, path: RootedPath, keeper: Keeper) -> tuple[str | None, Stat | None]:
        try:
            node = self._regular(path)
        except NotFound:
            return None, None
        name = keeper.new_name()
        self._kept[name] = {(): node}
        return name, node.stat

    def open_file(self, path: RootedPath) -> int:
        """The content in a nameless file of the system, for whoever wants to stream it."""
        with tempfile.TemporaryFile() as file:
            file.write(self._regular(path).content)
            file.flush()
            return os.dup(file.fileno())

    def open_folder(self, path: RootedPath) -> int:
        raise UnsupportedPlatform("A disk in memory has no descriptors.")


def _listed(name: str, prefix: str, stat: Stat) -> ListedEntry:
    return {
        "name": name,
        "path": prefix + name,
        "type": stat.type,
        "size": stat.size,
        "modifiedAt": shown_ns(stat.modified_ns),
    }

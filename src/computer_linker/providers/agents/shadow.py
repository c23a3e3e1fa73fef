"""Snapshots of a working folder in a private git folder of the service: exact differences, whether or not it is a repository.

The folder's own repository is never used: its filters, line-ending rules and hooks do not apply, so a snapshot
holds the exact bytes of the files. Ignored files, secrets and repositories inside the folder are left out.
"""

import hashlib
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio

from computer_linker.computer.local.linux.fence import Fence
from computer_linker.errors import ExecutionFailed, LimitExceeded
from computer_linker.model.paths import RootedPath
from computer_linker.policy.names import SENSITIVE_NAMES
from computer_linker.policy.paths import is_hidden_by
from computer_linker.providers.child import ProcessGroup, Spec, in_process_group, without_links
from computer_linker.providers.git.program import environment, needed_program, program_places
from computer_linker.providers.held import Held, held
from computer_linker.system import os

T = TypeVar("T")
_MAX_FILES = 30_000
_MAX_BYTES = 512 << 20
_MAX_STORED_KIB = 2 << 20
_MAX_FOLDERS = 32
_MAX_BLOBS = 64 << 20
_READABLE = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime")
_NAMES_ROOM = 16 << 20
_MAX_EMPTY = 2000
_DIFF = (
    "diff-tree", "-r", "-z", "--raw", "--numstat", "--patch", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv",
    "-O/dev/null",
)  # fmt: skip
_CONFIG = """[core]
\trepositoryformatversion = 0
\tbare = false
\tautocrlf = false
\tsafecrlf = false
\tcompression = 0
\tlooseCompression = 0
"""
_ATTRIBUTES = "* -text -ident -filter !working-tree-encoding\n"
_EXCLUDED = ("node_modules/", ".venv/", "__pycache__/", ".env.*", "*.pem", "*.key", *sorted(SENSITIVE_NAMES))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a folder. Repositories inside it are left out, and counted."""

    tree: str
    repositories: int
    empty: frozenset[str] = frozenset()
    """Folders without files, which git trees do not represent; collected only on request."""

    def empty_names(self) -> list[str]:
        """Their names for a record; `*` when they are too many, and then no folder counts as new."""
        return sorted(self.empty) if len(self.empty) <= _MAX_EMPTY else ["*"]


@dataclass(frozen=True, slots=True)
class Changed:
    """One file that differs between two snapshots."""

    parts: tuple[str, ...]
    """Relative to the working folder."""
    action: str
    """`A` added, `D` deleted, `M` modified, `T` another kind of object."""
    old_mode: int
    new_mode: int
    old_blob: str
    insertions: int = 0
    deletions: int = 0
    is_binary: bool = False


@dataclass(slots=True)
class Comparison:
    """The differences of two snapshots, without what the scope hides."""

    changed: list[Changed] = field(default_factory=list)
    patch: str = ""
    is_cut: bool = False
    new_folders: list[tuple[str, ...]] = field(default_factory=list)
    """Folders that did not exist before, the deepest first."""


class Shadow:
    """Takes and compares snapshots, one at a time for one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locks: dict[str, anyio.Lock] = {}
        self._newest: dict[str, str] = {}

    async def take(self, cwd: RootedPath, *, with_empty: bool = True) -> Snapshot:
        """The folder as it is now. Raises when it is too large to hold, or git is missing."""
        key = _key(cwd)
        # Removed meanwhile: if this fails half way, the next one starts from the files again.
        newest = self._newest.pop(key, None)
        taken = await self._within(cwd, lambda work: work.take(newest, with_empty=with_empty))
        self._newest[key] = taken.tree
        return taken

    async def compare(self, cwd: RootedPath, before: Snapshot, after: Snapshot, max_bytes: int) -> Comparison:
        """What changed between two snapshots, with at most `max_bytes` of the patch."""
        return await self._within(cwd, lambda work: work.compare(before, after, max_bytes))

    async def contents(self, cwd: RootedPath, blobs: Sequence[str]) -> dict[str, bytes]:
        """The bytes of these files as a snapshot holds them. Raises LimitExceeded when they are too many."""
        return await self._within(cwd, lambda work: work.contents(blobs))

    async def _within(self, cwd: RootedPath, job: Callable[["_Work"], T]) -> T:
        needed_program()
        key = _key(cwd)
        async with self._locks.setdefault(key, anyio.Lock()):
            return await in_process_group(partial(self._do, cwd, self._folder / key, job))

    def _do(self, cwd: RootedPath, git_dir: Path, job: Callable[["_Work"], T], group: ProcessGroup) -> T:
        with held(cwd) as place:
            if not (git_dir / "HEAD").exists():
                _make_room(self._folder)
                _make(git_dir)
            fd = os.open(git_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                return job(_Work(group, place, git_dir, fd))
            finally:
                os.close(fd)


class _Work:
    """Git on one working folder and its private git folder."""

    def __init__(self, group: ProcessGroup, place: Held, git_dir: Path, git_fd: int) -> None:
        self._group = group
        self._place = place
        self._git_dir = git_dir
        self._git_fd = git_fd

    def take(self, newest: str | None, *, with_empty: bool) -> Snapshot:
        # A killed snapshot leaves its lock; no other process uses this git folder.
        (self._git_dir / "index.lock").unlink(missing_ok=True)
        differs, inside = self._preflight()
        tree = newest
        if tree is None or differs:
            if tree is None:
                self._start_anew_when_full()
            self._git("add", "--all", "--", ".")
            tree = self._git("write-tree").decode("ascii").strip()
        return Snapshot(tree, inside, self._empty() if with_empty else frozenset())

    def compare(self, old: Snapshot, new: Snapshot, max_bytes: int) -> Comparison:
        if old.tree == new.tree:
            return Comparison()
        changed, patch, is_cut = self._difference(old, new, [], max_bytes)
        shown, hidden = self._shown(changed)
        if hidden:
            leave_out = [":(top,exclude,literal)" + path for path in hidden]
            _, patch, is_cut = (
                self._difference(old, new, leave_out, max_bytes) if len(hidden) <= 500 else ([], b"", True)
            )
        folders = self._new_folders(old, shown)
        return Comparison(shown, patch.decode("utf-8", "replace"), is_cut, folders)

    def contents(self, blobs: Sequence[str]) -> dict[str, bytes]:
        wanted = list(dict.fromkeys(blobs))
        if not wanted:
            return {}
        out = self._git("cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in wanted).encode(), limit=_MAX_BLOBS)
        found: dict[str, bytes] = {}
        at = 0
        for blob in wanted:
            end = out.index(b"\n", at)
            size = int(out[at:end].rsplit(b" ", 1)[-1])
            found[blob] = out[end + 1 : end + 1 + size]
            at = end + 2 + size
        return found

    def _difference(
        self, old: Snapshot, new: Snapshot, leave_out: list[str], max_bytes: int
    ) -> tuple[list[Changed], bytes, bool]:
        """The changed files and their patch from one run, so that they agree."""
        out, is_cut = self._run([*_DIFF, old.tree, new.tree, "--", ".", *leave_out], None, max_bytes + _NAMES_ROOM)
        raw, between, patch = out.partition(b"\0\0")
        if is_cut and not between:
            raise LimitExceeded("More files changed than can be compared.")
        if is_cut or len(patch) > max_bytes:
            patch, is_cut = patch[:max_bytes], True
            patch = patch[: patch.rfind(b"\n") + 1] or patch
        return _records(raw), patch, is_cut

    def _empty(self) -> frozenset[str]:
        """Empty folders: what is still untracked after all files were added."""
        others = self._git("ls-files", "-z", "--others", "--directory", "--exclude-standard").split(b"\0")
        return frozenset(os.fsdecode(name).rstrip("/") for name in others if name.endswith(b"/"))

    def _new_folders(self, old: Snapshot, changed: list[Changed]) -> list[tuple[str, ...]]:
        """New folders that files were added in."""
        added = [each.parts for each in changed if each.action == "A"]
        above = {"/".join(parts[:size]) for parts in added for size in range(1, len(parts))}
        if not above or "*" in old.empty:
            return []
        listed = self._git("ls-tree", "-r", "-d", "-z", "--name-only", old.tree).split(b"\0")
        known = {os.fsdecode(name) for name in listed} | old.empty
        # The contents of a folder without files are unknown, so nothing in one counts as new.
        unknown = tuple(f"{path}/" for path in old.empty)
        found = sorted(path for path in above - known if not path.startswith(unknown))
        return [tuple(path.split("/")) for path in reversed(found)]

    def _shown(self, changed: list[Changed]) -> tuple[list[Changed], list[str]]:
        path = self._place.path
        hidden = [each for each in changed if is_hidden_by((*path.parts, *each.parts), path.rules)]
        return [each for each in changed if each not in hidden], ["/".join(each.parts) for each in hidden]

    def _preflight(self) -> tuple[bool, int]:
        """List what is new or differs before reading any of it, so that a huge folder costs little.

        Returns whether anything differs, and how many repositories lie inside: git would refuse or partly read those, so
        they are left out.
        """
        _write_excluded(self._git_dir, ())
        out = self._git("ls-files", "-z", "--others", "--modified", "--exclude-standard")
        names = out.split(b"\0")
        size = 0
        for name in names if len(names) <= _MAX_FILES else ():
            try:
                size += os.stat(name, dir_fd=self._place.fd, follow_symlinks=False).st_size if name else 0
            except OSError:
                continue
        if len(names) > _MAX_FILES or size > _MAX_BYTES:
            raise LimitExceeded(
                "The folder holds too much to compare it before and after.", files=len(names), bytes=size
            )
        inside = [os.fsdecode(name) for name in names if name.endswith(b"/")]
        _write_excluded(self._git_dir, inside)
        return any(name and not name.endswith(b"/") for name in names), len(inside)

    def _start_anew_when_full(self) -> None:
        report = self._git("count-objects", "-v").decode("ascii", "replace")
        sizes = dict(line.split(": ", 1) for line in report.splitlines() if ": " in line)
        if int(sizes.get("size", "0")) > _MAX_STORED_KIB:
            shutil.rmtree(self._git_dir / "objects")
            (self._git_dir / "objects").mkdir()
            (self._git_dir / "index").unlink(missing_ok=True)

    def _git(self, *args: str, stdin: bytes | None = None, limit: int = 64 << 20) -> bytes:
        out, is_cut = self._run(list(args), stdin, limit)
        if is_cut:
            raise LimitExceeded("The folder holds too much to compare it before and after.")
        return out

    def _run(self, args: list[str], stdin: bytes | None, limit: int) -> tuple[bytes, bool]:
        extra = {"GIT_DIR": str(self._git_dir), "GIT_WORK_TREE": "."}
        spec = Spec(
            [needed_program(), "--no-pager", *args], self._place.cwd, environment(extra), stdin=stdin, max_memory=4 << 30,
        )  # fmt: skip
        fence = Fence((*_READABLE, self._place.fd), (self._git_fd,), program_places())
        # What the agent started may still run, and exchange a file with a link to a closed one.
        with self._group.running(without_links(spec, fence)) as child:
            out, is_cut = child.read_all(limit)
            if is_cut:
                child.kill()
            code, err = child.finish()
        if code and not is_cut:
            raise ExecutionFailed(f"The folder could not be compared: {err.decode('utf-8', 'replace')[:300]}")
        return out, is_cut


def _key(cwd: RootedPath) -> str:
    return hashlib.sha256(f"{os.path.realpath(cwd.root)}\0{'/'.join(cwd.parts)}".encode()).hexdigest()[:32]


def _records(raw: bytes) -> list[Changed]:
    """The raw lines and the counts of `diff-tree -z --raw --numstat`, joined by path."""
    pieces = raw.split(b"\0")
    found: dict[bytes, Changed] = {}
    at = 0
    while at < len(pieces) and pieces[at]:
        if pieces[at].startswith(b":"):
            old_mode, new_mode, old, _, letter = pieces[at][1:].decode("ascii").split(" ")
            path = pieces[at + 1]
            parts = tuple(os.fsdecode(path).split("/"))
            found[path] = Changed(parts, letter[:1], int(old_mode, 8), int(new_mode, 8), old)
            at += 2
            continue
        more, less, path = pieces[at].split(b"\t", 2)
        if path in found:
            found[path] = _counted(found[path], more, less)
        at += 1
    return list(found.values())


def _counted(changed: Changed, more: bytes, less: bytes) -> Changed:
    from dataclasses import replace

    if more == b"-":
        return replace(changed, is_binary=True)
    return replace(changed, insertions=int(more), deletions=int(less))


def _make(git_dir: Path) -> None:
    shutil.rmtree(git_dir, ignore_errors=True)
    for name in ("objects", "refs", "info"):
        (git_dir / name).mkdir(mode=0o700, parents=True)
    git_dir.chmod(0o700)
    (git_dir / "config").write_text(_CONFIG, encoding="utf-8")
    (git_dir / "info" / "attributes").write_text(_ATTRIBUTES, encoding="utf-8")
    _write_excluded(git_dir, ())
    # Last, because its presence marks the rest as complete.
    (git_dir / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")


def _write_excluded(git_dir: Path, inside: Sequence[str]) -> None:
    named = ["/" + re.sub(r"([\\*?\[\] ])", r"\\\1", path) for path in inside if "\n" not in path]
    text = "\n".join((*_EXCLUDED, *named)) + "\n"
    (git_dir / "info" / "exclude").write_text(text, encoding="utf-8", errors="surrogateescape")


def _make_room(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = sorted(folder.iterdir(), key=lambda each: each.stat().st_mtime)
    for old in kept[: max(0, len(kept) - _MAX_FOLDERS + 1)]:
        shutil.rmtree(old, ignore_errors=True)

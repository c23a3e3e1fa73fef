"""The contents of a scope's folders before a command: copies of its files, kept by inode and change time.

A file that did not change since an earlier command is not copied again. Names that the scope closes to commands are left out:
no command can change them. The kernel sets the change time, so no program can hide a change behind an old one.
"""

import contextlib
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Self

from computer_linker.errors import LinkError
from computer_linker.model.paths import RootedPath
from computer_linker.policy.paths import check_name
from computer_linker.providers.views.entries import copy_file, copy_link
from computer_linker.providers.views.names import Entry, Parts, as_entry, open_folder
from computer_linker.services import Services
from computer_linker.system import os

_SETTLED_NS = 20_000_000
"""A file changed this recently may change again within the same tick of the clock, so its copy is not used again."""
_DRAFT = ".draft"
"""Ends the name of a copy that is not complete."""
_MAX_DEPTH = 200
_MAX_ROOTS = 64
_MAX_JUDGED = 20_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large the folders of a scope may be for an image of them."""

    entries: int
    bytes: int


SMALL = Bounds(2_000, 64 << 20)
"""For every command: an image takes a few milliseconds."""
LARGE = Bounds(50_000, 1 << 30)
"""For a command whose caller wants it."""


class TooLarge(Exception):
    """The folders hold more than an image may."""


@dataclass(slots=True)
class Image:
    """One root before a command; `copies` has the stored copy of each file and link."""

    root: RootedPath
    store: Path
    entries: dict[Parts, Entry]
    taken: int
    """How many commands had begun in this root by then."""
    is_alone: bool
    """No other command ran in this root at that time."""
    copies: dict[Parts, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Scan:
    """Walks one root."""

    root: RootedPath
    bounds: Bounds
    judged: dict[Parts, bool]
    entries: dict[Parts, Entry] = field(default_factory=dict)
    bytes: int = 0

    def run(self, folder: int) -> None:
        self._folder(folder, ())

    def _folder(self, folder: int, parts: Parts) -> None:
        if len(parts) > _MAX_DEPTH:
            raise TooLarge
        with os.scandir(folder) as found:
            for each in found:
                below = (*parts, each.name)
                if self._is_closed(below):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    self._entry(folder, below, as_entry(each.stat(follow_symlinks=False)))

    def _entry(self, folder: int, parts: Parts, entry: Entry) -> None:
        self.entries[parts] = entry
        self.bytes += entry.size if entry.kind == "file" else 0
        if len(self.entries) > self.bounds.entries or self.bytes > self.bounds.bytes:
            raise TooLarge
        if entry.kind == "directory":
            opened = open_folder(folder, parts[-1])
            try:
                self._folder(opened, parts)
            finally:
                os.close(opened)

    def _is_closed(self, parts: Parts) -> bool:
        """True for a name that no command of the scope may change, or see."""
        known = self.judged.get(parts)
        if known is None:
            if len(self.judged) >= _MAX_JUDGED:
                self.judged.clear()
            try:
                check_name(self.root.child(*parts), for_writing=True)
                known = False
            except LinkError:
                known = True
            self.judged[parts] = known
        return known


@dataclass(slots=True)
class BeforeImages:
    """All images of one state folder. Blocking: use it in a worker thread."""

    folder: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _judged: dict[str, dict[Parts, bool]] = field(default_factory=dict)
    _in_use: dict[str, int] = field(default_factory=dict)
    """Commands that run now, by root."""
    _begun: dict[str, int] = field(default_factory=dict)
    """Commands that began, by root."""

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.home / "before")

    def take(self, held: Sequence[tuple[RootedPath, int]], bounds: Bounds) -> list[Image]:
        """Copy what the open folders contain now. Raises TooLarge, with nothing stored, beyond the bounds."""
        with self._lock:
            images = [self._begin(root) for root, _ in held]
            for image in images:
                self._in_use[image.store.name] = self._in_use.get(image.store.name, 0) + 1
            try:
                for image, (root, fd) in zip(images, held, strict=True):
                    image.entries = self.now(root, fd, bounds).entries
                for image, (_, fd) in zip(images, held, strict=True):
                    self._copy(image, fd)
            except BaseException:
                self._ended(images)
                raise
        return images

    def _begin(self, root: RootedPath) -> Image:
        store = self._store(root)
        taken = self._begun[store.name] = self._begun.get(store.name, 0) + 1
        return Image(root, store, {}, taken, is_alone=not self._in_use.get(store.name))

    def now(self, root: RootedPath, folder: int, bounds: Bounds) -> _Scan:
        """The entries of an open root as they are now."""
        judged = self._judged.setdefault(f"{root.root}\0{root.rules!r}", {})
        scan = _Scan(root, bounds, judged)
        opened = open_folder(folder, ".")
        try:
            scan.run(opened)
        finally:
            os.close(opened)
        return scan

    def is_shared(self, images: Sequence[Image]) -> bool:
        """True when another command ran in one of these folders since: its changes cannot be separated from these."""
        return any(not image.is_alone or self._begun[image.store.name] != image.taken for image in images)

    def release(self, images: Sequence[Image]) -> None:
        """Remove the copies that the newest image does not need, once no command uses them."""
        with self._lock:
            self._ended(images)
            for image in images:
                if not self._in_use[image.store.name]:
                    _keep_only(image.store, {name for name in image.copies.values() if "." not in name})

    def _ended(self, images: Sequence[Image]) -> None:
        for image in images:
            self._in_use[image.store.name] -= 1

    def _store(self, root: RootedPath) -> Path:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        place = self.folder / sha256(os.fsencode(root.root)).hexdigest()[:32]
        if not place.exists():
            self._forget_oldest()
            place.mkdir(mode=0o700)
        return place

    def _forget_oldest(self) -> None:
        places = sorted(self.folder.iterdir(), key=lambda place: place.stat().st_mtime)
        for place in places[: max(0, len(places) - _MAX_ROOTS + 1)]:
            if not self._in_use.get(place.name):
                _keep_only(place, set())
                place.rmdir()

    def _copy(self, image: Image, folder: int) -> None:
        known = {each.name for each in image.store.iterdir()}
        for name in {name for name in known if name.endswith(_DRAFT)}:
            # Left by a copy that failed or was interrupted.
            (image.store / name).unlink()
        settled = time.time_ns() - _SETTLED_NS
        store = os.open(image.store, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for above, parts in _by_folder(image.entries):
                missing = {}
                for each in parts:
                    entry = image.entries[each]
                    name = _name(entry) if entry.changed_ns < settled else f"{_name(entry)}.{secrets.token_hex(4)}"
                    image.copies[each] = name
                    if name not in known:
                        missing[each] = name
                if missing:
                    _copy_new(folder, above, missing, image, store)
        finally:
            os.close(store)


def _copy_new(folder: int, above: Parts, missing: dict[Parts, str], image: Image, store: int) -> None:
    with _opened(folder, above) as source:
        for parts, name in missing.items():
            try:
                found = os.stat(parts[-1], dir_fd=source, follow_symlinks=False)
                if as_entry(found) != image.entries[parts]:
                    raise FileNotFoundError
                draft = f"{name}{_DRAFT}"
                if image.entries[parts].kind == "symlink":
                    copy_link(source, parts[-1], store, draft)
                else:
                    copy_file(source, parts[-1], store, draft, found.st_size)
                os.rename(draft, name, src_dir_fd=store, dst_dir_fd=store)
            except FileNotFoundError:
                # Changed since the scan by another program: it is left out, and then cannot be taken back.
                del image.copies[parts]


@contextlib.contextmanager
def _opened(folder: int, parts: Parts) -> Iterator[int]:
    opened = open_folder(folder, ".")
    try:
        for name in parts:
            above, opened = opened, open_folder(opened, name)
            os.close(above)
        yield opened
    finally:
        os.close(opened)


def _by_folder(entries: dict[Parts, Entry]) -> Iterator[tuple[Parts, list[Parts]]]:
    """The files and links, folder by folder."""
    grouped: dict[Parts, list[Parts]] = {}
    for parts, entry in entries.items():
        if entry.kind in ("file", "symlink"):
            grouped.setdefault(parts[:-1], []).append(parts)
    yield from grouped.items()


def _name(entry: Entry) -> str:
    return f"{entry.device:x}-{entry.inode:x}-{entry.changed_ns:x}-{entry.size:x}"


def _keep_only(store: Path, names: set[str]) -> None:
    for each in store.iterdir():
        if each.name not in names:
            each.unlink(missing_ok=True)

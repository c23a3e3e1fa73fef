"""Reads what a view would change, with text differences, from the folders of a scope."""

import contextlib
import errno
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, Self

from computer_linker.changes.difference import MAX_BYTES, unified
from computer_linker.computer.base import Computer
from computer_linker.errors import Conflict
from computer_linker.model.paths import RootedPath
from computer_linker.model.scope import Scope
from computer_linker.policy.paths import is_hidden_by
from computer_linker.providers.views.changes import Comparison, ViewChange
from computer_linker.providers.views.copying import CopyComparison, Skips
from computer_linker.providers.views.merging import MergedText, is_as_it_was, merge, rebase, remember
from computer_linker.providers.views.names import Entry, Parts, attributes_below, open_file, open_folder, open_parent
from computer_linker.providers.views.store import View, Views
from computer_linker.system import os

DIFF_S = 2.0


class CallContext(Protocol):
    """The part of a running operation's context that is needed here."""

    scope: Scope
    computer: Computer

    def path_from_root(self, target: str) -> RootedPath: ...

    def use(self, kind: type[Views]) -> Views: ...


def roots_of(ctx: CallContext) -> list[RootedPath]:
    """Every root of the scope."""
    several = len(ctx.scope.roots) > 1
    return [ctx.path_from_root(f"@{index}" if several else ".") for index in range(len(ctx.scope.roots))]


@dataclass(frozen=True, slots=True)
class TextDifference:
    """The difference of one file as a unified diff; None lines where it is no text, or too large."""

    lines: list[str] | None
    additions: int
    deletions: int


@dataclass(frozen=True, slots=True)
class Detail:
    """What of one change is neither its name nor its content."""

    link_target: str | None = None
    attributes: tuple[str, ...] = ()
    """The extended attributes that were added, changed or removed."""


@dataclass(frozen=True, slots=True)
class OpenRoot:
    """One root of a view: the folder of its store, what its programs left, and the real folder, all open."""

    root: RootedPath
    store: int
    upper: int
    lower: int


@dataclass(frozen=True, slots=True)
class ViewReader:
    """Compares a view with the scope's folders as they are now. Blocking: use it in a worker thread."""

    view: View
    roots: tuple[RootedPath, ...]
    open_folder: Callable[[RootedPath], int]
    hold: Callable[[View], tuple[int, ...]]

    @classmethod
    def of(cls, ctx: CallContext, view: View) -> Self:
        """Raises Conflict when the scope has other folders than when the view was made."""
        if tuple(ctx.scope.roots) != view.roots:
            raise Conflict("The scope's folders were changed since this view was made. Drop it.", viewId=view.id)
        return cls(view, tuple(roots_of(ctx)), ctx.computer.files.open_folder, ctx.use(Views).hold)

    @contextlib.contextmanager
    def opened(self) -> Iterator[list[OpenRoot]]:
        """Each root of the view, open."""
        with contextlib.ExitStack() as stack:
            found: list[OpenRoot] = []
            stores = self.hold(self.view)
            for store in stores:
                stack.callback(os.close, store)
            for root, store in zip(self.roots, stores, strict=True):
                upper = open_folder(store, "upper")
                stack.callback(os.close, upper)
                held = self.open_folder(root)
                stack.callback(os.close, held)
                # The held one names the folder, and cannot be listed.
                lower = open_folder(held, ".")
                stack.callback(os.close, lower)
                found.append(OpenRoot(root, store, upper, lower))
            yield found

    def changes(self) -> list[tuple[RootedPath, ViewChange]]:
        """Every change with its path in the scope. Raises Conflict when the folder changes meanwhile."""
        with self.opened() as roots, self._unchanged_meanwhile():
            return [(each.root.child(*change.parts), change) for each in roots for change in self._judged(each)]

    @contextlib.contextmanager
    def _unchanged_meanwhile(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE):
                raise
            raise Conflict(
                "The folder changed while the view was compared with it. Nothing was done. Ask again.",
                viewId=self.view.id,
            ) from error

    def _judged(self, place: OpenRoot) -> list[ViewChange]:
        """The changes of one root; a conflict only where the folder really has something else."""
        return [
            replace(change, is_conflict=False)
            if change.is_conflict and is_as_it_was(place.store, place.lower, change)
            else change
            for change in self._compared(place)
        ]

    def _compared(self, place: OpenRoot) -> list[ViewChange]:
        view = self.view
        if view.kind == "overlay":
            return Comparison(place.upper, place.lower, view.base_ns).run()
        skips = skips_of(place.root)
        return CopyComparison(place.upper, place.lower, view.base_ns, filled_ns=view.filled_ns, skips=skips).run()

    def remember(self, changes: list[tuple[RootedPath, ViewChange]]) -> None:
        """Store what the changed texts were, for a later merge."""
        with self.opened() as roots:
            for each in roots:
                mine = (change for path, change in changes if path.root == each.root.root)
                remember(each.store, each.lower, mine, self.view.base_ns)

    def rebase(self, kept: list[tuple[RootedPath, ViewChange]]) -> None:
        """Store the kept texts as what further programs of the view start from."""
        with self.opened() as roots:
            for each in roots:
                rebase(each.store, each.lower, (change for path, change in kept if path.root == each.root.root))

    def merges(self, changes: list[tuple[RootedPath, ViewChange]]) -> dict[RootedPath, MergedText]:
        """The texts that both sides changed and that can be merged."""
        found: dict[RootedPath, MergedText] = {}
        with self.opened() as roots:
            places = {each.root.root: each for each in roots}
            for path, change in changes:
                place = places[path.root]
                text = merge(place.store, place.upper, place.lower, change) if change.is_conflict else None
                if text is not None:
                    found[path] = text
        return found

    def differences(
        self, changes: list[tuple[RootedPath, ViewChange]], merges: Mapping[RootedPath, MergedText]
    ) -> list[TextDifference]:
        """The text difference of each, of merged texts that of the merge, within a time limit for all of them."""
        until = time.monotonic() + DIFF_S
        with self.opened() as roots:
            places = {each.root.root: (each.upper, each.lower) for each in roots}
            return [_difference(path, change, *places[path.root], until, merges.get(path)) for path, change in changes]

    def details(self, changes: list[tuple[RootedPath, ViewChange]]) -> list[Detail]:
        """Where each link leads, and which extended attributes differ."""
        with self.opened() as roots:
            places = {each.root.root: (each.upper, each.lower) for each in roots}
            return [detail_of(change, *places[path.root]) for path, change in changes]


def detail_of(change: ViewChange, upper: int, lower: int) -> Detail:
    before, after = change.before, change.after
    if after is None or after.kind == "other":
        return Detail()
    if after.kind == "symlink":
        return Detail(content_of(upper, change.parts, after).decode("utf-8", "backslashreplace"))
    now = attributes_below(upper, change.parts)
    was = (
        attributes_below(lower, change.source or change.parts)
        if before is not None and before.kind == after.kind
        else {}
    )
    return Detail(attributes=tuple(sorted(name for name in {*now, *was} if now.get(name) != was.get(name))))


def leads_out(path: RootedPath, target: str) -> bool:
    """True for a link that leads out of the scope's folder. Other links on its way are not followed."""
    if target.startswith("/"):
        return os.path.commonpath([path.root, os.path.normpath(target)]) != path.root
    joined = os.path.normpath("/".join((*path.parts[:-1], target)))
    return joined == ".." or joined.startswith(("../", "/"))


def skips_of(root: RootedPath) -> Skips:
    """Tells the names of a root that no program may see."""
    return lambda parts: is_hidden_by((*root.parts, *parts), root.rules)


def is_hidden(path: RootedPath) -> bool:
    """True for a name whose content is not shown."""
    return is_hidden_by(path.parts, path.rules)


def path_of(path: RootedPath, parts: Parts) -> RootedPath:
    """Another name in the same root."""
    return RootedPath(path.root, parts, path.rules, path.prefix)


def content_of(folder: int, parts: Parts, entry: Entry) -> bytes:
    """The bytes of a file, or the target of a link."""
    if entry.kind != "symlink":
        return _read(folder, parts)
    above = open_parent(folder, parts)
    try:
        return os.fsencode(os.readlink(parts[-1], dir_fd=above))
    finally:
        os.close(above)


def _difference(
    path: RootedPath, change: ViewChange, upper: int, lower: int, until: float, text: MergedText | None
) -> TextDifference:
    kinds = {entry.kind for entry in (change.before, change.after) if entry is not None}
    sizes = [entry.size for entry in (change.before, change.after) if entry is not None]
    if kinds != {"file"} or change.is_unreadable or max(sizes) > MAX_BYTES or time.monotonic() > until:
        return TextDifference(None, 0, 0)
    before = None if change.before is None else _read(lower, change.source or change.parts)
    after = None if change.after is None else _read(upper, change.parts) if text is None else text.content
    lines = unified(path.shown, before, after, until)
    if lines is None:
        return TextDifference(None, 0, 0)
    body = lines[2:]
    return TextDifference(lines, sum(line.startswith("+") for line in body), sum(line.startswith("-") for line in body))


def _read(folder: int, parts: Parts) -> bytes:
    with os.fdopen(open_file(folder, parts), "rb") as file:
        return file.read(MAX_BYTES + 1)

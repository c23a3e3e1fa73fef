"""What must stay closed inside a root: protected names, secrets, sockets, denied and read-only parts, and their parents."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from computer_linker.providers.sandbox.boundary import Closed, Folder
from computer_linker.providers.sandbox.budget import ClosedFolders, escalated
from computer_linker.providers.sandbox.judge import Entry, Parts
from computer_linker.providers.sandbox.pace import Pace
from computer_linker.providers.sandbox.steps import open_below, stat_below
from computer_linker.providers.sandbox.tree import Tree
from computer_linker.system import os

MAX_CLOSED = 512
"""Mounts for the closed names of one root. Each takes some ten microseconds at every start of a command."""
_NAMED = 3
_How = Literal["held", "read_only", "hidden"]
_HOW: dict[str, _How] = {"read_only": "read_only", "hidden": "hidden", "socket": "hidden"}


@dataclass(slots=True)
class Masks:
    """What to close in one root, shallow first, with warnings for the caller."""

    closed: list[Closed] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    is_partial: bool = False
    """True when the folder holds more than was scanned."""


def known_masks(folder: Folder, tree: Tree, *, hide_sockets: bool = True, most: int = MAX_CLOSED) -> Masks:
    """Masks from the last scan; computed once for each version of the tree.

    They are the same for a command that may not write: it could get a folder that can be written from one that may, by a
    socket, and a name is held only in the sandbox that has the mount.
    """
    key = (hide_sockets, most)
    kept: tuple[int, Masks] | None = tree.kept.get(key)
    if kept is None or kept[0] != tree.version:
        kept = tree.kept[key] = (tree.version, _Closing(folder, tree, hide_sockets).masks(most))
    return kept[1]


class _Closing:
    """Computes the closed names of one root."""

    def __init__(self, folder: Folder, tree: Tree, hide_sockets: bool) -> None:
        self._folder = folder
        self._tree = tree
        self._hide_sockets = hide_sockets
        self._closed: dict[Parts, Closed] = {}
        self._links: list[Parts] = []

    def masks(self, most: int) -> Masks:
        pace = Pace()
        for parts in self._tree.noted:
            pace.step()
            for entry in self._tree.folders[parts].found:
                self._close_entry((*parts, entry.name), entry)
        # As a whole: a file that is replaced on the disk loses the mount that covered it, in every sandbox.
        states = (parts for parts in self._tree.states if parts in self._tree.folders)
        for parts in (*self._tree.unreadable(), *states):
            self._close_whole(parts, "hidden")
        self._close_named()
        self._close_second_names()
        self._leave_out_the_inside()
        masks = Masks()
        self._fit(most, masks)
        self._hold_what_is_above()
        masks.closed = sorted(self._closed.values(), key=lambda each: (len(each.parts), each.parts))
        self._warn(masks)
        return masks

    def _close_entry(self, parts: Parts, entry: Entry) -> None:
        if entry.how == "link":
            self._links.append(parts)
        elif entry.how != "socket" or self._hide_sockets:
            self._closed[parts] = Closed(parts, _HOW[entry.how], entry.is_folder, entry.device, entry.inode)

    def _close(self, parts: Parts, how: _How) -> None:
        """Close the file or folder at a path, if there is one."""
        about = stat_below(self._folder.fd, parts)
        if about is not None and (stat.S_ISDIR(about.st_mode) or stat.S_ISREG(about.st_mode)):
            is_folder = stat.S_ISDIR(about.st_mode)
            self._closed[parts] = Closed(parts, how, is_folder, about.st_dev, about.st_ino)

    def _close_named(self) -> None:
        """Close what the owner denies by a plain path, at any depth."""
        rules, size = self._folder.rules, len(self._folder.above)
        for pattern in rules.denied:
            plain = pattern.removesuffix("/**")
            parts = tuple(part for part in plain.split("/") if part)
            is_plain = not any(char in plain for char in "*?[") and parts[:size] == self._folder.above
            if is_plain and parts[size:] and parts[size:] not in self._closed:
                self._close(parts[size:], "hidden")
        for parts in rules.read_only:
            below = parts[size:]
            if below and parts[:size] == self._folder.above and getattr(self._closed.get(below), "how", "") != "hidden":
                self._close(below, "read_only")
        for parts in rules.held:
            if parts[size:] and parts[:size] == self._folder.above and parts[size:] not in self._closed:
                self._close(parts[size:], "held")

    def _close_second_names(self) -> None:
        """Close the other names of secrets that have several: a hard link is the same file."""
        secrets = [each for each in self._closed.values() if each.how == "hidden" and not each.is_folder]
        linked = {each.inode for each in secrets if _has_more_names(self._folder.fd, each.parts)}
        if not linked:
            return
        devices = {each.device for each in secrets}
        for parts, seen in self._tree.folders.items():
            if seen.device in devices and not linked.isdisjoint(seen.files):
                for name, number in _files_in(self._folder.fd, parts):
                    if number in linked:
                        self._close((*parts, name), "hidden")

    def _leave_out_the_inside(self) -> None:
        """Drop entries inside a hidden folder: a mount there would reveal its name."""
        closed = self._closed
        self._closed = {
            parts: each for parts, each in closed.items() if not _is_inside(parts, closed, each.how == "read_only")
        }

    def _hold_what_is_above(self) -> None:
        """Hold every folder above a closed name: a renamed parent would move the name out of the mount's path."""
        for parts in list(self._closed):
            for size in range(len(parts)):
                above = self._closed.get(parts[:size])
                if above is not None and above.how != "held":
                    # In a read-only folder nothing can be renamed, whereas a held folder stays writable.
                    break
                if above is None and size:
                    self._hold(parts[:size])

    def _hold(self, parts: Parts) -> None:
        seen = self._tree.folders.get(parts)
        if seen is not None and seen.inode:
            self._closed[parts] = Closed(parts, "held", True, seen.device, seen.inode)
        else:
            self._close(parts, "held")

    def _fit(self, most: int, masks: Masks) -> None:
        whole, pace = self._folders_to_close(most), Pace()
        if not whole:
            return
        counts = dict.fromkeys(whole, 0)
        for parts, each in list(self._closed.items()):
            pace.step()
            for size in range(len(parts)):
                how = whole.get(parts[:size])
                if how is not None:
                    counts[parts[:size]] += 1
                if how == "hidden" or (how == "read_only" and each.how == "read_only"):
                    self._closed.pop(parts, None)
        for parts, how in whole.items():
            self._close_whole(parts, how)
            masks.warnings.append(_too_many(parts, how, counts[parts]))

    def _folders_to_close(self, most: int) -> ClosedFolders:
        needed = {parts[:size] for parts in self._closed for size in range(1, len(parts) + 1)}
        if len(needed) <= most:
            return {}
        return escalated(((parts, each.how == "hidden") for parts, each in self._closed.items()), most)

    def _close_whole(self, parts: Parts, how: Literal["read_only", "hidden"]) -> None:
        if parts:
            self._close(parts, how)
            return
        about = os.fstat(self._folder.fd)
        self._closed[()] = Closed((), how, True, about.st_dev, about.st_ino)

    def _warn(self, masks: Masks) -> None:
        missed = self._tree.partly_read()
        if missed:
            masks.is_partial = True
            masks.warnings.append(
                "The scope's folder is too large to look through: protected names and secrets are not closed off in "
                f"{_listed(missed)}."
            )
        if () in self._tree.unreadable():
            masks.warnings.append(
                "The scope's folder cannot be read, so it is hidden from commands. Change its mode or owner."
            )
        if self._links:
            masks.warnings.append(
                f"{len(self._links)} protected names here are links, which cannot be closed off: {_listed(self._links)}."
            )


def _is_inside(parts: Parts, closed: dict[Parts, Closed], also_read_only: bool) -> bool:
    above = (closed.get(parts[:size]) for size in range(len(parts)))
    return any(each is not None and (each.how == "hidden" or also_read_only) for each in above)


def _too_many(parts: Parts, how: str, count: int) -> str:
    place = "/".join(parts) or "the scope's folder"
    became = "read-only for commands" if how == "read_only" else "hidden from commands"
    return (
        f"{count} protected names or secrets in {place} are too many to close one by one, so it is {became} as a whole."
    )


def _listed(paths: list[Parts]) -> str:
    shown = sorted("/".join(parts) or "." for parts in paths)
    more = f" and {len(shown) - _NAMED} other folders" if len(shown) > _NAMED else ""
    return ", ".join(shown[:_NAMED]) + more


def _has_more_names(root_fd: int, parts: Parts) -> bool:
    about = stat_below(root_fd, parts)
    return about is not None and stat.S_ISREG(about.st_mode) and about.st_nlink > 1


def _files_in(root_fd: int, parts: Parts) -> Iterator[tuple[str, int]]:
    try:
        fd = open_below(root_fd, parts)
    except OSError:
        return
    try:
        with os.scandir(fd) as entries:
            yield from [(entry.name, entry.inode()) for entry in entries]
    finally:
        os.close(fd)

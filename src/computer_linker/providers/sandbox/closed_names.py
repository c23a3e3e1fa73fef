"""The names to close below one folder, each with the identity it has now."""

import os
from dataclasses import dataclass, field
from typing import Literal

from computer_linker.providers.sandbox.boundary import Closed, Folder
from computer_linker.providers.sandbox.looks import Looks, open_below
from computer_linker.providers.sandbox.masks import Masks, masks_of
from computer_linker.providers.sandbox.placeholders import Held, Placeholders

_S_IFMT, _S_IFDIR = 0o170000, 0o040000
_How = Literal["held", "read_only", "hidden"]


@dataclass(slots=True)
class ClosedNames:
    """What to close, what cannot be closed, and the placeholders that stand for it meanwhile."""

    closed: list[Closed] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    is_partial: bool = False
    held: list[Held] = field(default_factory=list)


def closed_names(folder: Folder, looks: Looks, placeholders: Placeholders, *, is_writable: bool) -> ClosedNames:
    """The names to close in a folder now."""
    masks = masks_of(folder, looks, is_writable=is_writable)
    names = ClosedNames(warnings=_warnings(masks), is_partial=masks.is_partial)
    parts: list[tuple[_How, tuple[str, ...]]] = [("held", tuple(path.split("/"))) for path in masks.held]
    parts += [("read_only", tuple(path.split("/"))) for path in masks.read_only]
    parts += [("hidden", tuple(path.split("/"))) for path in (*masks.empty_files, *masks.empty_folders)]
    for below, missing in masks.missing.items():
        fd = open_below(folder.fd, below)
        if fd is None:
            continue
        try:
            held = placeholders.hold(fd, missing)
        finally:
            os.close(fd)
        names.held += held
        parts += [("hidden", (*below, name)) for _, name in held]
    for how, each in parts:
        try:
            found = os.stat("/".join(each), dir_fd=folder.fd, follow_symlinks=False)
        except OSError:
            continue
        names.closed.append(Closed(each, how, found.st_mode & _S_IFMT == _S_IFDIR, found.st_dev, found.st_ino))
    return names


def _warnings(masks: Masks) -> list[str]:
    warnings: list[str] = []
    if masks.is_partial:
        warnings.append("The scope's folder is too large to look through: secrets deep inside it are not closed off.")
    if masks.open_repositories:
        warnings.append(
            f"{masks.open_repositories} repositories in the scope's folder are too many to close the protected names that "
            "are missing in them; those that exist are closed."
        )
    if masks.links:
        warnings.append(f"{len(masks.links)} protected names here are links, which cannot be closed off.")
    return warnings

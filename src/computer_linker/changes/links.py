"""Symbolic links among the components of a path."""

from collections.abc import Iterable

from computer_linker.computer.facets.files import Files
from computer_linker.errors import LinkError
from computer_linker.model.paths import RootedPath

_MAX_LOOKS = 500
_TOO_MANY = "one of too many paths"


async def links_on(files: Files, paths: Iterable[RootedPath]) -> tuple[str, ...]:
    """The first link in each path, as clients write it; none for a path that is not there."""
    found: dict[str, None] = {}
    plain: set[tuple[str, tuple[str, ...]]] = set()
    for path in paths:
        for size in range(1, len(path.parts) + 1):
            at = RootedPath(path.root, path.parts[:size], path.rules, path.prefix)
            if (at.root, at.parts) in plain:
                continue
            if len(plain) >= _MAX_LOOKS:
                return (*found, _TOO_MANY)
            try:
                is_link = (await files.stat(at)).type == "symlink"
            except LinkError:
                break
            if is_link:
                found[at.shown] = None
                break
            plain.add((at.root, at.parts))
    return tuple(found)

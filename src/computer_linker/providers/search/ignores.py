"""Which files a tree's .gitignore files leave out: the same rule for both engines, read beneath a held folder."""

import os
from dataclasses import dataclass, field
from functools import lru_cache

from computer_linker.errors import InvalidRequest
from computer_linker.providers.search.globs import Glob, compiled

_MAX_IGNORE_BYTES = 1_000_000
_MAX_PATTERN = 4096
"""As long as a path can be: what is longer is no pattern that anybody wrote, and costs much to compile."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

Rules = tuple[Glob, ...]


def parse_ignore(text: str) -> Rules:
    """The patterns of a .gitignore, last one first, because the last that matches decides."""
    rules: list[Glob] = []
    for line in text.splitlines():
        plain = _without_trailing_spaces(line)
        if not plain or plain.startswith("#") or len(plain) > _MAX_PATTERN:
            continue
        try:
            rules.append(compiled(plain))
        except InvalidRequest:
            continue
    return tuple(reversed(rules))


@dataclass(slots=True)
class Ignores:
    """The .gitignore rules of a folder's tree, each file read once."""

    folder: int
    above: tuple[tuple[str, Rules], ...] = ()
    """Rules of the folders above, nearest first, each with the path from there down to this folder."""
    _rules: dict[str, Rules] = field(default_factory=dict)
    _is_repository: dict[str, bool] = field(default_factory=dict)
    _folders: dict[str, bool] = field(default_factory=dict)

    def leaves_out(self, path: str) -> bool:
        """True when this file, or a folder on the way to it, is ignored."""
        parent, _, _ = path.rpartition("/")
        return (bool(parent) and self.leaves_out_folder(parent)) or self.matches(path, is_folder=False)

    def leaves_out_folder(self, path: str) -> bool:
        """As `leaves_out`, for a folder."""
        known = self._folders.get(path)
        if known is None:
            parent, _, _ = path.rpartition("/")
            known = (bool(parent) and self.leaves_out_folder(parent)) or self.matches(path, is_folder=True)
            self._folders[path] = known
        return known

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """What the nearest rule that speaks of this very path says, up to the top of its repository."""
        folder = path
        while folder:
            folder, _, _ = folder.rpartition("/")
            below = path[len(folder) + 1 :] if folder else path
            said = _said(self._rules_in(folder), below, is_folder=is_folder)
            if said is not None:
                return said
            if self._is_repository[folder]:
                return False
        for down, rules in self.above:
            said = _said(rules, f"{down}/{path}", is_folder=is_folder)
            if said is not None:
                return said
        return False

    def _rules_in(self, folder: str) -> Rules:
        if folder not in self._rules:
            prefix = f"{folder}/" if folder else ""
            self._rules[folder] = read_ignore(prefix + ".gitignore", self.folder)
            self._is_repository[folder] = _exists(prefix + ".git", self.folder)
        return self._rules[folder]


def rules_above(path: str) -> tuple[tuple[str, Rules], ...]:
    """The rules between a folder and the top of the repository it lies in; none where it lies in none.

    They are only ever used to leave files out, so it does not matter that some lie above the scope.
    """
    if os.path.lexists(path + "/.git"):
        return ()
    found: list[tuple[str, Rules]] = []
    down = ""
    while True:
        path, name = os.path.split(path)
        if not name:
            return ()
        down = f"{name}/{down}" if down else name
        found.append((down, read_ignore(path + "/.gitignore", None)))
        if os.path.lexists(path + "/.git"):
            return tuple(found)


def read_ignore(name: str, folder: int | None) -> Rules:
    """The rules of one file; none when there is none that can be read."""
    try:
        fd = os.open(name, _READ, dir_fd=folder)
    except OSError:
        return ()
    try:
        return _parsed(os.read(fd, _MAX_IGNORE_BYTES))
    except OSError:
        return ()
    finally:
        os.close(fd)


@lru_cache(maxsize=256)
def _parsed(content: bytes) -> Rules:
    return parse_ignore(content.decode("utf-8", "surrogateescape").removeprefix("\ufeff"))


def _said(rules: Rules, path: str, *, is_folder: bool) -> bool | None:
    for rule in rules:
        if rule.matches(path, is_folder=is_folder):
            return not rule.is_negated
    return None


def _exists(name: str, folder: int) -> bool:
    try:
        os.lstat(name, dir_fd=folder)
    except OSError:
        return False
    return True


def _without_trailing_spaces(line: str) -> str:
    plain = line.rstrip(" \t\r")
    # "\ " keeps a space that belongs to the name.
    return plain + " " if plain.endswith("\\") and len(plain) < len(line) else plain

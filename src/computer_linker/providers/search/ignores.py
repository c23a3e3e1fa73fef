"""The .gitignore files of a searched tree, for paths that ripgrep does not check itself. Read beneath a held folder."""

import os
import stat
from functools import lru_cache

from computer_linker.computer.gitignore import IgnoreFile, is_ignored, parse_ignore

_MAX_IGNORE_BYTES = 1_000_000
# O_NONBLOCK: the open of a pipe must not wait for a writer that may never come.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

Files = tuple[IgnoreFile, ...]


class Ignores:
    """Evaluates the .gitignore files of a folder and of the repository above it. Each is read once."""

    def __init__(self, folder: int, path: str) -> None:
        self._folder = folder
        self._prefix, above = _above(path)
        """From the topmost .gitignore down to the folder, written with a slash at its end."""
        self._files: dict[str, Files] = {"": self._within("", above)}
        self._folders: dict[str, bool] = {"": False}

    def leaves_out(self, path: str) -> bool:
        """True when this file, or a folder above it, is ignored."""
        parent = path.rpartition("/")[0]
        return self._leaves_out_folder(parent) or self._matches(parent, path, is_folder=False)

    def _leaves_out_folder(self, path: str) -> bool:
        known = self._folders.get(path)
        if known is None:
            parent = path.rpartition("/")[0]
            known = self._leaves_out_folder(parent) or self._matches(parent, path, is_folder=True)
            self._folders[path] = known
            self._files[path] = () if known else self._within(path + "/", self._files[parent])
        return known

    def _matches(self, parent: str, path: str, *, is_folder: bool) -> bool:
        return is_ignored(self._files[parent], self._prefix + path, is_folder=is_folder)

    def _within(self, inside: str, above: Files) -> Files:
        return (*above, *_read(inside + ".gitignore", self._folder, self._prefix + inside))


def ignore_files_above(path: str) -> list[str] | None:
    """The .gitignore files above a folder, nearest first, up to the top of its repository; None outside a repository."""
    found: list[str] = []
    while not os.path.lexists(path + "/.git"):
        path, _, name = path.rpartition("/")
        if not name:
            return None
        if os.path.isfile(path + "/.gitignore"):  # noqa: PTH113 - a path in the making
            found.append(path + "/.gitignore")
    return found


def _above(path: str) -> tuple[str, Files]:
    """The path from the topmost applicable .gitignore down to the folder, and those files.

    They only exclude files, so it does not matter that some lie above the scope.
    """
    names = [name.removesuffix(".gitignore") for name in reversed(ignore_files_above(path) or ())]
    if not names:
        return "", ()
    top = len(names[0])
    files = (_read(name + ".gitignore", None, name[top:]) for name in names)
    return path[top:] + "/", tuple(file for found in files for file in found)


def _read(name: str, folder: int | None, base: str) -> Files:
    """The one file of this name; none when there is none that can be read."""
    try:
        fd = os.open(name, _READ, dir_fd=folder)
    except OSError:
        return ()
    try:
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)
        return (_parsed(os.read(fd, _MAX_IGNORE_BYTES), base),) if is_file else ()
    except OSError:
        return ()
    finally:
        os.close(fd)


@lru_cache(maxsize=256)
def _parsed(content: bytes, base: str) -> IgnoreFile:
    return parse_ignore(content.decode("utf-8", "surrogateescape").removeprefix("\ufeff"), base)

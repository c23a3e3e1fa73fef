"""Measures and removes folders of the service in which a program wrote: however deep, and whatever rights it took away."""

import asyncio
import contextlib
import logging
import os
import secrets
import stat
from pathlib import Path

log = logging.getLogger(__name__)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HOLD = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def disk_use(place: Path) -> int:
    """The bytes on disk of everything in a folder. One descriptor is open at a time, and no path gets too long."""
    walk = _Walk(os.open(place, _FOLDER))
    try:
        return walk.run()
    finally:
        os.close(walk.here)


class _Walk:
    """Walks a folder by descriptors. A program may still run in it: a folder it closes meanwhile is left out."""

    def __init__(self, here: int) -> None:
        self.here = here
        self.total = 0
        self._above: list[tuple[os.stat_result, list[str], int | None]] = []
        """Each folder down to this one, with those in it that are still to be entered, and the mode to give back to it."""

    def run(self) -> int:
        self._above.append((os.fstat(self.here), self._look(), None))
        while self._above:
            _, names, mode = self._above[-1]
            if names:
                self._enter(names.pop())
                continue
            self._above.pop()
            if self._above and not self._leave(mode):
                break
        return self.total

    def _look(self) -> list[str]:
        names: list[str] = []
        with contextlib.suppress(OSError), os.scandir(self.here) as found:
            for entry in found:
                with contextlib.suppress(OSError):
                    self.total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        names.append(entry.name)
        return names

    def _enter(self, name: str) -> None:
        try:
            held = os.open(name, _HOLD, dir_fd=self.here)
        except OSError:
            return
        mode = None
        try:
            inner, mode = _opened(held)
        except OSError:
            return
        finally:
            os.close(held)
        os.close(self.here)
        self.here = inner
        self._above.append((os.fstat(inner), self._look(), mode))

    def _leave(self, mode: int | None) -> bool:
        """Go to the folder above; False where a program moved this one meanwhile, and another is above it."""
        try:
            above = os.open("..", _FOLDER, dir_fd=self.here)
        except OSError:
            return False
        finally:
            if mode is not None:
                os.fchmod(self.here, mode)
        os.close(self.here)
        self.here = above
        return os.path.samestat(os.fstat(above), self._above[-1][0])


def _opened(held: int) -> tuple[int, int | None]:
    """A held folder open for reading, and the mode to give back to it where that had to be changed."""
    mode = stat.S_IMODE(os.fstat(held).st_mode)
    if mode & stat.S_IRWXU == stat.S_IRWXU or os.geteuid() == 0:
        return os.open(".", _FOLDER, dir_fd=held), None
    # By the descriptor: the name may be a link by now.
    own = f"/proc/self/fd/{held}"
    os.chmod(own, mode | stat.S_IRWXU)  # noqa: PTH101
    try:
        return os.open(".", _FOLDER, dir_fd=held), mode
    except OSError:
        os.chmod(own, mode)  # noqa: PTH101
        raise


def remove_folder(place: Path) -> None:
    """Remove a folder in which no program runs any more.

    Each folder in it is moved to the top before it is emptied, so no path gets too long.
    """
    # Not the names of an earlier attempt that a crash ended.
    todo, number, prefix = [place], 0, f".removed-{secrets.token_hex(4)}"
    place.chmod(0o700)
    while todo:
        folder = todo.pop()
        opened = os.open(folder, _FOLDER)
        try:
            with os.scandir(opened) as found:
                entries = list(found)
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=opened)
                    continue
                number += 1
                top = place / f"{prefix}-{number}"
                os.chmod(folder / entry.name, 0o700)  # noqa: PTH101
                todo.append((folder / entry.name).rename(top))
        finally:
            os.close(opened)
        if folder != place:
            folder.rmdir()
    place.rmdir()


def remove_later(place: Path) -> None:
    """Remove such a folder in a thread: it may hold a million files."""
    asyncio.get_running_loop().run_in_executor(None, _try_to_remove, place)


def _try_to_remove(place: Path) -> None:
    try:
        remove_folder(place)
    except OSError as error:
        log.warning("a folder in which a program wrote could not be removed: %s", error)

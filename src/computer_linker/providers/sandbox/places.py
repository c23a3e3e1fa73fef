"""Which parts of this machine every command may read: the system's programs and the tool folders in the home."""

import stat
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from computer_linker.policy.names import TOOL_PATHS
from computer_linker.system import os

SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/snap",
)
SYSTEM_FACTS = (
    "/sys/devices/system/cpu",
    # Not their folder: a socket in it resolves names for everyone, also for a command without network.
    "/run/systemd/resolve/resolv.conf",
    "/run/systemd/resolve/stub-resolv.conf",
)

TOOLS_IN_HOME = tuple("/".join(path) for path in TOOL_PATHS)
"""Read-only inside the boundary; the rest of the home is absent."""

SETTINGS = "/etc"
_MOST_SETTINGS = 100_000

_CACHED_S = 10.0


@lru_cache(maxsize=1)
def home() -> str:
    """The home folder of the service's user."""
    return os.path.realpath(Path.home())


@lru_cache(maxsize=1)
def secret_settings() -> tuple[str, ...]:
    """What this user can read in /etc and not everyone can: passwords and keys. Few for most users, and many for root."""
    found: list[str] = []
    waiting, seen = [SETTINGS], 0
    while waiting and seen < _MOST_SETTINGS:
        for path, mode in _entries(waiting.pop()):
            seen += 1
            everyone = stat.S_IROTH | stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
            if mode & everyone == everyone:
                waiting += [path] if stat.S_ISDIR(mode) else []
            elif os.access(path, os.R_OK):
                found.append(path)
    return tuple(sorted(found))


def _entries(folder: str) -> list[tuple[str, int]]:
    """The files and folders in a folder with their modes, without links: what they lead to has a place of its own."""
    try:
        with os.scandir(folder) as entries:
            return [(each.path, each.stat(follow_symlinks=False).st_mode) for each in entries if not each.is_symlink()]
    except OSError:
        return []


def system_folders() -> tuple[tuple[str, str], ...]:
    """The existing system folders, with the targets of those that are links; cached for a few seconds."""
    return _system_folders(int(time.monotonic() / _CACHED_S))


@lru_cache(maxsize=1)
def _system_folders(_moment: int) -> tuple[tuple[str, str], ...]:
    links = ((path, str(Path(path).readlink()) if Path(path).is_symlink() else "") for path in SYSTEM)
    return tuple((path, link) for path, link in links if link or Path(path).exists())


def readable_system() -> tuple[str, ...]:
    """The system folders; one that holds secrets readable by this user is replaced by its other entries."""
    return _readable_system(int(time.monotonic() / _CACHED_S))


@lru_cache(maxsize=1)
def _readable_system(_moment: int) -> tuple[str, ...]:
    secrets = frozenset(secret_settings())
    return tuple(each for path in SYSTEM for each in _without(path, secrets))


def _without(path: str, secrets: frozenset[str]) -> Iterator[str]:
    if path in secrets:
        return
    if not any(secret.startswith(f"{path}/") for secret in secrets):
        yield path
        return
    with os.scandir(path) as entries:
        for entry in entries:
            yield from _without(entry.path, secrets)


def tool_folders() -> tuple[str, ...]:
    """The existing tool folders in the home; cached for a few seconds."""
    return _tool_folders(int(time.monotonic() / _CACHED_S))


@lru_cache(maxsize=1)
def _tool_folders(_moment: int) -> tuple[str, ...]:
    return tuple(path for name in TOOLS_IN_HOME if Path(path := f"{home()}/{name}").is_dir())


def hold(path: str) -> int | None:
    """Open a folder, file or link without following any link on the path; None when that fails."""
    fd = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in path.strip("/").split("/"):
        above = fd
        try:
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        except OSError:
            return None
        finally:
            os.close(above)
    return fd


def held_places(paths: Iterable[str]) -> list[int]:
    """Descriptors of the folders and files among these; links are skipped because they can be redirected."""
    held = [fd for path in dict.fromkeys(paths) if (fd := hold(path)) is not None]
    for fd in [fd for fd in held if stat.S_ISLNK(os.fstat(fd).st_mode)]:
        held.remove(fd)
        os.close(fd)
    return held


def depth(path: str) -> int:
    """The number of components of a path."""
    return 0 if path == "/" else path.rstrip("/").count("/")

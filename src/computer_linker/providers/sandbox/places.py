"""Which parts of this machine every command may read: the system's programs and the tool folders in the home."""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from computer_linker.policy.names import TOOL_PATHS

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
SYSTEM_FACTS = ("/sys/devices/system/cpu", "/run/systemd/resolve")

TOOLS_IN_HOME = tuple("/".join(path) for path in TOOL_PATHS)
"""Read-only inside the boundary; the rest of the home is absent."""

_SECRET_SYSTEM_FILES = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/krb5.keytab",
)  # fmt: skip
_SECRET_SYSTEM_FOLDERS = (
    "/etc/sudoers.d", "/etc/ssl/private", "/etc/wireguard", "/etc/NetworkManager/system-connections",
)  # fmt: skip

_CACHED_S = 10.0


@lru_cache(maxsize=1)
def home() -> str:
    """The home folder of the service's user."""
    return os.path.realpath(Path.home())


@lru_cache(maxsize=1)
def secret_system_files() -> tuple[str, ...]:
    """System files with secrets that this user could read (only root can, as a rule)."""
    keys = [str(key) for key in Path("/etc/ssh").glob("ssh_host_*_key")]
    return tuple(path for path in (*_SECRET_SYSTEM_FILES, *keys) if os.access(path, os.R_OK))


@lru_cache(maxsize=1)
def secret_system_folders() -> tuple[str, ...]:
    return tuple(path for path in _SECRET_SYSTEM_FOLDERS if os.access(path, os.R_OK))


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
    secrets = frozenset((*secret_system_files(), *secret_system_folders()))
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

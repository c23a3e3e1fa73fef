"""Finds the desktop session of this user where the service was started without one, as a client's child often is.

The login manager's records and the environment of the session's own processes name display, bus and session type.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from computer_linker.system.proc_files import read

_TAKEN = (
    "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "XDG_SESSION_TYPE",
    "XDG_CURRENT_DESKTOP", "SWAYSOCK", "HYPRLAND_INSTANCE_SIGNATURE",
)  # fmt: skip
_READ = frozenset((*_TAKEN, "HOME"))
_LOCAL_DISPLAY = re.compile(r":(\d{1,5})(?:\.\d+)?")
_SESSIONS = "/run/systemd/sessions"
_MAX_PROCESSES = 20_000
_NONE = (
    "There is no desktop session here: neither DISPLAY nor WAYLAND_DISPLAY is set, and no program of a desktop session of "
    "this user runs."
)
_SEVERAL = (
    "This user has several desktop sessions ({}), none of which the login manager calls active, and the service was "
    "started in none of them."
)


@dataclass(frozen=True, slots=True)
class DesktopSession:
    """The environment to use for the desktop, and why there is no desktop in it; empty when there is."""

    environ: Mapping[str, str]
    reason: str = ""


def desktop_session(environ: Mapping[str, str], sessions: str = _SESSIONS) -> DesktopSession:
    """The environment of this user's desktop: the given one where it has a display, else the session's that was found."""
    if environ.get("WAYLAND_DISPLAY") or environ.get("DISPLAY"):
        return DesktopSession(environ)
    found = _displays(environ)
    if len(found) > 1:
        active = _active(sessions)
        found = {name: each for name, each in found.items() if each.get("_session") in active}
        if len(found) != 1:
            names = ", ".join(sorted(_displays(environ)))[:200]
            return DesktopSession(environ, _SEVERAL.format(names))
    for each in found.values():
        return DesktopSession({**environ, **{name: each[name] for name in _TAKEN if name in each}})
    return DesktopSession(environ, _NONE)


def _displays(environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The displays that programs of this user's desktop use, each with the environment of one of them."""
    found: dict[str, dict[str, str]] = {}
    for pid in _own_processes():
        theirs = _environ_of(pid)
        if theirs.get("HOME") != environ.get("HOME") or not _is_graphical(theirs):
            continue
        display = theirs.get("WAYLAND_DISPLAY") or theirs.get("DISPLAY", "")
        session = re.search(rb"session-(\w+)\.scope", read(f"/proc/{pid}/cgroup"))
        known = {**theirs, **({"_session": session[1].decode()} if session else {})}
        # One that belongs to a login session says more than a service of the user.
        if display not in found or "_session" not in found[display]:
            found[display] = known
    return found


def _is_graphical(theirs: Mapping[str, str]) -> bool:
    is_session = theirs.get("XDG_SESSION_TYPE") in ("x11", "wayland") or bool(theirs.get("XDG_CURRENT_DESKTOP"))
    return is_session and (_has_wayland(theirs) or _has_x11(theirs.get("DISPLAY", "")))


def _has_wayland(theirs: Mapping[str, str]) -> bool:
    name = theirs.get("WAYLAND_DISPLAY")
    if not name:
        return False
    place = Path(name if name.startswith("/") else f"{theirs.get('XDG_RUNTIME_DIR', '')}/{name}")
    return _is_own_socket(place, (os.geteuid(),))


def _has_x11(display: str) -> bool:
    number = _LOCAL_DISPLAY.fullmatch(display)
    return number is not None and _is_own_socket(Path(f"/tmp/.X11-unix/X{number[1]}"), (0, os.geteuid()))  # noqa: S108


def _is_own_socket(path: Path, owners: tuple[int, ...]) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid in owners


def _own_processes() -> Iterator[int]:
    """Processes of this user outside every sandbox, whose program only the system can change."""
    own, here = os.geteuid(), [_namespace("self", kind) for kind in ("user", "mnt")]
    for name in os.listdir("/proc")[:_MAX_PROCESSES]:  # noqa: PTH208
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            is_own = os.stat(f"/proc/{name}").st_uid == own  # noqa: PTH116
            program = os.stat(f"/proc/{name}/exe")  # noqa: PTH116
        except OSError:
            continue
        is_system = program.st_uid == 0 and not program.st_mode & 0o022
        if is_own and is_system and [_namespace(name, kind) for kind in ("user", "mnt")] == here:
            yield int(name)


def _namespace(pid: str, kind: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")  # noqa: PTH115
    except OSError:
        return ""


def _environ_of(pid: int) -> dict[str, str]:
    """What of the process's environment is used here; empty for one without a display, which is nearly every one."""
    block = read(f"/proc/{pid}/environ")
    if b"DISPLAY=" not in block:
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in block.split(b"\0"))
    return {name: value for name, equals, value in pairs if equals and name in _READ}


def _active(sessions: str) -> set[str]:
    """Ids of this user's active graphical sessions, by the login manager's records."""
    found: set[str] = set()
    for path in Path(sessions).glob("*"):
        facts = dict(line.split("=", 1) for line in os.fsdecode(read(str(path))).splitlines() if "=" in line)
        is_own = facts.get("UID") == str(os.geteuid()) and facts.get("CLASS", "user") == "user"
        if is_own and facts.get("ACTIVE") == "1" and facts.get("TYPE") in ("x11", "wayland"):
            found.add(path.name)
    return found

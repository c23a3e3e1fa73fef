"""Runs a command under macOS's sandbox: a profile that denies everything, then allows what the scope grants.

Unproven: written after Apple's profile language and tested as text, never yet run on a Mac. The probe tries to cross it
there like every other boundary, and what it finds open is not claimed.
"""

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from computer_linker.policy.names import PROTECTED_NAMES
from computer_linker.providers.own_folders import remove_later
from computer_linker.providers.sandbox.boundary import Confinement, Folder, SpawnPlan
from computer_linker.providers.sandbox.masks import Masks
from computer_linker.providers.sandbox.places import tool_folders
from computer_linker.system import os

PROGRAM = "/usr/bin/sandbox-exec"
_SYSTEM = (
    "/usr", "/bin", "/sbin", "/System", "/Library/Developer", "/Library/Frameworks", "/Library/Apple", "/opt", "/private/etc",
    "/private/var/db/dyld", "/private/var/db/timezone", "/private/var/select", "/Applications/Xcode.app", "/etc", "/var/select",
)  # fmt: skip
_ALWAYS = (
    "(version 1)",
    "(deny default)",
    "(allow process-fork process-exec)",
    "(allow signal process-info* (target same-sandbox))",
    "(allow sysctl-read)",
    "(allow file-read-metadata)",
    '(allow file-read* (literal "/") (subpath "/dev"))',
    '(allow file-write* file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/ptmx"))',
    '(allow file-write* file-ioctl (regex #"^/dev/ttys[0-9]+$"))',
    "(allow pseudo-tty ipc-posix-sem)",
    '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.logger"))',
)
_NETWORK = (
    "(allow network* system-socket)",
    '(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd") (global-name "com.apple.dnssd.service"))',
    '(allow mach-lookup (global-name "com.apple.trustd.agent") (global-name "com.apple.SecurityServer"))',
)


_SPECIAL = re.compile(r"[.^$*+?()\[\]{}|\\]")


def is_available() -> bool:
    """True where sandbox-exec is available."""
    return Path(PROGRAM).exists()


def wrap(
    argv: tuple[str, ...], confinement: Confinement, masks: Mapping[Folder, Masks] | None = None
) -> tuple[SpawnPlan, dict[str, str]]:
    """The plan, and the variables that send temporary files to a private folder, which is removed afterwards."""
    private = str(Path(tempfile.mkdtemp(prefix="computer-linker-")).resolve())
    cwd_fd = confinement.cwd_fd
    if cwd_fd is None:
        cwd_fd = os.open(private, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    plan = SpawnPlan(
        argv=(PROGRAM, "-p", profile(confinement, private, masks or {}), *argv),
        cwd_fd=cwd_fd,
        closes=[] if cwd_fd == confinement.cwd_fd else [cwd_fd],
        releases=[lambda: remove_later(Path(private))],
    )
    return plan, {"TMPDIR": private, "HOME": private}


def profile(confinement: Confinement, private: str, masks: Mapping[Folder, Masks]) -> str:
    """The profile. The last matching rule wins, so rules that close parts of a root follow the root's own."""
    lines = [*_ALWAYS, *(_NETWORK if confinement.network else ())]
    readable = (*_SYSTEM, *tool_folders(), *confinement.programs, *(folder.path for folder in confinement.readable))
    lines.append(f"(allow file-read* {_subpaths(readable)})")
    writable = (private, *(folder.path for folder in confinement.writable))
    lines.append(f"(allow file-read* file-write* {_subpaths(writable)})")
    for folder in confinement.writable:
        lines += _closed(folder, masks.get(folder, Masks()), is_writable=True)
    for folder in confinement.readable:
        lines += _closed(folder, masks.get(folder, Masks()), is_writable=False)
    if confinement.hidden:
        lines.append(f"(deny file-read* file-write* {_subpaths(confinement.hidden)})")
    for folder in confinement.own:
        acts = "file-read*" if folder.only_read else "file-read* file-write*"
        lines.append(f"(allow {acts} {_subpaths([folder.path])})")
    return "\n".join(lines)


def protected_names(folder: Folder) -> str:
    """A regular expression over paths in the folder: a protected name at any depth, in any letter case, and all below it."""
    names = "|".join(_any_case(name) for name in sorted(PROTECTED_NAMES))
    return f"^{_literal(folder.path.rstrip('/'))}/(.*/)?({names})(/.*)?$"


def _closed(folder: Folder, masks: Masks, *, is_writable: bool) -> list[str]:
    top = folder.path.rstrip("/")
    secret = ["/".join((top, *each.parts)) for each in masks.closed if each.how == "hidden"]
    kept = ["/".join((top, *each.parts)) for each in masks.closed if each.how == "read_only"]
    lines = []
    if is_writable and not folder.rules.allow_protected:
        lines.append(f'(deny file-write* (regex #"{protected_names(folder)}"))')
    if kept:
        lines.append(f"(deny file-write* {_subpaths(kept)})")
    if secret:
        lines.append(f"(deny file-read* file-write* {_subpaths(secret)})")
    return lines


def _subpaths(paths: "list[str] | tuple[str, ...]") -> str:
    return " ".join(f"(subpath {_quoted(path)})" for path in dict.fromkeys(paths))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _any_case(name: str) -> str:
    return "".join(f"[{char.lower()}{char.upper()}]" if char.isalpha() else _literal(char) for char in name)


def _literal(text: str) -> str:
    # The profile's raw text cannot escape a quote, so a dot matches it: that closes more, never less.
    return "".join("." if char == '"' or not char.isprintable() else _SPECIAL.sub(r"\\\g<0>", char) for char in text)

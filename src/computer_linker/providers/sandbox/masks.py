"""What must stay closed inside a writable root: protected names (there or not), secrets, denied and read-only parts."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from computer_linker.model.paths import PathRules
from computer_linker.policy.names import PROTECTED_NAMES, folded, is_protected, is_sensitive
from computer_linker.policy.paths import is_denied
from computer_linker.providers.sandbox.boundary import Folder
from computer_linker.providers.sandbox.placeholders import PLACEHOLDER_MODE
from computer_linker.providers.sandbox.places import home

_HOME_ONLY = frozenset(
    """
    .gitconfig .claude.json .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile
    .zlogin .zlogout .kshrc .cshrc .tcshrc .login .logout .inputrc .xinitrc .xprofile .xsession .xsessionrc
    .pam_environment .direnvrc .nvimrc .emacs .emacs.d .tmux.conf .screenrc .curlrc .wgetrc .pypirc .netrc .ssh .gnupg .aws
    .kube .docker .lldbinit .pythonstartup .irbrc .pryrc .rprofile .mailcap .pnpmrc
    """.split()
)
"""Protected names that programs read from the home folder only; outside it they are closed when they exist."""
_IN_ANY_PROJECT = tuple(sorted(PROTECTED_NAMES - _HOME_ONLY))
_SKIPPED = frozenset(
    {"node_modules", "target", "dist", "build", "__pycache__", ".venv", "venv", ".tox", ".cache", "vendor"}
)
_MAX_DEPTH = 4
_MAX_ENTRIES = 2000


@dataclass(slots=True)
class Masks:
    """What to close, as paths relative to one root."""

    read_only: list[str] = field(default_factory=list)
    empty_folders: list[str] = field(default_factory=list)
    empty_files: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    """Protected names that are links: a link itself cannot be closed."""


def masks_of(folder: Folder, *, is_writable: bool) -> Masks:
    """What exists in the root and must stay closed: its top whole, the rest as far as a bounded look goes."""
    masks = Masks()
    top: set[str] = set()
    for parts, entry in _walk(folder.fd):
        if len(parts) == 1:
            top.add(entry.name)
        _judge(masks, folder.above, parts, entry, folder.rules)
    if not is_writable:
        masks.read_only.clear()
        return masks
    if not folder.rules.allow_protected:
        wanted = tuple(sorted(PROTECTED_NAMES)) if os.path.realpath(folder.path) == home() else _IN_ANY_PROJECT
        masks.empty_folders += [name for name in wanted if name not in top]
    size = len(folder.above)
    masks.read_only += ["/".join(parts[size:]) for parts in folder.rules.read_only if parts[:size] == folder.above]
    return masks


def _judge(
    masks: Masks, above: tuple[str, ...], below: tuple[str, ...], entry: os.DirEntry[str], rules: PathRules
) -> None:
    path = "/".join(below)
    parts = (*above, *below)
    is_folder = entry.is_dir(follow_symlinks=False)
    closed = (not rules.allow_sensitive and is_sensitive(parts)) or (
        bool(rules.denied) and is_denied(parts, rules.denied)
    )
    protected = not rules.allow_protected and is_protected(parts)
    if entry.is_symlink():
        # What a link leads to is judged by its own name; only a trusted name could be turned elsewhere.
        if protected:
            masks.links.append(path)
    elif closed:
        (masks.empty_folders if is_folder else masks.empty_files).append(path)
    elif protected:
        if is_folder and _is_placeholder(entry):
            masks.empty_folders.append(path)
        else:
            masks.read_only.append(path)


def _walk(root_fd: int) -> Iterator[tuple[tuple[str, ...], os.DirEntry[str]]]:
    """Entries of the root, breadth first and bounded, by descriptor and without following links."""
    waiting: list[tuple[tuple[str, ...], int]] = [((), os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=root_fd))]
    seen = 0
    try:
        while waiting:
            above, fd = waiting.pop(0)
            try:
                with os.scandir(fd) as entries:
                    for entry in entries:
                        seen += 1
                        if above and seen > _MAX_ENTRIES:
                            return
                        parts = (*above, entry.name)
                        yield parts, entry
                        if len(parts) < _MAX_DEPTH and seen < _MAX_ENTRIES and _is_worth_a_look(entry):
                            inner = _open_folder(entry.name, fd)
                            if inner is not None:
                                waiting.append((parts, inner))
            finally:
                os.close(fd)
    finally:
        for _, fd in waiting:
            os.close(fd)


def _is_worth_a_look(entry: os.DirEntry[str]) -> bool:
    if entry.name in _SKIPPED or not entry.is_dir(follow_symlinks=False):
        return False
    return folded(entry.name) not in PROTECTED_NAMES


def _open_folder(name: str, fd: int) -> int | None:
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
    except OSError:
        return None


def _is_placeholder(entry: os.DirEntry[str]) -> bool:
    """An empty folder with our mode: left by a service that was killed, or held for another command now."""
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_IMODE(found.st_mode) == PLACEHOLDER_MODE and found.st_nlink == 2

"""What must stay closed inside a writable root: protected names (there or not), secrets, denied and read-only parts."""

import os
import stat
from dataclasses import dataclass, field

from computer_linker.model.paths import PathRules
from computer_linker.policy.names import PROTECTED_NAMES, is_protected, is_sensitive
from computer_linker.policy.paths import is_denied
from computer_linker.providers.sandbox.boundary import Folder
from computer_linker.providers.sandbox.looks import Looks, Parts, Seen, open_below
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
_PROTECTED = tuple(sorted(PROTECTED_NAMES))
_IN_ANY_PROJECT = tuple(sorted(PROTECTED_NAMES - _HOME_ONLY))
_MAX_REPOSITORIES = 4


@dataclass(slots=True)
class Masks:
    """What to close, as paths relative to one root."""

    read_only: list[str] = field(default_factory=list)
    empty_folders: list[str] = field(default_factory=list)
    empty_files: list[str] = field(default_factory=list)
    missing: dict[tuple[str, ...], list[str]] = field(default_factory=dict)
    """Protected names that are not there, by the folder they are missing in: the root itself, and repositories below it."""
    links: list[str] = field(default_factory=list)
    """Protected names that are links: a link itself cannot be closed."""
    held: list[str] = field(default_factory=list)
    """Folders above something that is closed by its whole path: under another name it would be open."""
    is_partial: bool = False
    """True when the folder holds more than was looked at."""
    open_repositories: int = 0
    """How many more repositories there are, in which missing names stay open."""


def look_at(folder: Folder, looks: Looks) -> tuple[dict[Parts, Seen], bool]:
    """What the folders of the root hold that matters, and whether all of them were looked at."""

    def judge(seen: Seen, parts: Parts, entry: os.DirEntry[str]) -> None:
        if _is_placeholder(entry):
            seen.standing.append(parts)
            return
        if entry.name in PROTECTED_NAMES:
            seen.names.add(entry.name)
        if how := _how_closed((*folder.above, *parts), entry, folder.rules):
            seen.closed.append((how, "/".join(parts)))

    return looks.look(folder, judge)


def masks_of(folder: Folder, looks: Looks, *, is_writable: bool) -> Masks:
    """What exists in the root and must stay closed, as far as a bounded look goes."""
    folders, is_whole = look_at(folder, looks)
    masks = Masks(is_partial=not is_whole)
    for seen in folders.values():
        for how, path in seen.closed:
            getattr(masks, how).append(path)
    standing = [parts for seen in folders.values() for parts in seen.standing]
    _close_named(masks, folder)
    _leave_out_the_inside(masks)
    if is_writable and not folder.rules.allow_protected:
        _close_missing(masks, folder, {parts: seen.names for parts, seen in folders.items()})
    masks.empty_folders += ["/".join(parts) for parts in standing if parts[-1] not in masks.missing.get(parts[:-1], ())]
    if not is_writable:
        masks.read_only.clear()
        return masks
    size = len(folder.above)
    narrower = ["/".join(parts[size:]) for parts in folder.rules.read_only if parts[:size] == folder.above]
    masks.read_only += narrower
    closed = [path for path in (*masks.empty_files, *masks.empty_folders) if _is_closed_by_its_place(path, folder)]
    nested = ["/".join(parts[size:]) for parts in folder.rules.held if parts[:size] == folder.above and parts[size:]]
    masks.held = sorted({*_folders_above([*narrower, *closed, *nested]), *nested} - {*narrower})
    return masks


def _close_missing(masks: Masks, folder: Folder, seen: dict[tuple[str, ...], set[str]]) -> None:
    is_home = os.path.realpath(folder.path) == home()
    masks.missing[()] = _missing(_PROTECTED if is_home else _IN_ANY_PROJECT, seen[()])
    repositories = [below for below, names in seen.items() if below and ".git" in names]
    for below in repositories[:_MAX_REPOSITORIES]:
        masks.missing[below] = _missing(_IN_ANY_PROJECT, seen[below])
    masks.open_repositories = max(len(repositories) - _MAX_REPOSITORIES, 0)


def _missing(wanted: tuple[str, ...], seen: set[str]) -> list[str]:
    return [name for name in wanted if name not in seen]


def _is_closed_by_its_place(path: str, folder: Folder) -> bool:
    """True when the last name alone would not be closed."""
    name = (path.rpartition("/")[2],)
    return not is_sensitive(name) and not (is_protected(name) and not folder.rules.allow_protected)


def _folders_above(paths: list[str]) -> list[str]:
    names = [path.split("/") for path in paths]
    return sorted({"/".join(parts[:size]) for parts in names for size in range(1, len(parts))})


def _how_closed(parts: Parts, entry: os.DirEntry[str], rules: PathRules) -> str | None:
    """The list of `Masks` an entry belongs to; None for what stays open."""
    closed = (not rules.allow_sensitive and is_sensitive(parts)) or (
        bool(rules.denied) and is_denied(parts, rules.denied)
    )
    protected = not rules.allow_protected and is_protected(parts)
    if not (closed or protected):
        return None
    if entry.is_symlink():
        # What a link leads to is judged by its own name; only a trusted name could be turned elsewhere.
        return "links" if protected else None
    if closed:
        return "empty_folders" if entry.is_dir(follow_symlinks=False) else "empty_files"
    return "read_only"


def _close_named(masks: Masks, folder: Folder) -> None:
    """Close what the owner denies by its plain path, however deep it lies."""
    size = len(folder.above)
    for pattern in folder.rules.denied:
        parts = tuple(part for part in pattern.removesuffix("/**").split("/") if part)
        if any(char in pattern.removesuffix("/**") for char in "*?[") or parts[:size] != folder.above:
            continue
        below = parts[size:]
        kind = _kind_of(folder.fd, below) if below else 0
        known = masks.empty_folders if stat.S_ISDIR(kind) else masks.empty_files
        if (stat.S_ISDIR(kind) or stat.S_ISREG(kind)) and "/".join(below) not in known:
            known.append("/".join(below))


def _leave_out_the_inside(masks: Masks) -> None:
    """What lies in a folder that is closed whole needs nothing more; mounted there, it would show its name."""
    whole = set(masks.empty_folders)

    def is_open(path: str) -> bool:
        parts = path.split("/")
        return not any("/".join(parts[:size]) in whole for size in range(1, len(parts)))

    if whole:
        masks.read_only = [path for path in masks.read_only if is_open(path)]
        masks.empty_files = [path for path in masks.empty_files if is_open(path)]
        masks.empty_folders = [path for path in masks.empty_folders if is_open(path)]


def _kind_of(root_fd: int, parts: tuple[str, ...]) -> int:
    fd = open_below(root_fd, parts[:-1])
    if fd is None:
        return 0
    try:
        return os.stat(parts[-1], dir_fd=fd, follow_symlinks=False).st_mode
    except OSError:
        return 0
    finally:
        os.close(fd)


def _is_placeholder(entry: os.DirEntry[str]) -> bool:
    """An empty folder with our mode: left by a service that was killed, or held for another command now."""
    if entry.name not in PROTECTED_NAMES or not entry.is_dir(follow_symlinks=False):
        return False
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_IMODE(found.st_mode) == PLACEHOLDER_MODE and found.st_nlink == 2

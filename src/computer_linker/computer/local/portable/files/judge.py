"""Applies the scope's rules to everything inside a folder that is to be moved, copied or removed."""

from computer_linker.computer.local.portable.roots import Root
from computer_linker.errors import PermissionDenied
from computer_linker.home import MARK_NAME
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.policy.names import folded, is_protected, is_sensitive
from computer_linker.policy.paths import is_denied

Parts = tuple[str, ...]


def may_remove(path: RootedPath, root: Root, below: Parts) -> bool:
    """Refuse to remove a folder that holds a repository's internals, denied names, or the service's state."""
    parts = (*path.parts, *below)
    rules = path.rules
    is_kept = (not rules.allow_protected and folded(below[-1]) in (".git", ".hg", ".svn")) or _is_fenced(parts, rules)
    if is_kept or root.closed == parts or below[-1] == MARK_NAME:
        raise _refusal(path, below, "removed")
    return True


def may_move(path: RootedPath, destination: RootedPath, root: Root, below: Parts) -> bool:
    """Refuse a move that would give an entry inside a name with different rules."""
    old, new = (*path.parts, *below), (*destination.parts, *below)
    if root.closed == old or _is_fenced(old, path.rules) or below[-1] == MARK_NAME:
        raise _refusal(path, below, "moved")
    if _standing(old, path.rules) != _standing(new, destination.rules):
        raise _refusal(path, below, "moved")
    return True


def may_copy(path: RootedPath, destination: RootedPath, root: Root, below: Parts) -> bool:
    """Skip entries that may not be read; refuse entries that may not be written at the destination."""
    old, new = (*path.parts, *below), (*destination.parts, *below)
    if below[-1] == MARK_NAME:
        raise _refusal(path, below, "copied")
    if root.closed == old or (not path.rules.allow_sensitive and is_sensitive(old)) or _is_denied(old, path.rules):
        return False
    rules = destination.rules
    if _is_fenced(new, rules) or (not rules.allow_sensitive and is_sensitive(new)):
        raise _refusal(path, below, "copied")
    if not rules.allow_protected and is_protected(new):
        if is_protected(old):
            return False
        raise _refusal(path, below, "copied")
    return True


def is_closed(path: RootedPath, below: Parts) -> bool:
    """True for an entry of a folder that is closed to programs."""
    return any(_standing((*path.parts, *below), path.rules))


def _standing(parts: Parts, rules: PathRules) -> tuple[bool, bool]:
    sensitive = not rules.allow_sensitive and is_sensitive(parts)
    protected = not rules.allow_protected and is_protected(parts)
    return sensitive, protected


def _is_fenced(parts: Parts, rules: PathRules) -> bool:
    """True for what a scope's policy denies, and for a folder that a narrower read-only scope or its programs cover."""
    return _is_denied(parts, rules) or any(parts[: len(folder)] == folder for folder in rules.read_only)


def _is_denied(parts: Parts, rules: PathRules) -> bool:
    return bool(rules.denied) and is_denied(parts, rules.denied)


def _refusal(path: RootedPath, below: Parts, verb: str) -> PermissionDenied:
    inside = path.child(*below).shown
    return PermissionDenied(
        f"{path.shown} cannot be {verb} as a whole: the scope's rules protect {inside}.", path=inside, rule="inside"
    )

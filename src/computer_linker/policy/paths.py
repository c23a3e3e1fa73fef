"""Turns a target into a RootedPath: refuses escapes, sensitive and protected names, before any disk access."""

import fnmatch
import glob
import os
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePath

from computer_linker.config.own_places import own_programs, process_folders, search_path, user_home
from computer_linker.config.schema import Config
from computer_linker.errors import InvalidRequest, PathOutOfScope, PermissionDenied
from computer_linker.home import MARK_NAME
from computer_linker.model.capability import Capability
from computer_linker.model.paths import PathRules, RootedPath, split_target
from computer_linker.model.scope import Scope
from computer_linker.policy.names import HOME_PATHS, folded, is_login, is_private, is_protected, is_sensitive
from computer_linker.system import refused_name, slashed

Parts = tuple[str, ...]


def rooted(scope: Scope, target: str, *, config: Config, for_writing: bool = False, cwd: str = "") -> RootedPath:
    """The path in a root of the scope that `target` names, checked against the scope's rules.

    It is relative to the first root, or to the folder `cwd`; or absolute inside a root, or `name:path`. With `cwd` it is shown
    as `name:path`, which means the same wherever it is sent back.
    """
    if not scope.roots:
        raise InvalidRequest(f"Scope {scope.id} has no folders; use a folder scope for paths.")
    target = slashed(target)
    index, rest, prefix = _root_of(scope, _from_folder(scope, cwd, target) if cwd else target)
    root = scope.roots[index]
    try:
        parts = split_target(rest)
    except PathOutOfScope as error:
        raise _outside(scope, cwd, error) from None
    _refuse_names(parts)
    path = RootedPath(root, parts, rules_of(scope, root, config), f"{scope.root_names[index]}:" if cwd else prefix)
    check_name(path, for_writing=for_writing)
    return path


def _from_folder(scope: Scope, cwd: str, target: str) -> str:
    """The target as seen from a folder; one that names its root already stays as it is."""
    if target.startswith(("/", "\\")) or target[1:3] in (":\\", ":/") or _root_of(scope, target)[2]:
        return target
    return f"{cwd}{target}" if cwd.endswith(":") else f"{cwd}/{target}"


def _outside(scope: Scope, cwd: str, error: PathOutOfScope) -> PathOutOfScope:
    """The refusal, with the forms that work."""
    base = f"options.cwd {cwd[:200]!r}" if cwd else f"the folder {scope.root_names[0]!r}"
    named = ", ".join(f"{name}:PATH" for name in scope.root_names[:8])
    forms = f"Write a path relative to {base}, {named}, or an absolute path inside one of them."
    return PathOutOfScope(f"{error.message} {forms}", **error.details, rootNames=list(scope.root_names[:32]))


def _refuse_names(parts: Parts) -> None:
    """Refuse names that this system takes for something else than a file of that name."""
    for name in parts:
        if (reason := refused_name(name)) is not None:
            raise InvalidRequest(f"{name[:200]} {reason}.", rule="name")


def check_name(path: RootedPath, *, for_writing: bool) -> None:
    """Refuse a name the scope's rules forbid. The files facet checks again the object it really opened."""
    rules = path.rules
    if rules.refusal:
        raise PathOutOfScope(rules.refusal, rule="root_changed")
    if for_writing and not rules.allow_protected and is_protected(path.parts):
        raise PermissionDenied(
            f"{path.shown} is protected: other programs execute or trust it. "
            "The owner can allow it with the scope's policy `allowProtected`.",
            path=path.shown,
            rule="protected",
        )
    if not rules.allow_sensitive and is_sensitive(path.parts):
        raise PermissionDenied(
            f"{path.shown} usually holds a secret, so this scope does not open it. "
            "The owner can allow it with the scope's policy `allowSensitive`.",
            path=path.shown,
            rule="sensitive",
        )
    if not for_writing and not rules.allow_sensitive and is_login(path.parts):
        raise PermissionDenied(
            f"{path.shown} may hold a token for its own program, so file operations do not read it. "
            "Use git.* or a command, or the owner can allow it with the scope's policy `allowSensitive`.",
            path=path.shown,
            rule="sensitive",
        )
    if rules.denied and is_denied(path.parts, rules.denied):
        raise PermissionDenied(f"{path.shown} is denied by this scope's policy.", path=path.shown, rule="denied")
    if for_writing and rules.programs and _is_inside(_folded(path.parts), tuple(map(_folded, rules.programs))):
        raise PermissionDenied(
            f"{path.shown} is protected: it lies where this computer looks for its own programs. "
            "The owner can allow it with the scope's policy `allowProtected`.",
            path=path.shown,
            rule="protected",
        )
    if for_writing and rules.read_only and _is_inside(path.parts, rules.read_only):
        raise PermissionDenied(
            f"{path.shown} lies in a narrower scope that is read-only.", path=path.shown, rule="narrower_scope"
        )


def of_a_service(path: RootedPath, folder: Parts) -> PermissionDenied:
    """The refusal of what is or lies in this folder of the root, which carries the mark of a state folder."""
    mark = replace(path, parts=(*folder, MARK_NAME)).shown
    return PermissionDenied(
        f"{path.shown} is not opened: the file {mark} marks its folder as the state of a service, closed to every scope. "
        "If it is none, the owner can look at that file and remove it.",
        path=path.shown,
        rule="service_state",
    )


def is_hidden_by(parts: tuple[str, ...], rules: PathRules) -> bool:
    """True for a name that listings and searches must leave out."""
    if not rules.allow_sensitive and is_private(parts):
        return True
    return bool(rules.denied) and is_denied(parts, rules.denied)


@lru_cache(maxsize=4096)
def is_denied(parts: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    """True when the path or a folder above it matches one of the scope's `deniedPaths` globs."""
    for size in range(1, len(parts) + 1):
        shown = "/".join(parts[:size]).casefold()
        for pattern in patterns:
            plain = pattern.casefold().rstrip("/")
            if fnmatch.fnmatchcase(shown, plain) or (plain.endswith("/**") and fnmatch.fnmatchcase(shown, plain[:-3])):
                return True
    return False


def rules_of(scope: Scope, root: str, config: Config) -> PathRules:
    """The scope's rules for one root, with the read-only sub-folders that narrower scopes cover."""
    key = (id(config), scope.id, root)
    found = _RULES.get(key)
    if found is not None and found[0] is config and found[1] is scope:
        return found[2]
    policy = scope.policy
    programs = _programs_below(root, policy.allow_protected)
    rules = PathRules(
        policy.allow_sensitive,
        policy.allow_protected,
        (*policy.denied_paths, *_processes_below(root)),
        (*_read_only_below(scope, root, config), *programs),
        programs,
        _roots_below(scope, root, config),
        scope.refused.get(root, "") or _processes_refusal(root),
    )
    if len(_RULES) > 512:
        _RULES.clear()
    _RULES[key] = (config, scope, rules)
    return rules


def _processes_below(root: str) -> tuple[str, ...]:
    """Patterns for the folders of processes in a root: their files are not the owner's, and may hold any secret."""
    base = f"{root.rstrip('/')}/"
    return tuple(glob.escape(place[len(base) :]) for place in process_folders() if place.startswith(base))


def _processes_refusal(root: str) -> str:
    is_inside = any(f"{root}/".startswith(f"{place}/") for place in process_folders())
    return "The scope's folder shows the processes of this computer, so nothing in it is opened." if is_inside else ""


_RULES: dict[tuple[int, str, str], tuple[Config, Scope, PathRules]] = {}


def refuse_held(path: RootedPath, verb: str) -> None:
    """Refuse to move or remove a folder that is or contains another scope's root: another could replace it."""
    size = len(path.parts)
    if any(folder[:size] == path.parts for folder in path.rules.held):
        raise PermissionDenied(
            f"{path.shown} cannot be {verb}: it is the folder of another scope, or holds one.",
            path=path.shown,
            rule="root_of_another_scope",
        )


def _roots_below(scope: Scope, root: str, config: Config) -> tuple[Parts, ...]:
    """The roots of other scopes that lie in this one."""
    base = PurePath(root)
    others = (PurePath(place) for other in config.scopes if other.id != scope.id for place in other.roots)
    return tuple(dict.fromkeys(p.relative_to(base).parts for p in others if p != base and p.is_relative_to(base)))


def _programs_below(root: str, allow_protected: bool) -> tuple[Parts, ...]:
    """The folders in this root that hold the service's own code, or, unless that is allowed, programs that others run."""
    wanted = list(own_programs())
    if not allow_protected:
        homes = user_home(os.environ.get("HOME", ""))
        wanted += [
            *search_path(os.environ.get("PATH", "")),
            *("/".join((home, *p)) for home in homes for p in HOME_PATHS),
        ]
    base = PurePath(root)
    # A root that is such a folder itself was chosen by the owner.
    below = (PurePath(place) for place in wanted if place.startswith(root.rstrip("/") + "/"))
    return tuple(dict.fromkeys(place.relative_to(base).parts for place in below))


def _folded(parts: Parts) -> Parts:
    return tuple(map(folded, parts))


def _is_inside(parts: Parts, folders: tuple[Parts, ...]) -> bool:
    return any(parts[: len(folder)] == folder for folder in folders)


def _read_only_below(scope: Scope, root: str, config: Config) -> tuple[tuple[str, ...], ...]:
    base = PurePath(root)
    folders: list[tuple[str, ...]] = []
    for other in config.scopes:
        if other.id == scope.id or Capability.FS_WRITE in other.granted:
            continue
        for path in map(PurePath, other.roots):
            if path != base and path.is_relative_to(base):
                folders.append(path.relative_to(base).parts)
    return tuple(folders)


def _root_of(scope: Scope, target: str) -> tuple[int, str, str]:
    """Which root a target names, what follows, and how it is written: `docs:a.txt`, `@1/a.txt`, or an absolute path."""
    if target.startswith("/") or target[1:3] == ":/":
        return _root_above(scope, target)
    name, colon, rest = target.partition(":")
    if colon and name in scope.root_names:
        return scope.root_names.index(name), rest.lstrip("/"), f"{name}:"
    if len(scope.roots) > 1 and target.startswith("@"):
        head, _, rest = target.partition("/")
        # A few plain digits: others count as digits too, some of them are no number, and thousands are refused as one.
        if len(head) < 6 and head[1:].isascii() and head[1:].isdigit() and int(head[1:]) < len(scope.roots):
            index = int(head[1:])
            return index, rest, f"@{index}/" if index else ""
    return 0, target, ""


def _root_above(scope: Scope, target: str) -> tuple[int, str, str]:
    """The deepest root that an absolute path lies in by its text; what leaves it by `..` is refused with the rest."""
    above = [
        (len(root), index)
        for index, root in enumerate(scope.roots)
        if target == root or target.startswith(root.rstrip("/") + "/")
    ]
    if not above:
        return 0, target, ""
    index = max(above)[1]
    return (
        index,
        target[len(scope.roots[index].rstrip("/")) :].lstrip("/"),
        f"{scope.root_names[index]}:" if index else "",
    )

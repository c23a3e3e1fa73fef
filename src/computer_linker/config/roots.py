"""The identity of each root folder when the owner added it, so that a replacement is detected.

The record is a separate file beside config.json, because that file is the owner's to edit.
"""

import json
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from computer_linker.config.schema import Config
from computer_linker.config.store import locked, write_whole
from computer_linker.errors import ConfigInvalid
from computer_linker.model.capability import Capability
from computer_linker.model.scope import Scope
from computer_linker.system import os

ROOTS_NAME = "roots.json"
_VERSION = 1
Key = tuple[str, str]
"""A scope's id and one of its roots as config.json has it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a folder: its resolved path, device and inode. A restart may change the device number, not the inode.

    The inode is 0 for a root that was not there when it was first read.
    """

    real: str
    device: int
    inode: int


Identities = Mapping[Key, Identity]


def identity_of(root: str) -> Identity | None:
    """The root's identity now; None while there is no folder."""
    real = os.path.realpath(root)
    try:
        found = os.stat(real, follow_symlinks=False)  # the resolved path itself, links not followed
    except OSError:
        return None
    return Identity(real, found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def is_deleted(root: str) -> bool:
    """True for a folder that is gone from a place that is still there; an unplugged drive has neither."""
    place = Path(root)
    return not os.path.lexists(place) and place.parent.is_dir() and not os.path.ismount(place.parent)


def _missing(root: str) -> Identity:
    return Identity(os.path.realpath(root), 0, 0)


def read(home: Path) -> dict[Key, Identity]:
    """The recorded identities. Raises ConfigInvalid for a record that cannot be read."""
    try:
        return _parsed(json.loads((home / ROOTS_NAME).read_bytes())["roots"])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigInvalid(
            f"{ROOTS_NAME} cannot be read",
            f"look at the folders of `computer-linker scope list`, then remove {home / ROOTS_NAME}",
        ) from error


def remembered(home: Path, config: Config) -> Identities:
    """Return the identities of this config's roots; new ones are recorded as they are now, also as missing."""
    known = read(home)
    wanted = set(_keys(config))
    if wanted <= known.keys():
        return known
    with locked(home):
        known = {key: identity for key, identity in read(home).items() if key in wanted}
        fresh = {key: identity_of(key[1]) or _missing(key[1]) for key in wanted - known.keys()}
        if fresh:
            known |= fresh
            _write(home, known)
    return known


def confirm(home: Path, scope: Scope) -> dict[str, Identity]:
    """Record the present identities of this scope's roots, with the paths from config.json."""
    found = {root: now for root in scope.roots if (now := identity_of(root)) is not None}
    with locked(home):
        known = {key: identity for key, identity in read(home).items() if key[0] != scope.id}
        _write(home, known | {(scope.id, root): now for root, now in found.items()})
    return found


def listed(home: Path, config: Config) -> list[dict[str, Any]]:
    """The identities of this config's roots, to keep elsewhere; what is not on record yet is as it is now."""
    known = read(home)
    return _listed({key: known.get(key) or identity_of(key[1]) or _missing(key[1]) for key in _keys(config)})


def put_back(home: Path, kept: list[dict[str, Any]]) -> None:
    """Record the kept identities again; the caller holds the config's lock. What is on record now is newer and stays."""
    _write(home, _parsed(kept) | read(home))


def refusal(scope: Scope, root: str, identities: Identities, config: Config) -> str | None:
    """Return why this root is not opened: it is not the folder that the owner added; None when it is, or is absent."""
    was, now = identities.get((scope.id, root)), identity_of(root)
    if was is None or (now is None and was.inode):
        return None
    if now is None:
        now = _missing(root)
    if now.real != was.real:
        return f"The folder of scope {scope.id} is not the one that its owner added: its path leads elsewhere now. {_fix(scope)}"
    if now.inode == was.inode != 0:
        return None
    # A folder created again in the same place is the owner's change, unless a client could have done it, or could now.
    for other in config.scopes:
        if other.id != scope.id and _could_replace(other, was.real):
            became = "was replaced" if was.inode else "did not exist when it was added"
            return f"The folder of scope {scope.id} {became}, in a place where another scope can write. {_fix(scope)}"
    return None


def _fix(scope: Scope) -> str:
    return f"If that is meant, the owner runs: computer-linker scope confirm {scope.id}"


def _could_replace(other: Scope, real: str) -> bool:
    if Capability.FS_WRITE not in other.granted:
        return False
    tops = (os.path.realpath(root) for root in other.roots)
    return any(real != top and real.startswith(top.rstrip("/") + "/") for top in tops)


def _keys(config: Config) -> Iterator[Key]:
    for scope in config.scopes:
        for root in scope.roots:
            yield scope.id, root


def _listed(known: Identities) -> list[dict[str, Any]]:
    return [{"scope": scope, "root": root, **asdict(identity)} for (scope, root), identity in sorted(known.items())]


def _parsed(entries: list[dict[str, Any]]) -> dict[Key, Identity]:
    return {(one.pop("scope"), one.pop("root")): Identity(**one) for one in entries}


def _write(home: Path, known: Identities) -> None:
    raw = json.dumps({"version": _VERSION, "roots": _listed(known)}, indent=2, ensure_ascii=False).encode(
        "utf-8", "surrogateescape"
    )
    write_whole(home, ROOTS_NAME, raw + b"\n")

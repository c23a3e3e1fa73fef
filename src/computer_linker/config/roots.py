"""Which folder each root was when the owner added it, so that another one put in its place is not taken for it.

The record is a file of its own beside config.json, because what is in there is the owner's to write.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from computer_linker.config.schema import Config
from computer_linker.config.store import locked, write_whole
from computer_linker.errors import ConfigInvalid
from computer_linker.model.capability import Capability
from computer_linker.model.scope import Scope

ROOTS_NAME = "roots.json"
_VERSION = 1
Key = tuple[str, str]
"""A scope's id and one of its roots as config.json has it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """One folder: where it really lies, and which it is. A device's number may change with a restart; an inode's does not."""

    real: str
    device: int
    inode: int


Identities = Mapping[Key, Identity]


def identity_of(root: str) -> Identity | None:
    """What the root is now; None while there is no folder."""
    real = os.path.realpath(root)
    try:
        found = os.stat(real, follow_symlinks=False)  # noqa: PTH116  # the resolved path, and nothing it may turn into
    except OSError:
        return None
    return Identity(real, found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def read(home: Path) -> dict[Key, Identity]:
    """The recorded identities. Raises ConfigInvalid for a record that cannot be read."""
    try:
        value = json.loads((home / ROOTS_NAME).read_bytes())
        return {(one.pop("scope"), one.pop("root")): Identity(**one) for one in value["roots"]}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigInvalid(
            f"{ROOTS_NAME} cannot be read",
            f"look at the folders of `computer-linker scope list`, then remove {home / ROOTS_NAME}",
        ) from error


def remembered(home: Path, config: Config) -> Identities:
    """The identities of this config's roots; those seen for the first time are recorded as they are now."""
    known = read(home)
    wanted = set(_keys(config))
    if wanted <= known.keys():
        return known
    with locked(home):
        known = {key: identity for key, identity in read(home).items() if key in wanted}
        fresh = {key: found for key in wanted - known.keys() if (found := identity_of(key[1])) is not None}
        if fresh:
            known |= fresh
            _write(home, known)
    return known


def confirm(home: Path, scope: Scope) -> dict[str, Identity]:
    """Record this scope's roots, with the paths that config.json has, as what they are now."""
    found = {root: now for root in scope.roots if (now := identity_of(root)) is not None}
    with locked(home):
        known = {key: identity for key, identity in read(home).items() if key[0] != scope.id}
        _write(home, known | {(scope.id, root): now for root, now in found.items()})
    return found


def refusal(scope: Scope, root: str, identities: Identities, config: Config) -> str | None:
    """Why this root is not opened: it is not the folder that the owner added; None when it is, or is not there."""
    was, now = identities.get((scope.id, root)), identity_of(root)
    if was is None or now is None:
        return None
    if now.real != was.real:
        return f"The folder of scope {scope.id} is not the one that its owner added: its path leads elsewhere now. {_fix(scope)}"
    if now.inode == was.inode:
        return None
    # A folder made anew in the same place is the owner's doing, unless a client could have done it.
    for other in config.scopes:
        if other.id != scope.id and _could_replace(other, was.real):
            return (
                f"The folder of scope {scope.id} was replaced, in a place where another scope can write. {_fix(scope)}"
            )
    return None


def _fix(scope: Scope) -> str:
    return f"If that is meant, the owner runs: computer-linker scope confirm {scope.id}"


def _could_replace(other: Scope, real: str) -> bool:
    if other.type != "folder" or Capability.FS_WRITE not in other.granted:
        return False
    tops = (os.path.realpath(root) for root in other.roots)
    return any(real != top and real.startswith(top.rstrip("/") + "/") for top in tops)


def _keys(config: Config) -> Iterator[Key]:
    for scope in config.scopes:
        for root in scope.roots:
            yield scope.id, root


def _write(home: Path, known: Identities) -> None:
    listed = [{"scope": scope, "root": root, **asdict(identity)} for (scope, root), identity in sorted(known.items())]
    raw = json.dumps({"version": _VERSION, "roots": listed}, indent=2, ensure_ascii=False).encode(
        "utf-8", "surrogateescape"
    )
    write_whole(home, ROOTS_NAME, raw + b"\n")

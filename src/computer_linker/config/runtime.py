"""The effective config: roots resolved once, the state folder excluded from every scope."""

import glob
from collections.abc import Mapping
from pathlib import Path

from computer_linker.config import roots
from computer_linker.config.load import parse
from computer_linker.config.mounts import shown_below
from computer_linker.config.roots import Identities
from computer_linker.config.schema import Config
from computer_linker.errors import ConfigInvalid, Problem
from computer_linker.home import MARK_NAME
from computer_linker.model.capability import Capability
from computer_linker.model.scope import Scope
from computer_linker.system import os

_RUNS = frozenset({Capability.COMMAND_RUN, Capability.PACKAGE_RUN, Capability.CODEX_RUN})
_PUBLIC_URL_NAMES = ("COMPUTER_LINKER_PUBLIC_BASE_URL", "LOCALPORT_PUBLIC_BASE_URL")


def effective(
    config: Config, home: Path, environment: Mapping[str, str] | None = None, identities: Identities | None = None
) -> Config:
    """The config with resolved roots. Raises ConfigInvalid for a root that no scope may have.

    A root whose identity differs from `identities` (by default those on record) is marked as refused.
    """
    state = Path(os.path.realpath(home))
    _refuse_forbidden(config, state)
    known = roots.read(home) if identities is None else identities
    scopes = [_held(scope, state, config, known) for scope in config.scopes]
    changes: dict[str, object] = {"scopes": scopes}
    given = environment if environment is not None else os.environ
    address = next((given[name] for name in _PUBLIC_URL_NAMES if given.get(name, "").strip()), None)
    if address is not None:
        changes["public_base_url"] = parse({**config.to_wire(), "publicBaseUrl": address.strip()}).public_base_url
    return config.model_copy(update=changes)


def forbidden_root(root: str, state: Path) -> str | None:
    """Why no scope may have this root; None when it may."""
    if ".." in Path(root).parts:
        return "has `..` in it; write the folder it means"
    resolved = Path(os.path.realpath(root))
    if resolved == Path(resolved.anchor):
        return "is the whole file system; name the folders you mean"
    if _below(resolved, state) is not None:
        return "lies in the service's own state folder"
    marked = next((each for each in (resolved, *resolved.parents) if os.path.lexists(each / MARK_NAME)), None)
    if marked is not None:
        where = "it" if marked == resolved else "a folder above it"
        remedy = f"if it is none, look at the file {MARK_NAME} in {where} and remove it"
        return f"lies in the state folder of another service; {remedy}"
    return None


def state_inside(root: str, state: Path) -> str | None:
    """The state folder's path inside this root, when the root contains it."""
    return _below(state, Path(os.path.realpath(root)))


def state_places(root: str, state: Path) -> tuple[str, ...]:
    """Every path inside this root that leads to the state folder, or to a part of it: its own, and those of other mounts."""
    folder = Path(os.path.realpath(root))
    inside = _below(state, folder)
    own = () if inside is None else (inside,)
    return tuple(dict.fromkeys((*own, *shown_below(state, folder))))


def _below(path: Path, folder: Path) -> str | None:
    """The path of one folder inside another; also where a folder above it is mounted a second time under another path."""
    if path.is_relative_to(folder):
        return str(path.relative_to(folder))
    try:
        wanted = folder.stat()
        above = next((each for each in (path, *path.parents) if os.path.samestat(each.stat(), wanted)), None)
    except OSError:
        return None
    return None if above is None else str(path.relative_to(above))


def _refuse_forbidden(config: Config, state: Path) -> None:
    wrong = [
        Problem(("scopes", index, "roots", number), problem, "root")
        for index, scope in enumerate(config.scopes)
        for number, root in enumerate(scope.roots)
        if (problem := forbidden_root(root, state)) is not None
    ]
    if wrong:
        raise ConfigInvalid.of(wrong, "correct that root; nothing was changed")


def work_folder(state: Path) -> Path:
    """Where computer scopes without roots have their working folders: beside the state folder, which no program may see."""
    return state.with_name(f"{state.name}-work")


def _with_working_folder(scope: Scope, state: Path) -> Scope:
    """A computer scope that may run programs, with a folder of its own where the owner named none."""
    if scope.type != "computer" or scope.roots or not _RUNS & scope.granted:
        return scope
    folder = work_folder(state) / scope.id
    try:
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ConfigInvalid(
            f"the working folder of scope {scope.id} cannot be made: {error.strerror}",
            f"make {folder}, or give it roots",
        ) from error
    return scope.model_copy(update={"roots": [str(folder)]})


def _held(scope: Scope, state: Path, config: Config, known: Identities) -> Scope:
    scope = _with_working_folder(scope, state)
    denied = list(scope.policy.denied_paths)
    for root in scope.roots:
        denied += [glob.escape(inside.replace(os.sep, "/")) for inside in state_places(root, state)]
    policy = scope.policy
    if denied != policy.denied_paths:
        policy = policy.model_copy(update={"denied_paths": denied})
    # Resolved once, here: a link that is changed later does not move the scope.
    resolved = [os.path.realpath(root) for root in scope.roots]
    refused = {
        place: why
        for place, root in zip(resolved, scope.roots, strict=True)
        if (why := roots.refusal(scope, root, known, config)) is not None
    }
    if resolved == scope.roots and policy is scope.policy and not refused:
        return scope
    return scope.model_copy(update={"roots": resolved, "policy": policy}).refusing(refused)

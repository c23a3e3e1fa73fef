"""Confinement of a program that the service knows, such as an agent: one working folder, and folders of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from computer_linker.computer.facets.files import Files
from computer_linker.computer.facets.processes import ProcessLimits
from computer_linker.errors import ProviderUnavailable
from computer_linker.model.paths import RootedPath
from computer_linker.model.scope import Scope, ScopePolicy
from computer_linker.policy.paths import check_name
from computer_linker.policy.writers import could_meet_narrower
from computer_linker.providers.sandbox.boundary import Confinement, Folder, SpawnPlan
from computer_linker.system import descriptor_path, os


class OwnPlace(NamedTuple):
    """A folder or file of a program, and the absolute path at which it sees it."""

    source: str
    path: str
    only_read: bool = False


@dataclass(frozen=True, slots=True)
class ProgramAccess:
    """What such a program may access besides what a command of the scope may read."""

    writes: bool
    """Whether the working folder may be written; everything else of the scope is read-only to it."""
    network: bool
    own: tuple[OwnPlace, ...] = ()
    """The program's own folders and files."""
    hides: tuple[str, ...] = ()
    """Folders of which it sees only what of its own lies there."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables the service sets, besides those a caller may set."""
    nests: bool = False
    """It creates its own sandbox."""
    through: tuple[str, ...] = ()
    """A wrapper of the service that starts the judged command, which follows as its arguments."""


def confinement_for(
    access: ProgramAccess,
    place: Confinement,
    cwd: RootedPath,
    others: tuple[Folder, ...],
    files: Files,
    held: list[int],
) -> Confinement:
    """The confinement: the working folder, writable if asked, the other folders read-only, and its own folders."""
    working = _working_folder(access, place.cwd, cwd, files, held)
    return replace(
        place,
        writable=(working,) if access.writes else (),
        readable=others if access.writes else (*others, working),
        own=own_folders(access, held),
        emptied=access.hides,
        nests=access.nests,
    )


def kept_apart(confinement: Confinement, scope: Scope, scopes: Sequence[Scope]) -> Confinement:
    """The confinement without UNIX sockets, where one could lead to a program whose sandbox closes other names."""
    folders = (*confinement.writable, *confinement.readable)
    # Of the folders above its working folder it holds nothing, and a command of the scope could pass them to it.
    is_narrow = any(folder.above for folder in folders)
    cut = is_narrow or (bool(confinement.writable) and could_meet_narrower(scope, scopes))
    return replace(confinement, cut_unix_sockets=cut)


def own_folders(access: ProgramAccess, held: list[int]) -> tuple[Folder, ...]:
    """The program's own folders, held by descriptor."""
    return tuple(Folder(_opened(place.source, held), place.path, only_read=place.only_read) for place in access.own)


def _working_folder(access: ProgramAccess, where: str, cwd: RootedPath, files: Files, held: list[int]) -> Folder:
    # Links in the path are resolved, so that the rules apply to the real path.
    top = os.path.realpath(cwd.root)
    above = Path(where).relative_to(top).parts if Path(where).is_relative_to(top) else cwd.parts
    check_name(replace(cwd, parts=above), for_writing=access.writes)
    fd = files.open_folder(cwd)
    held.append(fd)
    return Folder(fd, where, cwd.rules, above=above)


def _opened(path: str, held: list[int]) -> int:
    fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    held.append(fd)
    return fd


def real_path(fd: int, otherwise: str) -> str:
    """The real path of a held folder; `otherwise` where the kernel does not tell."""
    try:
        return descriptor_path(fd)
    except OSError:
        return os.path.realpath(otherwise)


def limits_of(policy: ScopePolicy) -> ProcessLimits:
    """The limits of one command; the launcher's defaults apply where the policy has none."""
    return ProcessLimits(
        processes=policy.max_processes,
        memory_bytes=None if policy.max_memory_mb is None else policy.max_memory_mb << 20,
        file_bytes=policy.max_file_mb << 20,
    )


def refuse_partial(plan: SpawnPlan, scope: Scope) -> None:
    """Refuse a command whose folder holds more than was scanned, where the scope requires a whole boundary."""
    if plan.is_partial and scope.policy.sandbox == "required":
        plan.release()
        raise ProviderUnavailable(
            "This scope runs commands only behind a whole boundary, and its folder holds too many folders to close every "
            "secret in them. Narrow the scope to a smaller folder, or set its `sandbox` to `auto`.",
            remedy="Narrow the scope to a smaller folder.",
        )

"""Finds a repository's commit hooks, which are run as commands of the scope, never by git."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from computer_linker.errors import LinkError, PathOutOfScope
from computer_linker.model.paths import RootedPath
from computer_linker.providers.git.run import GitRun
from computer_linker.providers.held import held
from computer_linker.system import descriptor_path

NAMES = ("pre-commit", "commit-msg", "post-commit")
_MESSAGE = "COMMIT_EDITMSG"


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks that exist, as paths from the top of the work tree, and the message file they may read."""

    top: str
    paths: dict[str, str]
    message: str


def find_hooks(run: GitRun, message: str) -> Hooks:
    """The hooks of a repository whose git folder and hooks lie in the scope; writes the message file for them."""
    repository = run.repository
    if repository.is_part:
        raise PathOutOfScope("The repository's hooks lie outside this scope, so they cannot be run.")
    folder = _folder(run)
    found: dict[str, str] = {}
    try:
        with held(folder) as place:
            for name in NAMES:
                if _is_program(name, place.fd):
                    found[name] = os.path.relpath(
                        "/".join(("", *place.path.parts, name)), "/" + "/".join(repository.above)
                    )
    except LinkError as error:
        if error.code != "not_found":
            raise PathOutOfScope("The repository's hooks lie outside this scope, so they cannot be run.") from error
    _write_message(repository.git, message)
    named = RootedPath(repository.place.root, repository.above, repository.place.rules, repository.place.prefix)
    return Hooks(named.shown, found, f"{repository.git_dir}/{_MESSAGE}")


def _folder(run: GitRun) -> RootedPath:
    repository = run.repository
    place = repository.place
    root = Path(os.path.realpath(place.root))
    output = run("config", "--local", "--includes", "--get", "core.hooksPath", allowed=(0, 1))
    chosen = os.fsdecode(output.out.rstrip(b"\n"))
    top = root.joinpath(*repository.above)
    common = descriptor_path(repository.common)
    wanted = Path(os.path.normpath(top / chosen)) if output.code == 0 and chosen else Path(common) / "hooks"
    try:
        parts = wanted.relative_to(root).parts
    except ValueError:
        raise PathOutOfScope("The repository's hooks lie outside this scope, so they cannot be run.") from None
    return RootedPath(place.root, parts, place.rules, place.prefix)


def _is_program(name: str, folder: int) -> bool:
    try:
        mode = os.lstat(name, dir_fd=folder).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)


def _write_message(git: int, message: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(_MESSAGE, flags, 0o644, dir_fd=git)
    try:
        os.write(fd, message.encode())
    finally:
        os.close(fd)

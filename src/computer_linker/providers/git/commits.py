"""Making a commit of what is staged, with hooks, signing and editors off, and reading it back."""

import getpass
import socket
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from computer_linker.errors import Conflict, ExecutionFailed, LinkError, PathOutOfScope
from computer_linker.model.paths import RootedPath
from computer_linker.providers.git.program import environment, needed_program
from computer_linker.providers.git.run import GitRun
from computer_linker.providers.git.staging import staged_names
from computer_linker.providers.held import held
from computer_linker.system import descriptor_path, os

COMMIT = ("commit", "--quiet", "--no-gpg-sign", "--no-status", "--no-post-rewrite", "--cleanup=whitespace", "--file=-")


@dataclass(slots=True)
class Committed:
    hash: str
    paths: list[str]
    hidden: int
    is_confirmed: bool
    invented_author: bool


@dataclass(slots=True)
class Draft:
    """A commit about to be made: what it will hold and who makes it."""

    parent: str
    names: list[bytes]
    author: dict[str, str]
    is_invented: bool


def draft(run: GitRun) -> Draft:
    """List what is staged. Raises Conflict when nothing is, or when something outside the scope is."""
    names = staged_names(run)
    if not names:
        raise Conflict("Nothing is staged. Name the files to git.stage first.")
    repository = run.repository
    if repository.is_part:
        prefix = os.fsencode("/".join(repository.below)) + b"/"
        if any(not name.startswith(prefix) for name in names):
            raise Conflict("Changes outside this scope are staged, and a commit would take them along.")
    author, is_invented = _author(run)
    return Draft(head(run), names, author, is_invented)


def commit(run: GitRun, message: str) -> Committed:
    """Commit what is staged; no hook runs."""
    planned = draft(run)
    repository = run.repository
    own = (repository.git, repository.common)
    run(*COMMIT, "--no-verify", stdin=message.encode(), writes=own, env=planned.author, files=True)
    return read_back(run, planned)


def read_back(run: GitRun, planned: Draft) -> Committed:
    """The commit that is the head now, compared with the planned one."""
    new = head(run)
    if not new or new == planned.parent:
        raise ExecutionFailed("Git reported success, but the head has not moved.")
    parents = run("rev-list", "--parents", "--max-count=1", new).out.decode("ascii", "replace").split()[1:]
    inside = [run.repository.inside(name) for name in planned.names]
    paths = [run.repository.shown(parts) for parts in inside if parts is not None]
    is_child = parents[:1] == ([planned.parent] if planned.parent else [])
    return Committed(new, paths, inside.count(None), is_child, planned.is_invented)


def head(run: GitRun) -> str:
    """The hash of the head; empty before the first commit."""
    return run("rev-parse", "--verify", "--quiet", "HEAD", allowed=(0, 1, 128)).out.decode("ascii", "replace").strip()


def _author(run: GitRun) -> tuple[dict[str, str], bool]:
    """The author: from the repository's settings, else the user's, else the account, which is then reported."""
    local = _names(run("config", "-z", "--get-regexp", r"^user\.(name|email)$", allowed=(0, 1)).out)
    person = {} if len(local) == 2 else _names(_person_settings())
    known = {**person, **local}
    is_invented = "user.name" not in known or "user.email" not in known
    account = _account() if is_invented else ""
    name = known.get("user.name", account)
    email = known.get("user.email", f"{account}@{socket.gethostname()}")
    made = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", name), ("EMAIL", email))
    }
    return made, is_invented


def _account() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A user id without a passwd entry, as in many containers.
        raise Conflict(
            "There is no name to commit under: the service's user has no account, and user.name and user.email are not set. "
            "Set both: git config user.name NAME; git config user.email ADDRESS",
            missing=["user.name", "user.email"],
        ) from None


def _person_settings() -> bytes:
    """The user's own settings file, which no repository can choose; only name and address are read from it."""
    home = os.path.expanduser("~")
    env = environment({"HOME": home, "XDG_CONFIG_HOME": f"{home}/.config"})
    del env["GIT_CONFIG_GLOBAL"]
    argv = [needed_program(), "config", "--global", "-z", "--get-regexp", r"^user\.(name|email)$"]
    try:
        return subprocess.run(argv, env=env, cwd="/", capture_output=True, timeout=10, stdin=subprocess.DEVNULL).stdout
    except (OSError, subprocess.SubprocessError):
        return b""


def _names(out: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for record in out.decode("utf-8", "replace").split("\0"):
        key, _, value = record.partition("\n")
        if value.strip():
            found[key] = value.strip()
    return found


# Finds a repository's commit hooks, which are run as commands of the scope, never by git.

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
    found = _programs(run)
    _write_message(repository.git, message)
    named = RootedPath(repository.place.root, repository.above, repository.place.rules, repository.place.prefix)
    return Hooks(named.shown, found, f"{repository.git_dir}/{_MESSAGE}")


def may_have_hooks(run: GitRun) -> bool:
    """False for a repository without commit hooks; True also where they lie outside the scope."""
    try:
        return bool(_programs(run))
    except PathOutOfScope:
        return True


def _programs(run: GitRun) -> dict[str, str]:
    """The hooks by name, as paths from the top of the work tree. Raises PathOutOfScope for a folder outside the scope."""
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
    return found


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

"""Stages, unstages and reads back paths of the index."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from computer_linker.errors import Conflict, NotFound
from computer_linker.providers.git.run import GitRun
from computer_linker.system import os

_LIST = ("ls-files", "-z", "--modified", "--others", "--deleted", "--exclude-standard", "--")
_STAGED = (
    "diff",
    "--cached",
    "--name-only",
    "-z",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=all",
)
_RAW = (*(part for part in _STAGED if part != "--name-only"), "--raw", "--no-abbrev")


@dataclass(slots=True)
class Staged:
    """Paths that were staged or unstaged, what was left out, and whether reading back confirms it."""

    paths: list[str] = field(default_factory=list)
    hidden: int = 0
    nested: int = 0
    is_confirmed: bool = True


def stage(run: GitRun, wanted: list[tuple[str, ...]]) -> Staged:
    """Stage what differs below the given paths, deletions included."""
    repository = run.repository
    found = Staged()
    specs = [repository.spec(parts) for parts in wanted]
    names = _unique(run(*_LIST, *specs, files=True).out)
    _check_known(run, wanted, names)
    chosen = _shown_only(run, names, found)
    _refuse_filtered(run, chosen)
    own = (repository.git, repository.common)
    if chosen:
        run("add", "--all", *_FROM_STDIN, stdin=_as_specs(chosen), writes=own, no_links=True)
        left = set(_unique(run(*_LIST, *specs, files=True).out))
        found.is_confirmed = not left & set(chosen)
    return found


def unstage(run: GitRun, wanted: list[tuple[str, ...]]) -> Staged:
    """Unstage what is staged below the given paths; files are unchanged."""
    repository = run.repository
    found = Staged()
    specs = [repository.spec(parts) for parts in wanted]
    chosen = _shown_only(run, _unique(run(*_STAGED, "--", *specs, files=True).out), found)
    if chosen:
        has_commits = run("rev-parse", "--verify", "--quiet", "HEAD", allowed=(0, 1, 128)).code == 0
        how = ("reset", "--quiet") if has_commits else ("rm", "--cached", "--quiet", "-r", "--force")
        own = (repository.git, repository.common)
        run(*how, *_FROM_STDIN, stdin=_as_specs(chosen), writes=own, allowed=(0, 1), files=True)
        left = set(_unique(run(*_STAGED, "--", *specs, files=True).out))
        found.is_confirmed = not left & set(chosen)
    return found


def staged_names(run: GitRun) -> list[bytes]:
    """Everything staged in the whole repository, from its top."""
    return _unique(run(*_STAGED, files=True).out)


def staged_blobs(run: GitRun) -> list[str]:
    """Everything staged, one line per file: its action, its new blob and its name."""
    fields = run(*_RAW, files=True).out.decode("utf-8", "surrogateescape").split("\0")
    found = []
    for facts, name in zip(fields[0::2], fields[1::2], strict=False):
        old_mode, new_mode, _, blob, status = facts.lstrip(":").split(" ")
        mode = "" if old_mode == new_mode else f" mode {new_mode}"
        found.append(f"{status} {name} {blob}{mode}".encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return sorted(found)


def unstaged_names(run: GitRun, wanted: list[tuple[str, ...]]) -> list[str]:
    """The files below the given paths that differ from the index, as the scope shows them."""
    found = Staged()
    _shown_only(run, _unique(run(*_LIST, *(run.repository.spec(parts) for parts in wanted), files=True).out), found)
    return found.paths


_FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")


def _as_specs(names: Iterable[bytes]) -> bytes:
    return b"".join(b":(top,literal)" + name + b"\0" for name in names)


def _unique(out: bytes) -> list[bytes]:
    return sorted({name for name in out.split(b"\0") if name})


def _shown_only(run: GitRun, names: list[bytes], found: Staged) -> list[bytes]:
    chosen: list[bytes] = []
    for name in names:
        parts = run.repository.inside(name)
        if parts is None:
            found.hidden += 1
        elif name.endswith(b"/"):
            # A repository inside this one: staging it would record a link to a commit that other clones lack.
            found.nested += 1
        else:
            chosen.append(name)
            found.paths.append(run.repository.shown(parts))
    return chosen


def _check_known(run: GitRun, wanted: list[tuple[str, ...]], names: list[bytes]) -> None:
    for parts in wanted:
        path = os.fsencode("/".join(parts))
        if not path or any(name == path or name.startswith(path + b"/") or name == path + b"/" for name in names):
            continue
        try:
            os.lstat(path, dir_fd=run.repository.top)
        except OSError:
            raise NotFound("A path neither exists nor is known to git.", path="/".join(parts)) from None


def _refuse_filtered(run: GitRun, names: list[bytes]) -> None:
    """Refuse files with content filters, such as Git LFS: filters are not run, and unfiltered content would be wrong."""
    if not names:
        return
    fields = run("check-attr", "-z", "--stdin", "filter", stdin=b"\0".join(names) + b"\0", files=True).out.split(b"\0")
    for at in range(0, len(fields) - 2, 3):
        if fields[at + 2] not in (b"unspecified", b"unset", b""):
            raise Conflict(
                "A file here is stored through a content filter, which this service does not run. Stage it with git itself.",
                path=fields[at].decode("utf-8", "backslashreplace"),
                filter=fields[at + 2].decode("utf-8", "replace")[:80],
            )

"""Diffs limited to what the scope shows. Patch and file list come from the same run, so they always agree."""

from dataclasses import dataclass

from computer_linker.errors import Conflict, LimitExceeded
from computer_linker.providers.git.run import GitOutput, GitRun

_NAMES_ROOM = 4 << 20
_MAX_HIDDEN = 500
_TRIES = 3
_ALWAYS = (
    "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--ignore-submodules=all", "--submodule=short",
    "--find-renames", "--src-prefix=a/", "--dst-prefix=b/", "--no-indent-heuristic", "-O/dev/null", "--raw", "-z", "--patch",
)  # fmt: skip


@dataclass(slots=True)
class FileDiff:
    """One changed file of a diff; `action` is git's letter."""

    path: str
    action: str
    renamed_from: str | None = None


@dataclass(slots=True)
class Diff:
    """A patch, truncated at a line where it was too long, and its files."""

    patch: str
    is_cut: bool
    files: list[FileDiff]
    hidden: int


def diff(run: GitRun, ends: list[str], specs: list[tuple[str, ...]], *, max_bytes: int, context: int) -> Diff:
    """The difference between two ends (options, then hashes), without files the scope hides."""
    repository = run.repository
    excluded: list[bytes] = []
    wanted = [repository.spec(spec) for spec in specs] or [repository.spec(repository.view)]
    for _ in range(_TRIES):
        leave_out = [":(top,exclude,literal)" + path.decode("utf-8", "surrogateescape") for path in excluded]
        # Files also for two commits: git takes their attributes from the work tree, and contents from it where they are the same.
        output = run(
            "diff", *_ALWAYS, f"--unified={context}", *ends, "--", *wanted, *leave_out,
            limit=max_bytes + _NAMES_ROOM, no_links=True,
        )  # fmt: skip
        records, patch = _split(output)
        files, hidden = _files(run, records)
        if not hidden:
            text, is_cut = _cut(patch, max_bytes, is_cut=output.is_cut)
            return Diff(text, is_cut, files, len(excluded))
        excluded += hidden
        if len(excluded) > _MAX_HIDDEN:
            raise LimitExceeded("Too many changed files are hidden in this scope to leave each of them out.")
    raise Conflict("The work tree changes faster than it can be read. Try again.")


def _split(output: GitOutput) -> tuple[list[bytes], bytes]:
    """The raw records, and the patch after them. An empty record separates the two."""
    if not output.out.startswith(b":"):
        return [], b""
    raw, between, patch = output.out.partition(b"\0\0")
    if not between:
        # Only names: a mode change, a file without a text diff, or more names than fit.
        if output.is_cut:
            raise LimitExceeded("More files changed than fit into one answer; name some paths.")
        return output.out.rstrip(b"\0").split(b"\0"), b""
    return raw.split(b"\0"), patch


def _files(run: GitRun, records: list[bytes]) -> tuple[list[FileDiff], list[bytes]]:
    files: list[FileDiff] = []
    hidden: list[bytes] = []
    at = 0
    while at < len(records):
        letter = records[at].rsplit(b" ", 1)[-1][:1].decode("ascii", "replace")
        count = 2 if letter in "RC" else 1
        paths = records[at + 1 : at + 1 + count]
        at += 1 + count
        inside = [run.repository.inside(path) for path in paths]
        hidden += [path for path, parts in zip(paths, inside, strict=True) if parts is None]
        shown = [run.repository.shown(parts) for parts in inside if parts is not None]
        if len(shown) == count:
            files.append(FileDiff(shown[-1], letter, shown[0] if count == 2 else None))
    return files, hidden


def _cut(patch: bytes, max_bytes: int, *, is_cut: bool) -> tuple[str, bool]:
    if len(patch) > max_bytes:
        patch, is_cut = patch[:max_bytes], True
        patch = patch[: patch.rfind(b"\n") + 1] or patch
    return patch.decode("utf-8", "replace"), is_cut

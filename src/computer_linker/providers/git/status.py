"""Parses git status (porcelain v2), unusual names included."""

from dataclasses import dataclass, field

from computer_linker.providers.git.run import GitRun


@dataclass(slots=True)
class Entry:
    """One changed path; `index` and `worktree` are git's letters, `?` untracked, `U` unmerged, `.` unchanged."""

    path: str
    index: str
    worktree: str
    renamed_from: str | None = None


@dataclass(slots=True)
class Status:
    """A branch and what differs from it; `hidden` counts paths that this scope does not show."""

    branch: str | None = None
    head: str | None = None
    upstream: str | None = None
    ahead: int | None = None
    behind: int | None = None
    entries: list[Entry] = field(default_factory=list)
    hidden: int = 0
    ignored: int = 0
    """Ignored paths; a folder that is ignored as a whole is one."""
    insertions: int = 0
    deletions: int = 0
    is_cut: bool = False


_MAX_OUTPUT = 8 << 20
_FIELDS = {b"1": 8, b"2": 9, b"u": 10, b"?": 1, b"!": 1}
"""The number of fields before the path, by the kind of line."""


def status(run: GitRun) -> Status:
    """The state of the view's part of the work tree."""
    repository = run.repository
    args = [
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        "--untracked-files=normal",
        "--ignore-submodules=all",
        "--ignored=matching",
        "--renames",
    ]
    if repository.view:
        args += ["--", repository.spec(repository.view)]
    output = run(*args, limit=_MAX_OUTPUT, files=True)
    found = Status(is_cut=output.is_cut)
    records = output.out.split(b"\0")
    # The last piece is empty or truncated.
    records.pop()
    at = 0
    while at < len(records):
        record = records[at]
        at += 1
        if record.startswith(b"# "):
            _header(found, record[2:].decode("utf-8", "replace"))
            continue
        source = None
        if record.startswith(b"2 "):
            source = records[at] if at < len(records) else b""
            at += 1
        _add(found, run, record, source)
    if any(entry.index != "?" for entry in found.entries):
        found.insertions, found.deletions = _changed_lines(run, found.head)
    return found


def _changed_lines(run: GitRun, head: str | None) -> tuple[int, int]:
    """Lines added and deleted since the last commit, staged or not, in the files this scope shows; binary files have none."""
    repository = run.repository
    since = "--cached" if head is None else head
    options = ("--numstat", "-z", "--find-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
    out = run("diff", *options, since, "--", repository.spec(repository.view), limit=_MAX_OUTPUT, files=True).out
    added = deleted = 0
    records = iter(out.split(b"\0"))
    for record in records:
        plus, _, rest = record.partition(b"\t")
        minus, _, path = rest.partition(b"\t")
        # A renamed file's two names follow as records of their own.
        paths = [path] if path else [next(records, b""), next(records, b"")]
        if plus.isdigit() and minus.isdigit() and all(repository.inside(one) is not None for one in paths):
            added, deleted = added + int(plus), deleted + int(minus)
    return added, deleted


def _header(found: Status, line: str) -> None:
    name, _, value = line.partition(" ")
    match name:
        case "branch.oid":
            found.head = None if value == "(initial)" else value
        case "branch.head":
            found.branch = None if value == "(detached)" else value
        case "branch.upstream":
            found.upstream = value
        case "branch.ab":
            ahead, _, behind = value.partition(" ")
            found.ahead, found.behind = int(ahead), -int(behind)


def _add(found: Status, run: GitRun, record: bytes, source: bytes | None) -> None:
    kind = record[:1]
    count = _FIELDS.get(kind)
    if count is None:
        return
    fields = record.split(b" ", count)
    if len(fields) <= count:
        return
    repository = run.repository
    parts = repository.inside(fields[count])
    origin = None if source is None else repository.inside(source)
    if parts is None or (source is not None and origin is None):
        found.hidden += kind != b"!"
        return
    if kind == b"!":
        found.ignored += 1
        return
    letters = "??" if kind == b"?" else fields[1].decode("ascii", "replace")
    path = repository.shown(parts) + ("/" if fields[count].endswith(b"/") else "")
    found.entries.append(Entry(path, letters[0], letters[1], None if origin is None else repository.shown(origin)))

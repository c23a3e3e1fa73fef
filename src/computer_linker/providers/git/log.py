"""History: commits as fields, with separators that cannot occur in them."""

from dataclasses import dataclass

from computer_linker.providers.git.heads import history_key
from computer_linker.providers.git.run import GitRun

_FORMAT = "--format=tformat:%H%x00%P%x00%an%x00%ae%x00%aI%x00%s"
_FIELDS = 6
_ALWAYS = (
    "--no-show-signature",
    "--no-decorate",
    "--no-color",
    "--no-notes",
    "--no-mailmap",
    "--no-ext-diff",
    "--no-textconv",
)


@dataclass(slots=True)
class Commit:
    hash: str
    parents: list[str]
    author: str
    email: str
    date: str
    subject: str


def log(run: GitRun, start: str | None, specs: list[tuple[str, ...]], limit: int) -> list[Commit]:
    """Commits that touch the view, newest first. Cached while the head is unchanged."""
    repository = run.repository
    wanted = [repository.spec(spec) for spec in specs or [repository.view]] if specs or repository.view else []
    args = ["log", "-z", f"--max-count={limit}", *_ALWAYS, "--no-patch", _FORMAT]
    if start is not None:
        args += ["--end-of-options", start]
    if wanted:
        args += ["--", *wanted]
    key = history_key(repository) if start is None else None
    return run.memory.recall(None if key is None else (key, *args), lambda: _commits(run(*args).out))


def one(run: GitRun, commit: str) -> Commit:
    """One commit by its hash."""
    return _commits(run("log", "-z", "--max-count=1", *_ALWAYS, "--no-patch", _FORMAT, "--end-of-options", commit).out)[
        0
    ]


def message(run: GitRun, commit: str) -> str:
    """The body below the subject."""
    output = run(
        "log", "--max-count=1", *_ALWAYS, "--no-patch", "--format=tformat:%b", "--end-of-options", commit, limit=65_536
    )
    return output.out.decode("utf-8", "replace").strip()


def _commits(out: bytes) -> list[Commit]:
    fields = out.decode("utf-8", "replace").split("\0")
    found: list[Commit] = []
    for at in range(0, len(fields) - _FIELDS + 1, _FIELDS):
        name, parents, author, email, date, subject = fields[at : at + _FIELDS]
        found.append(Commit(name, parents.split(), author, email, date, subject))
    return found

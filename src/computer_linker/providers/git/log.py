"""History: commits as fields, with separators that cannot occur in them."""

import re
from dataclasses import dataclass

from computer_linker.errors import InvalidRequest, NotFound
from computer_linker.providers.git.repository import history_key
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


# Resolves callers' names of commits and branches to hashes before git uses them elsewhere.

_REF = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_./@{}~^+#=-]{0,250}")
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+#=-]{0,200}")
EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The hash of a tree without files, by the length of the repository's hashes."""


def commit_hash(run: GitRun, ref: str) -> str:
    """The hash of the commit a caller named. Raises InvalidRequest for an option or a range, NotFound for no commit."""
    check_ref(ref)
    output = run(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", limit=1024, allowed=(0, 1, 128)
    )
    found = output.out.decode("ascii", "replace").strip()
    if output.code != 0 or re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", found) is None:
        raise NotFound("There is no such commit.", ref=ref)
    return found


def check_ref(ref: str) -> None:
    """Refuse what is not the plain name of one commit."""
    if _REF.fullmatch(ref) is None or ".." in ref or "@{-" in ref or "{/" in ref:
        raise InvalidRequest("A ref is the name of one commit: a branch, a tag, a hash, HEAD~2.", field="ref")


def check_branch(run: GitRun, branch: str) -> None:
    """Refuse what is not a plain branch name."""
    if _BRANCH.fullmatch(branch) is None or ".." in branch or branch.endswith((".lock", "/", ".")):
        raise InvalidRequest("The branch name is not valid.", field="branch")
    if run("check-ref-format", "--branch", branch, allowed=(0, 1, 128)).code != 0:
        raise InvalidRequest("The branch name is not valid.", field="branch")

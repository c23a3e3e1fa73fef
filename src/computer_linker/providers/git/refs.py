"""Resolves callers' names of commits and branches to hashes before git uses them elsewhere."""

import re

from computer_linker.errors import InvalidRequest, NotFound
from computer_linker.providers.git.run import GitRun

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

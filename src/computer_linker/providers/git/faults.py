"""What git says when it fails, as the failures a client can see. Its messages are fixed English: the locale is ours."""

import re

from computer_linker.errors import AlreadyExists, Conflict, ExecutionFailed, InvalidRequest, LinkError, NotFound

_TABLE: tuple[tuple[str, type[LinkError], str], ...] = (
    (r"index\.lock|\.lock': File exists|cannot lock ref", Conflict, "Another git process holds the repository's lock."),
    (
        r"bad signature|index file corrupt|index file smaller|bad index file|unknown index entry format|index uses",
        ExecutionFailed,
        "The repository's index is damaged. Removing .git/index and resetting rebuilds it.",
    ),
    (r"bad config|bad numeric config|bad boolean config", ExecutionFailed, "The repository's config file is damaged."),
    (r"not a git repository|invalid gitfile", NotFound, "The folder is not a usable git repository."),
    (
        r"bad revision|unknown revision|Needed a single revision|bad object|ambiguous argument|not a valid object name",
        NotFound,
        "There is no such commit.",
    ),
    (r"does not have any commits yet", NotFound, "The branch has no commits yet."),
    (r"nothing to commit|nothing added to commit|no changes added", Conflict, "Nothing is staged."),
    (r"is already checked out|already used by worktree", Conflict, "The branch is checked out in another work tree."),
    (r"already exists", AlreadyExists, "It exists already."),
    (r"did not match any file", NotFound, "A path is not known to git."),
    (r"beyond a symbolic link", InvalidRequest, "A path leads through a link."),
    (r"not a valid branch name|not a valid ref", InvalidRequest, "The branch name is not valid."),
    (
        r"you need to resolve|not possible because you have unmerged|unmerged",
        Conflict,
        "There are unresolved conflicts.",
    ),
    (
        r"object file .* is empty|loose object .* is corrupt|inflate|packfile .* cannot",
        ExecutionFailed,
        "Objects are damaged.",
    ),
    (
        r"unknown repository extension|Expected git repo version",
        ExecutionFailed,
        "This git is too old for the repository.",
    ),
)


def fault_of(err: str, code: int) -> LinkError:
    """The failure that git's own words mean. No path of this machine and no output is repeated."""
    for pattern, kind, sentence in _TABLE:
        if re.search(pattern, err, re.IGNORECASE):
            return kind(sentence)
    if code < 0:
        return ExecutionFailed("Git was ended by a signal.", signal=-code)
    return ExecutionFailed("Git failed.", exitCode=code, reason=_first_line(err))


def _first_line(err: str) -> str:
    lines = [line for line in err.splitlines() if line.startswith(("fatal:", "error:"))]
    # Absolute paths are this machine's business.
    return re.sub(r"(?<![\w.])/[^\s'\"]*", "…", lines[0])[:200] if lines else ""

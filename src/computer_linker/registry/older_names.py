"""The older operation names: the current operation of each, and the older names of its fields."""

from dataclasses import dataclass, field
from typing import Any, Literal

Permission = Literal["read", "write", "shell", "codex", "screen"]


@dataclass(frozen=True, slots=True)
class Older:
    """One older operation."""

    op: str
    permission: Permission
    target: tuple[str, ...] = ("path",)
    """The fields that named its target; the first one given is used."""
    renamed: dict[str, str] = field(default_factory=dict)
    input: dict[str, Any] = field(default_factory=dict)
    """Input implied by the older name."""


FIELDS: dict[str, dict[str, str]] = {
    "file.search": {"before": "contextBefore", "after": "contextAfter", "caseSensitive": "!ignoreCase"},
    "file.find": {"limit": "maxResults"},
}
"""Other names of options under the operation's own name; `!` takes the opposite of a flag."""

_SEARCH = {"pattern": "query", **FIELDS["file.search"]}
_CWD = ("cwd", "path")
_PROCESS = ("processId", "id")
_LIMIT = {"maxResults": "limit"}

OLDER: dict[str, Older] = {
    "read": Older("file.read", "read"),
    "read_many": Older("file.read_many", "read", ()),
    "ls": Older("file.list", "read"),
    "list": Older("file.list", "read"),
    "tree": Older("file.tree", "read"),
    "stat": Older("file.stat", "read"),
    "path_info": Older("file.stat", "read"),
    "find_files": Older("file.find", "read", renamed={"query": "pattern", "glob": "pattern"}),
    "glob": Older("file.find", "read", renamed={"glob": "pattern"}),
    "search_text": Older("file.search", "read", renamed=_SEARCH),
    "grep": Older("file.search", "read", renamed=_SEARCH),
    "search_symbols": Older("code.search_symbols", "read"),
    "instructions": Older("code.context", "read"),
    "agent_skills": Older("code.context", "read"),
    "coding_context": Older("code.context", "read"),
    "project_overview": Older("code.context", "read"),
    "write": Older("file.write", "write"),
    "write_if_unchanged": Older("file.write", "write", renamed={"expectedSha256": "ifSha256", "sha256": "ifSha256"}),
    "create_file": Older("file.create", "write"),
    "edit": Older("file.patch", "write"),
    "patch": Older("file.patch", "write", renamed={"expectedSha256": "ifSha256"}),
    "mkdir": Older("file.mkdir", "write", renamed={"recursive": "parents"}),
    "move": Older("file.move", "write", ("path", "from"), {"to": "destination", "targetPath": "destination"}),
    "delete": Older("file.delete", "write"),
    "change_summary": Older("git.status", "read"),
    "repo_status": Older("git.status", "read"),
    "git_changes": Older("git.status", "read"),
    "git_diff": Older("git.diff", "read"),
    "git_log": Older("git.log", "read", renamed=_LIMIT),
    "git_show": Older("git.show", "read", renamed={"object": "ref", "commit": "ref"}),
    "git_stage": Older("git.stage", "write"),
    "git_unstage": Older("git.unstage", "write"),
    "git_commit": Older("git.commit", "write"),
    "git_worktree_list": Older("git.worktree_list", "read"),
    "git_worktree_create": Older("git.worktree_create", "write", ("repo", "cwd"), {"targetPath": "path"}),
    "command": Older("command.run", "shell", _CWD),
    "shell": Older("command.run", "shell", _CWD),
    "package_run": Older("package.run", "shell", _CWD),
    "package_start": Older("package.start", "shell", _CWD),
    "process_start": Older("command.start", "shell", _CWD),
    "process_list": Older("command.list", "shell", ()),
    "process_read": Older("command.read", "shell", _PROCESS),
    "process_stop": Older("command.stop", "shell", _PROCESS),
    "codex": Older("codex.run", "codex", _CWD),
    "codex_start": Older("codex.start", "codex", _CWD),
    "codex_runs": Older("codex.list", "codex", ("id", "runId", "sessionId"), _LIMIT),
    **{
        f"codex_{workflow}": Older("codex.run", "codex", _CWD, input={"workflow": workflow})
        for workflow in ("plan", "review", "fix", "test", "continue")
    },
    "screen_status": Older("screen.list", "screen", ()),
    "screen_list": Older("screen.list", "screen", ()),
    "screen_capture": Older("screen.capture", "screen", ("display", "displayId")),
    "screen_capture_window": Older("screen.capture_window", "screen", ("window", "windowId")),
    "screen_capture_process": Older("screen.capture_process", "screen", ("process", "processId", "pid")),
    "history": Older("history.last", "read", ()),
    "history_insight": Older("history.last", "read", ()),
    "explain_operation": Older("computer.explain", "read", ()),
    "batch": Older("batch.run", "read", ()),
}

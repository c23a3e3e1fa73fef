"""Defaults of set-up, and the execution policy it adds when commands are allowed."""

from typing import Any

READ = ("fs:read", "search:read", "git:read", "history:read", "artifact:read")
WRITE = ("fs:write", "artifact:write")
GIT = ("git:write",)
SHELL = ("command:run", "process:manage", "package:run")
CODEX = ("codex:run",)
SCREEN = ("screen:capture",)
EXECUTES = frozenset({"command:run", "package:run", "codex:run"})
"""Capabilities that start programs, and so need an allow list."""

BOOTSTRAP_SCOPE = "current"
"""The scope an unconfigured older service exposed; set-up with a folder removes it."""

_ALLOWED = (
    "npm *", "npx *", "pnpm *", "yarn *", "bun *", "node *", "python *", "python3 *", "pytest *", "uv *", "make *",
    "cargo *", "go *", "git *", "codex *", "claude *", "agent-browser *",
)  # fmt: skip
_DENIED = ("rm -rf *", "del /s *", "rmdir /s *", "format *", "shutdown *", "npm publish *", "git push *")


def execution_policy(*, shell: bool = False) -> dict[str, Any]:
    """Project commands only, with finite time and output, inside the kernel boundary where one is available.

    `shell`: lines of shell with these programs too, which run inside that boundary alone.
    """
    return {
        **({"allowShell": True} if shell else {}),
        "maxRuntimeSeconds": 1800,
        "maxOutputBytes": 200_000,
        "allowedCommands": list(_ALLOWED),
        "deniedCommands": list(_DENIED),
        "sandbox": "auto",
        "network": False,
    }

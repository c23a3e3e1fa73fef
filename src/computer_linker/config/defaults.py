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
    "cargo *", "go *", "git *",
)  # fmt: skip
_DENIED = ("rm -rf *", "del /s *", "rmdir /s *", "format *", "shutdown *", "npm publish *", "git push *")


CODEX_RULE = "codex *"
"""What `codex:run` needs in a list of allowed commands."""


def execution_policy(*, shell: bool = False, codex: bool = False) -> dict[str, Any]:
    """Project commands only, with finite time and output, inside the kernel boundary where one is available.

    `shell`: lines of shell with these programs too, which run inside that boundary alone. `codex`: the Codex CLI too.
    """
    return {
        **({"allowShell": True} if shell else {}),
        "maxRuntimeSeconds": 1800,
        "maxOutputBytes": 200_000,
        "allowedCommands": [*_ALLOWED, *([CODEX_RULE] if codex else [])],
        "deniedCommands": list(_DENIED),
        "sandbox": "auto",
        "network": False,
    }


def pattern_of(rule: str | dict[str, Any]) -> str:
    """The pattern of a command rule, which may carry examples."""
    return rule if isinstance(rule, str) else str(rule["pattern"])


def policy_of(scope: dict[str, Any]) -> dict[str, Any]:
    """A copy of the scope's policy, to add to.

    Without a policy only programs that read run, and a policy without a list lets every command run in the sandbox. So the
    first policy of a scope that runs commands has an empty list, which allows as little.
    """
    if "policy" in scope:
        return dict(scope["policy"])
    return {"allowedCommands": []} if EXECUTES & set(scope.get("capabilities", [])) else {}


def needs_list(scope: dict[str, Any]) -> bool:
    """Whether a scope runs commands by a policy that has no list of them: every command would run in the sandbox."""
    runs = bool(EXECUTES & set(scope.get("capabilities", [])))
    return runs and "policy" in scope and scope["policy"].get("allowedCommands") is None


def with_execution(policy: dict[str, Any], *, shell: bool = False, codex: bool = False) -> dict[str, Any]:
    """The policy with the execution policy for what it leaves open; its denied commands come after the default ones."""
    said = {name: value for name, value in policy.items() if value is not None}
    more = [rule for rule in said.get("deniedCommands", []) if rule not in _DENIED]
    return {**execution_policy(shell=shell, codex=codex), **said, "deniedCommands": [*_DENIED, *more]}

"""The older form of the file (`workspaces` with boolean permissions) as scopes. Migration adds no right."""

import re
from pathlib import Path
from typing import Any

from computer_linker.errors import ConfigInvalid, Problem

_FLAGS: dict[str, tuple[str, ...]] = {
    "read": ("fs:read", "search:read", "git:read", "history:read"),
    "write": ("fs:write", "git:write"),
    "shell": ("command:run", "process:manage", "package:run"),
    "codex": ("codex:run",),
    "screen": (),
}
"""What each flag becomes in a folder scope. `screen` is not about folders: it becomes a separate computer scope."""

_WORKSPACE_FIELDS = {"id", "name", "path", "permissions", "policy", *_FLAGS}
_POLICY_NAMES = {
    "allowShellMetacharacters": "allowShell",
    "allowSensitivePathWrites": None,
    "allowSensitivePathMetadata": None,
}
"""Renamed policy fields; None is dropped, because what it allowed is no longer allowed."""
_OBSOLETE = ("publicMcpOnly",)
"""Settings whose value is now the only behaviour: a public name reaches `/mcp` and nothing else."""
_SCREEN_SCOPE = {"id": "screen", "name": "Screen", "type": "computer", "capabilities": ["screen:capture"]}


def is_legacy(document: dict[str, Any]) -> bool:
    """True for a file that still has `workspaces`."""
    return "workspaces" in document


def modernised(document: dict[str, Any]) -> dict[str, Any]:
    """The same rights in the present form. Raises ConfigInvalid, naming the field, for what cannot be read."""
    if not is_legacy(document):
        return document
    workspaces = document["workspaces"]
    if not isinstance(workspaces, list):
        raise _invalid("workspaces", "should be a list")
    scopes = [_scope(index, workspace) for index, workspace in enumerate(workspaces)]
    if any(_permissions(index, workspace)["screen"] for index, workspace in enumerate(workspaces)):
        taken = {scope["id"] for scope in scopes}
        scopes.append(_SCREEN_SCOPE if "screen" not in taken else {**_SCREEN_SCOPE, "id": "computer-screen"})
    kept = {name: value for name, value in document.items() if name not in ("workspaces", *_OBSOLETE)}
    return {**kept, "scopes": [*scopes, *document.get("scopes", [])]}


def _scope(index: int, workspace: Any) -> dict[str, Any]:
    place = f"workspaces.{index}"
    if not isinstance(workspace, dict):
        raise _invalid(place, "should be an object")
    for field in workspace:
        if field not in _WORKSPACE_FIELDS:
            raise _invalid(f"{place}.{field}", "there is no such field")
    path = workspace.get("path")
    if not isinstance(path, str) or not path:
        raise _invalid(f"{place}.path", "is needed")
    flags = _permissions(index, workspace)
    name = workspace.get("name", "")
    scope: dict[str, Any] = {
        "id": workspace.get("id") or _slug(name or Path(path).name),
        "name": name,
        "type": "folder",
        "roots": [str(Path(path).expanduser())],
        "capabilities": [capability for flag, gives in _FLAGS.items() if flags[flag] for capability in gives],
    }
    if "policy" in workspace:
        scope["policy"] = _policy(f"{place}.policy", workspace["policy"])
    return scope


def _permissions(index: int, workspace: dict[str, Any]) -> dict[str, bool]:
    """The flags, given in `permissions` or beside the path; one that is not there is false."""
    place = f"workspaces.{index}.permissions"
    inner = workspace.get("permissions", {})
    if not isinstance(inner, dict):
        raise _invalid(place, "should be an object")
    for flag in inner:
        if flag not in _FLAGS:
            raise _invalid(f"{place}.{flag}", "there is no such permission")
    flags: dict[str, bool] = {}
    for flag in _FLAGS:
        value = inner.get(flag, workspace.get(flag, False))
        if not isinstance(value, bool):
            raise _invalid(f"{place}.{flag}", "should be true or false")
        flags[flag] = value
    return flags


def _policy(place: str, policy: Any) -> dict[str, Any]:
    if not isinstance(policy, dict):
        raise _invalid(place, "should be an object")
    kept: dict[str, Any] = {}
    for name, value in policy.items():
        new = _POLICY_NAMES.get(name, name)
        if new is not None:
            kept[new] = value
    return kept


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:64] or "workspace"


def _invalid(field: str, problem: str) -> ConfigInvalid:
    parts = tuple(int(part) if part.isdigit() else part for part in field.split("."))
    return ConfigInvalid.of([Problem(parts, problem, "older")], "correct that field; nothing was changed")

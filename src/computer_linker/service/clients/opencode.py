"""opencode: its own opencode.json, or opencode.jsonc where there is one."""

from pathlib import Path
from typing import Any

from computer_linker.service.clients.form import Client, Connection, Stdio, User, bearer
from computer_linker.service.clients.jsonc import Jsonc


def _file(user: User) -> Path:
    folder = Path(user.environment.get("XDG_CONFIG_HOME") or user.home / ".config") / "opencode"
    with_comments = folder / "opencode.jsonc"
    return with_comments if with_comments.exists() else folder / "opencode.json"


def _entry(connection: Connection) -> dict[str, Any]:
    if isinstance(connection, Stdio):
        entry: dict[str, Any] = {"type": "local", "command": connection.command, "enabled": True}
        return entry | ({"environment": connection.environment} if connection.environment else {})
    entry = {"type": "remote", "url": connection.url, "enabled": True}
    return entry | ({"headers": bearer(connection), "oauth": False} if connection.token is not None else {})


CLIENT = Client(
    name="opencode",
    title="opencode",
    programs=("opencode",),
    file=_file,
    document=Jsonc(),
    container=("mcp",),
    entry=_entry,
    sign_in="Sign in: opencode mcp auth computer-linker",
)

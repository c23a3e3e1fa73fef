"""Codex: a table in config.toml. It takes a token from an environment variable, never from the file."""

from pathlib import Path
from typing import Any

from computer_linker.service.clients.form import TOKEN_VARIABLE, Client, Connection, Stdio, User
from computer_linker.service.clients.toml_tables import Toml


def _file(user: User) -> Path:
    return Path(user.environment.get("CODEX_HOME") or user.home / ".codex") / "config.toml"


def _entry(connection: Connection) -> dict[str, Any]:
    if isinstance(connection, Stdio):
        # Required: Codex waits for us. Else a first turn that begins before the service is up has none of our tools.
        entry: dict[str, Any] = {"command": connection.command[0], "args": connection.command[1:], "required": True}
        return entry | ({"env": connection.environment} if connection.environment else {})
    return {"url": connection.url} | ({"bearer_token_env_var": TOKEN_VARIABLE} if connection.token is not None else {})


CLIENT = Client(
    name="codex",
    title="Codex",
    programs=("codex",),
    file=_file,
    document=Toml(),
    container=("mcp_servers",),
    entry=_entry,
    sign_in="Sign in: codex mcp login computer-linker --scopes linker:read,linker:write",
)

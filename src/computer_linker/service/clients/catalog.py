"""The supported clients: where each keeps its settings, and the form of our entry there."""

import os
from pathlib import Path
from typing import Any

from computer_linker.service.clients.form import (
    NAME,
    TOKEN_VARIABLE,
    Client,
    Connection,
    Http,
    Rules,
    Stdio,
    User,
    headers_of,
    plain_entry,
)
from computer_linker.service.clients.jsonc import CannotEdit, Toml
from computer_linker.system import NAME as SYSTEM
from computer_linker.transports.mcp.profiles import OBSERVING_TOOLS


def known_clients() -> dict[str, Client]:
    """Return the clients by name, in alphabetical order."""
    return {client.name: client for client in sorted(_CLIENTS, key=lambda client: client.name)}


def this_user() -> User:
    """The person who runs this command."""
    return User(Path(os.path.expanduser("~")), os.environ, SYSTEM)  # noqa: PTH111  # as home.py does it


def _claude_desktop_entry(connection: Connection) -> dict[str, Any]:
    if isinstance(connection, Http):
        raise CannotEdit("Claude Desktop takes an address only under Settings, Connectors; its file is for programs")
    return plain_entry(connection, typed=False)


def _codex_entry(connection: Connection) -> dict[str, Any]:
    if isinstance(connection, Stdio):
        # Required: Codex waits for us. Else a first turn that begins before the service is up has none of our tools.
        entry: dict[str, Any] = {"command": connection.command[0], "args": connection.command[1:], "required": True}
        return entry | ({"env": connection.environment} if connection.environment else {})
    entry = {"url": connection.url} | ({"http_headers": dict(connection.headers)} if connection.headers else {})
    return entry | ({"bearer_token_env_var": TOKEN_VARIABLE} if connection.token is not None else {})


def _opencode_file(user: User) -> Path:
    folder = Path(user.environment.get("XDG_CONFIG_HOME") or user.home / ".config") / "opencode"
    with_comments = folder / "opencode.jsonc"
    return with_comments if with_comments.exists() else folder / "opencode.json"


def _opencode_entry(connection: Connection) -> dict[str, Any]:
    if isinstance(connection, Stdio):
        entry: dict[str, Any] = {"type": "local", "command": connection.command, "enabled": True}
        return entry | ({"environment": connection.environment} if connection.environment else {})
    entry = {"type": "remote", "url": connection.url, "enabled": True}
    return entry | ({"headers": headers_of(connection), "oauth": False} if connection.token is not None else {})


_CLIENTS = (
    # Claude Code: the servers of the user, in ~/.claude.json.
    Client(
        name="claude",
        title="Claude Code",
        programs=("claude",),
        file=lambda user: Path(user.environment.get("CLAUDE_CONFIG_DIR") or user.home) / ".claude.json",
        # `claude mcp add` puts a server here, for the folder it was called in, by default.
        projects="projects",
        entry=lambda connection: plain_entry(connection, typed=True),
        # It asks about every tool that no rule allows, also about one with `readOnlyHint`.
        rules=Rules(
            file=lambda user: (
                Path(user.environment.get("CLAUDE_CONFIG_DIR") or user.home / ".claude") / "settings.json"
            ),
            path=("permissions", "allow"),
            allow=tuple(f"mcp__{NAME}__{tool}" for tool in OBSERVING_TOOLS),
        ),
        after="Start a new session. It reads unasked, and asks you before anything else.",
        sign_in="In a session, type /mcp, choose computer-linker, and authenticate.",
    ),
    # Claude Desktop: claude_desktop_config.json, which supports programs only; over HTTP it has its own connectors.
    Client(
        name="claude-desktop",
        title="Claude Desktop",
        programs=("claude-desktop",),
        file=lambda user: user.settings(linux=".config") / "Claude" / "claude_desktop_config.json",
        entry=_claude_desktop_entry,
        after="Quit Claude Desktop wholly and start it again.",
    ),
    # Codex: a table in config.toml. It takes a token from an environment variable, never from the file.
    Client(
        name="codex",
        title="Codex",
        programs=("codex",),
        file=lambda user: Path(user.environment.get("CODEX_HOME") or user.home / ".codex") / "config.toml",
        document=Toml(),
        container=("mcp_servers",),
        entry=_codex_entry,
        sign_in="Sign in: codex mcp login computer-linker --scopes linker:read,linker:write",
    ),
    # Cursor: the servers of the user, in ~/.cursor/mcp.json.
    Client(
        name="cursor",
        title="Cursor",
        programs=("cursor", "cursor-agent"),
        file=lambda user: user.home / ".cursor" / "mcp.json",
        entry=lambda connection: plain_entry(connection, typed=False),
        after="Switch the server on under Settings, MCP.",
        sign_in="Switch the server on under Settings, MCP, and sign in there.",
    ),
    # Gemini CLI: ~/.gemini/settings.json, in which an address for Streamable HTTP is called httpUrl.
    Client(
        name="gemini",
        title="Gemini CLI",
        programs=("gemini",),
        file=lambda user: user.home / ".gemini" / "settings.json",
        entry=lambda connection: plain_entry(connection, typed=False, url_key="httpUrl"),
        sign_in="In a session, type /mcp auth computer-linker",
    ),
    # Opencode: its own opencode.json, or opencode.jsonc where there is one.
    Client(
        name="opencode",
        title="opencode",
        programs=("opencode",),
        file=_opencode_file,
        container=("mcp",),
        entry=_opencode_entry,
        sign_in="Sign in: opencode mcp auth computer-linker",
    ),
    # VS Code: the user's mcp.json.
    Client(
        name="vscode",
        title="VS Code",
        programs=("code",),
        file=lambda user: user.settings(linux=".config") / "Code" / "User" / "mcp.json",
        container=("servers",),
        entry=lambda connection: plain_entry(connection, typed=True),
        after="Run `MCP: List Servers` in the command palette and start the server.",
        sign_in="Run `MCP: List Servers` in the command palette, start the server and sign in.",
    ),
)

"""Claude Desktop: claude_desktop_config.json, which knows programs only; over HTTP it has connectors of its own."""

from pathlib import Path
from typing import Any

from computer_linker.service.clients.faults import CannotEdit
from computer_linker.service.clients.form import Client, Connection, Http, User, plain_entry
from computer_linker.service.clients.jsonc import Jsonc


def _file(user: User) -> Path:
    return user.settings(linux=".config") / "Claude" / "claude_desktop_config.json"


def _entry(connection: Connection) -> dict[str, Any]:
    if isinstance(connection, Http):
        raise CannotEdit("Claude Desktop takes an address only under Settings, Connectors; its file is for programs")
    return plain_entry(connection, typed=False)


CLIENT = Client(
    name="claude-desktop",
    title="Claude Desktop",
    programs=("claude-desktop",),
    file=_file,
    document=Jsonc(),
    container=("mcpServers",),
    entry=_entry,
    after="Quit Claude Desktop wholly and start it again.",
)

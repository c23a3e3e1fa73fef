"""VS Code: the user's mcp.json."""

from pathlib import Path

from computer_linker.service.clients.form import Client, User, plain_entry
from computer_linker.service.clients.jsonc import Jsonc


def _file(user: User) -> Path:
    return user.settings(linux=".config") / "Code" / "User" / "mcp.json"


CLIENT = Client(
    name="vscode",
    title="VS Code",
    programs=("code",),
    file=_file,
    document=Jsonc(),
    container=("servers",),
    entry=lambda connection: plain_entry(connection, typed=True),
    after="Run `MCP: List Servers` in the command palette and start the server.",
    sign_in="Run `MCP: List Servers` in the command palette, start the server and sign in.",
)

"""Cursor: the servers of the user, in ~/.cursor/mcp.json."""

from computer_linker.service.clients.form import Client, plain_entry
from computer_linker.service.clients.jsonc import Jsonc

CLIENT = Client(
    name="cursor",
    title="Cursor",
    programs=("cursor", "cursor-agent"),
    file=lambda user: user.home / ".cursor" / "mcp.json",
    document=Jsonc(),
    container=("mcpServers",),
    entry=lambda connection: plain_entry(connection, typed=False),
    after="Switch the server on under Settings, MCP.",
    sign_in="Switch the server on under Settings, MCP, and sign in there.",
)

"""Gemini CLI: ~/.gemini/settings.json, in which an address for Streamable HTTP is called httpUrl."""

from computer_linker.service.clients.form import Client, plain_entry
from computer_linker.service.clients.jsonc import Jsonc

CLIENT = Client(
    name="gemini",
    title="Gemini CLI",
    programs=("gemini",),
    file=lambda user: user.home / ".gemini" / "settings.json",
    document=Jsonc(),
    container=("mcpServers",),
    entry=lambda connection: plain_entry(connection, typed=False, url_key="httpUrl"),
    sign_in="In a session, type /mcp auth computer-linker",
)

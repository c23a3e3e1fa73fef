"""Claude Code: the servers of the user, in ~/.claude.json."""

from pathlib import Path

from computer_linker.service.clients.form import Client, User, plain_entry
from computer_linker.service.clients.jsonc import Jsonc


def _file(user: User) -> Path:
    return Path(user.environment.get("CLAUDE_CONFIG_DIR") or user.home) / ".claude.json"


CLIENT = Client(
    name="claude",
    title="Claude Code",
    programs=("claude",),
    file=_file,
    document=Jsonc(),
    container=("mcpServers",),
    # `claude mcp add` puts a server here, for the folder it was called in, unless it is told otherwise.
    projects="projects",
    entry=lambda connection: plain_entry(connection, typed=True),
    sign_in="In a session, type /mcp, choose computer-linker, and authenticate.",
)

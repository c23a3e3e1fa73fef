"""What a client can name reaches the owner's terminal escaped, in every command that shows it."""

import csv
import io
from pathlib import Path

from computer_linker.client import Client
from support.commands import command
from support.road import folder_scope
from support.service import serving

NAME = "=x\x1b[2J\x1b]0;title\x07\u202egpj.txt"
LINE = ["echo", "\r\x1b[2Kclient: read plants.txt"]


def test_names_and_command_lines_of_clients_are_escaped_in_the_history_undo_and_csv(tmp_path: Path) -> None:
    """Found: `history show` of such a file cleared the screen, and of such a command showed another headline."""
    scope = folder_scope(tmp_path / "root", allowedCommands=["echo *"])
    with serving(tmp_path, token=None, scopes=[scope]) as service:
        (service.root / NAME).write_text("before\n")
        with Client.over_socket(home=service.home) as linker:
            written = linker.scope("app").call("file.write", NAME, input={"content": "x\ty\n"}).operation_id
            ran = linker.scope("app").call("command.run", input={"command": LINE}).operation_id
        told = [
            command(service.home, "history", "show", written).stdout,
            command(service.home, "history", "show", ran).stdout,
            command(service.home, "history", "export", "--format", "csv").stdout,
            command(service.home, "undo", written).stdout,
        ]
    assert "  -before" in told[0] and "ran echo" in told[1] and "restored" in told[3]
    assert [[char for char in text if char < " " and char not in "\r\n\t"] for text in told] == [[], [], [], []]
    assert not any("\u202e" in text or "\rclient" in text or "\r\x1b" in text for text in told)
    rows = list(csv.DictReader(io.StringIO(told[2])))
    assert any("echo" in row["commandPreview"] and "\r" not in row["commandPreview"] for row in rows)

"""A command, a difference and a batch read alike at the terminal, on the approval page and in a client's dialog."""

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import ApprovalRequest
from computer_linker.approvals.terminal import shown
from computer_linker.cli.approval_text import format_request
from computer_linker.transports.http.approval_html import list_page
from computer_linker.transports.mcp.dialog import question
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
WRITE = {
    "op": "file.write",
    "target": "a.toml",
    "input": {"content": "address = '0.0.0.0'\n" + "# more words " * 12 + "\n"},
}
COMMAND = {
    "op": "command.run",
    "target": ".",
    "input": {"command": ["npm", "install", "--save-dev", *["some-package@1.2.3"] * 5]},
}
BATCH = {
    "op": "batch.run",
    "target": None,
    "input": {"operations": [{"op": "file.mkdir", "target": "docs"}, WRITE, COMMAND]},
}
WANTED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "command": (
        COMMAND,
        ["$ npm install --save-dev some-package", "in the folder .", "held by", "without the network"],
    ),
    "difference": (WRITE, ["-address = '127.0.0.1'", "+address = '0.0.0.0'"]),
    "batch": (
        BATCH,
        ["1. file.mkdir docs", "2. file.write a.toml", "+address = '0.0.0.0'", "3. command.run", "$ npm install"],
    ),
}


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all", allowedCommands=["*"])]) as opened:
        (opened.root / "a.toml").write_text("address = '127.0.0.1'\n")
        yield opened


async def asked_of(road: Road, wanted: dict[str, Any]) -> ApprovalRequest:
    assert await road.code(wanted["op"], wanted["target"], input=wanted["input"]) == "confirm_required"
    [asked] = road.app.services.use(Approvals).waiting()
    return asked


@pytest.mark.parametrize("kind", WANTED)
async def test_it_reads_alike_in_the_three_places(road: Road, kind: str) -> None:
    wanted, parts = WANTED[kind]
    asked = await asked_of(road, wanted)
    terminal = [line for line, _ in format_request(shown(asked), 80)]
    page = unescape(re.sub(r"<[^>]+>", "", list_page([(asked, [])], "secret", "machine").replace("<br>", "\n")))
    dialog = question(asked)["message"]
    assert all(len(line) <= 80 for line in terminal)
    for place in ("\n".join(terminal), page, dialog):
        at = 0
        for part in parts:
            assert part in place[at:], (part, place)
            at = place.index(part, at)
        assert asked.digest in place.replace("\n", "").replace(" ", "")
    assert asked.about is not None
    for line in asked.about.lines:
        assert line in page and line in dialog


@pytest.mark.parametrize("kind", WANTED)
async def test_no_plain_word_is_broken_at_eighty_columns(road: Road, kind: str) -> None:
    asked = await asked_of(road, WANTED[kind][0])
    lines = [line for line, _ in format_request(shown(asked), 80)]
    assert asked.about is not None
    whole = {word for line in lines for word in line.split()}
    missing = {word for line in asked.about.lines for word in line.split() if len(word) < 60} - whole
    assert missing == set()

"""Issue 19, the history says what was run: a corpus of command lines through a running service, and every place that shows them.

The lines are refused, so that nothing of them runs; a refused command has the same preview (000-187).
"""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from fixtures.command_lines import HARMLESS, with_secrets
from support.road import folder_scope
from support.service import TOKEN, owner, serving

PIECE = 6
"""Characters of a secret in a row that would help whoever reads them."""


@dataclass
class Places:
    """Where the history is kept and shown, by name; and the previews in the order of the corpus."""

    found: dict[str, bytes]
    previews: list[str]


def lines() -> list[tuple[str, str]]:
    return [*with_secrets(), *((line, "") for line in HARMLESS)]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    base = tmp_path_factory.mktemp("masked")
    (base / "root").mkdir()
    scopes = [folder_scope(base / "root", deniedCommands=["*"])]
    with serving(base, token=TOKEN, scopes=scopes) as service:
        http = service.http()
        for number, (line, _) in enumerate(lines()):
            command: Any = line
            if number % 2:
                command = shlex.split(line) if line.count("'") % 2 == 0 and line.count('"') % 2 == 0 else [line]
            op = ("command.run", "command.start")[number % 3 == 0]
            answer = http.control("computer_operation", scope="app", op=op, target=".", input={"command": command})
            assert not answer["ok"], answer
        http.close()
        shown = {
            "export": owner(service, "history", "export"),
            "csv": owner(service, "history", "export", "--format", "csv"),
        }
        for view in ("last", "failed_replay", "debug_bundle"):
            shown[view] = owner(service, "history", "--view", view, "--json", "--limit", "1000")
        shown["table"] = owner(service, "history", "--limit", "1000")
        owner(service, "history", "timeline", "--html", str(base / "page.html"))
        shown["page"] = (base / "page.html").read_text()
        found = {name: text.encode() for name, text in shown.items()}
        for path in sorted((base / "home").rglob("*")):
            if path.is_file():
                found[str(path.relative_to(base / "home"))] = path.read_bytes()
    events = [json.loads(line) for line in shown["export"].splitlines()]
    yield Places(found, [event["commandPreview"] for event in events if event["op"].startswith("command.")])


def test_no_secret_is_in_the_journal_the_index_an_export_or_a_page(places: Places) -> None:
    """Points 000-007, 000-052, 000-186, 001-113: the history has the command, and nothing of a secret in it."""
    assert {"audit/index.db", "page", "csv"} <= places.found.keys() and len(with_secrets()) >= 300
    assert any(name.startswith("audit/journal") for name in places.found)
    pieces = {secret[at : at + PIECE].encode() for _, secret in with_secrets() for at in range(len(secret) - PIECE + 1)}
    left = [(name, piece) for name, data in places.found.items() for piece in sorted(pieces) if piece in data]
    assert left == []


def test_harmless_words_stay_readable_in_the_history(places: Places) -> None:
    """At least 95 of 100, each preview being that of its own line."""
    corpus = lines()
    assert len(places.previews) == len(corpus)
    words = [
        (word, preview)
        for (line, secret), preview in zip(corpus, places.previews, strict=True)
        if not secret
        for word in line.split()
    ]
    kept = sum(word in (preview or "") for word, preview in words)
    print(f"{len(with_secrets())} lines with secrets; {kept} of {len(words)} harmless words readable")
    assert len(words) > 350 and kept / len(words) >= 0.95


def test_the_page_and_the_table_have_the_command(places: Places) -> None:
    """Points 000-007 and 000-187: also where it was refused."""
    assert b"npm run build -- --watch" in places.found["page"] and b"git status --short" in places.found["page"]
    assert b"cargo test --workspace" in places.found["table"]

"""Every operation that the history records has plain words of its own, and its row names what it was about."""

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest

from computer_linker import operations, owner
from computer_linker.audit.phrases import OF_SERVICE, attempt, fields_in, phrases
from computer_linker.audit.wording import described
from computer_linker.model.effect import Effect
from computer_linker.model.history import HistoryEvent
from computer_linker.registry.catalog import collect
from computer_linker.registry.operation import Example
from computer_linker.registry.phrases import FILE, as_text, collected
from computer_linker.transports.peer.facets import facet_catalog
from support.pair import events_of
from support.project import make_project
from support.road import LOCAL, Road, computer_scope, folder_scope

CLIENTS, OWNERS = collect(operations).operations, collect(owner).operations
RECORDED = {
    *CLIENTS,
    *(name for name, op in OWNERS.items() if op.effect is not Effect.OBSERVE),
    *facet_catalog().operations,
    *OF_SERVICE,
}
"""Questions of the owner are not recorded."""
NO_ACT = ("its agent ended", "config.json was edited", "was given access", "was ended")
SOURCE = "".join(path.read_text() for path in (Path(__file__).parents[2] / "src").rglob("*.py"))
MADE = {"call", "change", "ended", "place", "putBack", "request", "target", "these", "until"}
OBJECTS: dict[str, Any] = {
    "path": "notes.txt", "files": 1, "undone": "01KA00000000000000000000AA", "changed": "app: confirm all -> never",
    "stopped": "01KA00000000000000000000AA", "clients": "editor/1", "address": "http://127.0.0.1:3939", "sessions": 1,
    "operation": "file.write", "inScope": "app",
}  # fmt: skip


def event(op: str, **fields: Any) -> HistoryEvent:
    """An event that was done, with these fields."""
    empty = dict.fromkeys(HistoryEvent.__annotations__)
    given = {"operationId": "01KA00000000000000000000AB", "op": op, "scope": "", "summary": {}, "outcome": "done"}
    return cast("HistoryEvent", {**empty, **given, "ok": True, **fields})


def test_every_recorded_operation_has_words_with_its_definition() -> None:
    missing = sorted(RECORDED - phrases().keys())
    assert missing == [], f"give them `did=...` in their own files, then run make docs: {missing}"
    assert sorted(phrases().keys() - RECORDED) == [], "words of operations that are gone"


def test_the_words_that_the_history_reads_are_those_of_the_operations() -> None:
    assert FILE.read_text("utf-8") == as_text(collected()), "run make docs"


@pytest.mark.parametrize("op", sorted(RECORDED))
def test_the_words_are_an_act_and_can_be_an_attempt(op: str) -> None:
    text = phrases()[op]
    assert text.startswith(NO_ACT) or attempt(re.split(r"[ \[]", text)[0]) is not None, text
    assert not re.search(r"[._]\w", re.sub(r"config\.json|\{\w+\}", "", text)), "a name of the wire is no plain word"
    for field in fields_in(text):
        assert field in MADE or f"{field}=" in SOURCE or f'"{field}"' in SOURCE, f"no event has {field}"


@pytest.mark.parametrize("op", sorted(RECORDED))
def test_a_row_shows_every_fact_that_its_words_name_and_reads_well_without_them(op: str) -> None:
    named = [field for field in fields_in(phrases()[op]) if field not in MADE]
    facts = {field: f"<{field}>" for field in named}
    row = described(event(op, summary={**OBJECTS, **facts}, target="there.txt", commandPreview=None)).what
    assert all(value in row for value in facts.values()), row
    assert not re.search(r"[{}\[\]]", row), row
    if set(fields_in(phrases()[op])) & (MADE - {"target"}):
        assert re.search(r"notes\.txt|confirm all|editor/1|file\.write|127\.0\.0\.1|0000AA", row) or op == "pause", row
    bare = described(event(op)).what
    assert bare and not re.search(r"[{}\[\]:]\Z|  | (of|in|to|for|at|by|from)\Z", bare), bare
    tried = described(event(op, outcome="refused", ok=False, decision="deny")).what
    assert tried.startswith(("tried", *NO_ACT)), tried


EXAMPLES = [
    pytest.param(op.name, example, id=f"{op.name}: {example.title}")
    for op in CLIENTS.values()
    for example in op.examples
]


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "example"), EXAMPLES)
async def test_the_row_of_an_example_is_plain_and_names_its_object(tmp_path: Path, name: str, example: Example) -> None:
    """Also of one that fails here, such as for want of a desktop."""
    (tmp_path / "root").mkdir()
    make_project(tmp_path / "root")
    scopes = [folder_scope(tmp_path / "root", allowedCommands=["*"]), computer_scope("screen")]
    async with Road.open(tmp_path, scopes) as road:
        on = road.app.catalog.find(name).on
        request = {"scope": "screen" if on == "computer" else "app", "op": name, **example.request}
        await road.app.dispatcher.call_wire(request, LOCAL)
        found, *_ = await events_of(road, name)
    row = described(found).what  # type: ignore[arg-type]
    assert name not in row and "characters, " not in row and not re.search(r"\w=", row), row
    target, line = example.request.get("target"), found["commandPreview"]
    if line:
        assert line in row
    elif name.partition(".")[0] in ("file", "document", "code", "git", "app") and target not in (None, "", ".", {}):
        is_of_files = name in ("git.stage", "git.unstage", "git.commit", "file.undo")
        assert is_of_files or str(target) in row, (row, json.dumps(found))

"""Documents and code on a paired computer: decoded, shown, searched and changed there."""

import io
from typing import Any

import pytest

from support.documents import excel, pdf, row, word
from support.pair import Pair
from support.road import LOCAL

pytestmark = pytest.mark.anyio


async def far(pair: Pair, op: str, target: str, **parts: Any) -> dict[str, Any]:
    envelope = await pair.desk.call(op, target, scope="laptop/app", **parts)
    assert envelope["ok"], envelope
    data: dict[str, Any] = envelope["data"]
    return data


async def test_documents_of_a_paired_computer_are_read_as_there(pair: Pair) -> None:
    (pair.laptop.root / "a.docx").write_bytes(word("first", "second"))
    (pair.laptop.root / "b.xlsx").write_bytes(excel(row(1, "name", 7) + row(2, "other", 8)))
    (pair.laptop.root / "c.pdf").write_bytes(pdf("page one", "page two"))
    assert (await far(pair, "file.read", "a.docx"))["content"] == "first\nsecond\n"
    here = await pair.laptop.data("file.read", "b.xlsx")
    cells = await far(pair, "file.read", "b.xlsx", options={"range": "A2:B2"})
    assert "other\t8" in cells["content"] and cells["document"]["boundary"] == here["document"]["boundary"]
    second = await far(pair, "file.read", "c.pdf", options={"page": 2})
    assert "page two" in second["content"] and second["document"]["count"] == 2
    found = await far(pair, "file.search", ".", input={"query": "page two"}, options={"documents": True})
    assert [(each["path"], each["part"]) for each in found["matches"]] == [("c.pdf", "page 2")]


async def test_a_page_of_a_paired_computer_arrives_as_a_picture(pair: Pair) -> None:
    image = pytest.importorskip("PIL.Image")
    (pair.laptop.root / "c.pdf").write_bytes(pdf("page one"))
    call = {"scope": "laptop/app", "op": "file.read", "target": "c.pdf", "options": {"encoding": "image"}}
    reply = await pair.desk.app.dispatcher.call_wire(call, LOCAL)
    assert reply.envelope["ok"], reply.envelope
    (shown,) = reply.attachments
    assert max(image.open(io.BytesIO(shown.data)).size) == 1568


async def test_an_edit_of_a_document_there_is_made_and_taken_back(pair: Pair) -> None:
    place = pair.laptop.root / "b.xlsx"
    place.write_bytes(excel(row(1, "name", 7)))
    before = place.read_bytes()
    edit = {"cells": [{"range": "B1", "values": 9}]}
    done = await pair.desk.call("document.edit", "b.xlsx", scope="laptop/app", input=edit)
    assert (done["ok"], done["effect"]) == (True, "confirmed")
    assert "name\t9" in (await far(pair, "file.read", "b.xlsx"))["content"]
    await far(pair, "file.undo", ".", input={"operationId": done["operationId"]})
    assert place.read_bytes() == before


async def test_a_hostile_document_there_costs_an_error_here(reading_pair: Pair) -> None:
    (reading_pair.laptop.root / "a.docx").write_bytes(word("x")[:100])
    envelope = await reading_pair.desk.call("file.read", "a.docx", scope="laptop/app")
    assert envelope["error"]["code"] == "execution_failed"
    edit = {"texts": [{"oldText": "x", "newText": "y"}]}
    refused = await reading_pair.desk.call("document.edit", "a.docx", scope="laptop/app", input=edit)
    assert refused["error"]["code"] == "permission_denied"


async def test_code_of_a_paired_computer_is_mapped_and_searched(pair: Pair) -> None:
    (pair.laptop.root / "a.py").write_text("class Shape:\n    def area(self): ...\n")
    (pair.laptop.root / "b.py").write_text("from a import Shape\n\nShape().area()\n")
    drawn = await far(pair, "code.map", ".")
    assert drawn["map"].splitlines()[:2] == ["a.py", "  1: class Shape"] and drawn["files"] == 2
    found = await far(pair, "code.search_symbols", ".", input={"query": "area"})
    assert [(each["path"], each["line"]) for each in found["symbols"]] == [("a.py", 2)]

"""file.search and file.find inside documents, on request, with a cache by digest."""

import pytest

from computer_linker.providers.documents.texts import Texts
from support.documents import excel, pdf, row, word
from support.road import Road

pytestmark = pytest.mark.anyio


async def test_a_search_looks_inside_documents_on_request(road: Road) -> None:
    (road.root / "sub").mkdir()
    (road.root / "a.pdf").write_bytes(pdf("nothing", "the needle is here"))
    (road.root / "sub" / "b.docx").write_bytes(word("first", "another needle"))
    (road.root / "c.xlsx").write_bytes(excel(row(1, "x") + row(2, "needle")))
    (road.root / "d.txt").write_text("needle\n")
    (road.root / "broken.pdf").write_bytes(b"%PDF-1.4 needle")
    plain = await road.data("file.search", input={"query": "need[l]e"})
    assert [match["path"] for match in plain["matches"] if "part" in match] == []
    found = await road.data("file.search", input={"query": "need[l]e"}, options={"documents": True})
    assert [(match["path"], match.get("part"), match["preview"]) for match in found["matches"]] == [
        ("a.pdf", "page 2", "the needle is here"), ("c.xlsx", "sheet 1 Sales", "2\tneedle"), ("sub/b.docx", None, "another needle"),
    ]  # fmt: skip
    texts = road.app.services.use(Texts)
    assert texts.decoded == 4
    assert await road.data("file.search", input={"query": "need[l]e"}, options={"documents": True}) == found
    assert texts.decoded == 4
    (road.root / "copy.pdf").write_bytes((road.root / "a.pdf").read_bytes())
    again = await road.data("file.search", input={"query": "needle"}, options={"documents": True, "glob": "*.pdf"})
    assert [match["path"] for match in again["matches"]] == ["a.pdf", "copy.pdf"] and texts.decoded == 4


async def test_pages_of_matches_in_documents_follow_one_another(road: Road) -> None:
    for name in "abc":
        (road.root / f"{name}.docx").write_bytes(word(*(f"hit {number}" for number in range(3))))
    seen, cursor = [], None
    while True:
        options = {"documents": True, "maxResults": 2, **({"cursor": cursor} if cursor else {})}
        page = await road.data("file.search", input={"query": "hit"}, options=options)
        seen += [(match["path"], match["line"]) for match in page["matches"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen == [(f"{name}.docx", line) for name in "abc" for line in (1, 2, 3)]


async def test_find_gives_the_files_that_hold_a_text(road: Road) -> None:
    (road.root / "a.pdf").write_bytes(pdf("The Needle"))
    (road.root / "b.txt").write_text("a needle\n")
    (road.root / "c.docx").write_bytes(word("hay"))
    options = {"containing": "needle"}
    assert (await road.data("file.find", input={"pattern": "*"}, options=options))["files"] == ["a.pdf", "b.txt"]
    assert (await road.data("file.find", input={"pattern": "*.pdf"}, options=options))["files"] == ["a.pdf"]


async def test_documents_that_the_scope_hides_are_not_searched(road: Road) -> None:
    (road.root / ".ssh").mkdir()
    (road.root / ".ssh" / "a.pdf").write_bytes(pdf("needle"))
    options = {"documents": True, "includeHidden": True}
    assert (await road.data("file.search", input={"query": "needle"}, options=options))["matches"] == []
    assert road.app.services.use(Texts).decoded == 0

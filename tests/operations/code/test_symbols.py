"""code.search_symbols and code.outline along the whole road."""

import shutil
from pathlib import Path

import pytest

from support.children import children_of_this_process
from support.noise import noise
from support.road import Road

pytestmark = pytest.mark.anyio

PYTHON = '''"""A module."""

LIMIT = 3


class Parser(Base):
    """Parses."""

    def parse_all(self, text: str) -> list[str]:
        def parse_one():
            pass
        return []


async def parse(text):
    return text
'''


async def names(road: Road, query: str, **options: object) -> list[str]:
    data = await road.data("code.search_symbols", input={"query": query}, options=options)
    return [symbol["name"] for symbol in data["symbols"]]


async def test_an_outline_has_kinds_containers_signatures_and_end_lines(road: Road) -> None:
    (road.root / "parser.py").write_text(PYTHON)
    data = await road.data("code.outline", "parser.py")
    rows = [(s["name"], s["kind"], s["line"], s["endLine"], s["container"], s["signature"]) for s in data["symbols"]]
    assert rows == [
        ("LIMIT", "variable", 3, 3, None, "LIMIT = 3"),
        ("Parser", "class", 6, 12, None, "class Parser(Base)"),
        ("parse_all", "method", 9, 12, "Parser", "def parse_all(self, text: str) -> list[str]"),
        ("parse_one", "function", 10, 11, "Parser.parse_all", "def parse_one()"),
        ("parse", "function", 15, 16, None, "async def parse(text)"),
    ]


async def test_whole_names_come_first_and_case_counts_with_a_capital(road: Road) -> None:
    (road.root / "parser.py").write_text(PYTHON)
    assert await names(road, "parse") == ["parse", "Parser", "parse_all", "parse_one"]
    assert await names(road, "Parse") == ["Parser"]
    assert await names(road, "parse", kind="method") == ["parse_all"]
    assert await names(road, "parse", maxResults=1) == ["parse"]
    assert await names(road, "parse", language="go") == []


async def test_a_mention_is_not_a_definition(road: Road) -> None:
    (road.root / "a.py").write_text("# def ghost(): pass\nx = 'class ghost'\nghost()\n")
    (road.root / "b.py").write_text("def ghost(): pass\n")
    data = await road.data("code.search_symbols", input={"query": "ghost"})
    assert [symbol["path"] for symbol in data["symbols"]] == ["b.py"]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.ts", "export class Foo { bar(): void {} }\ninterface Baz {}\n", ["Foo", "bar", "Baz"]),
        ("a.tsx", "export const App = () => <p/>\n", ["App"]),
        ("a.js", "function foo() {}\nconst bar = () => 1\n", ["foo", "bar"]),
        ("a.go", "package m\ntype T struct{}\nfunc (t *T) M() {}\n", ["T", "M"]),
        ("a.rs", "struct S;\nimpl S { fn m(&self) {} }\n", ["S", "m"]),
        ("A.java", "class A {\n int m() { return 1; }\n}\n", ["A", "m"]),
        ("a.c", "static int f(void) { return 0; }\n", ["f"]),
        ("a.cpp", "namespace n {\nclass A {};\n}\n", ["n", "A"]),
        ("a.cs", "class A {\n void M() {}\n}\n", ["A", "M"]),
        ("a.rb", "module M\n  def m; end\nend\n", ["M", "m"]),
        ("a.php", "<?php\nfunction f() {}\n", ["f"]),
        ("a.sh", "f() { :; }\n", ["f"]),
        ("a.kt", "class A {\n fun m() {}\n}\n", ["A", "m"]),
        ("a.swift", "struct S {\n func m() {}\n}\n", ["S", "m"]),
        ("a.scala", "object O {\n def m = 1\n}\n", ["O", "m"]),
        ("a.lua", "function f() end\n", ["f"]),
    ],
)
async def test_every_language_has_its_definitions(road: Road, name: str, text: str, expected: list[str]) -> None:
    (road.root / name).write_text(text)
    data = await road.data("code.outline", name)
    assert [symbol["name"] for symbol in data["symbols"]] == expected


async def test_an_edit_is_seen_and_a_rename_is_not_parsed_again(road: Road) -> None:
    (road.root / "a.py").write_text("def first(): pass\n")
    assert await names(road, "first") == ["first"]
    (road.root / "a.py").write_text("def second(): pass\n")
    assert await names(road, "second") == ["second"]
    assert await names(road, "first") == []
    shutil.copy(road.root / "a.py", road.root / "b.py")
    assert await names(road, "second") == ["second", "second"]


async def test_the_index_survives_the_service_and_a_damaged_one_is_made_anew(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        (road.root / "a.py").write_text("def first(): pass\n")
        assert await names(road, "first") == ["first"]
    index = tmp_path / "home" / "index" / "symbols.sqlite"
    assert index.stat().st_mode & 0o077 == 0
    for extra in index.parent.glob("symbols.sqlite-*"):
        extra.unlink()
    index.write_bytes(b"garbage" * 1000)
    async with Road.open(tmp_path) as road:
        assert await names(road, "first") == ["first"]


async def test_sensitive_ignored_and_linked_files_have_no_symbols(road: Road, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("def canary(): pass\n")
    (road.root / "link.py").symlink_to(outside)
    (road.root / ".ssh").mkdir()
    (road.root / ".ssh" / "x.py").write_text("def canary(): pass\n")
    (road.root / ".gitignore").write_text("build/\n")
    (road.root / "build").mkdir()
    (road.root / "build" / "x.py").write_text("def canary(): pass\n")
    assert await names(road, "canary") == []
    assert await road.code("code.outline", "link.py") == "path_out_of_scope"
    assert await road.code("code.outline", ".ssh/x.py") == "permission_denied"


@pytest.mark.parametrize("query", ["", "a\nb", "--pre=x", "-e", "x\0y"])
async def test_a_query_is_never_an_option(road: Road, query: str) -> None:
    (road.root / "a.py").write_text("def first(): pass\n")
    envelope = await road.call("code.search_symbols", input={"query": query})
    assert envelope["error"]["code"] == "invalid_request" if not envelope["ok"] else envelope["data"]["symbols"] == []


async def test_hostile_sources_cost_a_bounded_time(road: Road) -> None:
    (road.root / "deep.py").write_text("def outer():\n" + " x = " + "(" * 100_000 + "\n")
    (road.root / "deep.c").write_text("int outer() {" + "{" * 200_000)
    (road.root / "bytes.js").write_bytes(b"function outer() {}" + noise(100_000))
    (road.root / "fine.py").write_text("def outer(): pass\n")
    data = await road.data("code.search_symbols", input={"query": "outer"})
    assert "fine.py" in [symbol["path"] for symbol in data["symbols"]]
    assert children_of_this_process() == []


async def test_a_folder_and_an_unknown_language_are_the_callers_mistake(road: Road) -> None:
    (road.root / "a.xyz").write_text("x")
    (road.root / "d.py").mkdir()
    assert await road.code("code.outline", "a.xyz") == "invalid_request"
    assert await road.code("code.outline", "d.py") == "invalid_request"
    assert (
        await road.code("code.search_symbols", input={"query": "x"}, options={"language": "klingon"})
        == "invalid_request"
    )

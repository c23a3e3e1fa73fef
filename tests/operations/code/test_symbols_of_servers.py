"""code.symbols and code.hierarchy: by real servers, and by tree-sitter where none is installed."""

from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.language.pool import LanguageServers
from support import node
from support.language import PROJECT, path_with, running, service
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
FILES = {
    **PROJECT,
    "shapes.py": "LIMIT = 3\n\n\nclass Base:\n    sides: int = 0\n\n    def area(self, side: int) -> str:\n        return str(side)\n",
    "app.py": "from shapes import Base\n\n\nclass Square(Base):\n    pass\n\n\ndef main() -> str:\n    return Square().area(2)\n",
    "web/sum.ts": "export interface Pair { first: number }\nexport class Sum implements Pair {\n  first = 1;\n}\n"
    "export function add(a: number, b: number): number {\n  return a + b;\n}\n",
    "tool.rb": "class BaseTool\nend\n",
}


def named(answer: dict[str, Any]) -> list[tuple[str, str, str, int, str | None]]:
    return [(each["name"], each["kind"], each["path"], each["line"], each["container"]) for each in answer["symbols"]]


@pytest.mark.parametrize(
    ("engine", "path", "expected"),
    [
        ("pyright", "shapes.py", ("area", "method", "shapes.py", 7, "Base")),
        ("typescript-language-server", "web/sum.ts", ("first", "property", "web/sum.ts", 3, "Sum")),
        ("clangd", "c/twice.h", ("twice", "function", "c/twice.h", 1, None)),
    ],
)
async def test_the_symbols_of_a_file_are_those_of_its_server(
    tmp_path: Path, engine: str, path: str, expected: tuple[str, str, str, int, str | None]
) -> None:
    async with service(tmp_path, files=FILES) as road:
        whole = await road.data("code.symbols", path)
        assert expected in named(whole) and whole["engine"] == engine and not whole["truncated"]
        (entry,) = [each for each in whole["symbols"] if each["name"] == expected[0] and each["line"] == expected[3]]
        assert expected[0] in entry["signature"] and entry["endLine"] >= entry["line"]
        one = await road.data("code.symbols", path, input={"query": expected[0]}, options={"maxResults": 1})
        assert [each["name"] for each in one["symbols"]] == [expected[0]]


async def test_the_symbols_of_a_folder_come_from_each_language_that_has_the_name(tmp_path: Path) -> None:
    async with service(tmp_path, files=FILES) as road:
        found = await road.data("code.symbols", ".", input={"query": "base"})
        assert [each[:4] for each in named(found)] == [
            ("Base", "class", "shapes.py", 4),
            ("BaseTool", "class", "tool.rb", 1),
        ]
        # The languages without the name in any file start no server.
        assert found["engine"] == "pyright and tree-sitter" and running(road) == ["pyright"]
        scripts = await road.data("code.symbols", "web", input={"query": "add"})
        assert [each[:4] for each in named(scripts)] == [("add", "function", "web/sum.ts", 5)]
        assert scripts["engine"] == "typescript-language-server"
        native = await road.data("code.symbols", ".", input={"query": "twice"})
        assert ("twice", "function", "c/twice.h", 1) in [each[:4] for each in named(native)]
        assert native["engine"] == "clangd"


async def test_without_a_server_symbols_are_parsed_and_the_answer_shows_it(tmp_path: Path) -> None:
    async with service(tmp_path, path_with(), FILES) as road:
        whole = await road.call("code.symbols", "shapes.py")
        assert ("area", "method", "shapes.py", 7, "Base") in named(whole["data"])
        assert whole["data"]["engine"] == "tree-sitter" and "npm install -g pyright" in whole["warnings"][0]
        below = await road.call("code.symbols", ".", input={"query": "Base"})
        assert [each[:4] for each in named(below["data"])] == [
            ("Base", "class", "shapes.py", 4),
            ("BaseTool", "class", "tool.rb", 1),
        ]
        assert below["data"]["engine"] == "tree-sitter" and "pyright is not installed" in below["warnings"][0]


async def test_a_folder_needs_a_name_and_closed_files_are_not_listed(tmp_path: Path) -> None:
    files = {"open.py": "def common_name(): ...\n", "secret/closed.py": "def common_name(): ...\n"}
    scope = folder_scope(tmp_path / "root")
    scope["policy"] = {**scope.get("policy", {}), "deniedPaths": ["secret/**", "secret"]}
    async with service(tmp_path, path_with(node.needed(node.pyright)), files, [scope]) as road:
        assert await road.code("code.symbols", ".") == "invalid_request"
        assert road.app.services.use(LanguageServers).running() == []
        found = await road.data("code.symbols", ".", input={"query": "common_name"})
        assert [each["path"] for each in found["symbols"]] == ["open.py"]
        assert await road.code("code.symbols", "secret/closed.py") in ("permission_denied", "not_found")


async def relatives(road: Road, path: str, kind: str, symbol: str) -> list[tuple[str, str, int]]:
    answer = await road.data("code.hierarchy", path, input={"kind": kind, "symbol": symbol})
    return [(each["name"], each["path"], each["line"]) for each in answer["items"]]


@pytest.mark.parametrize("has_servers", [True, False], ids=["servers", "none"])
async def test_callers_callees_and_types_are_found_with_and_without_servers(tmp_path: Path, has_servers: bool) -> None:
    async with service(tmp_path, None if has_servers else path_with(), FILES) as road:
        assert await relatives(road, "shapes.py", "callers", "area") == [("main", "app.py", 8)]
        assert ("area", "shapes.py", 7) in await relatives(road, "app.py", "callees", "main")
        assert await relatives(road, "shapes.py", "subtypes", "Base") == [("Square", "app.py", 4)]
        assert await relatives(road, "app.py", "supertypes", "Square") == [("Base", "shapes.py", 4)]
        assert await relatives(road, "web/sum.ts", "subtypes", "Pair") == [("Sum", "web/sum.ts", 2)]
        assert await relatives(road, "web/sum.ts", "supertypes", "Sum") == [("Pair", "web/sum.ts", 1)]
        answer = await road.call("code.hierarchy", "app.py", input={"kind": "callees", "symbol": "main"})
        assert answer["data"]["engine"] == ("pyright" if has_servers else "tree-sitter")
        assert bool(answer["warnings"]) is not has_servers


async def test_clangd_finds_base_and_derived_types(tmp_path: Path) -> None:
    files = {
        "shapes.h": "struct Base { virtual int area(); };\nstruct Square : public Base { int area() override; };\n",
        "main.cpp": '#include "shapes.h"\nint main() { return Square().area(); }\n',
        "compile_flags.txt": "-std=c++17\n",
    }
    async with service(tmp_path, files=files) as road:
        assert await relatives(road, "shapes.h", "subtypes", "Base") == [("Square", "shapes.h", 2)]
        assert await relatives(road, "shapes.h", "supertypes", "Square") == [("Base", "shapes.h", 1)]

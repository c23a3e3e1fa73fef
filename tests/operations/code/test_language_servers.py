"""code.* by real language servers: pyright, typescript-language-server and clangd, inside the sandbox."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.language.pool import LanguageServers
from support import node
from support.language import path_with, running, service
from support.road import LOCAL, folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio

LANGUAGES = [
    ("pyright", "app.py", {"line": 9, "symbol": "area"}, "shapes.py", (5, 5), "def area(side: int) -> str"),
    ("typescript-language-server", "web/main.ts", {"line": 2, "symbol": "add"}, "web/sum.ts", (1, 17), "add(a: number"),
    ("clangd", "c/main.cpp", {"line": 2, "symbol": "twice"}, "c/twice.h", (1, 12), "int twice(int x)"),
]


def places(answer: dict[str, Any]) -> list[tuple[str, int, int]]:
    return [(each["path"], each["line"], each["column"]) for each in answer["locations"]]


@pytest.mark.parametrize(("engine", "path", "at", "defined_in", "place", "shown"), LANGUAGES)
async def test_a_name_is_found_shown_and_renamed_and_the_rename_is_taken_back(
    tmp_path: Path, engine: str, path: str, at: dict[str, Any], defined_in: str, place: tuple[int, int], shown: str
) -> None:
    async with service(tmp_path) as road:
        found = await road.data("code.definition", path, input=at)
        assert (places(found), found["engine"]) == ([(defined_in, *place)], engine)
        assert shown in (await road.data("code.hover", path, input=at))["text"]
        uses = await road.data("code.references", path, input=at)
        assert {each["path"] for each in uses["locations"]} == {path, defined_in}
        before = {name: (road.root / name).read_bytes() for name in (path, defined_in)}
        symbol = {"symbol": at["symbol"], "newName": "measured"}
        preview = await road.data("code.rename", defined_in, input=symbol, options={"dryRun": True})
        assert {name: (road.root / name).read_bytes() for name in before} == before and "+++ b/" in preview["diff"]
        done = await road.call("code.rename", defined_in, input=symbol)
        assert done["effect"] == "confirmed", done
        assert [each["path"] for each in done["data"]["files"]] == sorted(before)
        assert all(f"{at['symbol']}(" not in (road.root / name).read_text() for name in before)
        await road.data("file.undo", input={"operationId": done["operationId"]})
        assert {name: (road.root / name).read_bytes() for name in before} == before
        assert running(road) == [engine]


async def test_an_answer_after_a_change_by_any_way_is_never_of_before(tmp_path: Path) -> None:
    async with service(tmp_path, path_with(node.needed(node.pyright))) as road:

        async def line_of_area() -> int:
            found = await road.data("code.definition", "app.py", input={"line": 9, "symbol": "area"})
            (location,) = found["locations"]
            assert (road.root / location["path"]).read_text().splitlines()[location["line"] - 1].startswith("def area")
            line: int = location["line"]
            return line

        assert await line_of_area() == 5
        edits = [{"oldText": "class Base:", "newText": "# one\nclass Base:"}]
        patched = await road.call("file.patch", "shapes.py", input={"edits": edits})
        assert await line_of_area() == 6
        await road.data("file.undo", input={"operationId": patched["operationId"]})
        assert await line_of_area() == 5
        await road.data("command.run", input={"command": ["sed", "-i", "1i # two\\n# three", "shapes.py"]})
        assert await line_of_area() == 7
        kept = await road.data(
            "command.run", input={"command": ["sed", "-i", "1d", "shapes.py"]}, options={"view": True}
        )
        assert await line_of_area() == 7
        await road.data("view.keep", kept["view"]["viewId"])
        assert await line_of_area() == 6
        # Past the service, as an editor of the owner does it.
        (road.root / "shapes.py").write_text("\n\n\n" + (road.root / "shapes.py").read_text())
        assert await line_of_area() == 9
        for number in range(12):
            text = "# x\n" * number + "class Base: ...\n\n\ndef area(side: int) -> str: return ''\n"
            await road.data("file.write", "shapes.py", input={"content": text})
            assert await line_of_area() == number + 4


async def test_a_new_file_a_moved_one_and_a_removed_one_are_known_at_once(tmp_path: Path) -> None:
    async with service(tmp_path, path_with(node.needed(node.pyright))) as road:
        at = {"line": 1, "symbol": "area"}
        assert len((await road.data("code.references", "shapes.py", input={"symbol": "area"}))["locations"]) == 3
        await road.data("file.create", "more.py", input={"content": "from shapes import area\n\nprint(area(3))\n"})
        uses = await road.data("code.references", "shapes.py", input={"symbol": "area"})
        assert [each[:2] for each in places(uses) if each[0] == "more.py"] == [("more.py", 1), ("more.py", 3)]
        await road.data("file.move", "shapes.py", input={"destination": "forms.py"})
        assert (await road.data("code.definition", "more.py", input=at))["locations"] == []
        await road.data("file.write", "more.py", input={"content": "from forms import area\n"})
        assert places(await road.data("code.definition", "more.py", input=at)) == [("forms.py", 5, 5)]
        await road.data("file.delete", "forms.py")
        assert (await road.data("code.definition", "more.py", input=at))["locations"] == []


async def test_all_clients_share_one_server(tmp_path: Path) -> None:
    async with service(tmp_path, path_with(node.needed(node.pyright))) as road:
        other = replace(LOCAL, id="local:another", session="session-2", connection="connection-2")
        servers = road.app.services.use(LanguageServers)
        await road.data("code.hover", "app.py", input={"line": 9, "symbol": "area"})
        (first,) = servers.running()
        answer = await road.call("code.hover", "app.py", input={"line": 9, "symbol": "area"}, principal=other)
        assert answer["ok"] and servers.running() == [first]


async def test_a_server_ends_when_idle_and_starts_again_when_needed(tmp_path: Path) -> None:
    async with service(tmp_path, path_with(node.needed(node.pyright))) as road:
        servers = road.app.services.use(LanguageServers)
        at = {"line": 9, "symbol": "area"}
        await road.data("code.hover", "app.py", input=at)
        (server,) = servers.running()
        servers.idle_s = 0.2
        servers.watch_idle()
        await until(lambda: server.ended is not None and not Path(f"/proc/{server.pid}").exists(), seconds=60)
        assert running(road) == []
        servers.idle_s = 600.0
        await road.data("code.hover", "app.py", input=at)
        assert running(road) == ["pyright"]


async def test_a_killed_server_is_started_again_until_it_crashed_three_times(tmp_path: Path) -> None:
    async with service(tmp_path, path_with(node.needed(node.pyright))) as road:
        servers = road.app.services.use(LanguageServers)
        at = {"line": 9, "symbol": "area"}
        for _ in range(3):
            await road.data("code.hover", "app.py", input=at)
            (server,) = servers.running()
            os.kill(server.pid, signal.SIGKILL)
            await until(lambda server=server: server.ended is not None, seconds=60)  # type: ignore[misc]
        refused = await road.call("code.rename", "app.py", input={"newName": "x", "symbol": "main"})
        assert refused["error"]["code"] == "provider_unavailable"
        assert refused["error"]["details"]["reason"] == "crashed" and running(road) == []


async def test_a_server_that_needs_more_memory_than_its_cap_is_ended_and_reported(tmp_path: Path) -> None:
    async with service(tmp_path, path_with(node.needed(node.pyright))) as road:
        road.app.services.use(LanguageServers).memory_bytes = 48 << 20
        refused = await road.call("code.rename", "app.py", input={"newName": "x", "symbol": "main"})
        assert refused["error"]["code"] == "provider_unavailable" and running(road) == []
        assert refused["error"]["details"]["reason"] in ("ended", "start")


async def test_without_a_server_names_are_looked_up_and_the_answer_shows_it(tmp_path: Path) -> None:
    async with service(tmp_path, path_with()) as road:
        (road.root / "app.py").write_text("from shapes import area\n\nprint(area(2))\n")
        # A path of the machine itself may hold a server: none is found where none is on the path.
        if running(road) or road.app.services.use(LanguageServers).command(_python()) is not None:
            pytest.skip("pyright is installed for the whole machine")
        found = await road.call("code.definition", "app.py", input={"line": 3, "symbol": "area"})
        assert (places(found["data"])[0][:2], found["data"]["engine"]) == (("shapes.py", 5), "tree-sitter")
        assert "npm install -g pyright" in found["warnings"][0]
        uses = await road.data("code.references", "app.py", input={"line": 3, "symbol": "area"})
        assert {each["path"] for each in uses["locations"]} == {"app.py", "shapes.py"} and uses["engine"] == "ripgrep"
        assert "def area(side: int)" in (await road.data("code.hover", "app.py", input={"symbol": "area"}))["text"]
        before = (road.root / "shapes.py").read_bytes()
        refused = await road.call("code.rename", "shapes.py", input={"symbol": "area", "newName": "size"})
        assert refused["error"]["code"] == "provider_unavailable"
        assert "npm install -g pyright" in refused["error"]["details"]["remedy"]
        assert "file.patch" in refused["error"]["details"]["instead"]
        assert (road.root / "shapes.py").read_bytes() == before


def _python() -> Any:
    from computer_linker.providers.language.servers import KINDS

    return KINDS[0]


async def test_a_caller_without_the_right_to_write_renames_nothing(tmp_path: Path) -> None:
    scope = {**folder_scope(tmp_path / "root"), "capabilities": ["fs:read"]}
    async with service(tmp_path, path_with(node.needed(node.pyright)), scopes=[scope]) as road:
        before = (road.root / "shapes.py").read_bytes()
        assert (
            await road.code("code.rename", "shapes.py", input={"symbol": "area", "newName": "size"})
            == "permission_denied"
        )
        assert (road.root / "shapes.py").read_bytes() == before and running(road) == []
        assert (await road.data("code.definition", "app.py", input={"line": 9, "symbol": "area"}))["locations"]


async def test_what_a_scope_denies_is_in_no_answer_and_in_no_rename(tmp_path: Path) -> None:
    files = {
        "shapes.py": "def area(side: int) -> str:\n    return ''\n",
        "open.py": "from shapes import area\n",
        "private/closed.py": "from shapes import area\n",
    }
    scope = folder_scope(tmp_path / "root", deniedPaths=["private/**"])
    async with service(tmp_path, path_with(node.needed(node.pyright)), files, [scope]) as road:
        uses = await road.data("code.references", "shapes.py", input={"symbol": "area"})
        assert {each["path"] for each in uses["locations"]} == {"shapes.py", "open.py"}
        await road.data("code.rename", "shapes.py", input={"symbol": "area", "newName": "size"})
        assert (road.root / "private/closed.py").read_text() == files["private/closed.py"]
        assert await road.code("code.hover", "private/closed.py", input={"symbol": "area"}) == "permission_denied"


async def test_a_person_is_shown_every_file_of_a_rename_before_it_is_made(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root", confirm="all")
    async with service(tmp_path, path_with(node.needed(node.pyright)), scopes=[scope]) as road:
        before = {name: (road.root / name).read_bytes() for name in ("app.py", "shapes.py")}
        asked = await road.call("code.rename", "shapes.py", input={"symbol": "area", "newName": "size"})
        assert asked["error"]["code"] == "confirm_required", asked
        assert {name: (road.root / name).read_bytes() for name in before} == before


async def test_columns_count_characters_where_the_protocol_counts_utf16(tmp_path: Path) -> None:
    files = {"wide.py": "def grin(): ...\n\n\nfaces = '😀😀😀', grin()  # 😀 grin\n"}
    async with service(tmp_path, path_with(node.needed(node.pyright)), files) as road:
        uses = await road.data("code.references", "wide.py", input={"symbol": "grin"})
        column = files["wide.py"].splitlines()[3].index("grin") + 1
        assert places(uses) == [("wide.py", 1, 5), ("wide.py", 4, column)]
        assert places(await road.data("code.definition", "wide.py", input={"line": 4, "column": column}))[0][1] == 1
        await road.data("code.rename", "wide.py", input={"symbol": "grin", "newName": "smile"})
        assert (road.root / "wide.py").read_text().splitlines()[3] == "faces = '😀😀😀', smile()  # 😀 grin"


async def test_references_come_in_pages_that_join_without_gap_or_repeat(tmp_path: Path) -> None:
    files = {"many.py": "def one(): ...\n" + "one()\n" * 25}
    async with service(tmp_path, path_with(node.needed(node.pyright)), files) as road:
        found: list[int] = []
        cursor: str | None = None
        while True:
            options = {"maxResults": 10, **({"cursor": cursor} if cursor else {})}
            page = await road.data("code.references", "many.py", input={"symbol": "one"}, options=options)
            found += [each["line"] for each in page["locations"]]
            cursor = page["nextCursor"]
            if cursor is None:
                break
        assert found == list(range(1, 27)) and page["total"] == 26


async def test_a_place_outside_the_root_is_named_without_its_text(tmp_path: Path) -> None:
    async with service(tmp_path, path_with(node.needed(node.pyright))) as road:
        (found,) = (await road.data("code.definition", "shapes.py", input={"line": 6, "symbol": "str"}))["locations"]
        assert found["path"].startswith("/") and found["path"].endswith("builtins.pyi") and found["text"] == ""


async def test_callers_callees_and_types_are_found(tmp_path: Path) -> None:
    async with service(tmp_path) as road:

        async def names(path: str, kind: str, symbol: str) -> list[str]:
            answer = await road.data("code.hierarchy", path, input={"kind": kind, "symbol": symbol})
            return [each["name"] for each in answer["items"]]

        assert await names("shapes.py", "callers", "area") == ["main"]
        assert "area" in await names("app.py", "callees", "main")
        assert await names("shapes.py", "subtypes", "Base") == ["Square"]
        assert await names("app.py", "supertypes", "Square") == ["Base"]


async def test_problems_that_a_change_brought_are_told_from_those_before(tmp_path: Path) -> None:
    files = {"old.py": "first: int = 'text'\n\n\ndef half(x: int) -> int:\n    return x // 2\n"}
    async with service(tmp_path, path_with(node.needed(node.pyright)), files) as road:
        whole = await road.data("code.diagnostics", "old.py")
        assert [each["line"] for each in whole["diagnostics"]] == [1] and whole["since"] is None
        edits = [{"oldText": "return x // 2", "newText": "return x // tow"}]
        changed = await road.call("file.patch", "old.py", input={"edits": edits})
        new = await road.data("code.diagnostics")
        assert [(each["line"], each["code"]) for each in new["diagnostics"]] == [(5, "reportUndefinedVariable")]
        assert (new["since"], new["known"], new["fixed"]) == (changed["operationId"], 1, 0)
        await road.data("file.patch", "old.py", input={"edits": [{"oldText": "tow", "newText": "2"}]})
        fixed = await road.data("code.diagnostics", "old.py")
        assert (fixed["diagnostics"], fixed["known"], fixed["fixed"]) == ([], 1, 1)
        assert len((await road.data("code.diagnostics", "old.py", options={"all": True}))["diagnostics"]) == 1


@pytest.mark.parametrize(
    ("path", "broken", "expected"),
    [
        ("web/main.ts", ("add(1, 2)", "ad(1, 2)"), "2304"),
        ("c/main.cpp", ("twice(2)", "twise(2)"), "undeclared_var_use_suggest"),
    ],
)
async def test_typescript_and_clangd_report_a_typo_after_the_change(
    tmp_path: Path, path: str, broken: tuple[str, str], expected: str
) -> None:
    async with service(tmp_path) as road:
        await road.data("file.patch", path, input={"edits": [{"oldText": broken[0], "newText": broken[1]}]})
        (problem,) = (await road.data("code.diagnostics", options={"severity": "error"}))["diagnostics"]
        assert (problem["path"], problem["line"], problem["code"]) == (path, 2, expected)


async def test_an_action_is_listed_and_applied_by_its_title(tmp_path: Path) -> None:
    async with service(tmp_path) as road:
        await road.data("file.write", "web/main.ts", input={"content": "export const total: number = add(1, 2);\n"})
        at = {"line": 1, "kind": "quickfix"}
        titles = [each["title"] for each in (await road.data("code.actions", "web/main.ts", input=at))["actions"]]
        title = next(title for title in titles if "import" in title.lower())
        before = (road.root / "web/main.ts").read_bytes()
        assert await road.code("code.actions", "web/main.ts", input={**at, "apply": "no such title"}) == "not_found"
        assert (road.root / "web/main.ts").read_bytes() == before
        await road.data("code.actions", "web/main.ts", input={**at, "apply": title})
        assert (road.root / "web/main.ts").read_text().startswith("import { add }")


async def test_a_file_is_laid_out_by_its_server_or_the_answer_names_what_does_it(tmp_path: Path) -> None:
    async with service(tmp_path) as road:
        await road.data("file.write", "c/main.cpp", input={"content": "int  main( ){return 0;}\n"})
        await road.data("code.format", "c/main.cpp")
        assert (road.root / "c/main.cpp").read_text() == "int main() { return 0; }\n"
        before = (road.root / "app.py").read_bytes()
        assert await road.code("code.format", "app.py") == "provider_unavailable"
        assert (road.root / "app.py").read_bytes() == before


async def test_the_map_shows_the_most_used_file_first_and_follows_changes(tmp_path: Path) -> None:
    files = {f"users/user_{number}.py": "from core_parts import make_widget\n\nmake_widget()\n" for number in range(20)}
    files["core_parts.py"] = "def make_widget() -> None: ...\n\n\ndef rarely_used() -> None: ...\n"
    async with service(tmp_path, path_with(), files) as road:
        first = await road.data("code.map", ".", options={"maxTokens": 200})
        assert first["map"].splitlines()[:2] == ["core_parts.py", "  1: def make_widget() -> None"]
        assert first["files"] == 21 and len(first["map"]) <= 700
        await road.data(
            "file.patch", "core_parts.py", input={"edits": [{"oldText": "make_widget()", "newText": "made()"}]}
        )
        assert (
            "make_widget"
            not in (await road.data("code.map", ".", options={"maxTokens": 200}))["map"].split("\nusers")[0]
        )

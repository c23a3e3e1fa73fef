"""code.* by gopls and rust-analyzer, where the machine has them."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.language import path_with, running, service

pytestmark = pytest.mark.anyio
GO = {
    "go.mod": "module example.org/shapes\n\ngo 1.18\n",
    "main.go": 'package main\n\nimport "example.org/shapes/area"\n\nfunc main() {\n\tprintln(area.Of(2))\n}\n',
    "area/area.go": "package area\n\n// Of is the area of a square.\nfunc Of(side int) int {\n\treturn side * side\n}\n",
}
RUST = {
    "Cargo.toml": '[package]\nname = "shapes"\nversion = "0.1.0"\nedition = "2021"\n',
    "Cargo.lock": 'version = 3\n\n[[package]]\nname = "shapes"\nversion = "0.1.0"\n',
    "src/main.rs": 'mod area;\n\nfn main() {\n    println!("{}", area::of(2));\n}\n',
    "src/area.rs": "/// The area of a square.\npub fn of(side: i32) -> i32 {\n    side * side\n}\n",
}


def installed(program: str, *others: str) -> dict[str, str]:
    """An environment with a server and what it needs; skips the test where it does not run."""
    folders: list[Path] = []
    for each in (program, *others):
        found = shutil.which(each)
        answer = (
            subprocess.run([found, "version" if each in ("go", "gopls") else "--version"], capture_output=True)
            if found
            else None
        )
        if found is None or answer is None or answer.returncode:
            pytest.skip(f"not installed: {each} (Debian: {each})")
        folders.append(Path(found).parent)
    return path_with(*folders)


async def check(road: Any, engine: str, path: str, at: dict[str, Any], place: tuple[str, int], shown: str) -> None:
    found = await road.data("code.definition", path, input=at)
    assert found["engine"] == engine
    assert [(each["path"], each["line"]) for each in found["locations"]] == [place]
    assert shown in (await road.data("code.hover", path, input=at))["text"]
    uses = await road.data("code.references", path, input=at)
    assert {each["path"] for each in uses["locations"]} == {path, place[0]}
    listed = await road.data("code.symbols", place[0])
    assert (at["symbol"], place[1]) in [(each["name"], each["line"]) for each in listed["symbols"]]
    callers = await road.data("code.hierarchy", place[0], input={"kind": "callers", "symbol": at["symbol"]})
    assert [each["name"] for each in callers["items"]] == ["main"]
    before = {name: (road.root / name).read_bytes() for name in (path, place[0])}
    done = await road.call("code.rename", place[0], input={"symbol": at["symbol"], "newName": "Measured"})
    assert done["effect"] == "confirmed", done
    assert all(b"Measured" in (road.root / name).read_bytes() for name in before)
    await road.data("file.undo", input={"operationId": done["operationId"]})
    assert {name: (road.root / name).read_bytes() for name in before} == before
    broken = await road.call("file.patch", path, input={"edits": [{"oldText": "(2)", "newText": "(two)"}]})
    new = await road.data("code.diagnostics", options={"severity": "error"})
    assert new["since"] == broken["operationId"] and [each["path"] for each in new["diagnostics"]] == [path]
    assert running(road) == [engine]


async def test_gopls_answers_in_the_sandbox(tmp_path: Path) -> None:
    async with service(tmp_path, installed("gopls", "go"), GO) as road:
        await check(
            road, "gopls", "main.go", {"line": 6, "symbol": "Of"}, ("area/area.go", 4), "func area.Of(side int)"
        )
        await road.data(
            "file.write", "area/area.go", input={"content": "package area\nfunc  Of(side int)int{return side}\n"}
        )
        await road.data("code.format", "area/area.go")
        assert (road.root / "area/area.go").read_text() == "package area\n\nfunc Of(side int) int { return side }\n"


async def test_rust_analyzer_answers_in_the_sandbox(tmp_path: Path) -> None:
    async with service(tmp_path, installed("rust-analyzer", "cargo", "rustc"), RUST) as road:
        await check(road, "rust-analyzer", "src/main.rs", {"line": 4, "symbol": "of"}, ("src/area.rs", 2), "pub fn of")

"""The rename and reference fixtures of jedi, answered through code.rename and code.references by pyright.

Each is exactly jedi's answer, or differs for a reason of this table: the two analyse differently where a name is unresolved.
Where it differs, pyright itself is asked the same, and must have answered the same: nothing was lost on the way.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.language.pool import LanguageServers
from computer_linker.providers.language.server import Server
from computer_linker.providers.language.uris import uri_of
from computer_linker.providers.language.wire import ServerError
from support import jedi_fixtures, node
from support.agents import road_with
from support.language import path_with
from support.road import folder_scope

pytestmark = pytest.mark.anyio

UNRESOLVED = "pyright gives no uses of what it cannot resolve; jedi gives those with the same name"
MODULE = "pyright does not rename or list a module or package as a name: that is a move of files"
FLOW = "pyright distinguishes a name in a class body from the same name of the module; jedi merges them"
INHERITED = "pyright takes an attribute of an instance and of its class for one; jedi keeps them apart"
DYNAMIC = "jedi infers a parameter's type from the calls; pyright takes it as unknown"
STUB = "pyright takes a stub instead of the module, so a name only in the module is unresolved"
OUTSIDE = "places in the standard library are named too, by their paths outside the root"

REFERENCES = {
    34: FLOW, 87: UNRESOLVED, 90: UNRESOLVED, 94: MODULE, 105: MODULE, 108: UNRESOLVED, 161: UNRESOLVED, 176: INHERITED,
    196: INHERITED, 198: INHERITED, 252: UNRESOLVED, 264: DYNAMIC, 372: STUB, 393: OUTSIDE,
}  # fmt: skip
RENAMES = {
    "var-not-found": UNRESOLVED,
    "module": MODULE,
    "import-not-found": UNRESOLVED,
    "package-with-stub": MODULE,
    "weird-package-mix": MODULE,
}


async def asked(server: Server, method: str, path: str, line: int, column: int, **more: Any) -> Any:
    """The server's own answer at a place; None where it refuses."""
    position = {"line": line - 1, "character": column - 1}
    params = {"textDocument": {"uri": uri_of(f"{server.root}/{path}")}, "position": position, **more}
    try:
        return await server.wire.result(server.wire.ask(method, params), 60)
    except ServerError:
        return None


async def own_uses(server: Server, line: int, column: int) -> set[tuple[str, int, int]]:
    context = {"includeDeclaration": True}
    found = await asked(server, "textDocument/references", "usages.py", line, column, context=context)
    starts = [(each["uri"], each["range"]["start"]) for each in found or []]
    return {(uri, start["line"], start["character"]) for uri, start in starts}


async def test_references_are_those_of_jedi_or_differ_for_a_named_reason(tmp_path: Path) -> None:
    source, environ = jedi_fixtures.source(), path_with(node.needed(node.pyright))
    root = tmp_path / "root"
    shutil.copytree(source / "test" / "completion", root)
    cases = jedi_fixtures.uses(source)
    different: set[int] = set()
    async with road_with(tmp_path, environ, [folder_scope(root)]) as road:
        for case in cases:
            at = {"line": case.line, "column": case.column}
            found = await road.data("code.references", "usages.py", input=at, options={"maxResults": 1000})
            if {jedi_fixtures.named(each) for each in found["locations"]} != case.places:
                different.add(case.line)
                (server,) = road.app.services.use(LanguageServers).running()
                assert len(await own_uses(server, case.line, case.column)) == len(found["locations"])
    assert len(cases) == 82
    assert different == set(REFERENCES)


async def test_renames_are_those_of_jedi_to_the_line_or_differ_for_a_named_reason(tmp_path: Path) -> None:
    source, environ = jedi_fixtures.source(), path_with(node.needed(node.pyright))
    root = tmp_path / "root"
    cases = jedi_fixtures.renames(source)
    different: set[str] = set()
    for case in cases:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(source / "test" / "refactor", root)
        (root / "rename.py").write_text(case.code)
        before = {path: path.read_bytes() for path in root.rglob("*.py*")}
        async with road_with(tmp_path, environ, [folder_scope(root)]) as road:
            request = {"line": case.line, "column": case.column, "newName": case.new_name}
            reply = await road.call("code.rename", "rename.py", input=request, options={"dryRun": True})
            (server,) = road.app.services.use(LanguageServers).running()
            own = await asked(server, "textDocument/rename", "rename.py", case.line, case.column, newName=case.new_name)
            assert bool(own) is reply["ok"]
        assert {path: path.read_bytes() for path in root.rglob("*.py*")} == before
        if case.is_error:
            assert reply["error"]["code"] == "not_found"
        elif not reply["ok"]:
            assert reply["error"]["code"] == "not_found"
            different.add(case.name)
        elif jedi_fixtures.changed_lines(reply["data"]["diff"]) != jedi_fixtures.changed_lines(case.expected):
            different.add(case.name)
    assert len(cases) == 12
    assert different == set(RENAMES)

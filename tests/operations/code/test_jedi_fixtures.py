"""The rename and reference fixtures of jedi, answered through code.rename and code.references by pyright.

Each is exactly jedi's answer, or differs for a reason of this table: the two analyse differently where a name is unresolved.
"""

import shutil
from pathlib import Path

import pytest

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

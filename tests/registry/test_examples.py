"""Every example of every operation is true: it is sent down the real road, in a small project."""

import json
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from computer_linker.registry.operation import Example
from computer_linker.registry.reference import EXAMPLES_FILE, whole_catalog
from support.documents import excel, row
from support.project import make_project
from support.road import Road, computer_scope, folder_scope

RECORDED = Path(__file__).parents[2] / "docs" / "reference" / EXAMPLES_FILE
EXAMPLES = [
    pytest.param(op.name, example, id=f"{op.name}: {example.title}")
    for op in whole_catalog().operations.values()
    for example in op.examples
    if example.runs
]


def test_every_example_is_understood_where_it_cannot_be_run_too() -> None:
    # An example that needs a desktop, a program or something made before is run by its operation's own tests.
    for op in whole_catalog().operations.values():
        for example in op.examples:
            request = example.request
            op.parse(request.get("target"), request.get("input"), request.get("options"))


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "example"), EXAMPLES)
async def test_an_example_does_what_it_says(tmp_path: Path, name: str, example: Example) -> None:
    (tmp_path / "root").mkdir()
    make_project(tmp_path / "root")
    scopes = [folder_scope(tmp_path / "root", allowedCommands=["*"]), computer_scope("screen")]
    async with Road.open(tmp_path, scopes) as road:
        op = road.app.catalog.find(name)
        request: dict[str, Any] = dict(example.request)
        scope = request.pop("scope", "screen" if op.on == "computer" else "app")
        envelope = await road.call(name, request.pop("target", None), scope=scope, **request)
        assert envelope["ok"], envelope["error"]
        assert "effect" in envelope or op.effect == "observe"
        check_recorded(f"{name}: {example.title}", envelope, tmp_path)


Made = dict[str, Any]
Prepare = Callable[[Road], Awaitable[Made]]
"""Makes what an example speaks of, and answers the parts of the request that name it."""


async def nothing(road: Road) -> Made:
    return {}


async def staged(road: Road) -> Made:
    await road.data("git.stage", input={"paths": ["notes.txt"]})
    return {}


async def started(road: Road) -> Made:
    begun = await road.data("command.start", input={"command": ["python3", "-i", "-q"]}, options={"pty": True})
    await road.data("command.read", begun["processId"], options={"waitFor": ">>> $"})
    return {"target": begun["processId"]}


async def written(road: Road) -> Made:
    done = await road.call("file.write", "notes.txt", input={"content": "new\n"})
    return {"input": {"operationId": done["operationId"]}}


async def attached(road: Road) -> Made:
    return {"target": (await road.data("artifact.attach", "README.md"))["artifact"]["id"]}


async def viewed(road: Road) -> Made:
    command = {"command": ["sh", "-c", "echo fifth line >> notes.txt"]}
    return {"target": (await road.data("command.run", input=command, options={"view": True}))["view"]["viewId"]}


async def tabulated(road: Road) -> Made:
    (road.root / "budget.xlsx").write_bytes(excel(row(1, "Item", "Cost") + row(7, "Rent", 1100), name="2026"))
    return {}


PREPARED: dict[str, Prepare] = {
    **dict.fromkeys("git.diff git.log git.show git.stage git.status git.worktree_list".split(), nothing),
    **dict.fromkeys(("package.list", "package.run", "code.outline"), nothing),
    **dict.fromkeys(("git.commit", "git.unstage"), staged),
    **dict.fromkeys(("command.read", "command.send", "command.stop"), started),
    **dict.fromkeys(("view.show", "view.keep", "view.drop"), viewed),
    "document.edit": tabulated,
    "file.undo": written,
    "artifact.read": attached,
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", PREPARED)
async def test_an_example_of_what_was_made_before_does_what_it_says(tmp_path: Path, name: str) -> None:
    (tmp_path / "root").mkdir()
    make_project(tmp_path / "root")
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["*"])]) as road:
        example = road.app.catalog.find(name).examples[0]
        request = {**example.request, **await PREPARED[name](road)}
        envelope = await road.call(name, request.pop("target", None), **request)
        assert envelope["ok"], envelope["error"]
        check_recorded(f"{name}: {example.title}", envelope, tmp_path)


def test_the_reference_shows_both_renderings_of_an_example_of_every_operation() -> None:
    pages = "".join(page.read_text() for page in RECORDED.parent.glob("*.md"))
    for name in whole_catalog().operations:
        section = pages.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert "rendered as `json`" in section and "rendered as `model`" in section, name


def check_recorded(key: str, envelope: dict[str, Any], place: Path) -> None:
    """The reference shows an answer of this form. `RECORD_EXAMPLES=1` records it anew, with what differs each time replaced."""
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    if os.environ.get("RECORD_EXAMPLES"):
        recorded[key] = json.loads(without_chance(json.dumps(envelope), place))
        RECORDED.write_text(json.dumps(dict(sorted(recorded.items())), indent=1) + "\n")
    assert key in recorded, "run this test with RECORD_EXAMPLES=1, then make docs"
    assert set(recorded[key]["data"]) == set(envelope["data"]), "run this test with RECORD_EXAMPLES=1, then make docs"


def without_chance(text: str, place: Path) -> str:
    text = text.replace(str(place), "/home/you/project")
    text = re.sub(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b", "01JA0000000000000000000000", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "2026-01-31T12:00:00Z", text)
    text = re.sub(r'"(durationMs|elapsedMs)": [\d.]+', r'"\1": 1.5', text)
    text = re.sub(r"\b(art|proc|ask|view)_[0-9a-f]{24}\b", rf"\1_{'0' * 24}", text)
    text = re.sub(r'"token": "[\w-]+"', '"token": "TOKEN"', text)
    return re.sub(r"\b[0-9a-f]{40}\b", "0" * 40, text)

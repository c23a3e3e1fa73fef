"""`ctx.change`: what is shown is what is made, and an operation has no other way to change files."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.computer.facets.files import MakeFolder, Move, Remove, Write
from computer_linker.model.base import Model
from computer_linker.model.effect import Effect
from computer_linker.model.envelope import Call
from computer_linker.registry import Context, Example, Operation, operation
from computer_linker.registry.catalog import Catalog
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
EXAMPLES = [Example("", {})]


class Done(Model):
    paths: list[str] = []


@operation("test.several", effect=Effect.CHANGE, shows="changes", examples=EXAMPLES)
async def several(ctx: Context) -> Done:
    """Four kinds of changes at once."""

    def path(name: str) -> Any:
        return ctx.path(name, for_writing=True)

    done = await ctx.change(
        [
            Write(path("new.txt"), b"new\n", must_be_new=True),
            MakeFolder(path("folder")),
            Remove(path("old.txt")),
            Move(path("here.txt"), path("there.txt")),
        ]
    )
    return Done(paths=[one.path.shown for one in done])


@operation("test.undeclared", effect=Effect.CHANGE, examples=EXAMPLES)
async def undeclared(ctx: Context) -> Done:
    """Changes a file and does not say so."""
    await ctx.change([Write(ctx.path("new.txt", for_writing=True), b"new\n")])
    return Done()


@operation("test.observing", effect=Effect.OBSERVE, shows="changes", examples=EXAMPLES)
async def observing(ctx: Context) -> Done:
    """Changes a file without an intent."""
    await ctx.change([Write(ctx.path("new.txt", for_writing=True), b"new\n")])
    return Done()


@operation("test.aside", effect=Effect.CHANGE, shows="changes", examples=EXAMPLES)
async def aside(ctx: Context) -> Done:
    """Has another effect before its changes."""
    await ctx.dispatch(Call("free", "file.write", "aside.txt", {"content": "x"}))
    await ctx.change([Write(ctx.path("new.txt", for_writing=True), b"new\n")])
    return Done()


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    async with Road.open(tmp_path, [folder_scope(root, confirm="all"), folder_scope(root, "free")]) as opened:
        dispatcher = opened.app.dispatcher
        known: dict[str, Operation] = {
            **dispatcher.catalog.operations, **{op.name: op for op in (several, undeclared, observing, aside)}
        }  # fmt: skip
        dispatcher.catalog = Catalog(known, known)
        (root / "old.txt").write_text("old\n")
        (root / "here.txt").write_text("here\n")
        yield opened


def names(road: Road) -> list[str]:
    return sorted(path.name for path in road.root.iterdir())


async def asked(road: Road, op: str, during: Any = lambda: None, **parts: Any) -> tuple[str, dict[str, Any]]:
    """Call with a person who says yes once `during` has happened; what they saw, and the envelope."""
    shown: list[str] = []

    async def person(question: ApprovalRequest) -> Answer | None:
        assert question.about is not None
        shown.extend(question.about.lines)
        during()
        return "yes"

    async with road.app.services.use(Approvals).attached("tests", person):
        envelope = await road.call(op, **parts)
    return "\n".join(shown), envelope


async def test_every_change_is_shown_and_made(road: Road) -> None:
    shown, envelope = await asked(road, "test.several")
    assert "new.txt: not there now, 4 bytes then" in shown and "+new" in shown and "-old" in shown, shown
    assert "makes the folder folder" in shown and "moves here.txt" in shown and "to there.txt" in shown, shown
    assert (envelope["effect"], names(road)) == ("confirmed", ["folder", "new.txt", "there.txt"]), envelope
    back = await road.call("file.undo", input={"operationId": envelope["operationId"]}, scope="free")
    assert back["error"]["code"] == "not_found", "another scope's"
    undone = (await asked(road, "file.undo", input={"operationId": envelope["operationId"]}))[1]
    assert undone["effect"] == "confirmed" and names(road) == ["here.txt", "old.txt"]


@pytest.mark.parametrize("name", ["new.txt", "old.txt", "here.txt", "there.txt"])
async def test_a_path_that_changed_after_the_look_ends_all_of_it(road: Road, name: str) -> None:
    def meanwhile() -> None:
        (road.root / name).write_text("meanwhile\n")

    _, envelope = await asked(road, "test.several", meanwhile)
    assert envelope["error"]["code"] in ("conflict", "already_exists"), envelope
    assert names(road) == sorted({"here.txt", "old.txt", name})
    assert (road.root / name).read_text() == "meanwhile\n"


async def test_an_undo_of_the_last_is_bound_to_the_operation_that_was_last(road: Road) -> None:
    await asked(road, "file.write", target="old.txt", input={"content": "second\n"})
    question = await road.call("file.undo", input={"operationId": "last"})
    people = road.app.services.use(Approvals)
    assert people.answer(question["error"]["details"]["approvalId"], "yes")
    await asked(road, "file.write", target="here.txt", input={"content": "third\n"})
    refused = await road.call("file.undo", input={"operationId": "last"})
    assert refused["error"]["code"] == "conflict", refused
    assert ((road.root / "old.txt").read_text(), (road.root / "here.txt").read_text()) == ("second\n", "third\n")


@pytest.mark.parametrize("op", ["test.undeclared", "test.observing"])
async def test_changes_that_are_not_declared_are_not_made(road: Road, op: str) -> None:
    refused = await road.call(op, scope="free")
    assert refused["error"]["code"] == "execution_failed" and not (road.root / "new.txt").exists(), refused


async def test_a_preview_has_no_effect_and_what_cannot_be_shown_is_not_done(road: Road) -> None:
    shown, refused = await asked(road, "test.aside")
    assert "cannot be shown" in shown and refused["error"]["code"] in ("conflict", "execution_failed"), refused
    assert names(road) == ["here.txt", "old.txt"]

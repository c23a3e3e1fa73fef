"""A batch in a scope that asks: one question for all its steps, and a yes that is held to every one of them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest, NeedsInput
from computer_linker.approvals.standing import extents_of
from computer_linker.audit.wording import described
from support.pair import events_of
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
DELETE = {"op": "file.delete", "target": "keep.txt"}
LOOK = {"op": "file.stat", "target": "keep.txt"}


def write(target: str, content: str = "x", **options: Any) -> Json:
    return {"op": "file.write", "target": target, "input": {"content": content}, "options": options}


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[Road]:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as road:
        (road.root / "keep.txt").write_text("kept\n")
        yield road


def approvals(road: Road) -> Approvals:
    return road.app.services.use(Approvals)


@asynccontextmanager
async def person(
    road: Road, *answers: Answer, meanwhile: Callable[[], object] = lambda: None
) -> AsyncIterator[list[str]]:
    """The owner, who gives these answers; `meanwhile` happens while the first request is on the screen."""
    shown: list[str] = []
    left = list(answers)

    async def answer(asked: ApprovalRequest) -> Answer | None:
        shown.append(asked.text)
        if len(shown) == 1:
            meanwhile()
        return left.pop(0)

    async with approvals(road).attached("tests", answer):
        yield shown


async def batch(road: Road, *steps: Json, **options: Any) -> Json:
    return await road.call("batch.run", input={"operations": list(steps)}, options=options)


async def test_one_yes_covers_all_steps_that_were_shown(asking: Road) -> None:
    async with person(asking, "yes") as shown:
        done = await batch(asking, LOOK, DELETE, write("new.txt", "fresh\n"), {"op": "file.mkdir", "target": "made"})
    assert done["ok"], done
    assert len(shown) == 1
    assert "A batch of 4 steps" in shown[0] and "1. file.stat keep.txt (needs no yes)" in shown[0]
    assert "2. file.delete keep.txt (needs your yes)" in shown[0] and "-kept" in shown[0] and "+fresh" in shown[0]
    assert "4. file.mkdir made (needs your yes)" in shown[0]
    assert not (asking.root / "keep.txt").exists() and (asking.root / "new.txt").read_text() == "fresh\n"
    for op in ("batch.run", "file.delete", "file.write"):
        assert [event["approval"]["extent"] for event in await events_of(asking, op)] == ["once"]
    assert [event["approval"] for event in await events_of(asking, "file.stat")] == [None]


async def test_a_denied_batch_runs_nothing(asking: Road) -> None:
    async with person(asking, "no") as shown:
        done = await batch(asking, LOOK, DELETE, write("new.txt"), stopOnError=False)
    assert done["error"]["code"] == "denied_by_person" and "data" not in done
    assert len(shown) == 1 and (asking.root / "keep.txt").exists() and not (asking.root / "new.txt").exists()
    for op in ("file.stat", "file.delete", "file.write"):
        assert await events_of(asking, op) == []


async def test_a_step_that_uses_a_result_is_shown_as_such_and_asked_about_again(asking: Road) -> None:
    (asking.root / "name.txt").write_text("keep.txt")
    steps = (
        write("new.txt"),
        {"op": "file.read", "target": "name.txt"},
        {"op": "file.delete", "target": "$2.content"},
    )
    async with person(asking, "yes", "no") as shown:
        done = await batch(asking, *steps)
    assert done["error"]["code"] == "denied_by_person" and done["data"]["failed"] == 1
    assert "3. file.delete $2.content (uses the results of earlier steps: you are asked again" in shown[0]
    assert "Step 3 of a batch of 3:" in shown[1] and "-kept" in shown[1] and '"target":"keep.txt"' in shown[1]
    assert (asking.root / "new.txt").exists() and (asking.root / "keep.txt").exists()


async def test_a_batch_whose_only_change_uses_a_result_is_asked_about_with_its_value(asking: Road) -> None:
    steps = ({"op": "file.find", "target": ".", "input": {"pattern": "keep.*"}}, {**DELETE, "target": "$1.files.0"})
    async with person(asking, "yes") as shown:
        done = await batch(asking, *steps)
    assert done["ok"] and len(shown) == 1 and "-kept" in shown[0] and not (asking.root / "keep.txt").exists()


async def test_what_changed_after_the_yes_is_asked_about_again(asking: Road) -> None:
    keep = asking.root / "keep.txt"
    async with person(asking, "yes", "no", meanwhile=lambda: keep.write_text("precious\n")) as shown:
        done = await batch(asking, write("new.txt"), DELETE)
    assert done["error"]["code"] == "denied_by_person" and (asking.root / "new.txt").exists()
    assert "no longer as it was shown with the batch" in shown[1] and "-precious" in shown[1]
    assert keep.read_text() == "precious\n"


async def test_a_step_on_what_an_earlier_one_made_is_asked_about_when_it_can_be_shown(asking: Road) -> None:
    patch = {"op": "file.patch", "target": "new.txt", "input": {"edits": [{"oldText": "one", "newText": "two"}]}}
    async with person(asking, "yes", "yes") as shown:
        done = await batch(
            asking, write("new.txt", "one\n"), patch, {"op": "file.mkdir", "target": "made"}, write("made/in")
        )
    assert done["ok"], done
    assert len(shown) == 2 and "2. file.patch new.txt (cannot be shown before" in shown[0]
    assert "-one" in shown[1] and "+two" in shown[1]
    assert (asking.root / "new.txt").read_text() == "two\n" and (asking.root / "made/in").read_text() == "x"


async def test_a_yes_to_a_batch_is_good_once_and_for_no_step_alone(asking: Road) -> None:
    steps = (write("log.txt", "x", append=True), write("other.txt", "y"))
    refused = await batch(asking, *steps)
    assert refused["error"]["code"] == "confirm_required" and not (asking.root / "log.txt").exists()
    asked = approvals(asking).waiting()[0]
    assert extents_of(asked) == () and approvals(asking).answer(asked.id, "yes")
    alone = dict(steps[1])
    assert await asking.code(alone.pop("op"), alone.pop("target"), **alone) == "confirm_required"
    assert await asking.code("batch.run", input={"operations": [*steps, LOOK]}) == "confirm_required"
    assert (await batch(asking, *steps))["ok"]
    assert (asking.root / "log.txt").read_text() == "x"
    assert (await batch(asking, *steps))["error"]["code"] == "confirm_required"
    assert (asking.root / "log.txt").read_text() == "x"


async def test_a_yes_to_a_batch_on_a_view_covers_its_steps_when_it_is_sent_again(tmp_path: Path) -> None:
    lines = ("echo 1 > one", "cat one")
    steps = [{"op": "command.run", "target": ".", "input": {"command": ["sh", "-c", line]}} for line in lines]
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all", allowedCommands=["*"])]) as road:
        views = []
        for _ in range(2):
            refused = await batch(road, *steps, view=True)
            assert approvals(road).answer(refused["error"]["details"]["approvalId"], "yes")
            done = await batch(road, *steps, view=True)
            assert done["ok"], done
            assert done["data"]["results"][1]["data"]["stdout"] == "1\n" and not (road.root / "one").exists()
            views.append(done["data"]["results"][0]["data"]["view"]["viewId"])
        assert views[0] != views[1]


async def test_what_was_allowed_already_and_what_is_refused_are_named_and_not_covered(asking: Road) -> None:
    refused = await asking.call("file.write", "free.txt", input={"content": "1"}, options={})
    assert approvals(asking).answer(refused["error"]["details"]["approvalId"], "shape")
    async with person(asking, "no") as shown:
        assert (await batch(asking, write("free.txt", "2")))["ok"]
        assert shown == [] and (asking.root / "free.txt").read_text() == "2"
        done = await batch(asking, write("free.txt", "3"), write("../out.txt"), DELETE, stopOnError=False)
    assert done["error"]["code"] == "denied_by_person" and (asking.root / "free.txt").read_text() == "2"
    assert "1. file.write free.txt (you allowed such requests already)" in shown[0]
    assert "2. file.write ../out.txt (will be refused: " in shown[0]


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (write("../out.txt"), "path_out_of_scope"),
        ({"op": "file.reed", "target": "a.txt"}, "unknown_operation"),
        ({"op": "file.write", "target": "a.txt", "input": {"contents": 1}}, "invalid_request"),
        ({"op": "file.read", "scope": "nowhere", "target": "a.txt"}, "unknown_scope"),
    ],
    ids=["outside", "unknown", "malformed", "no scope"],
)
async def test_the_owner_is_not_asked_about_a_batch_with_a_step_that_must_be_refused(
    asking: Road, step: dict[str, Any], code: str
) -> None:
    """Found: the owner was asked, said yes, and the batch failed at the step that had to be refused anyway."""
    async with person(asking, "yes") as shown:
        done = await batch(asking, write("first.txt"), step)
        assert done["error"]["code"] == code and done["error"]["details"]["step"] == 2, done
        assert "Step 2 of 2" in done["error"]["message"] and "the owner was not asked" in done["error"]["message"]
    assert shown == [] and approvals(asking).waiting() == []
    assert not (asking.root / "first.txt").exists(), "no step was run"
    [event] = await events_of(asking, "batch.run")
    assert described(event).what.startswith("tried to run a batch: write first.txt; "), event  # type: ignore[arg-type]


async def test_a_dialog_that_needs_the_call_again_never_runs_a_step_twice(asking: Road) -> None:
    asked: list[str] = []

    async def dialog(request: ApprovalRequest) -> Answer | None:
        asked.append(request.op)
        raise NeedsInput(request)

    steps = [
        write("log.txt", "x", append=True),
        {"op": "file.write", "target": "b.txt", "input": {"content": "$1.path"}},
    ]
    call = {"scope": "app", "op": "batch.run", "input": {"operations": steps}}
    with pytest.raises(NeedsInput):
        await asking.app.dispatcher.call_wire(call, LOCAL, ask=dialog)
    assert asked == ["batch.run"] and not (asking.root / "log.txt").exists()
    approvals(asking).answer(approvals(asking).waiting()[0].id, "yes")
    reply = await asking.app.dispatcher.call_wire(call, LOCAL, ask=dialog)
    assert asked == ["batch.run", "file.write"] and reply.envelope["error"]["code"] == "confirm_required"
    assert (asking.root / "log.txt").read_text() == "x" and not (asking.root / "b.txt").exists()


async def test_a_token_for_a_batch_shows_all_steps_and_is_good_for_exactly_these(asking: Road) -> None:
    wanted = {"operations": [write("new.txt"), DELETE]}
    issued = await asking.data("confirm.issue", input={"op": "batch.run", "input": wanted})
    [asked] = approvals(asking).waiting()
    assert "1. file.write new.txt" in asked.text and "2. file.delete keep.txt" in asked.text
    token = {"token": issued["token"]}
    early = await asking.call("batch.run", input=wanted, confirm=token)
    assert early["error"]["code"] == "confirm_required" and not (asking.root / "new.txt").exists()
    approvals(asking).answer(asked.id, "yes")
    other = {"operations": [write("other.txt"), DELETE]}
    assert not (await asking.call("batch.run", input=other, confirm=token))["ok"]
    assert not (asking.root / "other.txt").exists() and (asking.root / "keep.txt").exists()
    assert (await asking.call("batch.run", input=wanted, confirm=token))["ok"]
    assert (asking.root / "new.txt").exists() and not (asking.root / "keep.txt").exists()
    assert not (await asking.call("batch.run", input=wanted, confirm=token))["ok"]


async def test_a_batch_that_needs_no_yes_gets_no_token(asking: Road) -> None:
    assert (
        await asking.code("confirm.issue", input={"op": "batch.run", "input": {"operations": [LOOK]}})
        == "invalid_request"
    )
    assert approvals(asking).waiting() == []

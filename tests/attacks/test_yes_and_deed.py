"""A yes holds for what was shown: what it is for is looked at again inside the device queue, right before the act."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.computer.simulated.world import SimulatedControl, SimulatedWindow, World
from computer_linker.config.schema import Config
from computer_linker.model.geometry import Rect
from computer_linker.model.scope import Scope
from computer_linker.service.app import open_app
from support.road import LOCAL, Road, computer_scope
from support.waiting import until

pytestmark = pytest.mark.anyio

OK = {"target": {"selector": {"byRole": "button", "titleContains": "OK"}}}
PLACE = Rect(x=40, y=40, width=400, height=300)
OTHER = replace(LOCAL, session="other", connection="other")


def dialog(world: World, title: str, app: str = "editor") -> SimulatedWindow:
    """A window with a button OK and a field, always at the same place."""
    window = world.open(app, title, PLACE)
    window.controls.append(SimulatedControl("button", "OK", Rect(x=10, y=50, width=80, height=30)))
    window.controls.append(SimulatedControl("text", "amount", Rect(x=10, y=150, width=80, height=30), text="10"))
    return window


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    computer = SimulatedComputer()
    dialog(computer.world, "Save draft?")
    async with Road.open(tmp_path, [computer_scope(confirm="act"), computer_scope("free")], computer) as opened:
        yield opened


def world(road: Road) -> World:
    assert isinstance(road.app.computer, SimulatedComputer)
    return road.app.computer.world


def people(road: Road) -> Approvals:
    return road.app.services.use(Approvals)


@asynccontextmanager
async def held(road: Road) -> AsyncIterator[Callable[[], None]]:
    """Another client holds the desktop until it is told to let go."""
    taken, over = anyio.Event(), anyio.Event()

    async def hold() -> None:
        async with road.app.dispatcher.queues.hold("desktop", replace(OTHER, proof="cli")):
            taken.set()
            await over.wait()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(hold)
            await taken.wait()
            yield over.set


async def queued(road: Road) -> None:
    """Return once a call waits for the desktop."""
    queue = road.app.dispatcher.queues._queues["desktop"]
    await until(lambda: queue.waiting)


async def in_the_queue(
    road: Road, op: str, change: Callable[[], object], target: Any = None, input: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A person says yes to the act; it waits behind another client, and meanwhile `change` happens."""
    answers: list[dict[str, Any]] = []
    parts = {"target": target, "input": input}
    wanted = {"op": op, **{name: part for name, part in parts.items() if part is not None}}
    issued = await road.data("confirm.issue", scope="desk", input=wanted, options={"ttlSeconds": 300})
    assert people(road).answer(issued["approvalId"], "yes")

    async def act() -> None:
        answers.append(await road.call(op, target, scope="desk", input=input, confirm={"token": issued["token"]}))

    async with held(road) as let_go, anyio.create_task_group() as group:
        group.start_soon(act)
        await queued(road)
        change()
        let_go()
    again = await road.call(op, target, scope="desk", input=input, confirm={"token": issued["token"]})
    assert again["error"]["code"] == "confirm_required", "the yes is used up, whatever came of it"
    return answers[0]


def replaced(road: Road, title: str = "Transfer 10000 to X?") -> SimulatedWindow:
    world(road).remove(world(road).windows[0])
    return dialog(world(road), title)


def events(road: Road) -> list[dict[str, Any]]:
    return [one for window in world(road).windows for one in window.log]


async def test_a_click_does_not_land_on_a_window_that_came_while_it_waited(road: Road) -> None:
    """B9a."""
    done = await in_the_queue(road, "desktop.click", lambda: replaced(road), input=OK)
    assert done["error"]["code"] == "conflict" and "window" in done["error"]["details"]["changed"], done
    assert events(road) == []


async def test_the_same_click_passes_when_nothing_changed_while_it_waited(road: Road) -> None:
    done = await in_the_queue(road, "desktop.click", lambda: None, input=OK)
    assert done["ok"], done
    assert [one["name"] for one in events(road) if one["event"] == "pressed"] == ["OK"]


def _another_title(road: Road) -> None:
    world(road).windows[0].title = "Delete everything?"


def _another_place(road: Road) -> None:
    world(road).windows[0].controls[0].bounds = Rect(x=200, y=200, width=80, height=30)


def _another_program(road: Road) -> None:
    world(road).windows[0].pid = 4242


def _same_title_other_window(road: Road) -> None:
    replaced(road, "Save draft?")


@pytest.mark.parametrize("change", [_another_title, _another_place, _another_program, _same_title_other_window])
async def test_a_click_is_held_to_window_program_and_place(road: Road, change: Callable[[Road], None]) -> None:
    done = await in_the_queue(road, "desktop.click", lambda: change(road), input=OK)
    assert done["error"]["code"] == "conflict", done
    assert events(road) == []


async def test_an_element_that_went_away_meanwhile_is_not_found_and_nothing_is_pressed(road: Road) -> None:
    done = await in_the_queue(road, "desktop.click", world(road).windows[0].controls.clear, input=OK)
    assert done["error"]["code"] in ("element_not_found", "stale_reference"), done
    assert events(road) == []


async def test_keys_do_not_go_to_a_field_whose_text_changed_meanwhile(road: Road) -> None:
    """Enter after another amount is another act."""
    field = world(road).windows[0].controls[1]
    world(road).windows[0].focus = field

    def other_amount() -> None:
        field.text = "10000"

    done = await in_the_queue(road, "desktop.press", other_amount, input={"key": "Enter"})
    assert done["error"]["code"] == "conflict" and done["error"]["details"]["changed"] == ["element"], done
    assert not any(one["event"] == "key" for one in events(road))


async def test_text_is_not_typed_into_a_window_that_took_the_keyboard_meanwhile(road: Road) -> None:
    done = await in_the_queue(
        road,
        "desktop.type_text",
        lambda: dialog(world(road), "Chat with a stranger"),
        input={"text": "secret"},
    )
    assert done["error"]["code"] == "conflict", done
    assert all("secret" not in window.typed() for window in world(road).windows)


@pytest.mark.parametrize(("clears", "ok"), [(True, True), (False, False)])
async def test_a_field_whose_text_is_replaced_anyway_is_not_held_to_that_text(
    road: Road, clears: bool, ok: bool
) -> None:
    """Two clients that fill one field in turn do not stop each other; text put after other text is another act."""
    field = world(road).windows[0].controls[1]
    given = {"target": {"selector": {"byRole": "text", "titleContains": "amount"}}, "text": "20"}
    answers: list[dict[str, Any]] = []
    wanted: dict[str, Any] = {"op": "desktop.type_text", "input": given, "options": {"clearBefore": clears}}
    issued = await road.data("confirm.issue", scope="desk", input=wanted)
    assert people(road).answer(issued["approvalId"], "yes")
    token = {"token": issued["token"]}

    async def act() -> None:
        answers.append(
            await road.call("desktop.type_text", scope="desk", input=given, options=wanted["options"], confirm=token)
        )

    async with held(road) as let_go, anyio.create_task_group() as group:
        group.start_soon(act)
        await queued(road)
        field.text = "10000"
        let_go()
    assert answers[0]["ok"] is ok, answers
    assert field.text == ("20" if ok else "10000")


@pytest.mark.parametrize("op", ["window.close", "window.focus"])
async def test_a_window_act_is_held_to_the_window_that_was_shown(road: Road, op: str) -> None:
    window = world(road).windows[0]
    done = await in_the_queue(road, op, lambda: _another_title(road), target=window.id)
    assert done["error"]["code"] == "conflict" and done["error"]["details"]["changed"] == ["window"], done
    assert window in world(road).windows and events(road) == []


async def test_an_app_is_not_closed_with_a_window_nobody_was_shown(road: Road) -> None:
    done = await in_the_queue(road, "app.close", lambda: dialog(world(road), "Unsaved work"), target="editor")
    assert done["error"]["code"] == "conflict", done
    assert len(world(road).windows) == 2


async def test_what_the_owner_takes_away_while_a_call_waits_is_refused(tmp_path: Path) -> None:
    """Rights are judged again after the queue, not only before it."""
    computer, answers = SimulatedComputer(), list[dict[str, Any]]()
    dialog(computer.world, "Save draft?")
    full, empty = computer_scope("free"), {**computer_scope("free"), "capabilities": ["history:read"]}
    known = [_config(full)]
    async with open_app(tmp_path, lambda: known[-1], computer) as app:
        road = Road(app, tmp_path, tmp_path)

        async def act() -> None:
            answers.append(await road.call("desktop.click", scope="free", input=OK))

        async with held(road) as let_go, anyio.create_task_group() as group:
            group.start_soon(act)
            await queued(road)
            known.append(_config(empty))
            let_go()
        assert answers[0]["error"]["code"] == "permission_denied", answers
        assert events(road) == []


@pytest.mark.parametrize(
    ("after", "code"),
    [({"confirm": "act"}, "confirm_required"), ({"excludedApplications": ["editor*"]}, "permission_denied")],
)
async def test_a_policy_that_changes_while_a_call_waits_holds_for_it(
    tmp_path: Path, after: dict[str, Any], code: str
) -> None:
    computer, answers = SimulatedComputer(), list[dict[str, Any]]()
    dialog(computer.world, "Save draft?")
    known = [_config(computer_scope("free"))]
    async with open_app(tmp_path, lambda: known[-1], computer) as app:
        road = Road(app, tmp_path, tmp_path)

        async def act() -> None:
            answers.append(await road.call("desktop.click", scope="free", input=OK))

        async with held(road) as let_go, anyio.create_task_group() as group:
            group.start_soon(act)
            await queued(road)
            known.append(_config(computer_scope("free", **after)))
            let_go()
        assert not answers[0]["ok"], answers
        assert answers[0]["error"]["code"] in (code, "element_not_found"), answers
        assert events(road) == []


async def test_a_standing_yes_that_is_taken_back_while_a_call_waits_is_none(road: Road) -> None:
    asked: list[dict[str, Any]] = []

    async def first() -> None:
        asked.append(await road.call("desktop.click", scope="desk", input=OK))

    async with people(road).attached("person", _allows_the_same_again):
        await first()
    assert asked[0]["ok"], asked
    pressed = len(events(road))
    async with held(road) as let_go, anyio.create_task_group() as group:
        group.start_soon(first)
        await queued(road)
        assert people(road).store.keep_only(standing=lambda one: False) == 1
        let_go()
    assert asked[1]["error"]["code"] == "confirm_required", asked
    assert len(events(road)) == pressed


async def _allows_the_same_again(_asked: object) -> Any:
    return "same"


def _config(scope: dict[str, Any]) -> Config:
    return Config(machine_id="test-machine", machine_name="test", scopes=[Scope.from_wire(scope)])


async def test_two_answers_at_once_give_one_act(road: Road) -> None:
    issued = await road.data("confirm.issue", scope="desk", input={"op": "desktop.click", "input": OK})
    assert people(road).answer(issued["approvalId"], "yes")
    assert people(road).answer(issued["approvalId"], "yes") is None
    assert people(road).answer(issued["approvalId"], "no") is None, "a no after the yes is too late, and said to be"
    done: list[bool] = []

    async def act() -> None:
        done.append(
            (await road.call("desktop.click", scope="desk", input=OK, confirm={"token": issued["token"]}))["ok"]
        )

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(act)
    assert sorted(done) == [False, False, False, False, True]
    assert len([one for one in events(road) if one["event"] == "pressed"]) == 1


async def test_an_answer_while_the_act_waits_changes_nothing(road: Road) -> None:
    issued = await road.data("confirm.issue", scope="desk", input={"op": "desktop.click", "input": OK})
    assert people(road).answer(issued["approvalId"], "yes")
    answers: list[dict[str, Any]] = []

    async def act() -> None:
        answers.append(await road.call("desktop.click", scope="desk", input=OK, confirm={"token": issued["token"]}))

    async with held(road) as let_go, anyio.create_task_group() as group:
        group.start_soon(act)
        await queued(road)
        assert people(road).answer(issued["approvalId"], "shape") is None
        assert people(road).store.standing == []
        let_go()
    assert answers[0]["ok"], answers
    assert (await road.call("desktop.click", scope="desk", input=OK))["error"]["code"] == "confirm_required"


async def test_an_element_that_is_not_there_is_refused_unasked_and_asked_about_once_it_is(road: Road) -> None:
    """No yes is given to what could not be shown."""
    pay = {"target": {"selector": {"byRole": "button", "titleContains": "Pay"}}}
    assert (await road.call("desktop.click", scope="desk", input=pay))["error"]["code"] == "element_not_found"
    assert people(road).waiting() == []
    window = world(road).windows[0]
    window.controls.append(SimulatedControl("button", "Pay", Rect(x=110, y=50, width=80, height=30)))
    assert (await road.call("desktop.click", scope="desk", input=pay))["error"]["code"] == "confirm_required"
    [asked] = people(road).waiting()
    assert asked.about is not None and "Pay" in asked.about.lines[0]
    assert events(road) == []


async def test_a_refusal_in_the_queue_is_in_the_history(road: Road) -> None:
    await in_the_queue(road, "desktop.click", lambda: _another_title(road), input=OK)
    told = await road.data("history.timeline", scope="desk", options={"limit": 50})
    (event,) = [one for one in told["events"] if one["op"] == "desktop.click" and one["errorCode"] == "conflict"]
    assert (event["ok"], event["decision"]) == (False, "ask")

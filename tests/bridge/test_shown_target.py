"""What a person is shown of an act on a real desktop, and that their yes holds only for what they were shown."""

import io
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.terminal import TerminalApprovals
from computer_linker.computer.local.probe import this_computer
from computer_linker.serve.owner_calls import OwnerCalls, owner_principal
from support.desktop import Desktop
from support.forms import Form, on_the_bus
from support.road import Road, computer_scope

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


@pytest.fixture
async def road(tmp_path: Path, desktop: Desktop, form: Form) -> AsyncIterator[Road]:
    computer = this_computer(desktop.env)
    async with Road.open(tmp_path, [computer_scope(confirm="act"), computer_scope("free")], computer) as opened:
        await on_the_bus(computer, form)
        yield opened


def aim(form: Form, role: str, name: str) -> dict[str, Any]:
    return {"selector": {"role": role, "name": name}, "route": {"app": form.app}}


def people(road: Road) -> Approvals:
    return road.app.services.use(Approvals)


async def test_the_element_its_window_and_a_picture_of_it_are_shown(road: Road, form: Form) -> None:
    before = len(form.events())
    refused = await road.call("desktop.click", aim(form, "button", "Press me"), scope="desk")
    assert refused["error"]["code"] == "confirm_required"
    [asked] = people(road).waiting()
    assert asked.about is not None and asked.picture is not None
    first, second = asked.about.lines
    assert first.startswith('push-button "Press me" at ') and second.startswith(f'in the window "{form.title}"')
    image = Image.open(io.BytesIO(asked.picture)).convert("RGB")
    assert image.width <= 720 and image.height <= 480
    colours = {colour for _, colour in image.getcolors(1 << 20) or []}
    assert (0xE0, 0x30, 0x30) in colours, "a red frame says which of them it is"
    assert len(form.events()) == before


async def test_a_picture_is_a_private_file_until_the_answer(road: Road, form: Form) -> None:
    await road.call("desktop.click", aim(form, "button", "Press me"), scope="desk")
    [item] = (await road.app.services.use(TerminalApprovals).waiting()).waiting
    picture = Path(item.picture or "")
    assert picture.parent == road.home / "approvals" and picture.read_bytes().startswith(b"\x89PNG")
    assert stat.S_IMODE(picture.stat().st_mode) == 0o600
    assert stat.S_IMODE(picture.parent.stat().st_mode) == 0o700
    owner = OwnerCalls(road.app.dispatcher)
    assert (await owner.call("approvals.deny", {"asked": item.id}, owner_principal())).ok
    assert list(picture.parent.iterdir()) == []


async def test_keys_go_only_where_the_person_saw_them_going(road: Road, form: Form) -> None:
    async def focus(name: str) -> None:
        done = await road.call("desktop.click", aim(form, "textbox", name), scope="free")
        assert done["ok"], done

    await focus("entry")
    refused = await road.call("desktop.press", scope="desk", input={"key": "q"})
    [asked] = people(road).waiting()
    assert asked.about is not None and 'text "entry"' in asked.about.lines[1]
    people(road).answer(refused["error"]["details"]["approvalId"], "yes")
    await focus("area")
    moved = await road.call("desktop.press", scope="desk", input={"key": "q"})
    assert moved["error"]["code"] == "conflict", moved
    assert not any("q" in one["text"] for one in form.events("text"))


async def test_a_window_is_shown_by_its_title_and_picture(road: Road, form: Form) -> None:
    window = next(one for one in await road.app.computer.windows.list() if one.title == form.title)
    refused = await road.call("window.close", window.id, scope="desk")
    assert refused["error"]["code"] == "confirm_required"
    [asked] = people(road).waiting()
    assert asked.about is not None and asked.about.lines[0].startswith(f'the window "{form.title}" of ')
    assert asked.picture is not None and asked.picture.startswith(b"\x89PNG")
    assert window.id in [one.id for one in await road.app.computer.windows.list()]


async def test_in_a_batch_one_token_makes_one_click(road: Road, form: Form) -> None:
    """The token lies in the input, as clients of the bridge send it; the second item finds it spent."""
    aimed = {"target": {"selector": {"byRole": "button", "titleContains": "Press me"}, "route": {"app": form.app}}}
    issued = await road.data(
        "confirm.issue", scope="desk", input={"intent": {"method": "desktop.click", "params": aimed}}
    )
    people(road).answer(issued["approvalId"], "yes")
    before = len(form.events("clicked"))
    item = {"op": "desktop.click", "input": {**aimed, "confirm": {"token": issued["token"]}}}
    data = (await road.call("batch", scope="desk", input={"operations": [item, item]}))["data"]
    assert [result["ok"] for result in data["results"]] == [True, False], data
    assert data["results"][1]["error"]["code"] == "confirm_required"
    await form.told("clicked", lambda one: one["count"] == before + 1)
    assert len(form.events("clicked")) == before + 1


async def test_what_cannot_be_found_is_refused_and_nothing_is_shown(road: Road, form: Form) -> None:
    refused = await road.call("desktop.click", aim(form, "button", "No such button"), scope="desk")
    assert refused["error"]["code"] == "element_not_found"
    assert people(road).waiting() == []

"""The rules of the bridge's contract that need a real desktop and that no other module keeps (see test_seed_rules)."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.approvals.request import Answer, ApprovalRequest
from support.bridge_host import Host
from support.desktop import Desktop, missing
from support.forms import Form
from support.waiting import until, until_awaited

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]

PROGRAM = Path(__file__).parent.parent / "fixtures" / "bridge_workflow.py"


def route(form: Form) -> dict[str, Any]:
    return {"app": {"bundleId": form.app}, "window": {"titlePattern": f".*{form.title}.*"}}


def at(form: Form, role: str, title: str) -> dict[str, Any]:
    return {"route": route(form), "target": {"selector": {"byRole": role, "titleContains": title}}}


async def in_front(live: Host, form: Form) -> None:
    """The form's window has the keyboard, whatever else is open."""
    window = next(one for one in await live.app.computer.windows.list() if one.title == form.title)
    await live.app.computer.windows.focus(window.id)


async def test_a_whole_desktop_is_healthy(live: Host) -> None:
    health = await live.client.result("desktop.health")
    assert health["permissions"] == {"accessibility": "granted", "screenRecording": "granted"}
    doctor = await live.client.result("desktop.doctor")
    assert doctor["healthy"] is True and doctor["issues"] == []


@pytest.mark.parametrize(("screenshot", "tree"), [(True, False), (False, True), (False, False)])
async def test_observe_takes_only_what_was_asked_for(live: Host, form: Form, screenshot: bool, tree: bool) -> None:
    options = {"includeScreenshot": screenshot, "includeAxTree": tree, "axMaxNodes": 5, "axMaxDepth": 3}
    seen = await live.client.result("desktop.observe", route=route(form), options=options)
    folder = live.evidence()[-1]
    assert (folder / "observe.png").exists() is screenshot is ("screenshotPath" in seen["evidence"])
    assert (folder / "ax.json").exists() is tree is ("axPath" in seen["evidence"])
    if tree:
        assert 0 < len(json.loads((folder / "ax.json").read_text())["nodes"]) <= 5


async def test_each_part_of_a_selector_counts(live: Host, form: Form) -> None:
    await live.act(
        "desktop.typeText", **at(form, "AXTextField", "entry"), text="needle here", options={"clearBefore": True}
    )
    selectors: list[tuple[dict[str, Any], bool]] = [
        ({"byRole": "AXButton", "titleContains": "press"}, True),
        ({"byRole": "AXTextField", "titleContains": "Press"}, False),
        ({"valueContains": "needle"}, True),
        ({"byRole": "AXButton", "valueContains": "needle"}, False),
        ({"titleContains": "no such title"}, False),
    ]
    for selector, is_there in selectors:
        found = await live.client.result("desktop.find", route=route(form), selector=selector)
        assert bool(found["matched"]) is is_there, selector
    some = await live.client.result("desktop.find", route=route(form), selector={"byRole": "AXButton", "limit": 2})
    assert len(some["elementRefs"]) == 2 < some["matched"]


async def test_a_route_leads_to_its_window_or_nowhere(live: Host, form: Form) -> None:
    selector = {"byRole": "AXButton", "titleContains": "Press me"}
    for given in (
        {"app": {"bundleId": "no-such-app"}},
        {"app": {"bundleId": form.app}, "window": {"titlePattern": "Another"}},
    ):
        code = await live.client.code("desktop.find", route=given, selector=selector)
        assert code == "DESKTOP_ELEMENT_NOT_FOUND"
    assert (await live.client.result("desktop.find", route=route(form), selector=selector))["matched"] == 1


async def test_without_a_route_the_application_in_front_is_meant(live: Host, form: Form) -> None:
    await in_front(live, form)
    found = await live.client.result("desktop.find", selector={"byRole": "AXButton", "titleContains": "Press me"})
    assert found["matched"] == 1


async def test_a_click_says_by_which_method_it_pressed(live: Host, form: Form) -> None:
    """By the control's own action, or by the pointer in toolkits (GTK 3) that such an action can freeze."""
    before = len(form.events("clicked"))
    done = await live.act("desktop.click", **at(form, "AXButton", "Press me"))
    assert done["clicked"] is True and done["method"] in ("action", "pointer")
    await form.told("clicked", lambda one: one["count"] == before + 1)


async def test_typing_leaves_the_clipboard_as_it_was(live: Host, form: Form) -> None:
    await live.app.computer.clipboard_set_text("what the person copied")
    text = "long enough to be pasted where it cannot be set " * 3
    await live.act("desktop.typeText", **at(form, "AXTextField", "entry"), text=text, options={"clearBefore": True})
    await form.told("text", lambda one: one["field"] == "entry" and one["text"] == text)
    assert await live.app.computer.clipboard_text() == "what the person copied"


async def test_the_chords_of_the_contract_reach_the_application(live: Host, form: Form) -> None:
    await in_front(live, form)
    where = at(form, "AXTextField", "entry")
    await live.act("desktop.typeText", **where, text="x", options={"clearBefore": True})
    await live.act("desktop.click", **where)
    await live.app.computer.clipboard_set_text("pasted by the chord")
    place = {"app": {"bundleId": form.app}}
    assert (await live.act("desktop.hotkey", keys=["cmd", "v"], route=place))["sent"] is True
    await form.told("text", lambda one: one["field"] == "entry" and one["text"].endswith("pasted by the chord"))
    for keys in (["enter"], ["cmd", "enter"]):
        assert (await live.act("desktop.hotkey", keys=keys, route=place))["sent"] is True


@asynccontextmanager
async def terminal(desktop: Desktop, live: Host, tmp_path: Path) -> AsyncIterator[Path]:
    """A terminal in front that writes down each key it gets."""
    if lacking := missing("xterm"):
        pytest.skip(f"not installed: {', '.join(lacking)}")
    keys = tmp_path / "keys"

    async def in_front() -> bool:
        front = await live.app.computer.windows.focused()
        return front is not None and front.process == "xterm"

    process = desktop.launch("xterm", "-e", "sh", "-c", f"stty raw -echo; exec cat > '{keys}'")
    try:
        await until(lambda: keys.exists())
        await until_awaited(in_front)
        yield keys
    finally:
        desktop.end(process)


async def test_no_key_follows_an_abort_over_the_socket(
    live: Host, desktop: Desktop, form: Form, tmp_path: Path
) -> None:
    async with terminal(desktop, live, tmp_path) as keys:
        text, meta = "a" * 60_000, live.client.meta()
        token = await live.token("desktop.typeText", text=text)
        typing = await live.client.send("desktop.typeText", meta=meta, text=text, confirm={"token": token})
        await until(lambda: keys.stat().st_size, step_s=0.001)
        aborting = await live.client.send("desktop.abort", executionId=meta["requestId"])
        answers = {one["id"]: one for one in (await live.client.receive(), await live.client.receive())}
        assert answers[typing]["error"]["code"] == "DESKTOP_ABORTED"
        assert answers[aborting]["result"]["aborted"] is True
        # The next key is the first that arrives after what was sent before the abort was answered.
        await live.app.computer.keyboard.press(["z"])
        await until(lambda: keys.read_bytes().endswith(b"z"))
        assert 0 < keys.read_bytes().count(b"a") < 60_000
        await live.app.computer.keyboard.press(["y"])
        await until(lambda: keys.read_bytes().endswith(b"y"))
        assert keys.read_bytes().endswith(b"zy"), "nothing came in between"


async def test_another_process_cannot_abort_it(live: Host, form: Form) -> None:
    request, waiting = await live.begin_endless_wait(route(form))
    job = {"abort": request}
    code = json.loads(await other_program(live, job))["error"]["code"]
    assert code == "DESKTOP_INVALID_REQUEST"
    aborting = await live.client.send("desktop.abort", executionId=request)
    answers = {one["id"]: one for one in (await live.client.receive(), await live.client.receive())}
    assert answers[waiting]["error"]["code"] == "DESKTOP_ABORTED" and "result" in answers[aborting]


async def other_program(live: Host, job: dict[str, Any]) -> bytes:
    """What another process, a bridge client of its own, says it got."""
    argv = [sys.executable, str(PROGRAM), str(live.home), str(live.workspace), json.dumps(job)]
    with anyio.fail_after(90):
        return (await anyio.run_process(argv)).stdout


async def test_two_programs_at_once_each_finish_their_form(live: Host, form: Form) -> None:
    """Two processes, each its own peer: observe, find, type, read back, press, wait; the form's journal shows no mixing."""

    async def person(_: ApprovalRequest) -> Answer | None:
        return "yes"

    finished: list[dict[str, Any]] = []

    async def work(name: str) -> None:
        job = {"name": name, "route": route(form), "texts": [f"{name} {step}" for step in range(3)]}
        finished.append(json.loads(await other_program(live, job)))

    texts, clicks = len(form.events("text")), len(form.events("clicked"))
    async with live.approvals.attached("tests", person), anyio.create_task_group() as group:
        group.start_soon(work, "first")
        group.start_soon(work, "second")
    assert sorted(one["name"] for one in finished) == ["first", "second"]
    assert all(one["ok"] for one in finished), finished
    whole = [one["text"] for one in form.events("text")[texts:] if one["text"][-2:] in (" 0", " 1", " 2")]
    order = [one["name"] for one in finished]
    assert whole == [f"{name} {step}" for name in order for step in range(3)], "one workflow after the other"
    await form.told("clicked", lambda one: one["count"] >= clicks + 2)

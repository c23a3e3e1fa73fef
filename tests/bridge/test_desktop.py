"""Every method of the bridge over its real socket, on a real desktop, agreeing with what the form itself says."""

import json
from dataclasses import replace
from typing import Any

import anyio
import pytest

from computer_linker.computer.local.probe import this_computer
from computer_linker.model.geometry import Point
from support.bridge import BridgeClient
from support.bridge_host import Host
from support.desktop import Desktop
from support.forms import Form
from support.harness import Harness
from support.road import LOCAL, OWNER

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]

PNG = b"\x89PNG\r\n\x1a\n"


def at(form: Form, role: str, title: str) -> dict[str, Any]:
    return {"route": route(form), "target": {"selector": {"byRole": role, "titleContains": title}}}


def route(form: Form) -> dict[str, Any]:
    return {
        "app": {"bundleId": form.app},
        "window": {"titlePattern": f".*{form.title}.*"},
        "focusPolicy": "focusIfNeeded",
    }


async def test_observe_leaves_a_picture_and_the_controls(live: Host, form: Form) -> None:
    seen = await live.client.result("desktop.observe", route=route(form))
    assert seen["routeResolved"]["windowTitle"] == form.title
    [folder] = live.evidence()
    assert seen["evidence"] == {"dir": f"{folder}/", "screenshotPath": "observe.png", "axPath": "ax.json"}
    assert folder.name == seen["executionId"]
    assert (folder / "observe.png").read_bytes().startswith(PNG)
    assert "Press me" in [node["name"] for node in json.loads((folder / "ax.json").read_text())["nodes"]]
    assert [json.loads(line)["step"] for line in (folder / "trace.jsonl").read_text().splitlines()] == [
        "desktop.observe"
    ]
    assert json.loads((folder / "result.json").read_text())["ok"] is True


async def test_the_history_says_where_the_evidence_lies(live: Host, form: Form) -> None:
    seen = await live.client.result(
        "desktop.find", route=route(form), selector={"byRole": "AXButton", "titleContains": "press"}
    )
    told = await live.app.dispatcher.call_wire({"scope": "desk", "op": "history.last", "options": {"limit": 50}}, OWNER)
    events = told.envelope["data"].to_wire()["events"]
    [event] = [one for one in events if one["op"] == "desktop.find"]
    assert event["summary"]["evidence"] == seen["executionId"]


async def test_find_gives_references_that_click_takes(live: Host, form: Form) -> None:
    found = await live.client.result(
        "desktop.find", route=route(form), selector={"byRole": "AXButton", "titleContains": "Press"}
    )
    assert found["matched"] == 1
    [ref] = found["elementRefs"]
    assert (
        ref["title"] == "Press me"
        and ref["frame"]["width"] > 0
        and ref["fingerprint"].startswith("push-button|Press me|x=")
    )
    before = len(form.events("clicked"))
    target = {"elementRef": {"elementId": ref["elementId"], "fingerprint": ref["fingerprint"]}}
    done = await live.act("desktop.click", target=target)
    assert done["clicked"] is True
    await form.told("clicked", lambda one: one["count"] == before + 1)
    folder = live.evidence()[-1]
    assert done["evidence"] == {"dir": f"{folder}/", "beforeScreenshot": "before.png", "afterScreenshot": "after.png"}
    for name in ("before.png", "after.png"):
        assert (folder / name).read_bytes().startswith(PNG)
    kept = await live.app.dispatcher.call_wire({"scope": "desk", "op": "artifact.list"}, OWNER)
    mine = [one for one in kept.envelope["data"].to_wire()["artifacts"] if one["owner"]["operation"] == folder.name]
    assert [(one["title"], one["kind"]) for one in mine] == [("after", "screenshot"), ("before", "screenshot")]
    forged = {"elementRef": {"elementId": ref["elementId"], "fingerprint": ref["fingerprint"] + "x"}}
    assert await live.client.code("desktop.click", target=forged) == "DESKTOP_ELEMENT_NOT_FOUND"


async def test_one_token_makes_one_click_however_many_spend_it_at_once(live: Host, form: Form) -> None:
    params = at(form, "AXButton", "Press me")
    before = len(form.events("clicked"))
    token = await live.token("desktop.click", **params)
    clients = [await BridgeClient.open(live.home, str(live.workspace)) for _ in range(8)]
    answers: list[dict[str, Any]] = []

    async def spend(client: BridgeClient) -> None:
        answers.append(await client.ask("desktop.click", confirm={"token": token}, **params))

    async with anyio.create_task_group() as group:
        for client in clients:
            group.start_soon(spend, client)
    for client in clients:
        await client.aclose()
    assert sum("result" in answer for answer in answers) == 1, answers
    assert {answer["error"]["code"] for answer in answers if "error" in answer} == {"DESKTOP_CONFIRM_REQUIRED"}
    await form.told("clicked", lambda one: one["count"] == before + 1)
    assert len(form.events("clicked")) == before + 1


async def test_an_unconfirmed_click_reaches_nothing(live: Host, form: Form) -> None:
    before = len(form.events())
    token = await live.token("desktop.click", **at(form, "AXButton", "Later"))
    for confirm in ({"phrase": "CONFIRM"}, {"token": token}, {}):
        code = await live.client.code("desktop.click", confirm=confirm, **at(form, "AXButton", "Press me"))
        assert code == "DESKTOP_CONFIRM_REQUIRED"
    assert len(form.events()) == before


async def test_text_arrives_exactly_and_is_in_no_evidence(live: Host, form: Form) -> None:
    text = 'Zoë "; touch /tmp/x --'
    done = await live.act(
        "desktop.typeText", **at(form, "AXTextField", "entry"), text=text, options={"clearBefore": True}
    )
    assert done["typed"] is True and done["effect"] == "confirmed"
    await form.told("text", lambda one: one["field"] == "entry" and one["text"] == text)
    for name in ("trace.jsonl", "result.json"):
        assert "Zo" not in (live.evidence()[-1] / name).read_text()


async def test_a_hotkey_goes_where_the_route_says_or_nowhere(live: Host, form: Form) -> None:
    await live.act("desktop.typeText", **at(form, "AXTextField", "entry"), text="one", options={"clearBefore": True})
    done = await live.act("desktop.hotkey", keys=["cmd", "a"], route={"app": {"bundleId": form.app}})
    assert done["sent"] is True
    params: dict[str, Any] = {"keys": ["enter"], "route": {"app": {"bundleId": "no-such-app"}}}
    token = await live.token("desktop.hotkey", **params)
    assert await live.client.code("desktop.hotkey", confirm={"token": token}, **params) == "DESKTOP_ELEMENT_NOT_FOUND"


@pytest.mark.parametrize("keys", [["ctrl", "alt", "f1"], ["super", "l"], ["alt", "f4"]])
async def test_a_chord_past_the_application_is_refused_before_a_person_is_asked(live: Host, keys: list[str]) -> None:
    intent = {"method": "desktop.hotkey", "params": {"keys": keys}}
    issued = await live.client.ask("desktop.confirm.issue", intent=intent)
    if "result" in issued:
        live.approvals.answer(issued["result"]["approvalId"], "yes")
        code = await live.client.code("desktop.hotkey", keys=keys, confirm={"token": issued["result"]["token"]})
        assert code == "DESKTOP_PERMISSION_MISSING"


async def test_wait_until_matches_or_times_out(live: Host, form: Form) -> None:
    found = await live.client.result(
        "desktop.waitUntil", route=route(form), timeoutMs=5000, pollMs=100,
        condition={"selectorExists": {"byRole": "AXButton", "titleContains": "Press me"}},
    )  # fmt: skip
    assert found["ok"] is True and found["matched"] == 1 and found["elapsedMs"] >= 0
    gone = {"selectorExists": {"titleContains": "never shown"}}
    assert (
        await live.client.code("desktop.waitUntil", route=route(form), timeoutMs=200, condition=gone)
        == "DESKTOP_TIMEOUT"
    )
    meta = live.client.meta(timeoutMs=200)
    code = await live.client.code("desktop.waitUntil", meta=meta, route=route(form), timeoutMs=9000, condition=gone)
    assert code == "DESKTOP_TIMEOUT"


async def test_abort_ends_a_wait_by_its_request_id(live: Host, form: Form) -> None:
    request, waiting = await live.begin_endless_wait(route(form))
    aborting = await live.client.send("desktop.abort", executionId=request)
    answers = {answer["id"]: answer for answer in (await live.client.receive(), await live.client.receive())}
    assert answers[waiting]["error"]["code"] == "DESKTOP_ABORTED"
    assert answers[aborting]["result"] == {"aborted": True, "executionId": request}


async def test_a_missing_element_is_not_found(live: Host, form: Form) -> None:
    params = at(form, "AXButton", "No such button")
    before = len(form.events("clicked"))
    # Already when a token is asked for: nobody is to confirm an act that cannot be.
    intent = {"method": "desktop.click", "params": params}
    assert await live.client.code("desktop.confirm.issue", intent=intent) == "DESKTOP_ELEMENT_NOT_FOUND"
    assert len(form.events("clicked")) == before


async def test_no_key_is_sent_once_a_cancelled_call_has_returned(desktop: Desktop, form: Form) -> None:
    computer = this_computer(desktop.env)
    harness = Harness.open(desktop, "Keys")
    try:
        harness.next("focus_in")
        async with anyio.create_task_group() as group:
            group.start_soon(computer.keyboard.type_text, "a" * 100_000)
            await anyio.to_thread.run_sync(harness.next, "key_down")
            group.cancel_scope.cancel()
        await computer.keyboard.press(["z"])
        count = 0
        while (await anyio.to_thread.run_sync(harness.next, "key_down"))["keysym"] == ord("a"):
            count += 1
        # What came before the z was sent before the call returned; after it there is nothing.
        assert count < 99_999
        await computer.keyboard.press(["y"])
        assert (await anyio.to_thread.run_sync(harness.next, "key_down"))["keysym"] == ord("y")
    finally:
        desktop.end(harness.process)
        await computer.aclose()


async def test_a_hand_on_the_mouse_makes_the_next_act_wait(live: Host, form: Form, desktop: Desktop) -> None:
    person = this_computer(desktop.env)
    try:
        await live.act("desktop.click", **at(form, "AXButton", "Press me"))
        params = at(form, "AXButton", "Press me")
        token = await live.token("desktop.click", **params)
        with anyio.fail_after(60):
            # Until it has been noticed: what comes right after an act is taken for the act's own.
            while not live.app.dispatcher.queues.is_paused:
                await person.pointer.move(Point(x=5, y=5))
                await person.pointer.move(Point(x=9, y=9))
        moved = anyio.current_time()
        before = len(form.events("clicked"))
        await live.client.result("desktop.click", confirm={"token": token}, **params)
        assert anyio.current_time() - moved > 1.0
        await form.told("clicked", lambda one: one["count"] == before + 1)
    finally:
        await person.aclose()


async def test_halt_refuses_every_act_until_the_person_resumes(live: Host, form: Form) -> None:
    params = at(form, "AXButton", "Press me")
    before = len(form.events())
    live.app.dispatcher.queues.halt()
    token = await live.token("desktop.click", **params)
    assert await live.client.code("desktop.click", confirm={"token": token}, **params) == "DESKTOP_ABORTED"
    assert len(form.events()) == before
    assert live.app.dispatcher.queues.resume()
    await live.act("desktop.click", **params)
    await form.told("clicked", lambda one: one["count"] > 0)


async def test_two_clients_at_once_each_finish_their_whole_workflow(live: Host, form: Form) -> None:
    entry = {"selector": {"role": "textbox", "name": "entry"}, "route": {"app": form.app}}
    finished: list[str] = []

    async def work(client: str) -> None:
        who = replace(LOCAL, session=client, connection=client)
        for step in range(4):
            text = f"{client} {step}"
            call = {"scope": "desk", "op": "desktop.type_text", "target": entry, "input": {"text": text}}
            reply = await live.app.dispatcher.call_wire({**call, "options": {"clearBefore": True}}, who)
            assert reply.envelope.get("effect") == "confirmed", reply.envelope
            await anyio.sleep(0.05)  # a client thinks between its steps; the turn stays its own meanwhile
        finished.append(client)

    before = len(form.events("text"))
    async with anyio.create_task_group() as group:
        group.start_soon(work, "first")
        group.start_soon(work, "second")
    assert sorted(finished) == ["first", "second"]
    texts = [one["text"] for one in form.events("text")[before:] if one["text"].endswith(("0", "1", "2", "3"))]
    whole = [text for text in texts if text in {f"{who} {step}" for who in finished for step in range(4)}]
    assert whole == [f"{who} {step}" for who in finished for step in range(4)], "one workflow after the other"


async def test_every_one_of_many_calls_at_once_sees_the_windows(desktop: Desktop, form: Form) -> None:
    """An act whose window another call was just listing would be refused, and its token spent."""
    computer = this_computer(desktop.env)
    seen: list[int] = []

    async def look() -> None:
        for _ in range(10):
            apps = await computer.accessibility.applications()
            await anyio.sleep(0)  # lets the others begin to list
            seen.append(sum(len(app.windows) for app in apps if app.name == form.app))

    try:
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(look)
    finally:
        await computer.aclose()
    assert set(seen) == {1}, seen

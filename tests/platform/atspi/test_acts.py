"""Acts on real toolkits: what the reply says of the effect agrees with what the application says reached it."""

import pytest

from support.session import Session

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]

UNICODE = 'Zoë 你好 Привет Ελλάδα עברית 😀 "; touch marker --'


async def test_a_click_reaches_the_button(session: Session) -> None:
    before = len(session.form.events("clicked"))
    reply = await session.call("desktop.click", session.at("button", "Press me"))
    assert reply["ok"], reply
    assert reply["effect"] == "confirmed", reply
    assert reply["data"]["method"] == ("pointer" if session.form.toolkit in ("gtk3", "chromium") else "action")
    await session.form.told("clicked", lambda one: one["count"] == before + 1)


async def test_a_check_box_is_read_back(session: Session) -> None:
    for _ in range(2):
        before = len(session.form.events("checked"))
        reply = await session.call("desktop.click", session.at("checkbox", "check it"))
        assert reply["effect"] == "confirmed", reply
        assert len(session.form.events("checked")) == before + 1
    states = [one["on"] for one in session.form.events("checked")][-2:]
    assert states[0] != states[1]


async def test_a_disabled_button_is_refused(session: Session) -> None:
    reply = await session.call("desktop.click", session.at("button", "Forbidden"))
    assert reply["error"]["code"] == "conflict"
    assert [one for one in session.form.events("clicked") if one["what"] == "Forbidden"] == []


async def test_text_of_any_script_arrives_exactly(session: Session) -> None:
    target = session.at("textbox", "entry")
    reply = await session.call("desktop.type_text", target, input={"text": UNICODE}, options={"clearBefore": True})
    assert reply["effect"] == "confirmed", reply
    await session.form.told("text", lambda one: one["field"] == "entry" and one["text"] == UNICODE)
    reply = await session.call("desktop.type_text", target, input={"text": " more"})
    assert reply["effect"] == "confirmed", reply
    await session.form.told("text", lambda one: one["field"] == "entry" and one["text"] == UNICODE + " more")


async def test_a_thousand_characters_in_several_lines(session: Session) -> None:
    text = "\n".join(f"{line} äöü 你好 {'x' * 80}" for line in range(10))
    reply = await session.call(
        "desktop.type_text", session.at("textbox", "area"), input={"text": text}, options={"clearBefore": True}
    )
    assert reply["effect"] == "confirmed", reply
    await session.form.told("text", lambda one: one["field"] == "area" and one["text"] == text)


async def test_a_password_is_typed_but_never_returned(session: Session) -> None:
    target = session.at(None, "secret")
    reply = await session.call("desktop.type_text", target, input={"text": "hunter2"}, options={"clearBefore": True})
    assert reply["effect"] == "confirmed", reply
    await session.form.told("text", lambda one: one["field"] == "secret" and one["text"] == "hunter2")
    tree = await session.data("ui.tree", session.form.app, options={"maxDepth": 32})
    assert "hunter2" not in str(tree)


async def test_clicks_and_the_wheel_reach_a_drawing_area(session: Session) -> None:
    await session.data("desktop.click", session.at(None, "pad"), input={"count": 1})
    press = await session.form.told("press")
    release = await session.form.told("release")
    assert (press["x"], press["y"]) == (release["x"], release["y"])
    await session.data("desktop.scroll", session.at(None, "pad"), input={"delta": {"y": 1}})
    await session.form.told("scroll")


async def test_a_dialog_is_waited_for_and_answered(session: Session) -> None:
    reply = await session.call("desktop.click", session.at("button", "Ask me"))
    assert reply["effect"] == "confirmed", reply
    await session.form.told("dialog", lambda one: one["state"] == "open")
    condition = {"selectorExists": {"role": "button", "name": "Accept"}}
    waited = await session.data("desktop.wait_until", {"app": session.form.app}, input={"condition": condition})
    assert waited["matched"] == 1
    reply = await session.call("desktop.click", waited["elements"][0]["ref"])
    assert reply["ok"], reply
    await session.form.told("dialog", lambda one: one["state"] == "accepted")
    gone = {"selectorGone": {"role": "button", "name": "Accept"}}
    assert (await session.data("desktop.wait_until", {"app": session.form.app}, input={"condition": gone}))[
        "matched"
    ] == 0


async def test_a_wait_ends_when_the_text_appears(session: Session) -> None:
    number = len(session.form.events("appeared")) + 1
    await session.data("desktop.click", session.at("button", "Later"), options={"verify": False})
    condition = {"textAppears": f"Appeared {number}"}
    waited = await session.data("desktop.wait_until", {"app": session.form.app}, input={"condition": condition})
    assert waited["matched"] >= 1
    assert len(session.form.events("appeared")) == number


async def test_a_wait_for_what_never_comes_times_out(session: Session) -> None:
    reply = await session.call(
        "desktop.wait_until",
        {"app": session.form.app},
        input={"condition": {"textAppears": "never"}},
        options={"timeoutSeconds": 0.5},
    )
    assert reply["error"]["code"] == "timeout"
    assert reply["error"]["retryable"] is True


async def test_a_chord_of_the_system_is_refused(session: Session) -> None:
    before = len(session.form.events("key"))
    for keys in (["ctrl", "alt", "f1"], ["super", "l"], ["alt", "f2"], ["ctrl", "alt", "delete"], ["alt", "tab"]):
        reply = await session.call("desktop.hotkey", input={"keys": keys})
        assert reply["error"]["code"] == "permission_denied"
    assert len(session.form.events("key")) == before


async def test_keys_go_to_the_element_that_is_named(session: Session) -> None:
    entry = session.at("textbox", "entry")
    await session.data("desktop.type_text", entry, input={"text": "abc"}, options={"clearBefore": True})
    reply = await session.call("desktop.press", entry, input={"key": "end"})
    assert reply["ok"], reply
    reply = await session.call("desktop.press", entry, input={"key": "backspace"})
    assert reply["ok"], reply
    await session.form.told("text", lambda one: one["field"] == "entry" and one["text"] == "ab")
    await session.data("desktop.hotkey", entry, input={"keys": ["cmd", "a"]})
    await session.data("desktop.press", entry, input={"key": "delete"})
    await session.form.told("text", lambda one: one["field"] == "entry" and one["text"] == "")


async def test_a_selector_that_fits_several_acts_on_none(session: Session) -> None:
    before = session.form.events("clicked")
    reply = await session.call("desktop.click", session.at("button"))
    assert reply["error"]["code"] == "conflict"
    assert reply["error"]["details"]["matched"] > 1
    assert session.form.events("clicked") == before


async def test_the_pointer_moves_and_nothing_is_pressed(session: Session) -> None:
    before = session.form.events("press")
    reply = await session.call("desktop.move", session.at(None, "pad"))
    assert reply["effect"] == "confirmed", reply
    assert session.form.events("press") == before

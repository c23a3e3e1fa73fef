"""The agent-builder's tools on a simulated desktop, here and behind a link: what they do can be read back from it."""

import io
from typing import Any

import pytest
from PIL import Image

from computer_linker.model.geometry import Rect
from computer_linker.tools import PermissionAsked, ToolContext, ToolResult, toolbox
from support.stage import Stage

pytestmark = pytest.mark.anyio


class Session:
    """Tools, a desktop with one window, and a handler that remembers what was asked."""

    def __init__(self, stage: Stage, *refused: str) -> None:
        self.stage = stage
        self.computer = stage.computer
        self.window = stage.window
        self.asked: list[PermissionAsked] = []
        self.refused = refused
        self.tools = toolbox()
        self.ctx = ToolContext("session-1", self.computer, self._judge)

    async def _judge(self, asked: PermissionAsked) -> bool:
        self.asked.append(asked)
        return asked.tool not in self.refused

    async def use(self, name: str, /, **arguments: Any) -> ToolResult:
        return await self.tools[name].run(arguments, self.ctx)


async def test_a_point_of_a_screenshot_is_clicked_where_it_was_seen(stage: Stage) -> None:
    session = Session(stage)
    shot = await session.use("screenshot")
    (attachment,) = shot.attachments
    assert Image.open(io.BytesIO(attachment.content)).size == (1280, 800)
    clicked = await session.use("mouse", action="click", x=150, y=160)
    assert clicked.ok, clicked.error
    assert [(one["event"], one["x"], one["y"]) for one in session.window.log] == [("click", 50, 60)]


async def test_a_point_is_refused_once_its_window_moved(stage: Stage) -> None:
    session = Session(stage)
    await session.use("screenshot")
    await session.computer.windows.place(session.window.id, Rect(x=200, y=100, width=400, height=300))
    result = await session.use("mouse", action="click", x=250, y=160)
    assert result.metadata["code"] == "stale_reference"
    assert session.window.log == []


async def test_a_point_without_a_screenshot_is_refused(stage: Stage) -> None:
    session = Session(stage)
    assert (await session.use("mouse", action="click", x=1, y=1)).metadata["code"] == "invalid_request"


async def test_drag_scroll_and_double_click_arrive(stage: Stage) -> None:
    session = Session(stage)
    await session.use("screenshot")
    await session.use("mouse", action="drag", x=150, y=150, toX=250, toY=200)
    await session.use("mouse", action="scroll", x=150, y=150, dy=3)
    await session.use("mouse", action="double_click", x=150, y=150)
    assert [one["event"] for one in session.window.log] == ["drag", "scroll", "click", "click"]


@pytest.mark.parametrize("text", ["plain text", "Zoë 你好 😀", "x" * 500])
async def test_any_text_is_typed_and_the_clipboard_kept(stage: Stage, text: str) -> None:
    session = Session(stage)
    await session.computer.clipboard_set_text("mine")
    result = await session.use("keyboard", action="type", text=text)
    assert (result.metadata, session.window.text) == ({"method": "set_text", "effect": "confirmed"}, text)
    assert await session.computer.clipboard_text() == "mine"


async def test_keys_and_chords_are_pressed(stage: Stage) -> None:
    session = Session(stage)
    await session.use("keyboard", action="hotkey", keys=["Ctrl", "S"])
    await session.use("keyboard", action="press", keys=["Return"], count=2)
    assert [one["keys"] for one in session.window.log] == [["ctrl", "s"], ["enter"], ["enter"]]
    assert (await session.use("keyboard", action="press", keys=["a", "b"])).error


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("keyboard", {"action": "type", "text": "secret"}),
        ("clipboard", {"action": "write", "text": "secret"}),
        ("app", {"action": "close", "app": "editor"}),
        ("mouse", {"action": "click", "x": 150, "y": 150}),
    ],
)
async def test_what_the_handler_refuses_does_not_happen(stage: Stage, tool: str, arguments: dict[str, Any]) -> None:
    session = Session(stage, "keyboard", "clipboard", "app", "mouse")
    await session.use("screenshot")
    result = await session.tools[tool].run(arguments, session.ctx)
    assert result.metadata["code"] == "permission_denied"
    assert (session.window.text, session.window.log) == ("", [])
    assert session.stage.titles() == ["Notes"]
    assert await session.computer.clipboard_text() is None
    assert session.asked[-1].tool == tool


async def test_a_refused_screenshot_shows_nothing(stage: Stage) -> None:
    session = Session(stage, "screenshot")
    assert (await session.use("screenshot")).attachments == ()


@pytest.mark.parametrize(
    "arguments", [{}, {"action": "explode"}, {"action": "click", "X": 1}, {"action": "type", "text": 5}]
)
async def test_wrong_arguments_are_an_answer_not_a_crash(stage: Stage, arguments: dict[str, Any]) -> None:
    session = Session(stage)
    for tool in ("mouse", "keyboard"):
        result = await session.tools[tool].run(arguments, session.ctx)
        assert result.metadata["code"] == "invalid_request"


async def test_applications_are_opened_and_closed(stage: Stage) -> None:
    session = Session(stage)
    opened = await session.use("app", action="open", app="Terminal", arguments=["notes.txt"])
    assert opened.ok
    assert session.stage.titles()[0] == "Terminal notes.txt"
    session.window.keep_open()
    assert (await session.use("app", action="close", app="editor")).title == "Still open"
    assert (await session.use("app", action="open", app="nothing")).metadata["code"] == "not_found"


async def test_a_plan_asks_when_it_happens_and_can_be_cancelled(stage: Stage) -> None:
    session = Session(stage, "keyboard")
    later = {"action": "type", "text": "later"}
    await session.use("schedule", action="add", tool="keyboard", arguments=later)
    kept = await session.use("schedule", action="add", tool="clipboard", arguments={"action": "read"}, afterSeconds=100)
    assert session.asked == []
    done = await session.use("schedule", action="run_due")
    assert (done.title, session.window.text) == ("1 done", "")
    assert "was not allowed" in done.output
    assert (await session.use("schedule", action="cancel", id=kept.output)).ok
    assert (await session.use("schedule", action="add", tool="schedule")).error


async def test_the_session_remembers_and_its_log_keeps_no_text(stage: Stage) -> None:
    session = Session(stage)
    await session.use("learn", action="remember", name="save", content="ctrl and s")
    assert (await session.use("learn", action="recall", name="save")).output == "ctrl and s"
    await session.use("keyboard", action="type", text="my password")
    log = (await session.use("audit")).output
    assert "keyboard type ok" in log
    assert "my password" not in log


async def test_every_tool_tells_a_model_what_it_takes() -> None:
    for name, tool in toolbox().items():
        schema = tool.schema()
        assert schema["name"] == name
        assert schema["description"]
        assert schema["parameters"]["additionalProperties"] is False

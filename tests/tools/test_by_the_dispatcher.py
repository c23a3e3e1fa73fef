"""The tools act through the dispatcher: checks of the control, device queue, halt and history hold for them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.computer.simulated.world import SimulatedControl
from computer_linker.dispatch.pause import HALTED_NAME
from computer_linker.model.geometry import Rect
from computer_linker.tools import ToolContext, ToolResult, toolbox

pytestmark = pytest.mark.anyio
PLACE = Rect(x=100, y=100, width=400, height=300)


class Form:
    """A window with a button, used with the tools; the session's history is kept in a folder of the test."""

    def __init__(self, home: Path) -> None:
        self.computer = SimulatedComputer()
        self.window = self.computer.world.open("editor", "Form", PLACE)
        self.button = SimulatedControl("push-button", "Send", Rect(x=20, y=20, width=80, height=30))
        self.window.controls.append(self.button)
        home.mkdir(mode=0o700)
        self.home, self.tools = home, toolbox()
        self.ctx = ToolContext("session-1", self.computer, home=home)

    async def use(self, name: str, /, **arguments: Any) -> ToolResult:
        return await self.tools[name].run(arguments, self.ctx)

    async def ref(self) -> str:
        lines = (await self.use("ui", action="tree")).output.splitlines()
        return next(line.split()[0] for line in lines if "'Send'" in line)

    @property
    def events(self) -> list[str]:
        return [one["event"] for one in self.window.log]

    @property
    def history(self) -> str:
        return "".join(path.read_text() for path in self.home.rglob("*.jsonl"))


@pytest.fixture
async def form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Form]:
    monkeypatch.setenv("COMPUTER_LINKER_HOME", str(tmp_path / "state"))
    made = Form(tmp_path / "home")
    yield made
    await made.ctx.aclose()


async def test_a_control_is_pressed_and_the_effect_told(form: Form) -> None:
    pressed = await form.use("ui", action="press", ref=await form.ref())
    assert pressed.ok and pressed.title == "Pressed push-button 'Send'", pressed
    assert form.events != [] and "effect" in pressed.metadata


async def test_a_disabled_control_is_not_pressed(form: Form) -> None:
    ref = await form.ref()
    form.button.is_enabled = False
    refused = await form.use("ui", action="press", ref=ref)
    assert (refused.ok, form.events) == (False, []), refused


async def test_a_point_that_another_window_covers_by_now_is_not_clicked(form: Form) -> None:
    await form.use("screenshot")
    other = form.computer.world.open("other", "Above", PLACE)
    refused = await form.use("mouse", action="click", x=150, y=150)
    assert refused.metadata["code"] == "stale_reference", refused
    assert (form.events, other.log) == ([], [])


async def test_what_the_tools_do_is_in_the_history_and_what_they_type_is_not(form: Form) -> None:
    await form.use("keyboard", action="type", text="my password")
    await form.use("ui", action="press", ref=await form.ref())
    assert '"desktop.type_text"' in form.history and '"desktop.click"' in form.history
    assert "my password" not in form.history


async def test_nothing_acts_while_the_owner_has_halted_the_desktop(form: Form, tmp_path: Path) -> None:
    """The halt is that of the owner's service, wherever the history of these tools is kept."""
    assert (await form.use("keyboard", action="type", text="a")).ok
    (tmp_path / "state").mkdir(mode=0o700)
    halted = tmp_path / "state" / HALTED_NAME
    halted.touch()
    refused = await form.use("keyboard", action="type", text="x")
    assert refused.metadata["code"] == "aborted" and form.window.text == "a", refused
    halted.unlink()
    assert (await form.use("keyboard", action="type", text="b")).ok and form.window.text == "ab"


async def test_two_acts_at_once_take_turns(form: Form) -> None:
    async def type_(text: str) -> None:
        assert (await form.use("keyboard", action="type", text=text)).ok

    async with anyio.create_task_group() as group:
        for text in ("aaaa", "bbbb"):
            group.start_soon(type_, text)
    assert sorted([form.window.text[:4], form.window.text[4:]]) == ["aaaa", "bbbb"]


async def test_a_session_without_a_folder_leaves_none_behind(form: Form, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ctx = ToolContext("session-2", form.computer)
    assert (await form.tools["clipboard"].run({"action": "write", "text": "x"}, ctx)).ok
    assert list(tmp_path.glob("computer-linker-tools-*"))
    await ctx.aclose()
    del ctx
    assert not list(tmp_path.glob("computer-linker-tools-*"))

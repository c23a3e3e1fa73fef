"""The agent-builder's tools on a real desktop, judged by the application."""

import sys
from typing import Any

import anyio
import pytest

from computer_linker.computer.base import Computer
from computer_linker.tools import ToolContext, toolbox
from support.desktop import Desktop, missing
from support.waiting import until, until_awaited

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


async def test_a_form_is_filled_and_sent_with_the_tools(computer: Computer, desktop: Desktop) -> None:
    if lacking := missing("zenity"):
        pytest.skip(f"not installed: {lacking}")
    answer = desktop.folder / "answer.txt"
    program = "import subprocess,sys; open(sys.argv[1],'wb').write(subprocess.run(sys.argv[2:],stdout=-1).stdout)"
    dialog = ["zenity", "--entry", "--title=Form", "--text=Your name?", "--ok-label=Send"]
    desktop.launch(sys.executable, "-c", program, str(answer), *dialog)
    tools, ctx = toolbox(), ToolContext("tools", computer)

    async def use(name: str, /, **arguments: Any) -> Any:
        result = await tools[name].run(arguments, ctx)
        assert result.ok, result.error
        return result

    async def shows(text: str, tool: str, action: str) -> str:
        output: str = (await use(tool, action=action)).output
        return output if text in output else ""

    with anyio.fail_after(90):
        windows = await until_awaited(lambda: shows("Form", "app", "windows"))
        await use("app", action="focus_window", window=windows.split(":")[0])
        controls = await until_awaited(lambda: shows("'Send'", "ui", "tree"))
        await use("keyboard", action="type", text="Zoë 你好")
        (send,) = [line.split()[0] for line in controls.splitlines() if "'Send'" in line and "button" in line]
        shot = await use("screenshot", marks=True)
        assert "'Send'" in shot.output
        await use("ui", action="press", ref=send)
        await until(lambda: answer.exists() and answer.read_bytes())
    assert answer.read_text() == "Zoë 你好\n"

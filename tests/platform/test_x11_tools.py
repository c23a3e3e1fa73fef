"""The agent-builder's tools on a real desktop, judged by the application."""

import sys
from typing import Any

import anyio
import pytest

from computer_linker.computer.base import Computer
from computer_linker.tools import ToolContext, toolbox
from support.desktop import Desktop, missing

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

    with anyio.fail_after(30):
        while "Form" not in (windows := (await use("app", action="windows")).output):
            await anyio.sleep(0.05)
        await use("app", action="focus_window", window=windows.split(":")[0])
        while "'Send'" not in (controls := (await use("ui", action="tree")).output):
            await anyio.sleep(0.05)
        await use("keyboard", action="type", text="Zoë 你好")
        (send,) = [line.split()[0] for line in controls.splitlines() if "'Send'" in line and "button" in line]
        shot = await use("screenshot", marks=True)
        assert "'Send'" in shot.output
        await use("ui", action="press", ref=send)
        while not answer.exists() or not answer.read_bytes():
            await anyio.sleep(0.02)
    assert answer.read_text() == "Zoë 你好\n"

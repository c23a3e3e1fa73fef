"""Product specification, screenshot operations: every surface gives the pixels, or a file with them."""

import base64
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.service.introspection import ServiceIntrospection
from computer_linker.transports.http.json_api import JsonApi
from support.desktop import missing, x11_desktop
from support.lines import stdio
from support.road import LOCAL, Road, computer_scope
from support.service import PROGRAM, end_service, environment, write_config

PNG = b"\x89PNG\r\n"
CAPTURE = {"op": "screen.capture", "target": "primary"}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[JsonApi]:
    async with Road.open(tmp_path, [computer_scope()], SimulatedComputer()) as road:
        yield JsonApi(road.app.dispatcher, ServiceIntrospection(road.app))


async def control(api: JsonApi, **request: Any) -> Any:
    status, answer = await api.control(json.dumps(request).encode(), LOCAL)
    assert status == 200, answer
    return json.loads(to_json(answer, by_alias=True))


@pytest.mark.anyio
async def test_the_json_api_has_no_image_blocks_and_puts_the_pixels_into_the_answer(api: JsonApi) -> None:
    answer = await control(api, action="computer_operation", scope="desk", **CAPTURE)
    pixels = base64.b64decode(answer["data"]["bytesBase64"])
    assert pixels.startswith(PNG) and len(pixels) == answer["data"]["size"]
    older = await control(api, action="workspace_operation", workspace="desk", **CAPTURE)
    assert base64.b64decode(older["bytesBase64"]).startswith(PNG)


@pytest.mark.anyio
async def test_pixels_of_a_step_are_not_left_out_silently(api: JsonApi) -> None:
    asked = {"operations": [CAPTURE, CAPTURE]}
    answer = await control(api, action="computer_operation", scope="desk", op="batch.run", input=asked)
    assert any("2 images" in warning and "return" in warning for warning in answer["warnings"])


@pytest.mark.skipif(bool(missing("Xvfb")), reason="not installed: Xvfb")
def test_the_command_line_answers_with_a_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_config(home, tmp_path / "root", scopes=[computer_scope()])
    (tmp_path / "x11").mkdir()
    with x11_desktop(tmp_path / "x11", size="320x200x24", with_bus=False, with_wm=False) as desktop:
        command = [*PROGRAM, "op", "screen.capture", "primary", "--json"]
        env = environment(home, DISPLAY=desktop.display)
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)
        status = subprocess.run(
            [*PROGRAM, "screen", "status", "--json"], env=env, capture_output=True, text=True, timeout=240
        )
        with stdio(home) as lines:
            told = lines.tool("get_computer_info", include=["tools"])
        end_service(home)
    # Points 000-153, 000-213, 001-091: the permission is asked for, without pixels.
    assert json.loads(status.stdout)["screenshot"]["permission"]["status"] == "granted", status
    assert json.loads(told["content"][0]["text"])["tools"]["screenshot"]["permission"]["status"] == "granted"
    assert done.returncode == 0, done.stderr
    assert Path(json.loads(done.stdout)["data"]["fileRef"]).read_bytes().startswith(PNG)

"""`sudo` inside the sandbox: the owner is asked for exactly that command, which then runs outside as the superuser."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from support.road import Road, folder_scope

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("sudo") is None or os.geteuid() != 0, reason="needs sudo, and to be root"),
]


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    (tmp_path / "root").mkdir()
    scope = folder_scope(tmp_path / "root", allowedCommands=["*"], sandbox="required", elevation=True)
    async with Road.open(tmp_path, [scope]) as opened:
        yield opened


async def sh(road: Road, script: str) -> dict[str, Any]:
    return await road.data("command.run", ".", input={"command": ["sh", "-c", script]}, options={"timeoutSeconds": 100})


async def events(road: Road) -> list[dict[str, Any]]:
    found = (await road.data("history.last", "", options={"limit": 50}))["events"]
    return [each for each in found if each["op"] == "command.elevate"]


async def test_what_was_allowed_runs_outside_once_and_has_its_event(road: Road, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    script = f"sudo touch {outside}"
    refused = await sh(road, script)
    assert refused["exitCode"] == 1 and not outside.exists(), refused
    (asked,) = road.app.services.use(Approvals).waiting()
    assert asked.about is not None and str(outside) in str(asked.about.lines)
    assert road.app.services.use(Approvals).answer(asked.id, "yes")
    ran = await sh(road, script)
    assert ran["exitCode"] == 0 and outside.exists(), ran
    event, *_ = await events(road)
    assert (event["ok"], event["boundary"], event["approval"]["extent"]) == (True, "none", "once")
    assert event["commandPreview"] == f"sudo touch {outside}"
    outside.unlink()
    assert (await sh(road, script))["exitCode"] == 1 and not outside.exists()


async def test_a_yes_is_for_exactly_this_argument_vector(road: Road, tmp_path: Path) -> None:
    await sh(road, f"sudo touch {tmp_path}/one")
    (asked,) = road.app.services.use(Approvals).waiting()
    road.app.services.use(Approvals).answer(asked.id, "yes")
    for script in (
        f"sudo touch {tmp_path}/two",
        f"sudo touch {tmp_path}/one {tmp_path}/two",
        f"sudo rm {tmp_path}/one",
    ):
        assert (await sh(road, script))["exitCode"] == 1
    assert not (tmp_path / "two").exists()


@pytest.mark.parametrize("argv", [["sudo"], ["/usr/bin/sudo", "-n", "--"], ["sh", "-c", 'doas "$@"', "x"]])
async def test_every_way_to_call_it_asks(road: Road, tmp_path: Path, argv: list[str]) -> None:
    line = [*argv, "touch", str(tmp_path / "outside")]
    ran = await road.data("command.run", ".", input={"command": line})
    (asked,) = road.app.services.use(Approvals).waiting()
    assert ran["exitCode"] == 1 and not (tmp_path / "outside").exists()
    road.app.services.use(Approvals).answer(asked.id, "yes")
    assert (await road.data("command.run", ".", input={"command": line}))["exitCode"] == 0
    assert (tmp_path / "outside").exists() and not any((road.home / "elevation").iterdir())


async def test_output_and_exit_code_come_back(road: Road) -> None:
    script = "sudo sh -c 'id -u; echo wrong >&2; exit 7'"
    await sh(road, script)
    (asked,) = road.app.services.use(Approvals).waiting()
    road.app.services.use(Approvals).answer(asked.id, "yes")
    ran = await sh(road, script)
    assert (ran["stdout"], ran["stderr"], ran["exitCode"]) == ("0\n", "wrong\n", 7)


async def test_it_is_off_unless_the_owner_turned_it_on(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    async with Road.open(
        tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["*"], sandbox="required")]
    ) as road:
        ran = await sh(road, "ls /run/computer-linker; sudo -n touch /tmp/x")
        assert "No such file" in ran["stderr"]
        code = await road.code("command.elevate", ".", input={"command": ["touch", str(tmp_path / "outside")]})
        assert code == "permission_denied" and not (tmp_path / "outside").exists()


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"argv": "x", "cwd": "/"}', '{"argv": [1], "cwd": "/"}', '{"argv": ["id"], "cwd": "/etc"}'],
)
async def test_other_requests_on_the_socket_run_nothing(road: Road, text: str) -> None:
    code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/computer-linker/elevation/ask'); s.sendall({text!r}.encode() + b'\\n'); print(s.recv(9999))"
    ran = await road.data("command.run", ".", input={"command": ["python3", "-c", code]})
    assert '"exitCode": 1' in ran["stdout"], ran
    assert not any(event["ok"] for event in await events(road))

"""`sudo` inside the sandbox: the owner is asked for exactly that command, which then runs outside as the superuser."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.approvals.approvals import PERSON, Answerer, Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.approvals.standing import extents_of
from computer_linker.approvals.store import AllowedClient
from computer_linker.errors import InvalidRequest
from support.road import LOCAL, Road, folder_scope
from support.waiting import until_awaited

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


async def test_a_yes_never_stands(road: Road, tmp_path: Path) -> None:
    """Found: `this exact request again` was offered, and ran as the superuser unasked for an hour."""
    people = road.app.services.use(Approvals)
    await sh(road, f"sudo touch {tmp_path}/outside")
    (asked,) = people.waiting()
    assert extents_of(asked) == ()
    for answer in ("same", "shape"):
        with pytest.raises(InvalidRequest):
            await people.take(asked.id, answer, Answerer(PERSON, "terminal"))
    assert not people.store.standing and not (tmp_path / "outside").exists()


async def test_a_yes_is_held_to_the_files_that_the_command_names(road: Road, tmp_path: Path) -> None:
    """Found: a script of the folder was exchanged after the owner had looked, and ran as the superuser."""
    script = road.root / "install.sh"
    script.write_text(f"touch {tmp_path}/shown\n")
    await sh(road, "sudo sh install.sh")
    (asked,) = road.app.services.use(Approvals).waiting()
    assert asked.about is not None and "names install.sh" in str(asked.about.lines)
    road.app.services.use(Approvals).answer(asked.id, "yes")
    script.write_text(f"touch {tmp_path}/exchanged\n")
    refused = await sh(road, "sudo sh install.sh")
    assert refused["exitCode"] == 1 and "no longer what the person was shown" in refused["stderr"]
    assert not (tmp_path / "exchanged").exists() and not (tmp_path / "shown").exists()


async def test_a_yes_is_held_to_the_folder(road: Road, tmp_path: Path) -> None:
    (road.root / "sub").mkdir()
    command = {"command": ["sh", "-c", "touch ran-here"]}
    assert await road.code("command.elevate", "sub", input=command) == "confirm_required"
    (asked,) = road.app.services.use(Approvals).waiting()
    road.app.services.use(Approvals).answer(asked.id, "yes")
    (road.root / "sub").rename(road.root / "was")
    (road.root / "sub").mkdir()
    assert await road.code("command.elevate", "sub", input=command) == "conflict"
    assert not list(road.root.rglob("ran-here"))


async def test_no_clients_own_dialog_allows_it(road: Road, tmp_path: Path) -> None:
    """Found: a client that the owner lets answer in its own dialog could allow itself commands of the superuser."""
    people = road.app.services.use(Approvals)
    people.store.add(AllowedClient(name="tests", allowed_at="2026-01-01T00:00:00Z"))

    async def yes(_asked: ApprovalRequest) -> Answer:
        return "yes"

    wanted = {"scope": "app", "op": "command.elevate", "target": ".", "input": {"command": ["touch", f"{tmp_path}/x"]}}
    steps = [{"op": "file.mkdir", "target": "made"}, {name: wanted[name] for name in ("op", "target", "input")}]
    for call in (wanted, wanted, {"scope": "app", "op": "batch.run", "input": {"operations": steps}}):
        reply = await road.app.dispatcher.call_wire(call, LOCAL, ask=yes)
        assert reply.envelope["error"]["code"] == "confirm_required"
    assert not (tmp_path / "x").exists()


async def test_a_denied_command_is_not_even_asked_about(tmp_path: Path) -> None:
    """Found: `deniedCommands` did not count for what runs as the superuser."""
    (tmp_path / "root").mkdir()
    rules: dict[str, Any] = {"sandbox": "required", "elevation": True, "deniedCommands": ["touch *"]}
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["*"], **rules)]) as road:
        for command in (
            ["touch", f"{tmp_path}/x"],
            ["env", "touch", f"{tmp_path}/x"],
            ["sudo", "touch", f"{tmp_path}/x"],
        ):
            assert await road.code("command.elevate", ".", input={"command": command}) == "permission_denied"
        assert not road.app.services.use(Approvals).waiting() and not (tmp_path / "x").exists()


async def test_a_program_cannot_use_up_the_services_descriptors(road: Road) -> None:
    """Found: each connection to its socket was a descriptor of the service, without a bound."""
    code = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held = []
for _ in range(400):
    one = socket.socket(socket.AF_UNIX)
    one.setblocking(False)
    try:
        one.connect('/run/computer-linker/elevation/ask')
    except BlockingIOError:
        pass  # the queue is full
    held.append(one)
sys.stdout.write('ready\\n'); sys.stdout.flush()
sys.stdin.readline()
"""
    begun = await road.data("command.start", ".", input={"command": ["python3", "-c", code]})
    handle = begun["processId"]

    async def has_connected() -> bool:
        return "ready" in str((await road.data("command.read", handle))["chunks"])

    await until_awaited(has_connected)
    assert sum("socket:" in os.readlink(f"/proc/self/fd/{fd}") for fd in _descriptors()) < 100
    await road.data("command.stop", handle)


async def test_what_a_program_asked_for_ends_with_it(road: Road, tmp_path: Path) -> None:
    """Found: a yes that came after the asking program was gone still ran the command."""
    people, released = road.app.services.use(Approvals), anyio.Event()

    async def late(_asked: ApprovalRequest) -> Answer:
        await released.wait()
        return "yes"

    async with people.attached("late", late):
        script = f"timeout 2 sudo touch {tmp_path}/late; echo ended; cat"
        begun = await road.data("command.start", ".", input={"command": ["sh", "-c", script]})

        async def has_ended() -> bool:
            return "ended" in str((await road.data("command.read", begun["processId"]))["chunks"])

        await until_awaited(has_ended)
        released.set()

        async def is_over() -> bool:
            return bool(await events(road)) and not people.waiting()

        await until_awaited(is_over)
    await road.data("command.stop", begun["processId"])
    (event,) = await events(road)
    assert not event["ok"] and not (tmp_path / "late").exists()


def _descriptors() -> list[str]:
    return [name for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")]


async def test_nothing_can_be_put_beside_the_socket(road: Road) -> None:
    """Found: the folder was writable, so a program of a scope that is read-only could fill the state folder's disk."""
    place = "/run/computer-linker/elevation"
    ran = await sh(road, f"touch {place}/x; rm {place}/ask; mkdir {place}/d; ln -s /etc {place}/l; ls {place}")
    assert ran["stdout"] == "ask\n", ran

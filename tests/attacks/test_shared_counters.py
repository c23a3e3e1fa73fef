"""A command uses up what the kernel counts for all programs of a user; other clients' commands work meanwhile."""

import json
from pathlib import Path

import anyio
import pytest

from computer_linker.model.principal import Principal
from support.another_user import place_of_another, run_as_another
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

OTHER = Principal(id="local:other", proof="local_user", session="session-2", connection="connection-2", client="tests")
PYTHON = "/usr/bin/python3"
IN_FLIGHT = """
import array, resource, os, socket, time
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
passed = array.array("i", [os.open("/dev/null", os.O_RDONLY)] * 250)
kept, count, refusal = [], 0, 0
while not refusal and count < hard + 1000:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    kept += [ours, theirs]
    try:
        while True:
            ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
            count += 250
    except BlockingIOError:
        pass
    except OSError as error:
        refusal = error.errno
print(count, refusal, flush=True)
time.sleep(120)
"""
"""Descriptors that are sent and never received, until the kernel refuses more (ETOOMANYREFS, 109)."""


async def beside(place: Path, script: str, scope: str, *, runs: int = 6) -> dict[str, object]:
    """What the script printed, and how many commands of another client ran, and one of the same, while it went on."""
    root = place / "root"
    root.mkdir()
    scopes = [folder_scope(root, mode, sandbox=mode, allowedCommands=["*"]) for mode in ("auto", "off")]
    async with Road.open(place, scopes) as road:
        started = await road.data("command.start", ".", scope=scope, input={"command": [PYTHON, "-c", script]})
        text = ""
        with anyio.fail_after(90):
            while not text.endswith("\n"):
                read = await road.data("command.read", started["processId"], scope=scope, options={"waitSeconds": 20})
                text = "".join(chunk["text"] for chunk in read["chunks"])
        ran = 0
        for _ in range(runs):
            answer = await road.call("command.run", ".", scope="auto", input={"command": ["true"]}, principal=OTHER)
            ran += bool(answer["ok"] and answer["data"]["exitCode"] == 0)
        left = await road.data("command.read", started["processId"], scope=scope)
        await road.data("command.stop", started["processId"], scope=scope, options={"signal": "kill"})
        return {"printed": text.split(), "ran": ran, "status": left["status"]}


async def beside_as_another(script: str, scope: str) -> dict[str, object]:
    program = (
        "import json, sys; from pathlib import Path; import anyio\n"
        "from attacks.test_shared_counters import beside\n"
        "print(json.dumps(anyio.run(beside, Path(sys.argv[1]), sys.argv[2], sys.argv[3])))"
    )
    with place_of_another() as place:
        found: dict[str, object] = json.loads(run_as_another(program, place, script, scope))
    return found


@pytest.mark.parametrize("scope", ["auto", "off"])
async def test_descriptors_in_flight_do_not_stop_other_commands(tmp_path: Path, scope: str) -> None:
    found = await beside(tmp_path, IN_FLIGHT, scope)
    if scope == "auto":
        # Without a boundary the superuser's programs are not bound by it.
        assert found["printed"][1] == "109", found
    assert (found["ran"], found["status"]) == (6, "running")


@pytest.mark.parametrize("scope", ["auto", "off"])
async def test_nor_for_an_ordinary_user(scope: str) -> None:
    found = await beside_as_another(IN_FLIGHT, scope)
    assert found["printed"][1] == "109", found
    assert (found["ran"], found["status"]) == (6, "running")

"""A command uses up what the kernel counts for all programs of a user; other clients' commands work meanwhile."""

import json
import os
from pathlib import Path
from typing import Any

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


async def beside(place: Path, script: str, scope: str, *, runs: int = 6) -> dict[str, Any]:
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


async def beside_as_another(script: str, scope: str) -> dict[str, Any]:
    program = (
        "import json, sys; from pathlib import Path; import anyio\n"
        "from attacks.test_shared_counters import beside\n"
        "print(json.dumps(anyio.run(beside, Path(sys.argv[1]), sys.argv[2], sys.argv[3])))"
    )
    with place_of_another() as place:
        found: dict[str, Any] = json.loads(run_as_another(program, place, script, scope))
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


KEYS = """
import ctypes, time
libc, count = ctypes.CDLL(None, use_errno=True), 0
while count < 1000 and libc.syscall(248, b"user", b"k%d" % count, b"v", 1, -3) >= 0:
    count += 1
print(count, ctypes.get_errno(), flush=True)
time.sleep(120)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the script has this processor's number of add_key")
async def test_a_command_takes_none_of_the_users_keys(tmp_path: Path) -> None:
    found = await beside(tmp_path, KEYS, "auto", runs=1)
    assert found["printed"] == ["0", "1"] and found["ran"] == 1


SLOWED = """
import ctypes, json, os, sys
libc, service, done = ctypes.CDLL(None, use_errno=True), int(sys.argv[1]), []

def tried(name, act):
    try:
        act()
        done.append(name)
    except OSError:
        pass

def io_priority(which, who):
    if libc.syscall(251, which, who, 3 << 13) != 0:
        raise OSError(ctypes.get_errno(), "ioprio_set")

tried("nice of a process", lambda: os.setpriority(os.PRIO_PROCESS, service, 9))
tried("nice of a group", lambda: os.setpriority(os.PRIO_PGRP, os.getpgid(service), 9))
tried("nice of a user", lambda: os.setpriority(os.PRIO_USER, os.getuid(), 9))
tried("processors", lambda: os.sched_setaffinity(service, {0}))
tried("policy", lambda: os.sched_setscheduler(service, os.SCHED_IDLE, os.sched_param(0)))
tried("parameter", lambda: os.sched_setparam(service, os.sched_param(0)))
tried("priority of the disk", lambda: io_priority(1, service))
tried("priority of the disk of a user", lambda: io_priority(3, os.getuid()))
os.nice(1)
os.sched_setaffinity(0, os.sched_getaffinity(0))
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
print(json.dumps(done))
"""
SLOWING = """
import json, os, sys
from pathlib import Path
from typing import Any
import anyio
from attacks.test_decisions_reach_effects import python, road_under
from attacks.test_shared_counters import SLOWED

async def main():
    async with road_under(Path(sys.argv[1]), "landlock") as road:
        ran = await road.data("command.run", ".", input=python(SLOWED, str(os.getpid())))
        now = [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), len(os.sched_getaffinity(0))]
        print(json.dumps([ran, now]))

before = [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), len(os.sched_getaffinity(0))]
print(json.dumps(before))
anyio.run(main)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the script has this processor's number of ioprio_set")
async def test_landlock_keeps_the_priorities_of_other_programs() -> None:
    with place_of_another() as place:
        before, after = map(json.loads, run_as_another(SLOWING, place).splitlines())
    ran, now = after
    assert ran["boundary"].startswith("landlock") and ran["exitCode"] == 0, ran
    assert json.loads(ran["stdout"]) == [] and now == before


QUEUES = """
import ctypes
libc, made = ctypes.CDLL(None, use_errno=True), []
for call, *given in ((241, b"owners"), *((240, b"taken%d" % n, 0o102, 0o600, 0) for n in range(12))):
    made.append(libc.syscall(call, *given) >= 0 or ctypes.get_errno() != 1)
print(any(made))
"""
QUEUEING = """
import ctypes, json, sys
from pathlib import Path
import anyio
from attacks.test_decisions_reach_effects import python, road_under
from attacks.test_shared_counters import QUEUES

libc = ctypes.CDLL(None, use_errno=True)

async def main():
    async with road_under(Path(sys.argv[1]), "landlock") as road:
        assert libc.syscall(240, b"owners", 0o102, 0o600, 0) >= 0
        ran = await road.data("command.run", ".", input=python(QUEUES))
        left = [libc.syscall(241, name) for name in (b"owners", *(b"taken%d" % n for n in range(12)))]
        print(json.dumps([ran, left]))

anyio.run(main)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the script has this processor's numbers of calls")
async def test_landlock_keeps_the_message_queues_of_other_programs() -> None:
    """Found: a command removed the owner's queues, and used up all that a user has."""
    with place_of_another() as place:
        ran, left = json.loads(run_as_another(QUEUEING, place))
    assert ran["boundary"].startswith("landlock") and ran["stdout"] == "False\n", ran
    assert left == [0, *[-1] * 12]

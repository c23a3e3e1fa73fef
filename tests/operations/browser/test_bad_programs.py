"""An agent-browser that hangs, rambles, forks or lays traps: a clear code, nothing kept, nothing left running."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.browser.browsers import MAX_OPEN, Browsers
from support.agents import road_with
from support.pages import left_running, needed
from support.road import LOCAL, Road, folder_scope
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.clients]

_HEAD = """#!/usr/bin/python3
import json, os, subprocess, sys, time
commands = json.loads(sys.stdin.read() or "[]")
def answer(**more):
    results = []
    for command in commands:
        result = {"url": "about:blank", "title": "t", "snapshot": "- button \\"x\\" [ref=e1]", "refs": {"e1": {"role": "button", "name": "x"}}}
        results.append({"index": len(results), "success": True, "error": None, "result": {**result, **more}})
    print(json.dumps(results))
"""


_SAYINGS = [
    ("print('rubbish')", "execution_failed"),
    ("print('{}')", "execution_failed"),
    ("print('[1, 2]')", "execution_failed"),
    ("print('[]')", "execution_failed"),
    ("print('[' * 100000)", "execution_failed"),
    ('print(\'{"success": false, "error": {"a": 1}}\')', "execution_failed"),
    ("sys.exit(3)", "execution_failed"),
    ("os.kill(os.getpid(), 9)", "execution_failed"),
    ("os.kill(os.getppid(), 9)", "process_not_found"),
    ("os.write(1, b'x' * (30 << 20))", "limit_exceeded"),
    ("os.write(1, bytes(range(256)))", "execution_failed"),
    ("answer(url='file:///etc/passwd')", "permission_denied"),
    ("answer(url='chrome://settings')", "permission_denied"),
]
_TRAPS = [
    ("os.symlink('/etc/passwd', place)", "path_out_of_scope"),
    ("open(os.path.dirname(place) + '/b', 'w').write('x'); os.symlink('b', place)", "execution_failed"),
    ("os.mkfifo(place)", "invalid_request"),
    ("open(place, 'w').write('<html>')", "execution_failed"),
    ("open(place, 'wb').truncate(10 << 30)", "limit_exceeded"),
    ("pass", "execution_failed"),
    ("os.mkdir(place)", "execution_failed"),
]


class StandIn:
    """A road on which agent-browser is a script."""

    def __init__(self, road: Road, program: Path) -> None:
        self.road = road
        self._program = program

    def becomes(self, body: str) -> None:
        """Let the script be another from now on."""
        spare = self._program.with_name("next")
        spare.write_text(_HEAD + body)
        spare.chmod(0o755)
        spare.replace(self._program)


@asynccontextmanager
async def standing_in(tmp_path: Path, body: str, **policy: Any) -> AsyncIterator[StandIn]:
    """A service that takes this script for agent-browser."""
    needed()
    folder = tmp_path / "tool" / "bin"
    folder.mkdir(parents=True)
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.html").write_text("x")
    environ = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/root")}
    scope = folder_scope(root, "app", **{"allowedCommands": ["agent-browser *"], **policy})
    async with road_with(tmp_path, environ, [scope]) as road:
        made = StandIn(road, folder / "agent-browser")
        made.becomes(body)
        yield made
    assert left_running(tmp_path / "home") == []


async def test_what_it_says_is_not_believed(tmp_path: Path) -> None:
    async with standing_in(tmp_path, "") as made:
        for body, code in _SAYINGS:
            made.becomes(body)
            assert await made.road.code("browser.open", "a.html") == code, body


async def test_a_trap_in_place_of_a_picture_is_not_taken(tmp_path: Path) -> None:
    async with standing_in(tmp_path, "answer()") as made:
        await made.road.data("browser.open", "a.html")
        for trap, code in _TRAPS:
            made.becomes(f"""
for command in commands:
    if command[0] == "screenshot":
        place = command[-1]
        {trap}
answer()
""")
            assert await made.road.code("browser.screenshot") == code, trap
        assert (await made.road.data("artifact.list"))["artifacts"] == []


async def test_one_that_hangs_is_ended_with_the_scopes_time(tmp_path: Path) -> None:
    async with standing_in(tmp_path, "time.sleep(600)", maxRuntimeSeconds=2) as made:
        assert await made.road.code("browser.open", "a.html") in ("process_not_found", "timeout")
        await until(lambda: not made.road.app.services.use(Browsers).is_busy())


async def test_no_more_than_a_few_are_open_at_once(tmp_path: Path) -> None:
    async with standing_in(tmp_path, "answer()") as made:
        callers = [replace(LOCAL, id=f"local:{number}") for number in range(MAX_OPEN + 1)]
        for one in callers[:-1]:
            await made.road.data("browser.open", "a.html", principal=one)
        assert await made.road.code("browser.open", "a.html", principal=callers[-1]) == "limit_exceeded"
        await made.road.data("browser.close", principal=callers[0])
        await made.road.data("browser.open", "a.html", principal=callers[-1])


async def test_what_it_forks_ends_with_it(tmp_path: Path) -> None:
    body = "subprocess.Popen(['sleep', '600'], start_new_session=True, stdout=-3, stdin=-3, stderr=-3)\nanswer()"
    async with standing_in(tmp_path, body) as made:
        await made.road.data("browser.open", "a.html")
        assert any("sleep" in line for line in left_running(made.road.home))
        await made.road.data("browser.close")
        # Of bubblewrap's two processes the outer one ends first, and the kernel then ends the inner one.
        await until(lambda: left_running(made.road.home) == [])


async def test_a_recording_that_nobody_ends_ends_by_itself(tmp_path: Path) -> None:
    body = """
for command in commands:
    if command[:2] == ["trace", "stop"]:
        open(command[2], "w").write("{}")
answer()
"""
    async with standing_in(tmp_path, body) as made:
        road = made.road
        await road.data("browser.open", "a.html")
        await road.data("browser.trace", "start")
        session = road.app.services.use(Browsers).find(road.app.config.scopes[0], LOCAL)
        session.running["trace"].cancel()
        session.end_after("trace", ("trace", "stop", session.place("trace.json")), 0.01)
        await until(lambda: "trace" in session.over)
        envelope = await road.call("browser.trace", "stop")
        assert envelope["data"]["artifact"]["size"] == 2
        assert "ended by itself" in envelope["warnings"][0]
        assert await road.code("browser.trace", "stop") == "conflict"


async def test_without_the_program_the_remedy_is_told(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.html").write_text("x")
    scope = folder_scope(root, "app", allowedCommands=["agent-browser *"])
    async with road_with(tmp_path, {"PATH": "/nowhere"}, [scope]) as road:
        envelope = await road.call("browser.open", "a.html")
        assert envelope["error"]["code"] == "provider_unavailable"
        assert "npm install" in envelope["error"]["details"]["remedy"]
        assert await road.code("browser.text") == "provider_unavailable"

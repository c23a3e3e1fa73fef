"""command.start, read, send, stop and list through the whole road."""

import json
import shutil
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.road import LOCAL, Road, folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio


def scopes(root: Path) -> list[dict[str, Any]]:
    return [
        folder_scope(root, "app", allowedCommands=["*"]),
        folder_scope(root, "bare", allowedCommands=["*"], sandbox="off"),
        folder_scope(root, "other", allowedCommands=["*"]),
        folder_scope(root, "short", allowedCommands=["*"], maxRuntimeSeconds=4),
    ]


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    (tmp_path / "root").mkdir()
    async with Road.open(tmp_path, scopes(tmp_path / "root")) as opened:
        yield opened


class Terminal:
    """A program on a pty, driven as a client would."""

    def __init__(self, road: Road, process_id: str, scope: str) -> None:
        self.road, self.id, self.scope = road, process_id, scope

    @classmethod
    async def open(cls, road: Road, *argv: str, scope: str = "app", env: dict[str, str] | None = None) -> "Terminal":
        started = await road.data(
            "command.start", ".", scope=scope, input={"command": list(argv), "env": env or {}}, options={"pty": True}
        )
        return cls(road, started["processId"], scope)

    async def type(self, text: str, wait_for: str) -> str:
        return await self._send({"text": text}, wait_for)

    async def press(self, key: str, wait_for: str) -> str:
        return await self._send({"key": key}, wait_for)

    async def _send(self, given: dict[str, str], wait_for: str) -> str:
        options = {"waitFor": wait_for, "waitSeconds": 20}
        sent = await self.road.data("command.send", self.id, scope=self.scope, input=given, options=options)
        read = await self.road.data("command.read", self.id, scope=self.scope, options={"cursor": sent["cursor"]})
        text = "".join(chunk["text"] for chunk in read["chunks"])
        assert sent["matched"], text
        return text

    async def leave(self, text: str) -> None:
        await self.road.data("command.send", self.id, scope=self.scope, input={"text": text})

    async def ended(self) -> dict[str, Any]:
        return await until_over(self.road, self.id, self.scope)


async def until_over(road: Road, process_id: str, scope: str = "app", wait_s: float = 5) -> dict[str, Any]:
    """Read on until the process is over; gives all its text and how it ended."""
    text, cursor = "", 0
    with anyio.fail_after(120):
        while True:
            read = await road.data(
                "command.read", process_id, scope=scope, options={"cursor": cursor, "waitSeconds": wait_s}
            )
            text += "".join(chunk["text"] for chunk in read["chunks"])
            if read["status"] != "running" and read["cursor"] == cursor:
                return {**read, "text": text}
            cursor = read["cursor"]


@pytest.mark.parametrize("scope", ["app", "bare"])
async def test_a_python_repl_is_driven(road: Road, scope: str) -> None:
    repl = await Terminal.open(road, "/usr/bin/python3", "-q", scope=scope)
    assert "42" in await repl.type("6 * 7\n", r"42\s+>>> $")
    await repl.type("print('no' + 'w'); import time; time.sleep(60)\n", "now")
    assert "KeyboardInterrupt" in await repl.press("ctrl+c", ">>> $")
    await repl.leave("exit(5)\n")
    assert (await repl.ended())["exitCode"] == 5


@pytest.mark.parametrize("scope", ["app", "bare"])
async def test_bash_is_driven_with_job_control(road: Road, scope: str) -> None:
    shell = await Terminal.open(road, "bash", "--norc", "--noprofile", scope=scope)
    await shell.type("PS1='ready: '\n", "ready: $")
    assert "8" in await shell.type("stty size; echo $((3 + 5))\n", r"8\s+ready: $")
    # The word appears only once the inner program runs, and not in the echo of what was typed.
    nap = "sh -c 'echo u\"\"p; exec sleep 60'\n"
    await shell.type(nap, r"\bup\b")
    await shell.press("ctrl+c", "ready: $")
    await shell.type(nap, r"\bup\b")
    assert "Stopped" in await shell.press("ctrl+z", "ready: $")
    await shell.type("kill -9 %1\n", "ready: $")
    await shell.leave("fg; exit 4\n")
    assert (await shell.ended())["exitCode"] == 4


async def test_a_password_prompt_without_echo_is_answered(road: Road) -> None:
    script = "stty -echo; printf 'Password: '; read word; stty echo; echo; echo got ${#word}"
    prompt = await Terminal.open(road, "sh", "-c", script)
    with anyio.fail_after(60):
        while "Password" not in str(await road.data("command.read", prompt.id, options={"waitSeconds": 5})):
            pass
    assert "hunter22" not in await prompt.type("hunter22\n", "got 8")


async def test_vim_edits_a_file(road: Road) -> None:
    if shutil.which("vim") is None:
        pytest.skip("vim is not installed")
    vim = await Terminal.open(road, "vim", "-u", "NONE", "-N", "note.txt")
    await vim.type("ihello from vim", "hello from vim")
    # Ctrl-O rather than Escape: a key after Escape could be taken for one with Alt.
    await vim.press("ctrl+o", r"\(insert\)")
    await vim.type(":wq\r", "written")
    assert (await vim.ended())["exitCode"] == 0
    assert (road.root / "note.txt").read_text() == "hello from vim\n"


async def test_npm_init_is_answered(road: Road) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    npm = await Terminal.open(road, "npm", "init")
    await npm.type("my-package\n", "version:")
    # Which questions follow depends on npm's version; each takes Enter for its default.
    for _ in range(12):
        if "Is this OK" in await npm.type("\n", r": (\([^)]*\) )?$|OK\? \(yes\) $"):
            break
    await npm.leave("yes\n")
    await npm.ended()
    assert json.loads((road.root / "package.json").read_text())["name"] == "my-package"


@pytest.mark.parametrize("scope", ["app", "bare"])
async def test_streams_are_told_apart_and_cursors_neither_skip_nor_repeat(road: Road, scope: str) -> None:
    script = "i=0; while [ $i -lt 300 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done; exit 6"
    started = await road.data("command.start", ".", scope=scope, input={"command": ["sh", "-c", script]})
    text: dict[str, str] = {"stdout": "", "stderr": ""}
    cursor, status = 0, "running"
    with anyio.fail_after(20):
        while True:
            options = {"cursor": cursor, "maxBytes": 17, "waitSeconds": 5}
            read = await road.data("command.read", started["processId"], scope=scope, options=options)
            for chunk in read["chunks"]:
                text[chunk["stream"]] += chunk["text"]
            if read["cursor"] == cursor and read["status"] != "running":
                status = read["status"]
                break
            cursor = read["cursor"]
    assert text["stdout"] == "".join(f"out{i}\n" for i in range(300))
    assert text["stderr"] == "".join(f"err{i}\n" for i in range(300))
    assert (status, read["exitCode"]) == ("exited", 6)


async def test_input_without_a_terminal_and_its_end(road: Road) -> None:
    started = await road.data("command.start", ".", input={"command": ["cat"]})
    process = started["processId"]
    await road.data("command.send", process, input={"text": "hello\n"}, options={"waitFor": "hello"})
    await road.data("command.send", process, input={"key": "ctrl+d"})
    assert (await until_over(road, process))["exitCode"] == 0
    assert await road.code("command.send", process, input={"text": "more"}) == "conflict"


async def test_stop_ends_the_whole_tree(road: Road) -> None:
    for scope in ("app", "bare"):
        script = "trap 'echo bye; exit 0' TERM; setsid -f sleep 96.5; sleep 96.5 & echo up; wait"
        started = await road.data("command.start", ".", scope=scope, input={"command": ["sh", "-c", script]})
        process = started["processId"]
        assert (await road.data("command.read", process, scope=scope, options={"waitSeconds": 5}))["chunks"]
        assert (await road.data("command.stop", process, scope=scope))["status"] == "stopped"
        assert "bye" in (await until_over(road, process, scope))["text"]
        assert (await road.data("command.stop", process, scope=scope))["status"] == "stopped"
    await until(lambda: not any(b"96.5" in _cmdline(path) for path in Path("/proc").glob("[0-9]*/cmdline")))


async def test_a_process_is_found_only_by_its_own_caller_in_its_own_scope(road: Road) -> None:
    started = await road.data("command.start", ".", input={"command": ["sleep", "60", "--token=SECRET-9d"]})
    process = started["processId"]
    stranger = replace(LOCAL, id="oauth:stranger", proof="oauth", grants=None)
    for parts in ({"scope": "other"}, {"principal": stranger}):
        for op, given in (("read", {}), ("stop", {}), ("send", {"input": {"text": "x"}})):
            assert await road.code(f"command.{op}", process, **parts, **given) == "process_not_found"
        assert (await road.data("process.list", **parts))["processes"] == []
    for raw in ("1", "-1", "0", str(10**9), "../../etc/passwd", "proc_" + "0" * 24):
        assert await road.code("command.stop", raw) == "process_not_found"
    listed = (await road.data("command.list"))["processes"]
    assert [entry["status"] for entry in listed] == ["running"] or listed[0]["status"] == "exited"
    assert "SECRET-9d" not in json.dumps(listed) + json.dumps(started)
    stored = b"".join(path.read_bytes() for path in road.home.rglob("*") if path.is_file())
    assert b"SECRET-9d" not in stored


async def test_the_list_tells_ports_and_use(road: Road) -> None:
    serve = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); time.sleep(60)"
    for scope in ("app", "bare"):
        started = await road.data(
            "command.start", ".", scope=scope, input={"command": ["/usr/bin/python3", "-c", serve]}
        )
        read: dict[str, Any] = {"chunks": []}
        with anyio.fail_after(60):
            while not read["chunks"]:
                read = await road.data("command.read", started["processId"], scope=scope, options={"waitSeconds": 5})
        port = int(read["chunks"][0]["text"])
        (entry,) = (await road.data("command.list", scope=scope))["processes"]
        assert entry["ports"] == [port] and entry["memoryBytes"] > 1_000_000 and entry["processes"] >= 1
        if scope == "app":
            with pytest.raises(OSError):
                socket.create_connection(("127.0.0.1", port), 1)


async def test_the_scopes_time_is_over_for_a_started_process_too(road: Road) -> None:
    started = await road.data("command.start", ".", scope="short", input={"command": ["sleep", "60"]})
    # A read has the scope's time too, and waits for less.
    assert (await until_over(road, started["processId"], "short", wait_s=0.2))["status"] == "stopped"


async def test_a_long_poll_returns_at_once_when_output_comes(road: Road) -> None:
    started = await road.data("command.start", ".", input={"command": ["cat"]})
    async with anyio.create_task_group() as group:
        answers: list[dict[str, Any]] = []

        async def read() -> None:
            answers.append(await road.data("command.read", started["processId"], options={"waitSeconds": 30}))

        group.start_soon(read)
        with anyio.fail_after(25):  # less than the poll waits by itself
            await road.data("command.send", started["processId"], input={"text": "x\n"})
            await until(lambda: answers)
    assert answers[0]["chunks"] == [{"stream": "stdout", "text": "x\n"}]


async def test_a_pattern_that_would_hang_a_matcher_does_not(road: Road) -> None:
    started = await road.data("command.start", ".", input={"command": ["cat"]})
    options = {"waitFor": "(a+)+$b", "waitSeconds": 0.5}
    with anyio.fail_after(60):
        sent = await road.data("command.send", started["processId"], input={"text": "a" * 2000 + "\n"}, options=options)
    assert sent["matched"] is False
    bad = {"waitFor": "(unclosed", "waitSeconds": 1}
    assert (
        await road.code("command.send", started["processId"], input={"text": "y\n"}, options=bad) == "invalid_request"
    )


async def test_a_stopped_service_stops_its_processes_and_the_next_one_says_so(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    async with Road.open(tmp_path, scopes(tmp_path / "root")) as road:
        started = await road.data(
            "command.start", ".", input={"command": ["sleep", "95.5"]}, options={"name": "napper"}
        )
        ended = await road.data("command.start", ".", input={"command": ["sh", "-c", "exit 9"]})
        await until_over(road, ended["processId"])
    assert not any(b"95.5" in _cmdline(path) for path in Path("/proc").glob("[0-9]*/cmdline"))
    async with Road.open(tmp_path, scopes(tmp_path / "root")) as road:
        listed = {entry["processId"]: entry for entry in (await road.data("command.list"))["processes"]}
        assert listed[started["processId"]]["status"] == "stopped" and listed[started["processId"]]["name"] == "napper"
        assert (listed[ended["processId"]]["status"], listed[ended["processId"]]["exitCode"]) == ("exited", 9)
        assert await road.code("command.read", started["processId"]) == "process_not_found"


@pytest.mark.parametrize(
    "options",
    [{"cursor": -1}, {"cursor": 10**18}, {"cursor": 1000}, {"maxBytes": 0}, {"waitSeconds": 1000}, {"offset": 1}],
)
async def test_a_wrong_read_is_refused(road: Road, options: dict[str, Any]) -> None:
    started = await road.data("command.start", ".", input={"command": ["sleep", "30"]})
    assert await road.code("command.read", started["processId"], options=options) == "invalid_request"


def _cmdline(path: Path) -> bytes:
    try:
        line = path.read_bytes()
    except OSError:
        return b""
    return line if line.split(b"\0")[0].endswith(b"sleep") else b""

"""command.send and command.read wait for text, for silence or the end; the echo of what was typed is no answer."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.road import Road, folder_scope
from support.waiting import until_awaited

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def road(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Road]:
    folder = tmp_path_factory.mktemp("waiting")
    (folder / "root").mkdir()
    scopes = [
        folder_scope(folder / "root", "app", allowedCommands=["*"]),
        folder_scope(folder / "root", "bare", allowedCommands=["*"], sandbox="off"),
    ]
    async with Road.open(folder, scopes) as opened:
        yield opened


class Program:
    """A started program, driven as a client would."""

    def __init__(self, road: Road, scope: str, process_id: str) -> None:
        self.road, self.scope, self.id = road, scope, process_id

    @classmethod
    async def start(cls, road: Road, *argv: str, pty: bool = True, scope: str = "app") -> "Program":
        given = {"input": {"command": list(argv)}, "options": {"pty": pty}}
        return cls(road, scope, (await road.data("command.start", ".", scope=scope, **given))["processId"])

    async def send(self, text: str, **options: Any) -> dict[str, Any]:
        wanted = {"waitSeconds": 30, **options}
        return await self.road.data("command.send", self.id, scope=self.scope, input={"text": text}, options=wanted)

    async def read(self, **options: Any) -> dict[str, Any]:
        return await self.road.data("command.read", self.id, scope=self.scope, options=options)

    async def stop(self) -> None:
        await self.road.data("command.stop", self.id, scope=self.scope, options={"signal": "kill"})

    async def until_waits(self, wanted: bool | None) -> None:
        async def is_so() -> bool:
            return (await self.read())["waitsForInput"] is wanted

        await until_awaited(is_so)


@pytest.mark.parametrize("scope", ["app", "bare"])
async def test_the_echo_of_a_terminal_is_no_answer(road: Road, scope: str) -> None:
    # The first `done` on the screen is the echo; the program prints its own only when it is told to go on.
    script = "printf 'ready> '; read word; read go; echo got $word; sleep 60"
    program = await Program.start(road, "sh", "-c", script, scope=scope)
    await program.read(waitFor="ready> $", waitSeconds=30)
    sent = await program.send("done\n", waitFor="done", waitSeconds=0.3)
    assert (sent["matched"], sent["waited"], sent["output"]) == (False, "time", "")
    read = await program.read(cursor=sent["cursor"], waitFor="done", waitSeconds=0.2)
    assert read["waited"] == "time" and "done" in read["chunks"][0]["text"], "it is on the screen, and does not count"
    sent = await program.send("go\n", waitFor="got done")
    assert sent["matched"] and sent["output"].strip() == "got done"
    await program.stop()


async def test_new_output_is_waited_for_past_the_echo(road: Road) -> None:
    program = await Program.start(road, "sh", "-c", "printf 'ready> '; read word; read go; echo got $word; sleep 60")
    await program.read(waitFor="ready> $", waitSeconds=30)
    sent = await program.send("one\n")
    assert sent["waited"] is None and sent["output"] is None
    assert (await program.read(cursor=sent["cursor"], waitSeconds=0.3))["waited"] == "time"
    await program.send("go\n")
    read = await program.read(cursor=sent["cursor"], waitSeconds=30)
    assert read["waited"] == "output" and read["chunks"]
    await program.stop()


async def test_what_a_password_prompt_prints_itself_counts(road: Road) -> None:
    script = "stty -echo; printf 'Password: '; read word; echo said $word; printf $word; sleep 60"
    program = await Program.start(road, "sh", "-c", script)
    await program.read(waitFor="Password: $", waitSeconds=30)
    sent = await program.send("hunter22\n", waitFor="said hunter22\\s+hunter22$")
    assert sent["matched"], sent
    await program.stop()


async def test_a_line_editor_that_echoes_by_itself_is_not_taken_for_an_answer(road: Road) -> None:
    repl = await Program.start(road, "/usr/bin/python3", "-q")
    await repl.read(waitFor=">>> $", waitSeconds=30)
    sent = await repl.send("'wo' + 'rd' if input() else 'word'\n", waitFor="word", waitSeconds=0.5)
    assert sent["matched"] is False, sent
    sent = await repl.send("x\n", waitFor="'word'")
    assert sent["matched"] and "'word'" in sent["output"], sent
    await repl.stop()


async def test_without_a_terminal_everything_counts(road: Road) -> None:
    program = await Program.start(road, "cat", pty=False)
    sent = await program.send("hello\n", waitFor="hello")
    assert sent["matched"] and sent["output"] == "hello\n" and sent["nextCursor"] == sent["cursor"] + 6
    await program.stop()


async def test_silence_ends_a_wait(road: Road) -> None:
    script = "while read line; do for i in 1 2 3 4 5; do echo $i; sleep 0.05; done; done"
    program = await Program.start(road, "sh", "-c", script, pty=False)
    sent = await program.send("go\n", silenceSeconds=1.5)
    assert sent["waited"] == "silence" and sent["matched"] is None and sent["output"] == "1\n2\n3\n4\n5\n"
    read = await program.read(silenceSeconds=0.1, waitSeconds=30)
    assert read["waited"] == "silence" and read["status"] == "running"
    await program.stop()


async def test_the_end_ends_every_wait(road: Road) -> None:
    for options in ({"untilEnd": True}, {"waitFor": "never"}, {"silenceSeconds": 50}):
        program = await Program.start(road, "sh", "-c", "read line; echo last; exit 3", pty=False)
        sent = await program.send("go\n", **options)
        assert (sent["waited"], sent["status"], sent["output"]) == ("end", "exited", "last\n"), options
        read = await program.read(waitSeconds=30, untilEnd=True)
        assert (read["waited"], read["exitCode"], read["waitsForInput"]) == ("end", 3, False)


@pytest.mark.parametrize("scope", ["app", "bare"])
@pytest.mark.parametrize("pty", [True, False])
async def test_it_says_whether_the_program_waits_for_input(road: Road, scope: str, pty: bool) -> None:
    program = await Program.start(road, "sh", "-c", "read line; sleep 60; read more", pty=pty, scope=scope)
    await program.until_waits(True)
    await program.send("go\n")
    await program.until_waits(False)
    await program.stop()


async def test_a_program_of_the_shells_own_child_waits_too(road: Road) -> None:
    shell = await Program.start(road, "bash", "--norc", "--noprofile")
    await shell.until_waits(True)
    await shell.send("cat\n")
    await shell.until_waits(True)
    await shell.send("sleep 60\n", waitFor="sleep 60")
    await shell.stop()


async def test_a_server_that_polls_is_not_said_to_wait(road: Road) -> None:
    serve = "import select, sys; print('up', flush=True); select.select([sys.stdin], [], [])"
    program = await Program.start(road, "/usr/bin/python3", "-c", serve, pty=False)
    await program.read(waitFor="up", waitSeconds=30)
    await program.until_waits(None)
    await program.stop()


@pytest.mark.parametrize(
    "pattern", ["(a+)+$b", "(a|a)*c", "(.*)*(.*)*(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$", "(a?){400}a{400}"]
)
async def test_a_hostile_pattern_costs_little(road: Road, pattern: str) -> None:
    program = await Program.start(road, "cat", pty=False)
    with anyio.fail_after(30):
        value = {"text": "a" * 5000 + "\n"}
        options = {"waitFor": pattern, "waitSeconds": 0.5}
        envelope = await road.call("command.send", program.id, input=value, options=options)
    assert envelope["ok"] or envelope["error"]["code"] == "invalid_request", envelope
    await program.stop()


@pytest.mark.parametrize(
    "options",
    [
        {"silenceSeconds": 0}, {"silenceSeconds": 51}, {"waitFor": ""}, {"waitFor": "a" * 1001}, {"untilEnd": "yes"},
        {"waitFor": "(unclosed", "waitSeconds": 1}, {"waitSeconds": -1}, {"idle": 1},
    ],
)  # fmt: skip
async def test_a_wrong_wait_is_refused(road: Road, options: dict[str, Any]) -> None:
    program = await Program.start(road, "echo", "text", pty=False)
    assert await road.code("command.read", program.id, options={"waitSeconds": 5, **options}) == "invalid_request"


async def test_a_transcript_keeps_what_was_typed(road: Road, tmp_path: Path) -> None:
    program = await Program.start(road, "sh", "-c", "read word; echo got; sleep 60")
    await program.until_waits(True)
    await program.send("typed\n", waitFor="got")
    assert "typed" in str((await program.read())["chunks"])
    await program.stop()


@pytest.mark.parametrize("pty", [True, False])
async def test_what_is_waited_for_is_waited_for_without_a_time_too(road: Road, pty: bool) -> None:
    program = await Program.start(road, "sh", "-c", "sleep 0.5; echo ready; read line; echo got $line", pty=pty)
    assert (await program.read(waitFor="ready"))["waited"] == "text"
    # Enter ends a line for a program on a pipe as well as for one on a terminal.
    await program.send("word")
    key = {"input": {"key": "enter"}, "options": {"untilEnd": True}}
    done = await road.data("command.send", program.id, **key)
    assert done["status"] == "exited" and "got word" in done["output"]

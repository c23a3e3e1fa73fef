"""Commands and agent sessions are one list with one stop, for clients and for the owner; one session is read by its id."""

import json
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.agents import environ_for, until_over
from support.agents_road import agent_on, agent_road, agent_scope, command
from support.road import Road
from support.service import PROGRAM, TOKEN, Http, environment, serving, wait_for, write_config

pytestmark = pytest.mark.anyio


async def until_up(place: Path) -> None:
    await anyio.to_thread.run_sync(lambda: wait_for(place.exists, seconds=60))


async def test_a_client_lists_reads_and_stops_both_kinds(tmp_path: Path) -> None:
    """Points 000-222, 001-039 and 001-090 for clients; a caller without `codex:run` sees no session."""
    nap = command("codex", "echo x > up.txt; sleep 300")
    async with agent_road(
        tmp_path, "codex", nap, {"say": "never", "hold": True}, allowedCommands=["codex *", "sleep *"]
    ) as (
        road,
        _,
    ):
        process = (await road.data("command.start", ".", input={"command": "sleep 200"}))["processId"]
        session = (await road.data("codex.start", ".", input={"prompt": "go"}))["sessionId"]
        await until_up(tmp_path / "root" / "up.txt")
        listed = (await road.data("process.list"))["processes"]
        assert [(one["processId"], one["kind"], one["status"]) for one in listed] == [
            (session, "codex", "running"), (process, "command", "running"),
        ]  # fmt: skip
        read = await road.data("process.read", session)
        assert read["status"] == "running" and "mock-model" in read["chunks"][0]["text"]
        stopped = await road.call("process.stop", session)
        assert (stopped["data"]["status"], stopped["effect"]) == ("stopped", "confirmed")
        again = await road.call("process.stop", session)
        assert (again["data"]["status"], again["effect"]) == ("stopped", "suspected_noop")
        assert (await road.data("codex.read", session))["status"] == "stopped"
        assert (await road.data("process.stop", process))["status"] == "stopped"
        await _without_codex(road, session)


async def _without_codex(road: Road, session: str) -> None:
    scope = road.app.services.config.scopes[0]
    allowed = [name for name in scope.capabilities if name != "codex:run"]
    narrowed = road.app.services.config.model_copy(
        update={"scopes": [scope.model_copy(update={"capabilities": allowed})]}
    )
    async with Road.open(road.root.parent, [narrowed.scopes[0].to_wire()]) as other:
        assert {one["kind"] for one in (await other.data("process.list"))["processes"]} == {"command"}
        for op in ("process.read", "process.stop"):
            assert await other.code(op, session) == "process_not_found"


async def test_codex_read_and_stop_take_the_options_of_command_read_and_stop(tmp_path: Path) -> None:
    """Contract, codex.read and codex.stop: options as command.*, so `stream`, `waitFor`, `untilEnd` and `signal`."""
    nap = command("codex", "echo said-it; echo x > up.txt; sleep 300")
    async with agent_road(tmp_path, "codex", nap, {"say": "never", "hold": True}) as (road, _):
        session = (await road.data("codex.start", ".", input={"prompt": "go"}))["sessionId"]
        waiting = {"waitSeconds": 50, "waitFor": "mock-.odel"}
        read = await road.data("codex.read", session, options=waiting)
        assert read["waited"] == "text" and read["chunks"][0]["stream"] == "stdout" and read["events"]
        for stream, count in (("all", 1), ("stdout", 1), ("stderr", 0)):
            again = await road.data("codex.read", session, options={"stream": stream})
            assert len(again["chunks"]) == count and again["cursor"] >= read["cursor"]
        await until_up(tmp_path / "root" / "up.txt")
        quiet = await road.data("command.read", session, options={"waitSeconds": 50, "silenceSeconds": 0.2})
        assert (quiet["waited"], quiet["status"]) == ("silence", "running")
        stopped = await road.call("codex.stop", session, options={"signal": "kill"})
        assert (stopped["data"]["status"], stopped["effect"]) == ("stopped", "confirmed")
        ended = await road.data("codex.read", session, options={"waitSeconds": 50, "untilEnd": True})
        assert (ended["waited"], ended["status"]) == ("end", "stopped")
        assert await road.code("codex.stop", session, options={"signal": "stop"}) == "invalid_request"


async def test_one_session_is_found_by_its_id(tmp_path: Path) -> None:
    """Point 001-082: codex_runs of one id has output, changes, exit and the turns before."""
    step = command("codex", "echo hello > made.txt")
    async with agent_road(tmp_path, "codex", step, {"say": "done"}) as (road, model):
        first = await road.data("codex.run", ".", input={"prompt": "THE-PROMPT"})
        model.steps[:] = [{"say": "again"}]
        given = {"prompt": "more", "workflow": "continue", "sessionId": first["sessionId"]}
        await road.data("codex.run", ".", input=given)
        for request in ({"input": {"id": first["sessionId"]}}, {"target": first["sessionId"]}):
            data = await road.data("codex_runs", **request)
            assert [run["sessionId"] for run in data["runs"]] == [first["sessionId"]]
        detail: dict[str, Any] = data["runs"][0]["detail"]
        assert [(turn["workflow"], turn["status"], turn["changedFiles"]) for turn in detail["history"]] == [
            ("run", "completed", 1), ("continue", "completed", 0),
        ]  # fmt: skip
        assert "again" in detail["stdout"] and detail["prompt"] == "more" and detail["diffSummary"]["changedFiles"] == 0
        assert (await road.data("codex.list"))["runs"][0]["detail"] is None
        assert await road.code("codex.list", "codex_none") == "process_not_found"
        assert (await until_over(road, first["sessionId"]))["status"] == "completed"


async def test_the_owner_lists_reads_and_stops_both_kinds(tmp_path: Path) -> None:
    """Points 000-222 and 001-090 for the owner: `process list`, `process read` and `process stop`, over a real service."""
    root, home = tmp_path / "root", tmp_path / "home"

    def owner(*words: str) -> str:
        done = subprocess.run(
            [*PROGRAM, "process", *words],
            env=environment(home),
            capture_output=True,
            text=True,
            timeout=240,
            check=True,
        )
        return done.stdout

    nap = command("codex", "echo x > up.txt; sleep 300")
    with agent_on("codex", nap, {"say": "never", "hold": True}) as (program, _):
        write_config(
            home, root, token=TOKEN, scopes=[agent_scope(root, "codex", allowedCommands=["codex *", "sleep *"])]
        )
        with serving(tmp_path, env=environ_for(program)) as service:
            link = Http(service.port, TOKEN)
            ask = {"scope": "app", "target": "."}
            napping = link.control("computer_operation", **ask, op="command.start", input={"command": "sleep 200"})
            assert napping["ok"], napping["error"]
            started = link.control("computer_operation", **ask, op="codex.start", input={"prompt": "go"})
            session = started["data"]["sessionId"]
            await until_up(root / "up.txt")
            listed = json.loads(owner("list", "--json"))["processes"]
            assert [(one["kind"], one["status"]) for one in listed] == [("codex", "running"), ("command", "running")], (
                listed
            )
            assert session in owner("list") and "mock-model" in owner("read", session[:14])
            assert "stopped" in owner("stop", session[:14])
            state = link.control("computer_operation", scope="app", op="codex.read", target=session)
            assert state["data"]["status"] == "stopped"
            link.close()
        remembered = {one["processId"]: one["status"] for one in json.loads(owner("list", "--json"))["processes"]}
        assert remembered[session] == "stopped" and len(remembered) == 2

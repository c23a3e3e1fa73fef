"""Sessions of both real agent programs: watched, stopped, found again and continued."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.serve.owner_calls import OwnerCalls
from support.agents import environ_for, road_with, until_over
from support.agents_road import AGENTS, agent_on, agent_road, agent_scope, command
from support.children import children_of_this_process
from support.road import LOCAL, OWNER, Road
from support.service import Http, is_alive, serving, wait_for, write_config

pytestmark = pytest.mark.anyio


def processes_with(word: str) -> list[int]:
    """Processes whose arguments hold the word."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (place / "cmdline").read_bytes() and int(place.name) != os.getpid():
                found.append(int(place.name))
        except OSError:
            continue
    return found


async def until_there(path: Path) -> None:
    await anyio.to_thread.run_sync(lambda: wait_for(path.exists, seconds=60))


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_run_edits_and_is_taken_back(tmp_path: Path, agent: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n")
    steps = (command(agent, "printf 'one\\nzwei\\ndrei\\n' > a.txt; echo n > new.txt"), {"say": "done"})
    async with agent_road(tmp_path, agent, *steps) as (road, _):
        envelope = await road.call("codex.run", ".", input={"prompt": "go", "agent": agent})
        assert envelope["ok"], envelope
        data = envelope["data"]
        assert (data["agent"], data["status"], data["finalMessage"]) == (agent, "completed", "done")
        summary = data["diffSummary"]
        counts = {each["path"]: (each["action"], each["insertions"], each["deletions"]) for each in summary["files"]}
        assert counts == {"a.txt": ("modified", 2, 1), "new.txt": ("added", 1, 0)}
        assert (await road.call("file.undo", input={"operationId": envelope["operationId"]}))["ok"]
    assert (root / "a.txt").read_text() == "one\ntwo\n" and not (root / "new.txt").exists()
    assert children_of_this_process() == []


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_session_is_read_while_it_runs(tmp_path: Path, agent: str) -> None:
    """Point 000-146."""
    steps = (command(agent, "echo first-output"), {"say": "over now", "hold": True})
    async with agent_road(tmp_path, agent, *steps) as (road, model):
        started = await road.data("codex.start", ".", input={"prompt": "go", "agent": agent})
        session, cursor, events = started["sessionId"], started["cursor"], list[dict[str, Any]]()
        with anyio.move_on_after(80):
            while not any("first-output" in each.get("output", "") for each in events):
                state = await road.data("codex.read", session, options={"cursor": cursor, "waitSeconds": 10})
                assert state["status"] == "running"
                cursor, events = state["cursor"], events + state["events"]
        assert any("first-output" in each.get("output", "") for each in events), (events, model.requests[1:])
        model.let_go()
        state = await until_over(road, session)
        recorded = (await until_recorded(road, session))["events"]
        turn = next(each for each in recorded if each["op"] == "codex.start")
        (end,) = [each for each in recorded if each["op"] == "codex.end"]
        assert (end["parent"], end["summary"]["status"]) == (turn["operationId"], "completed")
        assert turn["summary"]["sessionId"] == session and not str(turn["boundary"]).startswith("[")
        (group,) = (await road.data("history.sessions"))["codexSessions"]
        assert group["sessionId"] == session and {"codex.start", "codex.read", "codex.end"} <= set(group["operations"])
        told = await OwnerCalls(road.app.dispatcher).call("history.show", {"operation": end["operationId"]}, OWNER)
        stored = told.envelope["data"].stored
        assert (stored.id, stored.status, stored.output) == (session, "completed, exit 0", "over now")
    assert (state["status"], state["exitCode"], state["finalMessage"]) == ("completed", 0, "over now")
    assert [each["seq"] for each in state["events"]] == list(range(len(state["events"])))
    ended = [each for each in state["events"] if each["type"] == "command" and each["status"] == "completed"]
    assert [each["exitCode"] for each in ended] == [0]
    assert state["usage"]["input_tokens"] > 0


async def until_recorded(road: Road, session: str) -> dict[str, Any]:
    """The history of a session, once its end is in it."""
    with anyio.fail_after(30):
        while True:
            told = await road.data("history.timeline", input={"query": f"handle:{session}"})
            if any(each["op"] == "codex.end" for each in told["events"]):
                return told
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("agent", AGENTS)
async def test_stop_mid_command_leaves_nothing_alive(tmp_path: Path, agent: str) -> None:
    word = f"naptime-{os.getpid()}-{agent}"
    nap = f"echo x > made.txt; sh -c 'echo {word} > up.txt; sleep 300' {word} & sleep 300; echo {word}"
    async with agent_road(tmp_path, agent, command(agent, nap), {"say": "never"}) as (road, _):
        session = (await road.data("codex.start", ".", input={"prompt": "go", "agent": agent}))["sessionId"]
        await until_there(tmp_path / "root" / "up.txt")
        assert processes_with(word)
        stopped = await road.data("codex.stop", session)
        assert stopped["status"] == "stopped"
        assert [each["path"] for each in stopped["diffSummary"]["files"]] == ["made.txt", "up.txt"]
        assert processes_with(word) == []
        again = await road.call("codex.stop", session)
        assert (again["data"]["status"], again["effect"]) == ("stopped", "suspected_noop")
    assert children_of_this_process() == []


@pytest.mark.parametrize("agent", AGENTS)
async def test_out_of_time_it_is_stopped_and_said_so(tmp_path: Path, agent: str) -> None:
    async with agent_road(tmp_path, agent, {"say": "late", "hold": True}) as (road, _):
        envelope = await road.call(
            "codex.run", ".", input={"prompt": "go", "agent": agent}, options={"timeoutSeconds": 2}
        )
    assert (envelope["data"]["status"], envelope["data"]["timedOut"], envelope["effect"]) == (
        "timed_out",
        True,
        "partial",
    )


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_client_that_goes_away_ends_its_run(tmp_path: Path, agent: str) -> None:
    async with agent_road(tmp_path, agent, {"say": "late", "hold": True}) as (road, model):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: road.call("codex.run", ".", input={"prompt": "go", "agent": agent}))
            with anyio.fail_after(60):
                await anyio.to_thread.run_sync(model.asked.wait)
            group.cancel_scope.cancel()
        runs = (await road.data("codex.list"))["runs"]
        assert [run["status"] for run in runs] == ["stopped"]
    assert children_of_this_process() == []


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_session_is_found_and_continued_by_the_next_service(tmp_path: Path, agent: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    scopes = [agent_scope(root, agent)]
    with agent_on(agent, {"say": "FIRST-ANSWER"}) as (program, model):
        async with road_with(tmp_path, environ_for(program), scopes) as road:
            first = await road.data("codex.run", ".", input={"prompt": "FIRST-PROMPT", "agent": agent})
        model.steps[:] = [{"say": "SECOND-ANSWER"}]
        model.requests.clear()
        async with road_with(tmp_path, environ_for(program), scopes) as road:
            assert [run["sessionId"] for run in (await road.data("codex.list"))["runs"]] == [first["sessionId"]]
            given = {"prompt": "SECOND-PROMPT", "workflow": "continue", "sessionId": first["sessionId"]}
            second = await road.data("codex.run", ".", input=given)
            state = await road.data("codex.read", first["sessionId"])
    assert second["threadId"] == first["threadId"] and second["sessionId"] == first["sessionId"]
    assert "FIRST-PROMPT" in model.said_to() and "FIRST-ANSWER" in model.said_to(), "the conversation went on"
    assert (state["turns"], state["finalMessage"]) == (2, "SECOND-ANSWER")
    messages = [each["text"] for each in state["events"] if each["type"] == "message"]
    assert messages == ["FIRST-ANSWER", "SECOND-ANSWER"]


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_session_outlives_a_killed_service(tmp_path: Path, agent: str) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    word = f"killed-{os.getpid()}-{agent}"
    with agent_on(agent, command(agent, f"echo {word} > up.txt; sleep 300; echo {word}"), {"say": "x"}) as (
        program,
        model,
    ):
        write_config(home, root, scopes=[agent_scope(root, agent)])
        with serving(tmp_path, env=environ_for(program)) as service:
            link = Http(service.port)
            started = control(link, "codex.start", ".", {"prompt": "FIRST-PROMPT", "agent": agent})
            session = started["data"]["sessionId"]
            await until_there(root / "up.txt")
            assert processes_with(word)
            service.process.send_signal(signal.SIGKILL)
            service.process.wait(30)
            link.close()
        await anyio.to_thread.run_sync(lambda: wait_for(lambda: not any(map(is_alive, processes_with(word)))))
        model.steps[:] = [{"say": "SECOND-ANSWER"}]
        with serving(tmp_path, env=environ_for(program)) as service:
            link = Http(service.port)
            lost = control(link, "codex.read", session)["data"]
            assert (lost["status"], [each["path"] for each in lost["diffSummary"]["files"]]) == ("lost", ["up.txt"])
            undone = link.control(
                "computer_operation", scope="app", op="file.undo", input={"operationId": lost["operationId"]}
            )
            assert undone["ok"] and not (root / "up.txt").exists(), undone
            given = {"prompt": "SECOND-PROMPT", "workflow": "continue", "sessionId": session}
            second = control(link, "codex.run", ".", given)
            link.close()
    assert second["ok"], second
    assert (second["data"]["finalMessage"], second["data"]["sessionId"]) == ("SECOND-ANSWER", session)
    assert "FIRST-PROMPT" in str(model.requests[-1])


def control(link: Http, op: str, target: str, given: dict[str, Any] | None = None) -> dict[str, Any]:
    parts = {"scope": "app", "op": op, "target": target, **({"input": given} if given else {})}
    return link.control("computer_operation", **parts)


async def test_sessions_belong_to_their_caller_and_scope(tmp_path: Path) -> None:
    stranger = replace(LOCAL, id="oauth:somebody", proof="oauth")
    async with agent_road(tmp_path, "codex", {"say": "mine", "hold": True}) as (road, model):
        session = (await road.data("codex.start", ".", input={"prompt": "go"}))["sessionId"]
        for op in ("codex.read", "codex.stop", "codex.list", "command.read", "process.read", "command.stop"):
            assert await road.code(op, session, principal=stranger) == "process_not_found", op
        assert (await road.data("codex.list", principal=stranger))["runs"] == []
        assert (await road.data("process.list", principal=stranger))["processes"] == []
        given = {"prompt": "again", "workflow": "continue", "sessionId": session}
        assert await road.code("codex.run", ".", input=given) in ("conflict", "invalid_request")
        model.let_go()
        assert (await until_over(road, session))["status"] == "completed"


async def test_two_agents_in_one_folder_are_told_of_each_other(tmp_path: Path) -> None:
    async with agent_road(tmp_path, "codex", {"say": "one", "hold": True}) as (road, model):
        first = await road.call("codex.start", ".", input={"prompt": "go"})
        second = await road.call("codex.start", ".", input={"prompt": "go"})
        assert first["warnings"] == [] and any("Another agent" in warning for warning in second["warnings"])
        model.let_go()
        for started in (first, second):
            assert (await until_over(road, started["data"]["sessionId"]))["status"] == "completed"
        plan = {"op": "codex.run", "target": ".", "input": {"prompt": "x"}}
        explained = await road.data("computer.explain", input=plan)
        assert explained["allowed"] is True

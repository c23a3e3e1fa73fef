"""The Python SDK: the same calls over HTTP, the socket and stdio, async and blocking, with the same answers and errors."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.client import AsyncClient, Client, ClientFailed, NotAuthorized, Question
from computer_linker.errors import ConfirmRequired, InvalidRequest, LinkError, PathOutOfScope, TimedOut, UnknownScope
from computer_linker.operations.file.read import FileText, ReadOptions
from support.lines import own_service
from support.road import folder_scope
from support.service import PROGRAM, TOKEN, Service, environment, serving, write_config

pytestmark = pytest.mark.anyio
Open = Callable[..., AbstractAsyncContextManager[AsyncClient]]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    place = tmp_path_factory.mktemp("sdk")
    asking = {**folder_scope(place / "root"), "id": "ask", "policy": {"confirm": "all"}}
    with serving(place, token=TOKEN, scopes=[folder_scope(place / "root"), asking]) as running:
        (running.root / "notes.txt").write_text("one\ntwo\n")
        yield running


@contextmanager
def allowed(service: Service, name: str) -> Iterator[None]:
    """The owner lets this client approve."""
    for word in ("allow-client", "disallow-client"):
        run = [*PROGRAM, "approvals", word, name]
        subprocess.run(run, env=environment(service.home), capture_output=True, timeout=240, check=True)
        if word == "allow-client":
            yield


@pytest.fixture(params=["http", "socket", "stdio"])
def opened(request: pytest.FixtureRequest, service: Service) -> Open:
    ways: dict[str, Open] = {
        "http": lambda **more: AsyncClient.over_http(service.url, token=TOKEN, **more),
        "socket": lambda **more: AsyncClient.over_socket(service.home, **more),
        "stdio": lambda **more: AsyncClient.over_stdio(service.home, **more),
    }
    return ways[request.param]


async def test_an_answer_is_typed_by_the_operations_own_model(opened: Open) -> None:
    async with opened() as linker:
        answer = await linker.scope("app").call("file.read", "notes.txt", options=ReadOptions(max_bytes=4))
        text = answer.into(FileText)
        assert (text.content, text.truncated, text.size) == ("one\n", True, 8)
        assert (answer.op, answer.scope, answer.effect, answer.warnings) == ("file.read", "app", None, [])
        assert (await linker.info("identity"))["machineId"] == "test-machine"
        assert (await linker.history("last", scope="app", limit=1))["events"][0]["op"] == "file.read"


async def test_a_refusal_is_the_error_of_its_code(opened: Open, service: Service) -> None:
    async with opened() as linker:
        with pytest.raises(PathOutOfScope) as refused:
            await linker.call("app", "file.write", "../out.txt", {"content": "x"})
        assert refused.value.details["operationId"]
        with pytest.raises(UnknownScope):
            await linker.call("nobody", "file.read", "notes.txt")
        with pytest.raises(InvalidRequest):
            await linker.call("app", "file.read", "notes.txt", options={"wrong": 1})
        with pytest.raises(InvalidRequest):
            await linker.history("no such view")
    assert not (service.root.parent / "out.txt").exists()


async def test_what_is_not_caught_inside_comes_out_as_itself(opened: Open, service: Service) -> None:
    with pytest.raises(PathOutOfScope):
        async with opened() as linker:
            await linker.call("app", "file.read", "../out.txt")
    with pytest.raises(ZeroDivisionError):
        async with opened() as linker:
            _ = len(await linker.info("identity")) / 0


async def test_many_calls_at_once_each_get_their_own_answer(opened: Open) -> None:
    async with opened() as linker:
        got: dict[int, str] = {}

        async def one(size: int) -> None:
            answer = await linker.call(
                "app", "file.read", "notes.txt", options={"maxBytes": size, "encoding": "base64"}
            )
            got[size] = answer.data["content"]

        async with anyio.create_task_group() as group:
            for size in range(1, 8):
                group.start_soon(one, size)
    assert len(set(got.values())) == 7


async def test_progress_is_told_while_the_work_goes_on(opened: Open) -> None:
    told: list[tuple[float, float | None]] = []
    steps = [{"op": "file.list", "target": "."} for _ in range(4)]
    async with opened() as linker:
        answer = await linker.call(
            "app", "batch.run", input={"operations": steps}, report=lambda text, at, of: told.append((at, of))
        )
    assert len(answer.data["results"]) == 4
    assert told and told == sorted(told) and {of for _, of in told} == {4}


async def test_a_person_is_asked_and_decides(opened: Open, service: Service) -> None:
    asked: list[str] = []

    def deciding(decision: Any) -> Any:
        async def ask(question: Question) -> Any:
            asked.append(question.text)
            return decision

        return ask

    file = service.root / "asked.txt"
    async with opened(ask=deciding("no")) as linker:
        with pytest.raises(LinkError):
            await linker.call("ask", "file.write", "asked.txt", {"content": "x"})
    assert not file.exists() and "asked.txt" in asked[0]
    async with opened(ask=deciding("once")) as linker:
        with pytest.raises(ConfirmRequired):
            await linker.call("ask", "file.write", "asked.txt", {"content": "x"})
    assert not file.exists(), "a program does not answer for the owner by itself"
    with allowed(service, "computer-linker-python"):
        await _allowed(opened, file, deciding)
    assert len(asked) == 3


async def _allowed(opened: Open, file: Path, deciding: Any) -> None:
    async with opened(ask=deciding("once")) as linker:
        answer = await linker.call("ask", "file.write", "asked.txt", {"content": "x"})
    assert answer.effect == "confirmed" and file.read_text() == "x"
    file.unlink()


async def test_without_a_way_to_ask_the_act_is_refused(opened: Open, service: Service) -> None:
    async with opened() as linker:
        with pytest.raises(ConfirmRequired):
            await linker.call("ask", "file.write", "asked.txt", {"content": "x"})
    assert not (service.root / "asked.txt").exists()


async def test_a_wait_that_is_given_up_stops_the_work(opened: Open, service: Service) -> None:
    async with opened() as linker:
        call = {"command": ["sleep", "30"]}
        with pytest.raises(TimedOut):
            await linker.call("app", "command.run", ".", call, deadline_s=0.3)
        assert (await linker.call("app", "file.stat", "notes.txt")).data["size"] == 8


def test_the_blocking_client_answers_alike(service: Service) -> None:
    ways = [
        Client.over_http(service.url, token=TOKEN),
        Client.over_socket(service.home),
        Client.over_stdio(service.home),
    ]
    for way in ways:
        with way as linker:
            assert linker.scope("app").call("file.read", "notes.txt").into(FileText).content == "one\ntwo\n"
            assert linker.info("identity")["machineId"] == "test-machine"
            with pytest.raises(PathOutOfScope):
                linker.call("app", "file.read", "../x")
            assert linker.history("last", limit=1)["view"] == "last"


async def test_a_wrong_token_is_told_apart_from_a_service_that_is_not_there(service: Service) -> None:
    async with AsyncClient.over_http(service.url, token="wrong-token-0123456789") as linker:
        with pytest.raises(NotAuthorized):
            await linker.info()
    async with AsyncClient.over_http("http://127.0.0.1:9/mcp") as linker:
        with pytest.raises(ClientFailed, match="reached"):
            await linker.info()


async def test_a_token_is_not_sent_in_the_clear_to_another_machine() -> None:
    with pytest.raises(ClientFailed, match="https"):
        async with AsyncClient.over_http("http://linker.example.com/mcp", token=TOKEN):
            pass


async def test_a_program_that_is_no_server_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(ClientFailed, match="cannot be started"):
        async with AsyncClient.over_stdio(command=[str(tmp_path / "missing")]):
            pass
    async with AsyncClient.over_stdio(command=["true"]) as linker:
        with pytest.raises(ClientFailed, match="closed"):
            await linker.info()


async def test_the_socket_starts_a_service_when_none_runs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_config(home, tmp_path / "root")
    with own_service(home):
        async with AsyncClient.over_socket(home) as linker:
            assert json.dumps(await linker.info("identity"))

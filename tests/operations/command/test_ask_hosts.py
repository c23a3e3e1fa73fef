"""A host that is not in the list, with `ask` in it: the connection waits for the owner, and goes on at a yes."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals, Approver
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.providers.network.asking import Asking
from support.named_server import NamedServer, named_server
from support.road import Road, folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio
_CURL = "curl -sS --noproxy '' -x http://127.0.0.1:24128 -o /dev/null -w '%{http_code}\\n'"


@pytest.fixture(scope="module")
def server() -> Iterator[NamedServer]:
    with named_server() as made:
        yield made


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    (tmp_path / "root").mkdir()
    scope = folder_scope(tmp_path / "root", allowedCommands=["*"], sandbox="required", network=["ask"])
    (tmp_path / "other").mkdir()
    other = folder_scope(tmp_path / "other", "other", allowedCommands=["*"], sandbox="required", network=["ask"])
    async with Road.open(tmp_path, [scope, other]) as opened:
        yield opened


async def sh(road: Road, script: str, scope: str = "app") -> dict[str, Any]:
    command = {"command": ["sh", "-c", script]}
    return await road.data("command.run", ".", scope=scope, input=command, options={"timeoutSeconds": 150})


def approvals(road: Road) -> Approvals:
    return road.app.services.use(Approvals)


def answering(answer: Answer | None, asked: list[ApprovalRequest]) -> Approver:
    async def approver(request: ApprovalRequest) -> Answer | None:
        asked.append(request)
        return answer

    return approver


def paths(server: NamedServer, mark: str) -> list[str]:
    return [path for _, path, _, _ in server.seen if mark in path]


async def test_at_a_yes_the_same_connection_goes_on_and_the_next_is_not_asked_about(
    road: Road, server: NamedServer
) -> None:
    asked: list[ApprovalRequest] = []
    async with approvals(road).attached("test", answering("yes", asked)):
        done = await sh(road, f"{_CURL} http://localhost:{server.port}/one; {_CURL} http://localhost:{server.port}/two")
    assert done["stdout"] == "200\n200\n", done
    (request,) = asked
    assert request.about is not None
    assert request.about.lines == (f"lets the programs of scope app reach localhost:{server.port} for 15 minutes",)
    events = (await road.data("history.last", "", options={"limit": 50}))["events"]
    (event,) = [each for each in events if each["op"] == "command.reach"]
    assert (event["ok"], event["approval"]["extent"]) == (True, "once")


async def test_without_an_approver_the_connection_waits_for_the_answer_in_the_list(
    road: Road, server: NamedServer
) -> None:
    running = asyncio.ensure_future(sh(road, f"{_CURL} http://localhost:{server.port}/listed"))
    (request,) = await until(lambda: approvals(road).waiting())
    assert not paths(server, "listed")
    approvals(road).answer(request.id, "yes")
    assert (await running)["stdout"] == "200\n" and paths(server, "listed") == ["/listed"]


@pytest.mark.parametrize("answer", ["no", None])
async def test_a_no_and_an_approver_who_leaves_are_a_no_that_holds_for_a_while(
    road: Road, server: NamedServer, answer: Answer | None
) -> None:
    asked: list[ApprovalRequest] = []
    async with approvals(road).attached("test", answering(answer, asked)):
        done = await sh(road, f"for i in 1 2 3; do {_CURL} http://localhost:{server.port}/denied; done")
    assert done["stdout"] == "403\n403\n403\n" and len(asked) == 1, done
    assert not paths(server, "denied")


async def test_an_answer_that_does_not_come_in_time_is_a_no(road: Road, server: NamedServer) -> None:
    running = asyncio.ensure_future(sh(road, f"{_CURL} http://localhost:{server.port}/late"))
    (request,) = await until(lambda: approvals(road).waiting())
    request.expires_at = time.monotonic()
    # The end of any other request makes the list be looked at again.
    approvals(road).drop_of("other")
    assert (await running)["stdout"] == "403\n" and not paths(server, "late")
    assert approvals(road).answer(request.id, "yes") is None


async def test_a_command_that_ends_before_the_answer_tells_that_the_owner_was_asked(
    road: Road, server: NamedServer
) -> None:
    """Found: a question lasts as long as a command without a time of its own, whose answer then named no reason."""
    command = {"command": ["sh", "-c", f"{_CURL} http://localhost:{server.port}/slow"]}
    answer = await road.call("command.run", ".", input=command, options={"timeoutSeconds": 4})
    assert answer["data"]["timedOut"] and approvals(road).waiting(), answer
    assert f"The owner was asked about localhost:{server.port}, and had not answered" in " ".join(answer["warnings"])
    assert not paths(server, "slow")


async def test_many_connections_to_one_host_are_one_question(road: Road, server: NamedServer) -> None:
    script = f"for i in $(seq 40); do {_CURL} http://localhost:{server.port}/many & done; wait"
    running = asyncio.ensure_future(sh(road, script))
    await until(lambda: approvals(road).waiting())
    asked = {request.id for request in approvals(road).waiting()}
    (request,) = approvals(road).waiting()
    approvals(road).answer(request.id, "yes")
    assert (await running)["stdout"] == "200\n" * 40 and len(asked) == 1


async def test_a_flood_of_hosts_is_a_bounded_number_of_questions(road: Road) -> None:
    script = f"for i in $(seq 30); do {_CURL} http://host$i.example.org/ & done; wait"
    running = asyncio.ensure_future(sh(road, script))
    await until(lambda: len(approvals(road).waiting()) == 8)
    seen = {request.id for request in approvals(road).waiting()}
    while not running.done():
        for request in approvals(road).waiting():
            seen.add(request.id)
            approvals(road).answer(request.id, "no")
        await asyncio.wait([running], timeout=0.1)
    assert (await running)["stdout"] == "403\n" * 30 and len(seen) <= 30


@pytest.mark.parametrize("host", ["169.254.169.254", "[::ffff:169.254.169.254]", "224.0.0.1"])
async def test_what_no_yes_can_open_is_not_asked_about(road: Road, host: str) -> None:
    asked: list[ApprovalRequest] = []
    async with approvals(road).attached("test", answering("yes", asked)):
        done = await sh(road, f"{_CURL} 'http://{host}/'")
    assert done["stdout"] != "200\n" and not asked, done


async def test_a_yes_is_for_one_scope_one_host_and_a_time(road: Road, server: NamedServer) -> None:
    asking = road.app.services.use(Asking)
    asking.grant("app", "localhost", server.port, minutes=5)
    asked: list[ApprovalRequest] = []
    async with approvals(road).attached("test", answering("no", asked)):
        assert (await sh(road, f"{_CURL} http://localhost:{server.port}/scope"))["stdout"] == "200\n" and not asked
        assert (await sh(road, f"{_CURL} http://localhost:{server.port}/scope", "other"))["stdout"] == "403\n"
        assert (await sh(road, f"{_CURL} http://localhost:1/scope"))["stdout"] == "403\n"
        asking.grant("app", "localhost", server.port, minutes=0)
        assert (await sh(road, f"{_CURL} http://localhost:{server.port}/scope"))["stdout"] == "403\n"
    assert len(asked) == 3 and paths(server, "scope") == ["/scope"]


async def test_a_program_without_a_proxy_setting_waits_too(road: Road) -> None:
    """Its name has an address inside at once; nothing is resolved outside before the yes."""
    asked: list[ApprovalRequest] = []
    async with approvals(road).attached("test", answering("no", asked)):
        done = await sh(road, "curl -sS --noproxy '*' https://files.example.org/; getent hosts files.example.org")
    assert "198.18." in done["stdout"] and len(asked) == 1, done
    assert asked[0].about is not None and "files.example.org on ports 80 and 443" in asked[0].about.lines[0]


async def test_a_scope_that_does_not_ask_asks_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    scope = folder_scope(tmp_path / "root", allowedCommands=["*"], sandbox="required", network=["a.example.org"])
    async with Road.open(tmp_path, [scope]) as road:
        asked: list[ApprovalRequest] = []
        async with approvals(road).attached("test", answering("yes", asked)):
            assert (await sh(road, f"{_CURL} http://localhost:1/"))["stdout"] == "403\n" and not asked
            code = await road.code("command.reach", input={"host": "b.example.org"})
            assert code == "permission_denied" and not asked


async def test_a_client_can_ask_ahead(road: Road, server: NamedServer) -> None:
    asked: list[ApprovalRequest] = []
    async with approvals(road).attached("test", answering("yes", asked)):
        data = await road.data("command.reach", input={"host": f"localhost:{server.port}", "minutes": 2})
        assert data == {"host": f"localhost:{server.port}", "minutes": 2}
        assert (await sh(road, f"{_CURL} http://localhost:{server.port}/ahead"))["stdout"] == "200\n"
    assert len(asked) == 1

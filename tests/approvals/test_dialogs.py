"""The client's own dialog, with the MCP SDK's client: both eras, over stdio and HTTP; the answer decides, exactly once."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult, Implementation

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import NeedsInput
from computer_linker.approvals.store import AllowedClient
from computer_linker.model.envelope import Call
from computer_linker.transports.mcp.dialog import ask_by_result
from support.road import LOCAL, Road, folder_scope
from support.service import PROGRAM, TOKEN, Service, environment, owner, serving

pytestmark = pytest.mark.anyio

ERAS = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28"}
ALLOW, DENY = "Allow once", "Do not allow"
NAME = "a-client"


class Person:
    """Answers the dialog, and remembers what it showed."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.shown: list[str] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.shown.append(params.message)
        answer = self.answers.pop(0)
        if answer is None:
            return ElicitResult(action="cancel")
        if answer == "decline":
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"decision": answer})


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("dialogs")
    with serving(folder, token=TOKEN, scopes=[folder_scope(folder / "root", confirm="all")]) as running:
        yield running


@contextmanager
def allowed(service: Service, name: str) -> Iterator[None]:
    """The owner lets this client's dialog approve."""
    owner(service, "approvals", "allow-client", name)
    try:
        assert json.loads(owner(service, "approvals", "list", "--json"))["clients"] == [name]
        yield
    finally:
        owner(service, "approvals", "disallow-client", name)
        assert json.loads(owner(service, "approvals", "list", "--json"))["clients"] == []


@asynccontextmanager
async def talking(service: Service, way: str, era: str, person: Any, name: str = NAME) -> AsyncIterator[Client]:
    if way == "stdio":
        env = {"COMPUTER_LINKER_HOME": str(service.home)}
        server: Any = StdioServerParameters(command=sys.executable, args=["-m", "computer_linker", "stdio"], env=env)
        async with Client(
            server, mode=era, elicitation_callback=person, client_info=Implementation(name=name, version="1")
        ) as client:
            yield client
        return
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(headers=headers, timeout=240) as http:
        server = streamable_http_client(service.url, http_client=http)
        async with Client(
            server, mode=era, elicitation_callback=person, client_info=Implementation(name=name, version="1")
        ) as client:
            yield client


async def delete(client: Client) -> dict[str, Any]:
    arguments = {"scope": "app", "op": "file.delete", "target": "keep.txt"}
    result = await client.call_tool("computer_operation", arguments)
    envelope: dict[str, Any] = json.loads(result.content[0].text)  # type: ignore[union-attr]  # our replies begin with text
    return envelope


class Accepting:
    """A client that accepts every dialog by itself, with whatever would allow most."""

    def __init__(self) -> None:
        self.offered: list[list[str]] = []
        self.shown: list[str] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.shown.append(params.message)
        self.offered.append(params.requested_schema["properties"]["decision"]["enum"])
        return ElicitResult(action="accept", content={"decision": ALLOW})


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_client_that_always_accepts_deletes_nothing(service: Service, way: str, era: str) -> None:
    keep, client_side = service.root / "keep.txt", Accepting()
    keep.write_text("kept")
    with allowed(service, "another-client"):
        async with talking(service, way, era, client_side) as client:
            for _ in range(3):
                refused = await delete(client)
                assert refused["error"]["code"] == "confirm_required", refused
    assert keep.read_text() == "kept"
    assert client_side.offered and all(one == [DENY] for one in client_side.offered), (
        "it is information, and can refuse"
    )
    assert all("computer-linker approvals" in shown and '"keep.txt"' in shown for shown in client_side.shown)


async def test_a_client_that_takes_another_name_is_not_the_allowed_one(service: Service) -> None:
    keep = service.root / "keep.txt"
    keep.write_text("kept")
    with allowed(service, NAME):
        async with talking(service, "stdio", "legacy", Accepting(), name=NAME + " ") as client:
            assert (await delete(client))["error"]["code"] == "confirm_required"
    assert keep.exists()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_the_dialog_of_a_client_that_the_owner_allowed_decides(service: Service, way: str, era: str) -> None:
    keep = service.root / "keep.txt"
    keep.write_text("kept")
    person = Person(DENY, "decline", None, "something else", ALLOW, DENY)
    codes = ["denied_by_person", "confirm_required", "confirm_required", "confirm_required"]
    with allowed(service, NAME):
        async with talking(service, way, era, person) as client:
            assert client.protocol_version == ERAS[era]
            for code in codes:
                refused = await delete(client)
                assert refused["error"]["code"] == code, refused
                assert keep.exists()
            done = await delete(client)
            assert done["ok"], done
            assert done["approval"]["way"] == "dialog" and done["approval"]["extent"] == "once"
            assert not keep.exists()
            keep.write_text("again")
            assert (await delete(client))["error"]["code"] == "denied_by_person"
            assert keep.exists()
    assert len(person.shown) == 6
    assert all('"keep.txt"' in shown and "sha256" in shown for shown in person.shown)


async def test_an_answer_from_another_connection_does_not_count(service: Service) -> None:
    """2026-07-28: the state names a question; only the caller that was asked can bring its answer."""
    keep = service.root / "keep.txt"
    keep.write_text("kept")
    stolen: list[str] = []

    async with talking(service, "stdio", "2026-07-28", Person()) as asked:
        result = await asked.session.call_tool(
            "computer_operation", {"scope": "app", "op": "file.delete", "target": "keep.txt"}, allow_input_required=True
        )
        stolen.append(result.request_state)  # type: ignore[union-attr,arg-type]  # an InputRequiredResult
        async with talking(service, "http", "2026-07-28", Person()) as thief:
            answer = await thief.session.call_tool(
                "computer_operation",
                {"scope": "app", "op": "file.delete", "target": "keep.txt"},
                input_responses={"confirm": ElicitResult(action="accept", content={"decision": ALLOW})},
                request_state=stolen[0],
                allow_input_required=True,
            )
    assert answer.is_error, answer  # type: ignore[union-attr]
    assert keep.exists()


async def test_a_dialog_is_closed_when_the_answer_came_from_elsewhere(service: Service) -> None:
    keep = service.root / "keep.txt"
    keep.write_text("kept")
    shown, closed = anyio.Event(), anyio.Event()

    async def nobody(context: Any, params: Any) -> ElicitResult:
        shown.set()
        try:
            await anyio.sleep_forever()
        finally:
            closed.set()
        raise AssertionError("it never wakes")

    answers: list[dict[str, Any]] = []
    env = environment(service.home)
    with anyio.fail_after(60):
        async with talking(service, "stdio", "legacy", nobody) as client, anyio.create_task_group() as group:

            async def call() -> None:
                answers.append(await delete(client))

            group.start_soon(call)
            await shown.wait()
            listed = await anyio.run_process([*PROGRAM, "approvals", "list", "--json"], env=env)
            # What the clients before this one closed without an answer is still open.
            asked = json.loads(listed.stdout)["waiting"][-1]
            await anyio.run_process([*PROGRAM, "approvals", "allow", asked["id"]], env=env)
            await closed.wait()
    assert answers[0]["ok"] and not keep.exists()


async def test_a_client_that_takes_an_allowed_name_between_question_and_answer_allows_nothing(tmp_path: Path) -> None:
    """The dialog that was shown offered no yes, so none can come from it."""
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as road:
        people = road.app.services.use(Approvals)
        people.store.add(AllowedClient(name=NAME, allowed_at="2026-11-01T00:00:00Z"))
        call = Call("app", "file.mkdir", "made")
        with pytest.raises(NeedsInput) as question:
            await road.app.dispatcher.call(call, replace(LOCAL, client="other"), ask=ask_by_result)
        renamed = replace(LOCAL, client=NAME)
        await people.take_response(question.value.asked.id, renamed, "yes")
        assert not (await road.app.dispatcher.call(call, renamed)).ok
        assert not (road.root / "made").exists()

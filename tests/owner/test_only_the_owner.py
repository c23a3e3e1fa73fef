"""No client can name an operation of the owner's, on any surface: it is unknown there, and nothing happens."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker import operations, owner
from computer_linker.registry.catalog import collect
from computer_linker.registry.operation import Operation
from support.bridge_host import hosting
from support.events import owners_history
from support.oauth import Browser, tokens
from support.pair import events_of, open_pair
from support.service import TOKEN, Http, Service, serving
from surfaces.ways import WAYS, Call, answer_of

OWNERS = list(collect(owner).operations.values())
CLIENTS = collect(operations).by_name
CLIENT_WAYS = [way for way in WAYS if way != "command-line"]


def requests() -> Iterator[dict[str, Any]]:
    """Every operation of the owner's with the input of its example, in a scope that exists and in the service's own."""
    for op in OWNERS:
        given = op.examples[0].request
        # A client's own operation may have the same name: in a scope, that is what it names.
        for scope in ("",) if op.name in CLIENTS else ("app", ""):
            yield {"scope": scope, "op": op.name, **given}


def is_refused(request: dict[str, Any], answer: dict[str, Any]) -> bool:
    codes = ("unknown_operation",) if request["scope"] else ("unknown_scope", "invalid_request")
    return answer["ok"] is False and answer["error"]["code"] in codes


def acts_of_the_owner(home: Path) -> list[dict[str, Any]]:
    names = {op.name for op in OWNERS} - set(CLIENTS)
    return [event for event in owners_history(home, 500) if event["op"] in names and event["outcome"] == "done"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("only"), token=TOKEN) as running:
        yield running


@contextmanager
def over_oauth(service: Service) -> Iterator[Call]:
    _, issued = tokens(Browser(service.base), group=["linker:read", "linker:write"])
    http = Http(service.port, issued["access_token"])
    try:
        yield lambda tool, given: answer_of(http.legacy("tools/call", {"name": tool, "arguments": given})["result"])
    finally:
        http.close()


def test_there_is_something_to_try() -> None:
    assert len(OWNERS) >= 20
    assert {"halt", "stop", "token.show", "approvals.allow", "history.prune", "undo"} <= {op.name for op in OWNERS}


@pytest.mark.parametrize("way", [*CLIENT_WAYS, "oauth"])
def test_a_client_cannot_name_one(service: Service, way: str) -> None:
    config = (service.home / "config.json").read_bytes()
    with over_oauth(service) if way == "oauth" else WAYS[way](service) as call:
        for request in requests():
            answer = call("computer_operation", request)
            assert is_refused(request, answer), (request, answer)
    assert service.process.poll() is None, "nothing stopped the service"
    assert (service.home / "config.json").read_bytes() == config
    assert not (service.home / "desktop-halted").exists()
    assert acts_of_the_owner(service.home) == []


@pytest.mark.parametrize("op", OWNERS, ids=lambda op: op.name)
def test_it_is_no_action_of_the_json_api_and_no_tool(service: Service, op: Operation) -> None:
    http = service.http()
    try:
        for name in (op.name, f"owner.{op.name}"):
            answer = http.control(name, **op.examples[0].request)
            assert answer["ok"] is False and answer["error"]["code"] in ("invalid_request", "unknown_operation"), answer
            told = http.legacy("tools/call", {"name": name, "arguments": {}})
            assert "error" in told or told["result"]["isError"], told
        assert http.control("owner", owner=op.name, input={})["ok"] is False
        status, body = http.send("POST", "/api/v1/control", {"owner": op.name, "input": {}})
        assert status >= 400, body
    finally:
        http.close()
    assert service.process.poll() is None
    assert acts_of_the_owner(service.home) == []


@pytest.mark.anyio
async def test_a_paired_computer_cannot_name_one(tmp_path: Path) -> None:
    async with open_pair(tmp_path) as pair:
        await pair.paired("app")
        for request in requests():
            there = {**request, "scope": f"laptop/{request['scope']}"}
            parts = {name: value for name, value in there.items() if name in ("input", "options")}
            answer = await pair.desk.call(there["op"], scope=there["scope"], **parts)
            assert is_refused(request, answer), (there, answer)
        for name in {op.name for op in OWNERS} - set(CLIENTS):
            done = [event for event in await events_of(pair.laptop, name) if event["outcome"] == "done"]
            # The pairing itself is in the history under this name.
            assert len(done) == (name == "peer.pair"), name
        assert not (pair.laptop.home / "desktop-halted").exists()


@pytest.mark.anyio
async def test_the_bridge_cannot_name_one(tmp_path: Path) -> None:
    async with hosting(tmp_path, None) as host:
        for op in OWNERS:
            for method in (op.name, f"desktop.{op.name}", f"owner.{op.name}"):
                answer = await host.client.ask(method, **op.examples[0].request)
                assert "error" in answer, (method, answer)
        assert acts_of_the_owner(host.home) == []
        assert not (host.home / "desktop-halted").exists()


def test_only_the_private_socket_and_the_terminal_reach_the_owners_catalogue() -> None:
    """The catalogue is collected in one place, and what reaches that place is the control connection alone."""
    root = Path(inspect.getfile(owner)).parents[1]
    reaching = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if "collect(owner)" in (text := path.read_text()) or "OwnerCalls(" in text
    }
    assert reaching <= {"serve/owner_calls.py", "registry/reference.py", "cli/reference.py"}, reaching

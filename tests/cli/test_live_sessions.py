"""Every live session is listed and can be ended at once, whatever its authorization: real clients of each kind."""

import json
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker import home as places
from computer_linker.audit.wording import described, what
from computer_linker.policy.visible_text import client_label
from computer_linker.serve.owner_calls import OwnerCalls
from support import commands
from support.commands import command
from support.events import owners_history
from support.lines import Lines, stdio, stream
from support.oauth import CALLBACK, Browser, pkce, query, tokens
from support.pair import Pair, open_pair
from support.road import OWNER
from support.service import (
    LEGACY,
    META,
    TOKEN,
    Http,
    Service,
    modern_headers,
    rpc,
    serving,
    wait_for,
)

SLEEPER = "touch {0}-began; sleep 300; touch {0}-ended"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("sessions"), token=TOKEN) as opened:
        yield opened


def run(home: Path, *words: str) -> dict[str, Any]:
    done = commands.command(home, "sessions", *words, "--json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def only(home: Path, kind: str) -> dict[str, Any]:
    (found,) = [one for one in run(home, "list")["sessions"] if one["kind"] == kind]
    return dict(found)


def sleeper(name: str) -> dict[str, Any]:
    """The arguments of a call that runs until it is ended."""
    command = {"command": ["/bin/sh", "-c", SLEEPER.format(name)]}
    return {"scope": "app", "op": "command.run", "input": command, "options": {"timeoutSeconds": 400}}


@contextmanager
def ended_meanwhile(service: Service, name: str, kind: str, call: Callable[[], Any]) -> Iterator[Any]:
    """Run a call, end its session from the command line while it runs, and give what the call answered."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(call)
        wait_for(lambda: (service.root / f"{name}-began").exists() or answer.done())
        assert not answer.done(), answer.result()
        session = only(service.home, kind)
        assert session["standing"] == "live" and session["running"] == 1 and session["calls"] >= 1
        done = run(service.home, "revoke", session["id"])
        assert session["id"] in done["revoked"]
        yield answer.result(timeout=30)
    assert not (service.root / f"{name}-ended").exists()
    assert [one for one in run(service.home, "list")["sessions"] if one["kind"] == kind] == []
    wait_for(lambda: any(_names(event, session) for event in owners_history(service.home)))


def _names(event: Any, session: dict[str, Any]) -> bool:
    """Whether the row says whose session was ended, and which."""
    wanted = f"ended the sessions of {client_label(session['client'])} ({session['id']})"
    return event["op"] == "sessions.revoke" and what(event) == wanted


@pytest.mark.parametrize("open_client", [stdio, stream], ids=["stdio", "socket"])
def test_a_local_client_is_disconnected(service: Service, open_client: Callable[..., Any]) -> None:
    """Point 001-099."""
    name = open_client.__name__
    with open_client(service.home) as client:
        client.initialize()
        wait_for(lambda: only(service.home, "local user")["client"].startswith("tests"))
        assert only(service.home, "local user")["address"] == "this computer"

        def call() -> dict[str, Any]:
            return client_answer(client, name)

        with ended_meanwhile(service, name, "local user", call) as answer:
            envelope = json.loads(answer["result"]["content"][0]["text"])
            assert envelope["error"]["code"] == "aborted"
        assert client.receive() is None, "the connection is closed"
    with open_client(service.home) as another:
        another.initialize()
        assert only(service.home, "local user")["standing"] == "live"


def test_a_running_call_is_listed_and_stopped_by_its_id(service: Service) -> None:
    with stdio(service.home) as client, ThreadPoolExecutor(1) as pool:
        client.initialize()
        answer = pool.submit(client_answer, client, "listed")
        wait_for(lambda: (service.root / "listed-began").exists() or answer.done())
        (found,) = json.loads(command(service.home, "call", "list", "--json").stdout)["calls"]
        assert (found["op"], found["scope"]) == ("command.run", "app") and "tests" in found["client"]
        assert found["operation"] in command(service.home, "call", "list").stdout
        rows = json.loads(command(service.home, "history", "--json").stdout)["events"]
        assert [row["outcome"] for row in rows if row["operationId"] == found["operation"]] == ["running"]
        assert "the service ended" not in command(service.home, "history", "--limit", "1").stdout
        assert command(service.home, "call", "stop", found["operation"]).returncode == 0
        assert "aborted" in json.dumps(answer.result(timeout=30))
    assert "No call of a client runs." in command(service.home, "call", "list").stderr
    assert not (service.root / "listed-ended").exists()


def client_answer(client: Lines, name: str) -> dict[str, Any]:
    answer: dict[str, Any] = client.ask("tools/call", {"name": "computer_operation", "arguments": sleeper(name)})
    return answer


def test_a_client_with_the_owner_token_and_a_session_is_ended(service: Service) -> None:
    http = Http(service.port, TOKEN)
    http.initialize()
    params = {"name": "computer_operation", "arguments": sleeper("handshake")}

    def call() -> tuple[int, bytes]:
        return http.send("POST", "/mcp", rpc(1, "tools/call", params), http.session_headers())

    with ended_meanwhile(service, "handshake", "owner token", call) as answer:
        assert b"aborted" in answer[1]
    # The session is gone, as the protocol tells it; a new one is another matter.
    assert http.send("POST", "/mcp", rpc(2, "tools/list"), http.session_headers())[0] == 404
    http.session = None
    assert http.initialize()
    http.close()
    run(service.home, "revoke", "--all")


def test_a_client_with_the_owner_token_and_no_session_is_refused_from_then_on(service: Service) -> None:
    """Point 001-099."""
    http = Http(service.port, TOKEN)
    params = {"name": "computer_operation", "arguments": sleeper("modern")}

    def call() -> dict[str, Any]:
        return http.modern("tools/call", params)

    with ended_meanwhile(service, "modern", "owner token", call) as answer:
        assert "aborted" in json.dumps(answer)
    reading = {"scope": "app", "op": "file.write", "target": "after.txt", "input": {"content": "x"}}
    told = json.dumps(http.modern("tools/call", {"name": "computer_operation", "arguments": reading}))
    assert "permission_denied" in told and not (service.root / "after.txt").exists()
    wait_for(lambda: any(event["reason"] == "session_ended" for event in owners_history(service.home)))
    http.close()


def test_others_of_its_name_may_begin_a_session_and_a_new_token_lets_all_back(tmp_path: Path) -> None:
    """Found: an ended client without a session locked out every client of its HTTP library until a restart."""
    with serving(tmp_path, token=TOKEN) as own:
        _come_back(own)


def test_an_ended_script_keeps_no_client_of_its_library_from_the_handshake(tmp_path: Path) -> None:
    """Found: `initialize` was answered with 401 until the token was rotated."""
    agent, write = {"User-Agent": "library/1.0"}, {"scope": "app", "op": "file.write", "input": {"content": "x"}}
    about = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "another", "version": "1"}}
    with serving(tmp_path, token=TOKEN) as own, closing(own.http()) as http:

        def script(target: str) -> int:
            call = {"action": "computer_operation", **write, "target": target}
            return http.send("POST", "/api/v1/control", call, agent)[0]

        assert script("first.txt") == 200
        run(own.home, "revoke", only(own.home, "owner token")["id"])
        assert script("ended.txt") == 404 and not (own.root / "ended.txt").exists()
        assert http.send("POST", "/mcp", rpc(0, "initialize", about), agent)[0] == 200
        session = {**agent, "mcp-session-id": http.headers["mcp-session-id"], "mcp-protocol-version": LEGACY}
        params = {"name": "computer_operation", "arguments": {**write, "target": "other.txt"}}
        assert http.send("POST", "/mcp", rpc(1, "tools/call", params), session)[0] == 200
        assert (own.root / "other.txt").exists() and script("later.txt") == 404


def _come_back(service: Service) -> None:
    http, write = Http(service.port, TOKEN), {"scope": "app", "op": "file.write", "input": {"content": "x"}}

    def told(target: str, call: Callable[..., dict[str, Any]]) -> str:
        return json.dumps(call("tools/call", {"name": "computer_operation", "arguments": {**write, "target": target}}))

    assert "permission_denied" not in told("first.txt", http.modern)
    for session in run(service.home, "list")["sessions"]:
        run(service.home, "revoke", session["id"])
    assert "permission_denied" in told("ended.txt", http.modern) and not (service.root / "ended.txt").exists()
    assert "permission_denied" not in told("other.txt", http.legacy) and (service.root / "other.txt").exists()
    fresh = command(service.home, "token", "rotate", "--show-token", "--json")
    token = json.loads(fresh.stdout)["ownerToken"]
    back = Http(service.port, token)
    assert "permission_denied" not in told("back.txt", back.modern) and (service.root / "back.txt").exists()
    assert http.send("POST", "/mcp", rpc(1, "ping"))[0] == 401
    for link in (http, back):
        link.close()


def test_an_oauth_client_is_ended_with_its_tokens(service: Service) -> None:
    """Point 001-099."""
    _, issued = tokens(Browser(service.base), group=["linker:read", "linker:write", "linker:run"])
    http = Http(service.port, issued["access_token"])
    params = {"name": "computer_operation", "arguments": sleeper("oauth")}
    body = rpc(1, "tools/call", {**params, "_meta": META})

    def call() -> tuple[int, bytes]:
        return http.send("POST", "/mcp", body, modern_headers("tools/call", params))

    with ended_meanwhile(service, "oauth", "OAuth", call) as answer:
        assert answer[0] == 401
    assert http.send("POST", "/mcp", rpc(1, "ping"))[0] == 401
    http.close()


def test_a_program_on_the_bridge_is_disconnected(service: Service) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(30)
        link.connect(str(service.home / places.BRIDGE_NAME))
        wait_for(lambda: [one for one in run(service.home, "list")["sessions"] if one["kind"] == "bridge"] != [])
        session = only(service.home, "bridge")
        assert session["client"].startswith("bridge:") and session["standing"] == "live"
        assert run(service.home, "revoke", session["id"][:12])["revoked"] == [session["id"]]
        assert link.recv(1) == b""
    assert [one for one in run(service.home, "list")["sessions"] if one["kind"] == "bridge"] == []


@pytest.mark.anyio
async def test_a_paired_computer_is_disconnected(tmp_path: Path) -> None:
    async with open_pair(tmp_path) as pair:
        await pair.paired()
        assert (await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["ok"]
        (session,) = await _of_laptop(pair)
        assert (session.kind, session.standing) == ("peer", "live") and session.calls >= 1
        assert session.address.startswith("desk-id-"), "with the fingerprint of its key"
        owner = OwnerCalls(pair.laptop.app.dispatcher)
        reply = await owner.call("sessions.revoke", {"session": session.id}, OWNER)
        assert reply.ok and reply.envelope["effect"] == "confirmed"
        assert await _of_laptop(pair) == []
        # It is still paired, so it may connect again: as another session.
        assert (await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["ok"]
        (again,) = await _of_laptop(pair)
        assert again.id != session.id


async def _of_laptop(pair: Pair) -> list[Any]:
    reply = await OwnerCalls(pair.laptop.app.dispatcher).call("sessions.list", {}, OWNER)
    return list(reply.envelope["data"].sessions)


def test_every_list_names_a_client_by_the_same_label(service: Service) -> None:
    """A client that calls itself owner is not the owner: not in the sessions, not in groups, not where access is given."""

    def printed(*words: str) -> str:
        done = commands.command(service.home, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with stdio(service.home, handshake=False) as client:
        client.initialize(name="owner")
        listing = {"scope": "app", "op": "file.list", "target": "."}
        client.ask("tools/call", {"name": "computer_operation", "arguments": listing})
        assert 'client "owner' in printed("sessions", "list")
    for view in ("sessions", "connections", "summary"):
        assert 'client "owner' in printed("history", "--view", view), view
    browser = Browser(service.base)
    _, registered = browser.json("/register", {"redirect_uris": [CALLBACK], "client_name": "you"})
    _, _, page = browser.send("GET", query(browser, registered["client_id"], pkce()[1]))
    assert "Let client &quot;you&quot; use this computer?" in page


def test_a_new_token_ends_the_batches_and_the_processes_of_the_old_one(tmp_path: Path) -> None:
    """Found: a batch of the old token ran on to its last step, and its processes stayed."""
    with serving(tmp_path, token=TOKEN) as own, ThreadPoolExecutor(1) as pool:
        http = Http(own.port, TOKEN)
        started = {"scope": "app", "op": "command.start", "input": {"command": ["/bin/sh", "-c", SLEEPER.format("p")]}}
        http.modern("tools/call", {"name": "computer_operation", "arguments": started})
        step = {name: part for name, part in sleeper("step").items() if name != "scope"}
        after = {"op": "file.write", "target": "after.txt", "input": {"content": "x"}}
        batch = {
            "scope": "app",
            "op": "batch.run",
            "input": {"operations": [{**after, "target": "before.txt"}, step, after]},
            "options": {"stopOnError": False},
        }
        answer = pool.submit(http.modern, "tools/call", {"name": "computer_operation", "arguments": batch})
        wait_for(lambda: answer.done() or all((own.root / f"{name}-began").exists() for name in ("step", "p")))
        assert not answer.done(), answer.result()
        rotated = command(own.home, "token", "rotate", "--json")
        done = json.loads(rotated.stdout)
        assert (done["rotated"], done["stopped"] >= 1, done["ended"]) == (True, True, 1), rotated
        envelope = json.loads(answer.result(timeout=60)["result"]["content"][0]["text"])
        message = envelope["error"]["message"]
        assert not envelope["ok"] and "has ended this session" in message, envelope
        assert "1 of its steps had ended, and one was under way" in message and "Nothing was done" not in message
        assert (own.root / "before.txt").exists()
        [stopped] = [event for event in owners_history(own.home) if event["op"] == "batch.run"]
        row = described(stopped)  # type: ignore[arg-type]
        assert row.what.startswith("ran a batch: write before.txt; run "), row
        assert row.outcome == "1 of 3 steps done, then stopped", row
        (process,) = json.loads(command(own.home, "process", "list", "--json").stdout)["processes"]
        assert process["status"] != "running", process
        assert not [name for name in ("after.txt", "step-ended", "p-ended") if (own.root / name).exists()]
        http.close()

"""A client is notified when the scopes it sees have changed, in both eras and on every transport."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from computer_linker.transports.http.event_stream import MAX_OF_ONE
from support.lines import Lines, stdio, stream
from support.road import folder_scope
from support.service import DEADLINE_S, META, TOKEN, Http, Service, owner, rpc, serving, wait_for, write_config

CHANGED = "notifications/resources/list_changed"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
OPEN = {"stdio": stdio, "socket": stream}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("changes"), token=TOKEN) as running:
        yield running


def add_scope(service: Service, name: str) -> None:
    """Give the service a second scope, beside the first."""
    folder = service.root.parent / name
    folder.mkdir(exist_ok=True)
    both = [folder_scope(service.root), {**folder_scope(folder), "id": name}]
    write_config(service.home, service.root, token=TOKEN, scopes=both)


@pytest.mark.parametrize("way", OPEN)
def test_a_handshake_client_is_notified_unasked_and_once(service: Service, way: str) -> None:
    with OPEN[way](service.home) as lines:
        capabilities = lines.initialize()["capabilities"]
        assert capabilities["resources"]["listChanged"] and capabilities["tools"]["listChanged"]
        add_scope(service, f"{way}-one")
        assert lines.receive() == {"jsonrpc": "2.0", "method": CHANGED}
        assert f"linker://{way}-one/file/" in json.dumps(lines.ask("resources/list"))
        assert lines.kept() == []


def rename(service: Service, name: str) -> None:
    write_config(service.home, service.root, token=TOKEN, machineName=name, scopes=[folder_scope(service.root)])


def test_a_change_that_concerns_no_scope_is_not_announced(service: Service) -> None:
    with stream(service.home) as lines:
        rename(service, "renamed")
        wait_for(lambda: "renamed" in json.dumps(lines.tool("get_computer_info", include=["identity"])))
    with stream(service.home) as lines:
        rename(service, "again")
        wait_for(lambda: "again" in json.dumps(lines.tool("get_computer_info", include=["identity"])))
        add_scope(service, "after")
        assert lines.receive() == {"jsonrpc": "2.0", "method": CHANGED}
        assert lines.ask("ping")["result"] == {} and lines.kept() == []


def listening(lines: Lines, **wanted: bool) -> int:
    lines.modern = True
    return lines.begin("subscriptions/listen", {"notifications": wanted})


def test_a_2026_client_is_notified_by_its_subscription_until_it_cancels(service: Service) -> None:
    with stream(service.home, handshake=False) as lines:
        subscription = listening(lines, resourcesListChanged=True, promptsListChanged=True)
        meta = {SUBSCRIPTION: subscription}
        acknowledged = lines.receive()
        assert acknowledged is not None
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"] == {"notifications": {"resourcesListChanged": True}, "_meta": meta}
        add_scope(service, "modern")
        assert lines.receive() == {"jsonrpc": "2.0", "method": CHANGED, "params": {"_meta": meta}}
        lines.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": subscription}})
        again = listening(lines, resourcesListChanged=True)
        assert (lines.receive() or {})["params"]["_meta"] == {SUBSCRIPTION: again}
        add_scope(service, "later")
        assert (lines.receive() or {})["params"]["_meta"] == {SUBSCRIPTION: again}, "the cancelled one gets nothing"
        assert lines.ask("tools/list")["result"]["tools"] and lines.kept() == []


def test_a_2026_client_that_subscribed_to_nothing_hears_nothing(service: Service) -> None:
    with stream(service.home, handshake=False) as lines, stream(service.home) as other:
        listening(lines, promptsListChanged=True)
        assert (lines.receive() or {})["params"]["notifications"] == {}
        add_scope(service, "silent")
        assert other.receive() == {"jsonrpc": "2.0", "method": CHANGED}
        assert lines.ask("tools/list")["result"]["tools"] and lines.kept() == []


class Events:
    """The server-sent events of one HTTP request."""

    def __init__(self, service: Service, head: str, body: bytes = b"") -> None:
        self.link = socket.create_connection(("127.0.0.1", service.port), timeout=30)
        request = f"{head} HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        request += "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
        self.link.sendall(f"{request}Content-Length: {len(body)}\r\n".encode() + self.headers() + b"\r\n" + body)
        self.read = b""
        self.head = self.until(b"\r\n\r\n")

    def headers(self) -> bytes:
        return b""

    def until(self, mark: bytes) -> bytes:
        while mark not in self.read:
            data = self.link.recv(65536)
            assert data, self.read
            self.read += data
        found, _, self.read = self.read.partition(mark)
        return found

    def next(self) -> Any:
        """The next message; comments are passed over."""
        while not (line := self.until(b"\n")).startswith(b"data: "):
            pass
        return json.loads(line.removeprefix(b"data: "))

    def ends(self) -> bool:
        """Read on; True at the end of the answer, if it comes."""
        deadline = time.monotonic() + DEADLINE_S
        while b"\r\n0\r\n\r\n" not in self.read and time.monotonic() < deadline:
            self.read += self.link.recv(65536)
        return time.monotonic() < deadline

    def close(self) -> None:
        self.link.close()


class InSession(Events):
    """The stream of a handshake-era session."""

    def __init__(self, service: Service, http: Http) -> None:
        self.session = "".join(f"{name}: {value}\r\n" for name, value in http.session_headers().items()).encode()
        super().__init__(service, "GET /mcp")

    def headers(self) -> bytes:
        return self.session


class Subscribed(Events):
    """The stream of a 2026-07-28 subscription."""

    def __init__(self, service: Service) -> None:
        params = {"notifications": {"resourcesListChanged": True}, "_meta": META}
        super().__init__(service, "POST /mcp", json.dumps(rpc("s1", "subscriptions/listen", params)).encode())

    def headers(self) -> bytes:
        return b"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n"


def test_over_http_a_session_is_notified_on_its_stream_until_it_is_closed(service: Service) -> None:
    http = Http(service.port, TOKEN)
    http.initialize()
    events = InSession(service, http)
    add_scope(service, "streamed")
    assert events.next() == {"jsonrpc": "2.0", "method": CHANGED}
    events.close()
    http.close()


def test_over_http_a_2026_client_is_notified_by_its_subscription(service: Service) -> None:
    events = Subscribed(service)
    assert events.next()["params"]["notifications"] == {"resourcesListChanged": True}
    add_scope(service, "subscribed")
    assert events.next() == {"jsonrpc": "2.0", "method": CHANGED, "params": {"_meta": {SUBSCRIPTION: "s1"}}}
    events.close()


def test_a_stream_needs_a_session_and_a_credential(service: Service) -> None:
    http = Http(service.port, TOKEN)
    assert http.send("GET", "/mcp")[0] == 405
    http.close()
    stranger = Http(service.port, None)
    assert stranger.send("GET", "/mcp")[0] == 401
    stranger.close()


def test_a_service_with_open_streams_ends(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as running:
        http = Http(running.port, TOKEN)
        http.initialize()
        events = InSession(running, http)
    assert events.link.recv(65536) is not None
    events.close()
    http.close()


@pytest.mark.parametrize("ending", [("sessions", "revoke", "--all"), ("token", "rotate")], ids=["revoke", "rotate"])
def test_a_stream_ends_with_its_session_and_with_its_credential(tmp_path: Path, ending: tuple[str, ...]) -> None:
    with serving(tmp_path, token=TOKEN) as running, closing(Http(running.port, TOKEN)) as http:
        http.initialize()
        with closing(InSession(running, http)) as events, closing(Subscribed(running)) as subscribed:
            owner(running, *ending)
            assert events.ends() and subscribed.ends()


def test_one_principal_cannot_take_every_stream(tmp_path: Path) -> None:
    with ExitStack() as stack:
        running = stack.enter_context(serving(tmp_path, token=TOKEN))
        http = stack.enter_context(closing(Http(running.port, TOKEN)))
        http.initialize()

        def opened() -> InSession:
            return stack.enter_context(closing(InSession(running, http)))

        streams = [opened() for _ in range(MAX_OF_ONE)]
        assert all(b" 200 " in one.head for one in streams)
        assert b" 503 " in opened().head
        streams[0].close()
        wait_for(lambda: b" 200 " in opened().head)

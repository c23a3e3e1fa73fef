"""A client is notified when the scopes it sees have changed, in both eras and on every transport."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.lines import Lines, stdio, stream
from support.road import folder_scope
from support.service import META, TOKEN, Http, Service, rpc, serving, wait_for, write_config

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
        self.until(b"\r\n\r\n")

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

    def close(self) -> None:
        self.link.close()


def test_over_http_a_session_is_notified_on_its_stream_until_it_is_closed(service: Service) -> None:
    http = Http(service.port, TOKEN)
    http.initialize()
    session = "".join(f"{name}: {value}\r\n" for name, value in http.session_headers().items()).encode()

    class InSession(Events):
        def headers(self) -> bytes:
            return session

    events = InSession(service, "GET /mcp")
    add_scope(service, "streamed")
    assert events.next() == {"jsonrpc": "2.0", "method": CHANGED}
    events.close()
    http.close()


def test_over_http_a_2026_client_is_notified_by_its_subscription(service: Service) -> None:
    params = {"notifications": {"resourcesListChanged": True}, "_meta": META}

    class Modern(Events):
        def headers(self) -> bytes:
            return b"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n"

    events = Modern(service, "POST /mcp", json.dumps(rpc("s1", "subscriptions/listen", params)).encode())
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
        session = "".join(f"{name}: {value}\r\n" for name, value in http.session_headers().items()).encode()

        class InSession(Events):
            def headers(self) -> bytes:
                return session

        events = InSession(running, "GET /mcp")
    assert events.link.recv(65536) is not None
    events.close()
    http.close()

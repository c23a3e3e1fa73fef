"""A request whose body arrives after its credential has ended: nothing is done, whatever was right when it began."""

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.commands import command
from support.road import folder_scope
from support.service import META, TOKEN, Service, modern_headers, owner, rpc, serving, wait_for

CALL = {"scope": "app", "op": "file.write", "target": "late.txt", "input": {"content": "late"}}
FORMS: dict[str, tuple[str, bytes, dict[str, str]]] = {
    "api": ("/api/v1/control", json.dumps({"action": "computer_operation", **CALL}).encode(), {}),
    "mcp": (
        "/mcp",
        json.dumps(rpc(1, "tools/call", {"name": "computer_operation", "arguments": CALL, "_meta": META})).encode(),
        {
            **modern_headers("tools/call", {"name": "computer_operation"}),
            "Accept": "application/json, text/event-stream",
        },
    ),
}


@contextmanager
def begun(service: Service, path: str, body: bytes, headers: dict[str, str]) -> Iterator[socket.socket]:
    """A request of which the service has the head and the beginning of the body."""
    given = {"Host": f"127.0.0.1:{service.port}", "Content-Length": str(len(body)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as link:
        link.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body[:5])
        yield link


def status_of(link: socket.socket) -> int:
    return int(link.recv(65536).split()[1])


@pytest.mark.parametrize("form", FORMS)
def test_a_token_that_was_replaced_meanwhile_does_nothing(tmp_path: Path, form: str) -> None:
    path, body, headers = FORMS[form]
    given = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}", **headers}
    with serving(tmp_path, token=TOKEN) as service, begun(service, path, body, given) as link:
        # Answered after the head of the other request was read, which came first.
        with closing(service.http()) as http:
            assert http.send("GET", "/healthz")[0] == 200
        assert command(service.home, "token", "rotate").returncode == 0
        link.sendall(body[5:])
        assert status_of(link) == 401
        assert not (service.root / "late.txt").exists()


def test_a_page_that_was_closed_meanwhile_allows_nothing(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root", confirm="all")
    with serving(tmp_path, scopes=[scope], approvalPage=True) as service, ExitStack() as held:
        http, answers = held.enter_context(closing(service.http())), list[Any]()
        url = json.loads(command(service.home, "approvals", "phone", "--json").stdout)["url"]
        assert http.send("GET", "/approve/" + url.rpartition("/")[2])[0] == 303
        cookie = {"Cookie": http.headers["set-cookie"].partition(";")[0]}
        assert http.send("GET", "/approve", headers=cookie)[0] == 200
        other = held.enter_context(closing(service.http()))
        asking = threading.Thread(target=lambda: answers.append(other.control("computer_operation", **CALL)))
        asking.start()
        wait_for(lambda: "late.txt" in owner(service, "approvals", "list"))
        page = http.send("GET", "/approve", headers=cookie)[1].decode()
        csrf, asked = (re.search(pattern, page) for pattern in (r'name="csrf" value="([^"]+)"', r'data-id="([^"]+)"'))
        assert csrf is not None and asked is not None
        body = f"csrf={csrf[1]}&id={asked[1]}&answer=allow".encode()
        form = {"Content-Type": "application/x-www-form-urlencoded", **cookie}
        with begun(service, "/approve", body, form) as link:
            assert http.send("GET", "/healthz")[0] == 200
            assert "Closed 1 page" in command(service.home, "approvals", "close").stdout
            link.sendall(body[5:])
            assert status_of(link) == 403
        assert command(service.home, "approvals", "deny", asked[1]).returncode == 0
        asking.join(60)
        assert answers[0]["ok"] is False and not (service.root / "late.txt").exists()

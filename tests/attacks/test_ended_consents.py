"""What an OAuth client began ends with the consent it began it under."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.client.socket_client import call_service
from support.oauth import Browser, code_from, consent, exchange, pkce, query, register
from support.road import folder_scope
from support.service import TOKEN, Http, Service, is_alive, serving, wait_for, write_config

SCOPES = "linker:read linker:write linker:run"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    scopes = [folder_scope(tmp_path / "root", allowedCommands=["*"])]
    with serving(tmp_path, token=TOKEN, scopes=scopes) as running:
        yield running


def consented(browser: Browser, client: str, *groups: str) -> str:
    """An access token of this client for these groups."""
    verifier, challenge = pkce()
    path = query(browser, client, challenge, scope=SCOPES)
    status, headers, page = consent(browser, path, group=list(groups))
    assert status == 302, page
    status, issued = exchange(browser, client, code_from(headers)["code"], verifier)
    assert status == 200, issued
    return str(issued["access_token"])


def call(service: Service, token: str, op: str, **parts: Any) -> dict[str, Any]:
    http = Http(service.port, token)
    try:
        given = {"name": "computer_operation", "arguments": {"scope": "app", "op": op, **parts}}
        answer: dict[str, Any] = json.loads(http.legacy("tools/call", given)["result"]["content"][0]["text"])
        return answer
    finally:
        http.close()


def started(service: Service, token: str) -> int:
    """The id of a process that this client runs."""
    done = call(service, token, "command.start", target=".", input={"command": ["sleep", "600"]})
    assert done["ok"], done
    pid = wait_for(lambda: _sleeping(service))
    assert pid is not None
    return pid


def _sleeping(service: Service) -> int | None:
    """The sleeping process below the service."""
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            argv, where = (place / "cmdline").read_bytes(), str((place / "cwd").readlink())
        except OSError:
            continue
        if argv.endswith(b"sleep\x00600\x00") and argv.count(b"\0") == 2 and where == str(service.root.resolve()):
            return int(place.name)
    return None


def test_a_new_owner_token_ends_the_processes_that_the_old_one_allowed(service: Service) -> None:
    browser = Browser(service.base)
    token = consented(browser, register(browser), "linker:read", "linker:run")
    pid = started(service, token)
    write_config(
        service.home,
        service.root,
        token="another-owner-token-0123456789",
        port=service.port,
        scopes=[folder_scope(service.root, allowedCommands=["*"])],
    )
    wait_for(lambda: not is_alive(pid), seconds=20)


def test_a_narrower_consent_does_not_keep_what_a_revoked_one_allowed(service: Service) -> None:
    browser = Browser(service.base)
    client = register(browser)
    token = consented(browser, client, "linker:read", "linker:run")
    pid = started(service, token)
    narrow = consented(browser, client, "linker:read")
    status, _, text = browser.send("POST", "/revoke", {"token": token, "client_id": client})
    assert status == 200, text
    wait_for(lambda: not is_alive(pid), seconds=20)
    assert call(service, narrow, "file.list", target=".")["ok"], "the other consent goes on"


def test_a_consent_to_the_same_keeps_what_runs(service: Service) -> None:
    browser = Browser(service.base)
    client = register(browser)
    token = consented(browser, client, "linker:read", "linker:run")
    pid = started(service, token)
    again = consented(browser, client, "linker:read", "linker:write", "linker:run")
    assert browser.send("POST", "/revoke", {"token": token, "client_id": client})[0] == 200
    listed = call(service, again, "command.list")
    assert listed["ok"] and is_alive(pid), listed
    assert re.search("sleep|proc", json.dumps(listed)), listed


def test_the_owners_processes_outlive_a_new_owner_token(service: Service) -> None:
    done = call_service(
        service.home,
        "computer_operation",
        {"scope": "app", "op": "command.start", "target": ".", "input": {"command": ["sleep", "600"]}},
    )
    assert done["ok"], done
    pid = wait_for(lambda: _sleeping(service))
    assert pid is not None
    browser = Browser(service.base)
    token = consented(browser, register(browser), "linker:read", "linker:run")
    write_config(
        service.home,
        service.root,
        token="another-owner-token-0123456789",
        port=service.port,
        scopes=[folder_scope(service.root, allowedCommands=["*"])],
    )
    http = Http(service.port, token)
    wait_for(lambda: http.send("POST", "/mcp", {})[0] == 401)
    http.close()
    assert is_alive(pid)


def test_a_new_scope_of_an_old_name_is_not_what_the_owner_consented_to(service: Service, tmp_path: Path) -> None:
    (service.root / "a.txt").write_text("shown")
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("PRIVATE")
    browser = Browser(service.base)
    token = consented(browser, register(browser), "linker:read")

    def serve(*roots: Path) -> None:
        scope = {**folder_scope(service.root), "roots": [str(root) for root in roots]}
        write_config(service.home, service.root, token=TOKEN, port=service.port, scopes=[scope])

    assert call(service, token, "file.read", target="a.txt")["data"]["content"] == "shown"
    serve(service.root, other)
    wait_for(lambda: call(service, token, "file.read", target="@1/a.txt")["ok"])
    serve(other)
    wait_for(lambda: not call(service, token, "file.read", target="a.txt")["ok"])
    for op in ("file.read", "file.list", "file.stat"):
        refused = call(service, token, op, target="a.txt")
        assert refused["error"]["code"] == "unknown_scope", refused
    serve(service.root)
    wait_for(lambda: call(service, token, "file.read", target="a.txt")["ok"])

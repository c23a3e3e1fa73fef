"""A client that has disconnected: its requests leave every list at once, not after their minute."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from computer_linker.client import Client
from computer_linker.errors import LinkError
from support.road import folder_scope
from support.service import Service, owner, serving
from support.waiting import wait_for

WRITE = {"scope": "app", "op": "file.write", "target": "new.txt", "input": {"content": "x"}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("left")
    with serving(folder, scopes=[folder_scope(folder / "root", confirm="all")]) as started:
        yield started


def waiting(service: Service) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(owner(service, "approvals", "list", "--json"))["waiting"]
    return found


def gone_at_once(service: Service, since: float) -> bool:
    wait_for(lambda: not waiting(service), seconds=40)
    return time.monotonic() - since < 40


def test_a_request_over_the_private_socket_goes_with_its_connection(service: Service) -> None:
    with Client.over_socket(home=service.home) as linker:
        with pytest.raises(LinkError, match="needs a person's yes"):
            linker.scope("app").call("file.write", "new.txt", input={"content": "x"})
        (asked,) = waiting(service)
        assert asked["secondsLeft"] > 40
        since = time.monotonic()
    assert gone_at_once(service, since) and not (service.root / "new.txt").exists()


def test_a_request_over_http_goes_with_its_session(service: Service) -> None:
    with closing(service.http()) as link, closing(service.http()) as other:
        refused = link.legacy("tools/call", {"name": "computer_operation", "arguments": WRITE})
        assert "confirm_required" in json.dumps(refused) and len(waiting(service)) == 1
        other.initialize()
        assert other.send("DELETE", "/mcp", headers=other.session_headers())[0] == 200
        assert len(waiting(service)) == 1, "another session ends nothing of this one"
        since = time.monotonic()
        assert link.send("DELETE", "/mcp", headers=link.session_headers())[0] == 200
    assert gone_at_once(service, since) and not (service.root / "new.txt").exists()

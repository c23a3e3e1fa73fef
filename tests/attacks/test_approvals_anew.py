"""Approvals and identity attacked over live transports: what was found, and its neighbours."""

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from computer_linker.client import Client
from computer_linker.client.socket_client import ask_service
from computer_linker.errors import LinkError
from support.road import folder_scope
from support.service import Service, owner, serving
from support.waiting import wait_for

WRITE = {"scope": "app", "op": "file.write", "target": "src/new.txt", "input": {"content": "x"}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("anew")
    scope = folder_scope(folder / "root", confirm="all", allowedCommands=["touch *"])
    with serving(folder, scopes=[scope]) as started:
        for name in ("src", "other"):
            (started.root / name).mkdir()
        (started.root / "other/kept.txt").write_text("kept")
        (started.root / "src/link").symlink_to("../other")
        (started.root / "src/file").symlink_to("../other/kept.txt")
        yield started


def waiting(service: Service) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(owner(service, "approvals", "list", "--json"))["waiting"]
    return found


def test_a_shape_covers_nothing_behind_a_link(service: Service) -> None:
    """Found: `every file.write in src and below` let a write through a link of src change a file elsewhere in the scope."""
    with Client.over_socket(home=service.home) as linker:
        app = linker.scope("app")
        allowed: list[tuple[str, str, dict[str, Any]]] = [
            ("file.write", "src/a.txt", {"content": "1"}),
            ("command.run", "src", {"command": ["touch", "made"]}),
        ]
        behind: list[tuple[str, str, dict[str, Any]]] = [
            ("file.write", "src/link/kept.txt", {"content": "taken"}),
            ("file.write", "src/file", {"content": "taken"}),
            ("file.write", "src/link/new.txt", {"content": "taken"}),
            ("command.run", "src/link", {"command": ["touch", "made"]}),
        ]
        for op, target, given in allowed:
            with pytest.raises(LinkError, match="needs a person's yes"):
                app.call(op, target, input=given)
            owner(service, "approvals", "allow", waiting(service)[-1]["id"], "--shape")
            app.call(op, target, input=given)
        for op, target, given in behind:
            with pytest.raises(LinkError, match="needs a person's yes"):
                app.call(op, target, input=given)
        shown = "src/link is a link: what it leads to is changed"
        (asked, *_) = [one for one in waiting(service) if shown in one["details"]]
        assert [choice["answer"] for choice in asked["choices"]] == ["same"]
    assert {path.name for path in (service.root / "other").iterdir()} == {"kept.txt"}
    assert (service.root / "other/kept.txt").read_text() == "kept" and (service.root / "src/made").exists()


def test_a_session_that_was_never_opened_gives_a_script_no_standing_yes(service: Service) -> None:
    """Found: any `mcp-session-id` made callers with one shared credential look like conversations of their own."""
    with closing(service.http()) as http:
        call = {"action": "computer_operation", **WRITE}
        status, _ = http.send("POST", "/api/v1/control", call, {"mcp-session-id": "made-up", "user-agent": "x/1"})
        assert status == 403
        (asked,) = [one for one in waiting(service) if one["client"] == "x/1"]
        assert asked["choices"] == []
        assert http.send("POST", "/mcp", {}, {"mcp-session-id": "made-up"})[0] == 404
    assert not Path(service.root / "src/new.txt").exists()


def test_a_new_owner_token_ends_what_was_asked_for_with_the_old_one(tmp_path: Path) -> None:
    """Found: a call that waited for the owner ran on their yes although its token had been replaced meanwhile."""
    old, answers = "t" * 40, list[Any]()

    def call(service: Service) -> None:
        with closing(service.http()) as http:
            answers.append(http.control("computer_operation", **{**WRITE, "target": "new.txt"}))

    scopes = [folder_scope(tmp_path / "root", confirm="all")]
    over = threading.Event()

    def stay(service: Service) -> None:
        """A terminal where the owner is."""
        while not over.wait(0.5):
            ask_service(service.home, {"owner": "approvals.list", "input": {"stays": True}})

    with serving(tmp_path, token=old, scopes=scopes) as service:
        ask_service(service.home, {"owner": "approvals.list", "input": {"stays": True}})
        threads = [threading.Thread(target=work, args=(service,)) for work in (stay, call)]
        for thread in threads:
            thread.start()
        wait_for(lambda: waiting(service))
        owner(service, "token", "rotate")
        threads[1].join(30)
        over.set()
        threads[0].join(30)
        # Its session ends with the old token.
        assert answers[0]["error"]["code"] == "permission_denied" and waiting(service) == []
        assert not (service.root / "new.txt").exists()

"""A computer scope runs commands where it says so: in the same sandbox, in a working folder of its own or in its roots."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.road import computer_scope, folder_scope
from support.service import Http, Service, serving

RUNS = ["command:run", "process:manage", "fs:read", "fs:write", "desktop:observe"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    place = tmp_path_factory.mktemp("wide")
    (place / "lab").mkdir()
    scopes = [
        folder_scope(place / "root"),
        {**computer_scope("machine", allowedCommands=["sh *", "pwd", "ls *"]), "capabilities": RUNS},
        {**computer_scope("lab", allowedCommands=["pwd"]), "capabilities": RUNS, "roots": [str(place / "lab")]},
        computer_scope("screen"),
    ]
    with serving(place, scopes=scopes) as running:
        (running.root / "secret.txt").write_text("KEPT-OUT\n")
        yield running


@pytest.fixture
def link(service: Service) -> Iterator[Http]:
    http = service.http()
    yield http
    http.close()


def run(link: Http, scope: str, *argv: str, target: str = ".") -> dict[str, Any]:
    call: dict[str, Any] = {"scope": scope, "op": "command.run", "target": target, "input": {"command": list(argv)}}
    return link.control("computer_operation", **call)


def test_it_runs_in_a_folder_of_its_own(service: Service, link: Http) -> None:
    """Point 000-129: the folder lies beside the state folder, is private, and is kept from one command to the next."""
    done = run(link, "machine", "sh", "-c", "echo made > here.txt; pwd")
    folder = service.home.with_name("home-work") / "machine"
    assert done["ok"] and done["data"]["stdout"].strip() == str(folder), done
    assert (folder / "here.txt").read_text() == "made\n" and folder.stat().st_mode & 0o777 == 0o700
    read = link.control("computer_operation", scope="machine", op="file.read", target="here.txt")
    assert read["data"]["content"] == "made\n"
    started = link.control("computer_operation", scope="machine", op="command.start", input={"command": ["pwd"]})
    listed = link.control("computer_operation", scope="machine", op="process.list")
    assert [one["processId"] for one in listed["data"]["processes"]] == [started["data"]["processId"]]


def test_it_is_held_by_the_same_sandbox(service: Service, link: Http) -> None:
    """Point 000-129: other scopes' folders and the service's state stay out of reach, and so does what is not allowed."""
    folder = run(link, "app", "pwd")["data"]
    for place in (service.root / "secret.txt", service.home / "config.json"):
        done = run(link, "machine", "sh", "-c", f"cat {place}")
        assert done["ok"] and done["data"]["exitCode"] != 0 and "KEPT-OUT" not in str(done), place
        assert done["data"]["boundary"] == folder["boundary"]
    assert run(link, "machine", "touch", "x")["error"]["code"] == "permission_denied"
    for outside in (str(service.root), "../../root"):
        assert run(link, "machine", "pwd", target=outside)["error"]["code"] == "path_out_of_scope"


def test_the_owner_can_name_its_folder(service: Service, link: Http) -> None:
    place = service.home.parent / "lab"
    assert run(link, "lab", "pwd")["data"]["stdout"].strip() == str(place)
    assert not (service.home.with_name("home-work") / "lab").exists()


def test_a_scope_that_does_not_say_so_runs_nothing(service: Service, link: Http) -> None:
    refused = run(link, "screen", "pwd")
    assert refused["error"]["code"] == "permission_denied" and "command:run" in refused["error"]["message"]
    assert not (service.home.with_name("home-work") / "screen").exists()
    written = link.control("computer_operation", scope="screen", op="file.write", target="x", input={"content": "x"})
    assert written["error"]["code"] == "permission_denied"
    info = link.control("get_computer_info", include=["scopes"])
    allowed = {scope["id"]: scope["allowedOperations"] for scope in info["scopes"]}
    assert "command.run" in allowed["machine"] and "command.run" not in allowed["screen"]
    assert Path(service.home).exists()

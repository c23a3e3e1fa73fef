"""Processes whose client left: they live on for the same principal, and end by themselves, by their time, or by the service."""

import contextlib
import secrets
import sys
from pathlib import Path
from typing import Any

import pytest

from support.lines import stream
from support.road import folder_scope
from support.service import TOKEN, Service, end_service, serving, wait_for

MARK = f"left-{secrets.token_hex(8)}"
WAITS = [sys.executable, "-c", "import sys; print('here', flush=True); sys.stdin.read()", MARK]


def is_there() -> bool:
    """Whether the program itself runs, in whatever namespace."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = place.read_bytes().split(b"\0")
            if MARK.encode() in words and words[0] == sys.executable.encode():
                return True
    return False


def started(service: Service) -> str:
    with stream(service.home) as client:
        begun = client.operation("command.start", input={"command": WAITS})
        assert begun["ok"], begun
        return str(begun["data"]["processId"])


def read(service: Service, process: str, **options: Any) -> dict[str, Any]:
    with stream(service.home) as client:
        return client.operation("command.read", process, options=options)


def test_a_process_lives_on_when_its_client_leaves_and_the_next_one_finds_it(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        process = started(service)
        again = read(service, process, waitSeconds=20)
        assert again["data"]["status"] == "running" and again["data"]["chunks"]
        with stream(service.home) as client:
            assert [one["processId"] for one in client.operation("command.list")["data"]["processes"]] == [process]
            client.operation("command.send", process, input={"key": "ctrl-d"})
        ended = wait_for(lambda: (told := read(service, process)["data"])["status"] == "exited" and told)
        assert ended["exitCode"] == 0


def test_another_credential_does_not_find_it(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        process = started(service)
        with contextlib.closing(service.http()) as http:
            asked = {"scope": "app", "op": "command.read", "target": process}
            assert http.control("computer_operation", **asked)["error"]["code"] == "process_not_found"
        assert read(service, process)["data"]["status"] == "running"


def test_its_time_ends_it(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root", maxRuntimeSeconds=2)
    with serving(tmp_path, scopes=[scope]) as service:
        process = started(service)
        ended = wait_for(lambda: (told := read(service, process)["data"])["status"] != "running" and told)
        assert ended["status"] == "stopped"


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_the_end_of_the_service_ends_it(tmp_path: Path, how: str) -> None:
    with serving(tmp_path) as service:
        assert read(service, started(service), waitSeconds=20)["data"]["chunks"]
        assert is_there()
        if how == "stopped":
            service.stop()
        else:
            end_service(service.home)
        wait_for(lambda: not is_there())

"""A person at a terminal says yes or no to exactly what they were shown."""

import json
import os
import pty
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.road import folder_scope
from support.service import PROGRAM, Service, environment, serving, wait_for


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    scopes = [folder_scope(tmp_path / "root", confirm="all")]
    with serving(tmp_path, token=None, scopes=scopes) as running:
        (running.root / "keep.txt").write_text("kept")
        yield running


def cli(service: Service, *arguments: str) -> str:
    done = subprocess.run(
        [*PROGRAM, *arguments], env=environment(service.home), capture_output=True, text=True, timeout=60
    )
    return done.stdout + done.stderr


def delete(service: Service) -> Any:
    http = service.http()
    try:
        return http.control("computer_operation", scope="app", op="file.delete", target="keep.txt")
    finally:
        http.close()


def test_a_yes_from_the_command_line_lets_the_same_request_pass_once(service: Service) -> None:
    refused = delete(service)
    assert refused["error"]["code"] == "confirm_required"
    listed = json.loads(cli(service, "approvals", "list", "--json"))["waiting"]
    assert [item["op"] for item in listed] == ["file.delete"]
    assert "keep.txt" in listed[0]["preview"]
    assert "Allowed file.delete" in cli(service, "approvals", "allow", listed[0]["id"])
    assert delete(service)["ok"]
    assert not (service.root / "keep.txt").exists()
    assert "Nothing waits" in cli(service, "approvals", "allow", listed[0]["id"])


def test_a_no_from_the_command_line_is_final(service: Service) -> None:
    refused = delete(service)
    assert "Refused" in cli(service, "approvals", "deny", refused["error"]["details"]["approvalId"])
    assert delete(service)["error"]["code"] == "confirm_required"
    assert (service.root / "keep.txt").exists()


@pytest.mark.parametrize(("key", "ok"), [("y", True), ("n", False)])
def test_a_call_waits_for_the_person_at_the_live_list(service: Service, key: str, ok: bool) -> None:
    parent, child = pty.openpty()
    live = subprocess.Popen(
        [*PROGRAM, "approvals"], env=environment(service.home), stdin=child, stdout=child, stderr=child
    )
    os.close(child)
    seen = bytearray()
    reader = threading.Thread(target=_collect, args=(parent, seen), daemon=True)
    reader.start()
    try:
        wait_for(lambda: b"Waiting for requests" in seen)
        answers: list[Any] = []
        caller = threading.Thread(target=lambda: answers.append(_until_asked(service)))
        caller.start()
        wait_for(lambda: b"Allow? [y/s/n]" in seen)
        os.write(parent, f"{key}\n".encode())
        caller.join(30)
        assert answers[0]["ok"] is ok
        assert (service.root / "keep.txt").exists() is not ok
    finally:
        live.kill()
        live.wait()
        os.close(parent)


def _until_asked(service: Service) -> Any:
    """Call until somebody is there to be asked: the list says that it waits a moment before it is attached."""
    return wait_for(lambda: _answered(service))


def _answered(service: Service) -> Any:
    answer = delete(service)
    nobody = not answer["ok"] and "approveWith" in answer["error"]["details"]
    return None if nobody else answer


def _collect(fd: int, into: bytearray) -> None:
    try:
        while data := os.read(fd, 4096):
            into += data
    except OSError:
        pass

"""The owner's own programs prove that they know the key; a wrong, missing or open one is refused with what helps."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks.ground import told_to_the_owner
from computer_linker import home as places
from computer_linker.client import Client, ClientFailed
from support.commands import command
from support.lines import stdio, stream
from support.service import PROGRAM, TOKEN, Service, environment, serving


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(tmp_path, token=TOKEN) as running:
        (running.root / "notes.txt").write_text("hello")
        yield running


def line(service: Service, *words: str) -> "subprocess.CompletedProcess[str]":
    return command(service.home, *words)


def read_by_line(service: Service) -> "subprocess.CompletedProcess[str]":
    return line(service, "op", "file.read", "notes.txt", "--scope", "app")


def test_the_command_line_the_shim_the_socket_and_the_library_are_the_owner(service: Service) -> None:
    done = read_by_line(service)
    assert done.returncode == 0 and "hello" in done.stdout, done.stderr
    with stdio(service.home) as lines:
        assert lines.ask("tools/list")["result"]["tools"]
    with stream(service.home) as lines:
        assert lines.ask("tools/list")["result"]["tools"]
    with Client.over_socket(service.home) as client:
        assert client.call("app", "file.read", "notes.txt").data["content"] == "hello"


def _missing(key: Path) -> None:
    key.unlink()


def _another(key: Path) -> None:
    key.write_bytes(os.urandom(32))


def _open(key: Path) -> None:
    key.chmod(0o644)


def _linked(key: Path) -> None:
    key.rename(key.with_name("elsewhere"))
    key.symlink_to(key.with_name("elsewhere"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_missing, "cannot be read"),
        (_another, "did not prove"),
        (_open, "open to other users"),
        (_linked, "cannot be read"),
    ],
)
def test_a_key_that_is_not_right_is_refused_with_what_helps_until_the_next_start(
    tmp_path: Path, change: object, said: str
) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        (service.root / "notes.txt").write_text("hello")
        key = service.home / places.KEY_NAME
        first = key.read_bytes()
        change(key)  # type: ignore[operator]
        done = read_by_line(service)
        assert done.returncode != 0 and said in done.stderr and "hello" not in done.stdout, done.stderr
        shim = subprocess.run(
            [*PROGRAM, "stdio"], env=environment(service.home), input="", capture_output=True, text=True, timeout=240
        )
        assert shim.returncode == 1 and said in shim.stderr, shim.stderr
        with pytest.raises(ClientFailed, match=said), Client.over_socket(service.home):
            pass
    with serving(tmp_path, token=TOKEN) as service:
        assert not key.is_symlink() and key.read_bytes() != first and key.stat().st_mode & 0o777 == 0o600
        assert read_by_line(service).returncode == 0


def test_a_wrong_proof_is_in_the_history_and_nothing_is_done(service: Service) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(10)
        link.connect(str(service.home / places.SOCKET_NAME))
        assert link.recv(512).startswith(places.CHALLENGE)
        call = {"scope": "app", "op": "file.write", "target": "notes.txt", "input": {"content": "taken"}}
        asked = json.dumps({"tool": "computer_operation", "arguments": call}).encode()
        link.sendall(places.GREETING_CONTROL + b" " + b"0" * 64 + b"\n" + asked + b"\n")
        assert link.recv(512).startswith(places.REFUSED) and link.recv(512) == b""
    assert (service.root / "notes.txt").read_text() == "hello"
    assert "wrong_key" in [event.get("reason") for event in told_to_the_owner(service)]


def test_a_proof_is_good_for_one_challenge_and_one_purpose(service: Service) -> None:
    key = (service.home / places.KEY_NAME).read_bytes()
    used = places.proof(key, places.CHALLENGE + b"1" * 64, places.GREETING_CONTROL)
    for greeting, proof_of in ((places.GREETING_CONTROL, None), (places.GREETING_STREAM, places.GREETING_CONTROL)):
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(10)
            link.connect(str(service.home / places.SOCKET_NAME))
            challenge = link.recv(512).rstrip(b"\n")
            given = used if proof_of is None else places.proof(key, challenge, proof_of)
            link.sendall(greeting + b" " + given + b"\n")
            assert link.recv(512).startswith(places.REFUSED)


def test_a_program_of_the_older_greeting_is_told_so(service: Service) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(10)
        link.connect(str(service.home / places.SOCKET_NAME))
        link.sendall(b"computer-linker/1 control\n{}\n")
        assert b"version" in link.makefile("rb").read()

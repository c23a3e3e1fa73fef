"""How a service begins and ends: one a state folder, one clear line when it cannot, nothing lost when it is killed."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from computer_linker import home as places
from support.lines import own_service, stdio, stream
from support.service import (
    LEGACY,
    PROGRAM,
    TOKEN,
    end_service,
    environment,
    is_alive,
    lock_holder,
    rpc,
    serving,
    wait_for,
    write_config,
)


def serve(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A `serve` that is expected to refuse."""
    return subprocess.run(
        [*PROGRAM, "serve", "--port", "0", *arguments],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=240,
    )


def assert_one_clear_line(run: "subprocess.CompletedProcess[str]", *words: str) -> None:
    assert run.returncode == 1
    lines = [line for line in run.stderr.splitlines() if line.strip()]
    assert lines[0].startswith("error: "), run.stderr
    assert len(lines) <= 2 and (len(lines) == 1 or lines[1].startswith("hint: ")), run.stderr
    assert "Traceback" not in run.stderr
    for word in words:
        assert word in run.stderr, run.stderr


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    write_config(tmp_path / "home", tmp_path / "root")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_one_clear_line(serve(tmp_path / "home", "--port", str(port)), str(port), "in use")
    assert not (tmp_path / "home" / places.SOCKET_NAME).exists()


def test_a_second_service_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        assert_one_clear_line(serve(service.home), "already runs", str(service.port))
        link = service.http()
        assert link.control("get_computer_info", include=["identity"])["machineName"] == "test"
        link.close()
        assert lock_holder(service.home) == service.process.pid


def test_a_cut_history_is_named_over_stdio_with_its_own_remedy(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_config(home, tmp_path / "root")
    with stdio(home) as lines:
        lines.operation("file.list", ".")
    end_service(home)
    journal = home / "audit" / "journal-000000000001.jsonl"
    journal.write_bytes(journal.read_bytes()[:40])
    run = subprocess.run(
        [*PROGRAM, "stdio"],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert_one_clear_line(run, "history", "history verify", "audit folder aside")
    assert "doctor" not in run.stderr


def test_a_bind_beyond_loopback_without_a_token_is_refused(tmp_path: Path) -> None:
    write_config(tmp_path / "home", tmp_path / "root")
    for host in ("0.0.0.0", "::"):
        assert_one_clear_line(serve(tmp_path / "home", "--host", host), "token")


@pytest.mark.parametrize(
    ("broken", "word"),
    [
        ("{", "JSON"), ('{"schemaVersion": 1, "schemaVersion": 1}', "doubled"), ('{"unknownField": 1}', "unknownField"),
        ('{"scopes": [{"id": "app", "type": "folder"}]}', "root"), ('{"ownerToken": "short"}', "ownerToken"), ("[]", "object"),
    ],
)  # fmt: skip
def test_a_config_that_does_not_validate_stops_every_entry_and_is_left_as_it_was(
    broken: str, word: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    write_config(home, tmp_path / "root")
    (home / "config.json").write_text(broken)
    assert_one_clear_line(serve(home), word)
    for command in (["stdio"], ["op", "file.list", "."]):
        run = subprocess.run(
            [*PROGRAM, *command],
            env=environment(home),
            capture_output=True,
            text=True,
            timeout=240,
            stdin=subprocess.DEVNULL,
        )
        assert run.returncode == 1, run.stderr
        assert run.stdout == ""
        assert word in run.stderr and "Traceback" not in run.stderr
    assert (home / "config.json").read_text() == broken
    assert_no_service(home)


def test_a_state_folder_that_did_not_exist_is_named_and_not_used_silently(tmp_path: Path) -> None:
    home = tmp_path / "forgotten"
    call = {"name": "get_computer_info", "arguments": {"include": ["status", "service"]}}
    started = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
    asked = "".join(json.dumps(one) + "\n" for one in (rpc(0, "initialize", started), rpc(1, "tools/call", call)))
    run = subprocess.run(
        [*PROGRAM, "stdio"], env=environment(home), input=asked, capture_output=True, text=True, timeout=240
    )  # fmt: skip
    end_service(home)
    assert f"warning: the state folder {home}" in run.stderr and "has no scopes" in run.stderr
    answer = json.loads(json.loads(run.stdout.splitlines()[1])["result"]["content"][0]["text"])
    assert answer["service"]["stateFolder"] == str(home)
    assert answer["status"]["ready"] is False and str(home) in answer["status"]["blockingReasons"][0]


def assert_no_service(home: Path) -> None:
    holder = lock_holder(home)
    assert holder is None or not is_alive(holder)


@contextmanager
def small_disk(folder: Path, size: str, options: str = "") -> Iterator[Path]:
    """A file system of its own; skips, naming the right, where none may be mounted."""
    folder.mkdir(mode=0o700)
    words = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700{options}", "tmpfs", str(folder)]
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_state_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with small_disk(tmp_path / "home", "1m") as home:
        write_config(home, tmp_path / "root")
        subprocess.run(["mount", "-o", "remount,ro", str(home)], check=True)
        run = serve(home)
        assert_one_clear_line(run)
        assert "state folder" in run.stderr or "ead-only" in run.stderr


def test_a_full_disk_refuses_what_cannot_be_recorded_and_recovers(tmp_path: Path) -> None:
    with small_disk(tmp_path / "home", "2m") as home:
        write_config(home, tmp_path / "root", token=TOKEN)
        with serving(tmp_path, token=TOKEN) as service, stream(home) as lines:
            assert lines.operation("file.write", "before.txt", input={"content": "x"})["ok"]
            filler = home / "filler"
            handle = os.open(filler, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                while os.write(handle, b"x" * 4096):
                    pass
            except OSError:
                os.close(handle)
            refused = [lines.operation("file.write", f"{n}.txt", input={"content": "x"}) for n in range(50)]
            last = refused[-1]
            assert not last["ok"], last
            assert not (service.root / "49.txt").exists()
            filler.unlink()
            assert lines.operation("file.write", "after.txt", input={"content": "x"})["ok"]
            assert (service.root / "after.txt").read_text() == "x"


def test_the_shim_starts_a_service_shares_it_and_it_ends_by_itself(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_config(home, tmp_path / "root")
    with own_service(home):
        with stdio(home) as first, stdio(home) as second:
            assert first.operation("file.write", "a.txt", input={"content": "a"})["ok"]
            assert second.operation("file.read", "a.txt")["data"]["content"] == "a"
            pid = lock_holder(home)
            assert pid is not None and is_alive(pid)
        assert is_alive(pid), "the service outlives its clients for a while"


def test_an_idle_on_demand_service_ends_and_leaves_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_config(home, tmp_path / "root")
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--socket-only", "--idle-exit", "0.3"], env=environment(home), stderr=subprocess.DEVNULL
    )
    try:
        wait_for((home / places.SOCKET_NAME).exists)
        with stream(home) as lines:
            began = time.monotonic()
            while time.monotonic() - began < 0.8:
                assert lines.operation("file.list", ".")["ok"]
            assert process.poll() is None, "a connected client keeps it"
        assert process.wait(15) == 0
        assert not (home / places.SOCKET_NAME).exists()
    finally:
        process.kill()
        process.wait(10)


def test_twelve_shims_at_once_start_one_service(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_config(home, tmp_path / "root")

    def visit(_: int) -> int:
        with stdio(home) as lines:
            assert lines.operation("file.list", ".")["ok"]
            pid = lock_holder(home)
            assert pid is not None
            return pid

    with own_service(home), ThreadPoolExecutor(12) as pool:
        assert len(set(pool.map(visit, range(12)))) == 1


def test_a_killed_service_is_told_to_the_client_and_the_next_one_starts(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_config(home, tmp_path / "root")
    with own_service(home):
        with stdio(home) as lines:
            assert lines.operation("file.write", "kept.txt", input={"content": "kept"})["ok"]
            pid = lock_holder(home)
            assert pid is not None and lines.process is not None
            os.kill(pid, signal.SIGKILL)
            assert lines.receive() is None
            assert lines.process.wait(10) == 1
            assert lines.process.stderr is not None
            assert lines.process.stderr.read().decode().startswith("error: the service ended")
        with stdio(home) as lines:
            assert lines.operation("file.read", "kept.txt")["data"]["content"] == "kept"
            history = json.loads(lines.tool("get_operation_history", view="last", limit=10)["content"][0]["text"])
            assert "file.write" in {event["op"] for event in history["events"]}


def test_serve_takes_over_from_an_on_demand_service(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_config(home, tmp_path / "root")
    with own_service(home):
        with stdio(home) as lines:
            assert lines.operation("file.list", ".")["ok"]
        first = lock_holder(home)
        with serving(tmp_path) as service:
            assert lock_holder(home) == service.process.pid != first
            assert service.stop() == 0
        assert not (home / places.SOCKET_NAME).exists()


def test_a_stopped_service_answers_what_was_under_way_and_says_goodbye(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        with stdio(service.home) as lines:
            assert lines.operation("file.list", ".")["ok"]
            assert service.stop() == 0
            assert lines.receive() is None
            assert lines.process is not None and lines.process.wait(10) in (0, 1)
        assert "Traceback" not in service.log

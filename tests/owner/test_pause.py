"""A pause: every client is refused with a code of its own, whatever it asks and however it comes; nothing happens meanwhile."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker.client import Client
from computer_linker.client.socket_client import ask_service
from computer_linker.errors import LinkError
from support.service import Http, serving, wait_for
from support.sleepers import running
from support.terminal import history, run


def refusal(work: Any) -> str:
    with pytest.raises(LinkError) as caught:
        work()
    return str(caught.value.code)


def test_every_client_is_refused_over_every_connection_and_the_owner_is_not(tmp_path: Path) -> None:
    with serving(tmp_path) as service, Client.over_socket(service.home) as client:
        target = service.root / "new.txt"
        assert run(service.home, "pause").returncode == 0
        calls = [
            lambda: client.call("app", "file.write", "new.txt", {"content": "x"}),
            lambda: client.call("app", "file.list", ""),
            lambda: client.call("app", "command.run", None, {"command": ["touch", "new.txt"]}),
        ]
        assert [refusal(call) for call in calls] == ["paused"] * 3
        http = Http(service.port, None)
        request = {"action": "computer_operation", "scope": "app", "op": "file.list", "target": ""}
        status, body = http.send("POST", "/api/v1/control", request)
        answer = json.loads(body)
        assert status == 503 and answer["error"]["code"] == "paused" and answer["error"]["retryable"] is True
        assert http.control("get_computer_info")["error"]["code"] == "paused"
        http.close()
        assert not target.exists()
        refused = [event for event in history(service.home) if event.get("errorCode") == "paused"]
        assert len(refused) == 5 and all(event["decision"] == "deny" for event in refused if event["scope"])
        assert run(service.home, "scope", "list").returncode == 0
        assert json.loads(run(service.home, "unpause", "--json").stdout) == {"ended": True}
        client.call("app", "file.write", "new.txt", {"content": "x"})
        assert target.read_text() == "x"


def test_a_pause_outlives_the_service(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        home = service.home
        assert run(home, "pause").returncode == 0
    # The next client starts a service itself.
    with Client.over_socket(home) as client:
        assert refusal(lambda: client.call("app", "file.list", "")) == "paused"
        assert run(home, "unpause").returncode == 0
        client.call("app", "file.list", "")
    run(home, "stop")


def test_a_pause_made_with_no_service_running_holds_for_the_next(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        home = service.home
    assert run(home, "pause").returncode == 0
    with Client.over_socket(home) as client:
        assert refusal(lambda: client.call("app", "file.list", "")) == "paused"
    run(home, "stop")


def test_a_pause_for_a_time_ends_by_itself(tmp_path: Path) -> None:
    with serving(tmp_path) as service, Client.over_socket(service.home) as client:
        until = json.loads(run(service.home, "pause", "--for", "2s", "--json").stdout)["until"]
        assert until is not None

        def answers() -> bool:
            try:
                client.call("app", "file.list", "")
            except LinkError as error:
                assert error.code == "paused"
                return False
            return True

        began = time.time()
        wait_for(answers)
        assert time.time() - began < 25
        assert run(service.home, "pause", "--for", "soon").returncode == 2


def test_with_stop_what_runs_for_clients_ends(tmp_path: Path) -> None:
    with serving(tmp_path) as service, Client.over_socket(service.home) as client:
        client.call("app", "command.start", None, {"command": ["sleep", "60.7391"]})
        wait_for(lambda: running("7391"))
        done = json.loads(run(service.home, "pause", "--stop", "--json").stdout)
        assert done["stopped"] == 1
        wait_for(lambda: not running("7391"))
        [event] = [event for event in history(service.home) if event["op"] == "pause"]
        assert (event["effect"], event["summary"]["stopped"]) == ("confirmed", 1)


def test_a_call_that_waits_for_a_yes_is_not_made_after_a_pause(tmp_path: Path) -> None:
    with serving(tmp_path) as service, ThreadPoolExecutor(1) as pool:
        assert run(service.home, "scope", "edit", "app", "--policy", "confirm=all").returncode == 0
        with staying(service.home):
            waiting = pool.submit(written_by_a_client, service.home)
            asked = wait_for(lambda: json.loads(run(service.home, "approvals", "list", "--json").stdout)["waiting"])
            assert run(service.home, "pause").returncode == 0
            assert run(service.home, "approvals", "allow", asked[0]["id"]).returncode == 0
            assert waiting.result(60) == "paused"
        assert not (service.root / "new.txt").exists()


def test_with_stop_a_call_that_waits_ends_and_nothing_is_done(tmp_path: Path) -> None:
    with serving(tmp_path) as service, ThreadPoolExecutor(1) as pool:
        assert run(service.home, "scope", "edit", "app", "--policy", "confirm=all").returncode == 0
        with staying(service.home):
            waiting = pool.submit(written_by_a_client, service.home)
            wait_for(lambda: json.loads(run(service.home, "approvals", "list", "--json").stdout)["waiting"])
            assert json.loads(run(service.home, "pause", "--stop", "--json").stdout)["stopped"] == 1
            assert waiting.result(60) == "paused"
        assert not (service.root / "new.txt").exists()


def test_with_stop_a_call_that_runs_says_that_something_may_be_done(tmp_path: Path) -> None:
    with serving(tmp_path) as service, ThreadPoolExecutor(1) as pool:
        code = "open('begun.txt', 'w').close(); import time; time.sleep(600)"
        command = {"command": ["python3", "-c", code]}

        def call() -> LinkError:
            with Client.over_socket(service.home) as client, pytest.raises(LinkError) as caught:
                client.call("app", "command.run", ".", command)
            return caught.value

        running_call = pool.submit(call)
        wait_for((service.root / "begun.txt").exists)
        assert run(service.home, "pause", "--stop").returncode == 0
        stopped = running_call.result(60)
        assert stopped.code == "aborted" and "Nothing was done" not in stopped.message
        [event] = [event for event in history(service.home) if event["op"] == "command.run"]
        assert (event["errorCode"], event["effect"]) == ("aborted", "unverifiable")


def written_by_a_client(home: Path) -> str:
    with Client.over_socket(home) as client:
        return refusal(lambda: client.call("app", "file.write", "new.txt", {"content": "x"}))


@contextmanager
def staying(home: Path) -> Iterator[None]:
    """Somebody looks at the list of waiting requests meanwhile, so calls wait for an answer."""
    over = threading.Event()

    look_now = {"owner": "approvals.list", "input": {"stays": True}}

    def look() -> None:
        while not over.wait(0.5):
            ask_service(home, look_now)

    ask_service(home, look_now)
    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(30)

"""What `start` says of where the service listens and how much it exposes."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from computer_linker.config.load import load
from support.service import PROGRAM, TOKEN, end_service, environment, write_config


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "state"
    (tmp_path / "app").mkdir()
    yield folder
    end_service(folder)


@contextmanager
def started(home: Path, *words: str, **env: str) -> Iterator[str]:
    """`start` until its welcome is out; the welcome."""
    process = subprocess.Popen(
        [*PROGRAM, "start", *words], env=environment(home, **env), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        said = ""
        for line in process.stdout:
            said += line
            if "Ctrl-C" in line:
                break
        assert 0 < said.count("\n") <= 15
        yield said
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
        process.stdout.close()


def test_a_service_on_every_address_names_one_that_leads_to_it(home: Path, tmp_path: Path) -> None:
    with started(home, str(tmp_path / "app"), "--host", "0.0.0.0", "--port", "0") as said:
        assert "0.0.0.0" not in said and ", on every network of this computer" in said
        port = int(re.search(r"^at http://127\.0\.0\.1:(\d+)/mcp", said, re.MULTILINE).group(1))  # type: ignore[union-attr]
        elsewhere = re.search(r"--host (\S+) makes it answer at http://(\S+):(\d+)/mcp", said)
        assert elsewhere is None or elsewhere.groups() == (elsewhere[1], elsewhere[1], str(port))
        done = subprocess.run(
            [*PROGRAM, "client", "setup", "--json"], env=environment(home), capture_output=True, text=True, timeout=240
        )
        assert json.loads(done.stdout)["http"]["localUrl"] == f"http://127.0.0.1:{port}/mcp"


@pytest.mark.parametrize(("address", "is_named"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_serve_warns_of_an_address_that_other_computers_reach(
    home: Path, tmp_path: Path, address: str, is_named: bool
) -> None:
    write_config(home, tmp_path / "app", token=TOKEN)
    with subprocess.Popen(
        [*PROGRAM, "serve", "--host", address, "--port", "0"],
        env=environment(home), text=True, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as service:  # fmt: skip
        try:
            assert service.stderr is not None
            said = ""
            while f"serving http://{address}:" not in said:
                said += service.stderr.readline()
            warned = f"Careful: http listens on http://{address}:" in said and "any computer that reaches" in said
            assert (warned, said.count("Close it with: computer-linker stop")) == (is_named, int(is_named))
        finally:
            service.terminate()


def test_a_pause_that_goes_on_is_named(home: Path, tmp_path: Path) -> None:
    with started(home, str(tmp_path / "app"), "--port", "0") as said:
        assert "PAUSED" not in said and "every network" not in said
    subprocess.run([*PROGRAM, "pause"], env=environment(home), check=True, capture_output=True, timeout=240)
    with started(home, str(tmp_path / "app"), "--port", "0") as said:
        assert re.search(r"PAUSED: clients are refused until `.* unpause`", said)


def test_the_address_named_for_other_devices_is_answered_with_the_token_alone(home: Path, tmp_path: Path) -> None:
    """127.0.0.2 stands for an address of this machine on a network."""
    with started(home, str(tmp_path / "app"), "--host", "127.0.0.2", "--port", "0") as said:
        port = int(re.search(r"^at http://127\.0\.0\.2:(\d+)/mcp", said, re.MULTILINE).group(1))  # type: ignore[union-attr]
        right = {"Authorization": f"Bearer {load(home).owner_token}"}
        for given, status in (({}, 401), (right, 200), ({**right, "Host": f"evil.example:{port}"}, 421)):
            link = http.client.HTTPConnection("127.0.0.2", port, timeout=20)
            headers = {"Content-Type": "application/json", **given}
            link.request("POST", "/api/v1/control", b'{"action":"get_computer_info"}', headers)
            assert link.getresponse().status == status
            link.close()


def test_a_port_that_is_taken_leads_to_one_that_is_free(home: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*PROGRAM, "start", str(tmp_path / "app"), "--port", str(port)],
            env=environment(home), capture_output=True, text=True, timeout=240,
        )  # fmt: skip
    assert done.returncode == 1 and f"port {port} is in use" in done.stderr
    hint = re.search(r"^hint: .*--port (\d+)$", done.stderr, re.MULTILINE)
    assert hint is not None and int(hint.group(1)) > port and "serve" not in hint.group(0), done.stderr


@pytest.mark.parametrize("part", ["", "..", "projects"])
def test_a_whole_home_folder_is_not_exposed_without_a_word(home: Path, tmp_path: Path, part: str) -> None:
    person = tmp_path / "people" / "me"
    (person / "projects").mkdir(parents=True)
    folder = os.path.normpath(person / part)
    with started(home, folder, "--port", "0", HOME=str(person)) as said:
        assert ("your home folder" in said or "your whole home folder" in said) is (part != "projects"), said

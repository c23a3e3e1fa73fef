"""Everything that listens is listed: by status, doctor, get_computer_info and at the start."""

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.model.times import shown_s
from support.service import DEADLINE_S, PROGRAM, TOKEN, Service, environment, serving, write_config
from support.terminal import run


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("listening"), token=TOKEN) as running:
        yield running


def told(home: Path, *words: str) -> Any:
    return json.loads(run(home, *words, "--json").stdout)


def accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as link:
        link.settimeout(5)
        return link.connect_ex((host, int(port))) == 0


def test_the_sockets_and_the_http_address_are_listed_everywhere_alike(service: Service) -> None:
    listed = told(service.home, "status")["listeners"]
    assert [(one["kind"], one["reach"]) for one in listed] == [
        ("socket", "user"),
        ("bridge", "user"),
        ("http", "machine"),
    ]
    assert listed[0]["address"] == str(service.home / "service.sock") and listed[2]["address"] == service.url
    assert all(one["since"].endswith("Z") and one["close"] == "computer-linker stop" for one in listed)
    assert told(service.home, "doctor")["listeners"] == listed
    http = service.http()
    assert http.control("get_computer_info", include=["exposure"])["exposure"]["listeners"] == listed
    http.close()
    text = run(service.home, "status").stdout
    assert service.url in text and "owner token" in text and "service.sock" not in text
    assert "service.sock" in run(service.home, "status", "--details").stdout


def test_the_listener_for_paired_computers_is_listed_until_its_own_command_closes_it(service: Service) -> None:
    opened = told(service.home, "peer", "listen", "--port", "0")["listening"]
    (peers,) = [one for one in told(service.home, "status")["listeners"] if one["kind"] == "peers"]
    assert (peers["address"], peers["reach"]) == (opened, "machine") and accepts(opened)
    assert peers["since"].endswith("Z")
    closing = peers["close"].split()[1:]
    assert run(service.home, *closing).returncode == 0
    assert not accepts(opened)
    assert "peers" not in [one["kind"] for one in told(service.home, "status")["listeners"]]


def test_the_approval_page_is_listed_since_it_was_turned_on_until_its_own_command_closes_it(service: Service) -> None:
    before = shown_s(time.time())
    assert run(service.home, "config", "set", "approvalPage", "true").returncode == 0
    (page,) = [one for one in told(service.home, "status")["listeners"] if one["kind"] == "approvalPage"]
    assert before <= page["since"] <= shown_s(time.time())
    (again,) = [one for one in told(service.home, "status")["listeners"] if one["kind"] == "approvalPage"]
    assert again == page
    assert run(service.home, *page["close"].split()[1:]).returncode == 0
    assert "approvalPage" not in [one["kind"] for one in told(service.home, "status")["listeners"]]


def test_without_a_service_nothing_is_listed(tmp_path: Path) -> None:
    write_config(tmp_path / "home", tmp_path / "root")
    assert told(tmp_path / "home", "status")["listeners"] == []
    assert told(tmp_path / "home", "doctor")["listeners"] == []


def test_serve_prints_the_address_it_binds_and_what_else_listens(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_config(home, tmp_path / "root", token=TOKEN)
    (home / "peer-listen.json").write_text(json.dumps({"host": "127.0.0.1", "port": 0}))
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--host", "0.0.0.0", "--port", "0"], env=environment(home), stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    try:
        assert process.stderr is not None
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            text = "".join(lines)
            if "serving" in text and "peers listens" in text:
                break
        assert "serving http://0.0.0.0:" in text and "Close it with: computer-linker peer listen --off" in text
        (http,) = [one for one in told(home, "status")["listeners"] if one["kind"] == "http"]
        assert http["reach"] == "network" and http["address"].startswith("http://0.0.0.0:")
        assert "others get 421" in http["who"]
        for report in (told(home, "status"), told(home, "doctor")):
            warned = [one for one in report["status"]["warnings"] if "listens on 0.0.0.0" in one]
            assert len(warned) == 1, "config.json names a loopback address"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=DEADLINE_S)

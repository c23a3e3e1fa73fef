"""The ssh tunnel with the system's ssh and a real sshd: what it opens, what it refuses, and what it leaves."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from computer_linker.tunnels.record import read
from computer_linker.tunnels.supervisor import make
from support.commands import command
from support.service import PROGRAM, TOKEN, Http, Service, environment, is_alive, rpc, serving, wait_for
from support.sshd import SshServer, is_listening, prepare, program, running
from support.tunnels import Bench

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(program() is None, reason="not installed: openssh-server")]


def cli(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return command(home, *words)


def start(service: Service, server: SshServer, *more: str) -> subprocess.CompletedProcess[str]:
    return cli(
        service.home, "tunnel", "start", "ssh", server.destination, "--ssh-port", str(server.port),
        "--remote-port", str(server.remote_port), "--identity-file", str(server.key),
        "--known-hosts", str(server.known_hosts), *more,
    )  # fmt: skip


def config_of(service: Service) -> bytes:
    return (service.home / "config.json").read_bytes()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    prepared = prepare(tmp_path / "server")
    with running(prepared):
        yield prepared


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("service"), token=TOKEN) as started:
        yield started


def test_mcp_is_reached_on_the_server_and_nothing_else_is(server: SshServer, service: Service) -> None:
    done = start(service, server, "--json")
    assert done.returncode == 0, done.stderr
    opened: dict[str, Any] = json.loads(done.stdout)
    assert (opened["state"], opened["publicUrl"]) == ("running", f"http://127.0.0.1:{server.remote_port}")
    http = Http(server.remote_port, TOKEN)
    assert http.initialize()["serverInfo"]["name"]
    http.close()
    for token, method, path, expected in (
        (None, "POST", "/mcp", 401),
        ("another-owner-token-0123456789", "POST", "/mcp", 401),
        (TOKEN, "GET", "/healthz", 404),
        (TOKEN, "POST", "/api/v1/control", 404),
    ):
        http = Http(server.remote_port, token)
        assert http.send(method, path, rpc(1, "ping"))[0] == expected, path
        http.close()
    http = Http(server.remote_port, TOKEN)
    assert http.send("POST", "/mcp", rpc(1, "ping"), {"host": f"127.0.0.1:{service.port}"})[0] == 421
    http.close()
    # It is opened at each start, and `tunnel stop` closes the port on the server too.
    kept = json.loads(config_of(service))["tunnel"]
    assert kept["provider"] == "ssh" and kept["ssh"]["destination"] == server.destination
    record = read(service.home)
    assert record is not None and record.pid is not None and is_alive(record.pid)
    assert cli(service.home, "tunnel", "stop").returncode == 0
    wait_for(lambda: not is_listening(server.remote_port))
    assert not is_alive(record.pid)


def test_the_key_of_the_how_to_page_opens_one_port_and_no_shell(server: SshServer, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/expose-with-a-tunnel.md").read_text()
    options = (server.folder / "authorized_keys").read_text().split(" ssh-ed25519")[0]
    assert options.replace(str(server.remote_port), "3941") in page
    marker = tmp_path / "made-by-a-shell"
    assert server.run(f"touch {marker}").returncode != 0
    assert not marker.exists()
    forwarded = server.run("-N", "-o", "ExitOnForwardFailure=yes", "-R", "127.0.0.1:1:127.0.0.1:2")
    assert forwarded.returncode != 0


@pytest.mark.parametrize("hosts", ["unknown", "changed"])
def test_a_host_key_that_is_not_the_known_one_is_refused_and_never_learned(
    server: SshServer, service: Service, hosts: str
) -> None:
    server.known_hosts.write_text("") if hosts == "unknown" else server.trust_another_key()
    trusted, config = server.known_hosts.read_bytes(), config_of(service)
    done = start(service, server)
    assert done.returncode == 1 and "host key" in done.stderr and "fingerprint" in done.stderr
    assert server.known_hosts.read_bytes() == trusted and config_of(service) == config
    assert not is_listening(server.remote_port)


def test_a_start_that_the_server_refuses_changes_nothing(server: SshServer, service: Service) -> None:
    config = config_of(service)
    done = start(service, server, "--remote-port", "1")
    assert done.returncode == 1 and "remote port forwarding failed" in done.stderr
    (server.folder / "authorized_keys").write_text("")
    done = start(service, server)
    assert done.returncode == 1 and "does not accept the key" in done.stderr
    assert config_of(service) == config and not is_listening(server.remote_port)


@pytest.mark.parametrize("destination", ["-oProxyCommand=id@host", "host", "me@-oProxyCommand=id", "me@h;id", "a b@c"])
def test_a_destination_is_a_user_and_a_host_and_never_an_option(service: Service, destination: str) -> None:
    config, record = config_of(service), read(service.home)
    done = cli(service.home, "tunnel", "start", "ssh", "--", destination)
    assert done.returncode != 0 and "error: " in done.stderr
    assert config_of(service) == config and read(service.home) == record


async def test_a_lost_server_is_waited_for_and_the_tunnel_comes_back(bench: Bench, tmp_path: Path) -> None:
    server = prepare(tmp_path / "server")
    bench.set(ssh=server.settings)
    with ExitStack() as first:
        first.enter_context(running(server))
        async with bench.supervised("ssh"):
            opened = await bench.until("running")
            assert opened.public_url == f"http://127.0.0.1:{server.remote_port}"
            first.close()
            assert "exit code 255" in ((await bench.until("waiting")).last_error or "")
            with running(server):
                again = await bench.until("running", count=2)
                assert again.pid != opened.pid
        assert again.pid is not None and not is_alive(again.pid)


async def test_the_program_gets_strict_options_and_no_settings_from_elsewhere(bench: Bench, tmp_path: Path) -> None:
    server = prepare(tmp_path / "server")
    bench.set(ssh={**server.settings, "hostname": "linker.example.com"})
    with running(server):
        async with bench.supervised("ssh"):
            record = await bench.until("running")
            words = Path(f"/proc/{record.pid}/cmdline").read_text().split("\0")
    assert record.public_url == "https://linker.example.com"
    for option in ("StrictHostKeyChecking=yes", "UpdateHostKeys=no", "BatchMode=yes", "ExitOnForwardFailure=yes",
                   "ServerAliveInterval=15", "ServerAliveCountMax=3", "IdentitiesOnly=yes"):  # fmt: skip
        assert option in words
    assert words[1:3] == ["-F", "none"] and {"-N", "-T", "-a", "-x"} <= set(words)
    assert words[words.index("-R") + 1] == f"127.0.0.1:{server.remote_port}:127.0.0.1:39399"


@pytest.mark.parametrize("fault", ["key is readable", "key in a scope", "hosts are writable", "no server", "no ssh"])
async def test_what_is_unsafe_or_missing_starts_nothing_and_says_what_helps(
    bench: Bench, tmp_path: Path, fault: str
) -> None:
    server = prepare(tmp_path / "server")
    bench.set(ssh=server.settings)
    match fault:
        case "key is readable":
            server.key.chmod(0o640)
        case "key in a scope":
            scope = {"id": "app", "type": "folder", "roots": [str(server.folder)], "capabilities": ["fs:read"]}
            bench.config = type(bench.config).from_wire({**bench.config.to_wire(), "scopes": [scope]})
        case "hosts are writable":
            server.known_hosts.chmod(0o666)
        case "no server":
            bench.set(ssh={"destination": None})
        case _:
            bench.set(ssh={"program": None})
    found = make("ssh", bench.around).detect()
    assert not found.available and found.problem and found.remedy
    with running(server):
        async with bench.supervised("ssh"):
            await bench.until("refused")
        assert not is_listening(server.remote_port)


def test_start_with_the_ssh_tunnel_says_where_it_is_reached(server: SshServer, tmp_path: Path) -> None:
    with serving(tmp_path / "other", token=TOKEN, tunnel={"ssh": server.settings}) as started:
        done = subprocess.run(
            [*PROGRAM, "start", "--tunnel", "ssh"], env=environment(started.home), capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert f"http://127.0.0.1:{server.remote_port}/mcp" in done.stdout
        listed = json.loads(cli(started.home, "tunnel", "detect", "--json").stdout)["providers"]
        assert next(entry for entry in listed if entry["name"] == "ssh")["available"]
        assert "provider" not in json.loads(config_of(started))["tunnel"]
        os.kill(read(started.home).pid, 9)  # type: ignore[union-attr, arg-type]
        wait_for(lambda: (record := read(started.home)) is not None and record.restarts == 1 and record.is_open)

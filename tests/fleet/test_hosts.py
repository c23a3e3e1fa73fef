"""Two hosts with a network of their own between them: TLS over a real link, and a cable that is pulled."""

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.client.socket_client import ask_service
from computer_linker.fleet.embedded import server_program
from support.nats import certificate
from support.service import PROGRAM, end_service, environment, wait_for, write_config

pytestmark = pytest.mark.timeout(400)


class Host:
    """A network namespace with one address."""

    def __init__(self, name: str, address: str) -> None:
        self.name, self.address = name, address

    def run(self, home: Path, *arguments: str) -> Any:
        """One command line on this host; its JSON answer."""
        done = subprocess.run(
            ["ip", "netns", "exec", self.name, *PROGRAM, *arguments, "--json"], env=environment(home),
            capture_output=True, text=True, timeout=180,
        )  # fmt: skip
        assert done.stdout.strip().startswith("{"), done.stdout + done.stderr
        return json.loads(done.stdout)

    def start(self, *command: str, **more: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["ip", "netns", "exec", self.name, *command], stdin=subprocess.DEVNULL, **more)

    def cable(self, state: str) -> None:
        """Pull the cable (`down`) or put it back (`up`)."""
        ip("-n", self.name, "link", "set", "eth0", state)


def ip(*arguments: str) -> bool:
    try:
        return subprocess.run(["ip", *arguments], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    mark, net = secrets.token_hex(3), secrets.randbelow(200) + 20
    here, there = Host(f"clh{mark}", f"10.231.{net}.1"), Host(f"clm{mark}", f"10.231.{net}.2")
    try:
        made = [ip("netns", "add", host.name) for host in (here, there)]
        made.append(
            ip("-n", here.name, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", there.name)
        )
        if not all(made):
            pytest.skip("network namespaces cannot be made here: root and iproute2 are needed")
        for host in (here, there):
            ip("-n", host.name, "addr", "add", f"{host.address}/24", "dev", "eth0")
            ip("-n", host.name, "link", "set", "lo", "up")
            host.cable("up")
        yield here, there
    finally:
        for host in (here, there):
            ip("netns", "del", host.name)


def state_of(hub: Path) -> str | None:
    machines = ((ask_service(hub, {"owner": "hub.machines"}, within_s=20) or {}).get("data") or {}).get("machines", [])
    return machines[0]["state"] if machines else None


def test_a_pulled_cable_is_told_truthfully_and_put_back_goes_on(hosts: tuple[Host, Host], tmp_path: Path) -> None:
    here, there = hosts
    hub, laptop, root = tmp_path / "hub", tmp_path / "laptop", tmp_path / "laptop-root"
    write_config(hub, tmp_path / "hub-root", machineId="hub-id", machineName="hub")
    write_config(laptop, root, machineId="laptop-id", machineName="laptop")
    os.mkfifo(root / "pipe")
    shown, key = certificate(tmp_path, "server", here.address)
    url = f"tls://{here.address}:4222"
    settings = {
        "listen": f"{here.address}:4222", "tls": {"cert_file": str(shown), "key_file": str(key)},
        "jetstream": {"store_dir": str(tmp_path / "store"), "max_file_store": 1 << 30},
    }  # fmt: skip
    (tmp_path / "server.conf").write_text(json.dumps(settings))
    server = here.start(server_program(()), "-c", str(tmp_path / "server.conf"), stderr=subprocess.DEVNULL)
    try:
        boss = here.run(hub, "hub", "--server", url, "--ca", str(shown), "--detach")
        joined = there.run(laptop, "join", url, "--ca", str(shown), "--hub", boss["key"], "--allow", "app")
        assert joined["connected"], joined
        wait_for(lambda: state_of(hub) == "pending")
        here.run(hub, "hub", "trust", joined["key"][:24])
        wait_for(lambda: state_of(hub) == "online")
        (root / "a.txt").write_text("over the wire")
        read = here.run(hub, "op", "file.read", "a.txt", "--on", "laptop", "--scope", "app")
        assert read["data"]["content"] == "over the wire"

        acting = subprocess.Popen(
            [*PROGRAM, "op", "command.run", ".", "--on", "[all within=6]", "--scope", "app", "--input", 'command=["cat", "pipe"]', "--json"],
            env=environment(hub), stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        handle = wait_for(lambda: _writer(root / "pipe"))
        there.cable("down")
        told = json.loads(acting.communicate(timeout=180)[0])
        (result,) = told["data"]["results"]
        assert (told["effect"], result["state"], result["error"]["details"]["effect"]) == (
            "unverifiable",
            "late",
            "unverifiable",
        )
        wait_for(lambda: state_of(hub) == "stale", seconds=120)
        os.close(handle)
        there.cable("up")
        wait_for(lambda: state_of(hub) == "online", seconds=120)
        again = here.run(hub, "op", "file.read", "a.txt", "--on", "laptop", "--scope", "app")
        assert again["data"]["content"] == "over the wire"
    finally:
        end_service(hub)
        end_service(laptop)
        server.terminate()
        server.wait(20)


def _writer(pipe: Path) -> int:
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return 0

"""Gates of commands and browsers: what they keep, and what they let go."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from computer_linker.model.network import PROXY_PORT
from computer_linker.providers.network.gates import Gates
from support.road import LOCAL, Road, folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    (tmp_path / "root").mkdir()
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", network=["allowed.example"])]) as opened:
        yield opened


async def ask(port: int, host: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode())
    assert b"403" in await reader.read(-1)
    writer.close()
    await writer.wait_closed()


def listeners() -> tuple[list[int], int]:
    """The descriptors of a resolver and a proxy, and the proxy's port."""
    resolver, proxy = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.create_server(("127.0.0.1", 0))
    resolver.bind(("127.0.0.1", 0))
    port: int = proxy.getsockname()[1]
    return [resolver.detach(), proxy.detach()], port


async def test_what_is_opened_after_its_command_has_ended_is_closed(road: Road) -> None:
    gates = road.app.services.use(Gates)
    gate = gates.for_command(road.app.services.config.scopes[0], LOCAL, "sh")
    gate.close()
    fds, _ = listeners()
    gate.inner.opened(fds)
    assert not gates.inner
    for fd in fds:
        with pytest.raises(OSError):
            os.fstat(fd)


async def test_warnings_of_a_command_are_bounded(road: Road) -> None:
    gate = road.app.services.use(Gates).for_command(road.app.services.config.scopes[0], LOCAL, "sh")
    fds, port = listeners()
    gate.inner.opened(fds)
    for number in range(25):
        await ask(port, f"r{number}.example")
    await ask(port, "r3.example")
    *named, last = gate.warnings()
    assert len(named) == 20 and "r19.example" in named[-1]
    assert "5 further" in last
    gate.close()


async def test_the_history_has_the_number_of_connections_above_the_bound(road: Road) -> None:
    gate = road.app.services.use(Gates).for_browser(road.app.services.config.scopes[0], LOCAL)
    gate.listen(None)
    for _ in range(1003):
        await ask(gate.port, "other.example")
    await gate.aclose()

    async def summaries() -> list[dict[str, Any]]:
        events = (await road.data("history.last", "", options={"limit": 5}))["events"]
        return [event["summary"] for event in events if event["op"] == "network.connect"]

    with anyio.fail_after(60):
        while not (found := [each for each in await summaries() if "leftOut" in each]):
            await anyio.lowlevel.checkpoint()
    assert found[0]["leftOut"] == 3


async def test_a_command_starts_where_a_preset_names_the_port_of_its_proxy(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / ".npmrc").write_text(f"registry=http://npm.example:{PROXY_PORT}/\n")
    scope = folder_scope(tmp_path / "root", allowedCommands=["*"], network=["npm"], sandbox="required")
    async with Road.open(tmp_path, [scope]) as road:
        road.app.services.provide(Gates, Gates(road.app.services, tmp_path, {}))
        ran = await road.data("command.run", ".", input={"command": ["getent", "hosts", "npm.example"]})
        assert "198.18." in ran["stdout"], ran


async def test_the_services_own_ports_are_not_looked_up_for_each_connection(tmp_path: Path) -> None:
    """Found: many short connections of one command walked all descriptors of the service, each time, on its loop."""
    async with Road.open(tmp_path) as road:
        gates = road.app.services.use(Gates)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            await until(lambda: listener.getsockname()[1] in gates.own.ports())
            answers = [gates.own.ports() for _ in range(1000)]
            assert len({id(one) for one in answers}) < 100


async def test_new_connections_of_one_gate_are_taken_at_a_bounded_rate(road: Road) -> None:
    """Found: one command that connects and closes without end slowed every client (F11)."""
    gate = road.app.services.use(Gates).for_command(road.app.services.config.scopes[0], LOCAL, "sh")
    fds, port = listeners()
    gate.inner.opened(fds)

    async def connect_again_and_again() -> None:
        for _ in range(90):
            await ask(port, "refused.example")

    begun = asyncio.get_running_loop().time()
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(connect_again_and_again)
    assert asyncio.get_running_loop().time() - begun > 1.0, "the first 512 at once, then 100 a second"
    gate.close()

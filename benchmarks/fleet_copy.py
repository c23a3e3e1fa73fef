"""A copy through a fleet's server: a hub here, a machine in a process of its own, against plain messages over the same server."""

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import nats

from benchmarks.peers import MEMORY_MB, _in_memory, _peak, _peak_reset
from benchmarks.ratio import Ratio
from computer_linker.computer.local.probe import this_computer
from computer_linker.config.schema import Config
from computer_linker.fleet.embedded import free_port, server_program
from computer_linker.fleet.hub import Hub
from computer_linker.fleet.machines import Machines
from computer_linker.fleet.member import Member, Times
from computer_linker.fleet.messages import seat_of
from computer_linker.fleet.routes import FleetRoutes
from computer_linker.fleet.seal import Signer
from computer_linker.fleet.settings import AllowedHub, HubSettings, Joined, ServerAddress
from computer_linker.fleet.streams import CHUNK, WINDOW
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.service.app import App, open_app
from computer_linker.system import event_loop
from computer_linker.transports.peer.identity import own_identity

SIZE = 256 << 20
ROUNDS = 3
_SINK, _TAKEN = "bench.sink", "bench.taken"
_OWNER = Principal(id="local:bench", proof="local_user", session="s", connection="c", client="bench")


class Server:
    """A real nats-server on a free port, without users: the seals, not the server, are what is trusted."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"nats://127.0.0.1:{port}"
        arguments = ["-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder / "store")]
        self._child = subprocess.Popen([server_program([]), *arguments], stderr=subprocess.DEVNULL)

    def close(self) -> None:
        self._child.terminate()
        self._child.wait(20)


def copied() -> list[Ratio]:
    """The rows."""
    folder = Path(tempfile.mkdtemp(dir=_in_memory()))
    try:
        return event_loop.run(_measured(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _measured(folder: Path) -> list[Ratio]:
    async with AsyncExitStack() as stack:
        server = Server(folder)
        stack.callback(server.close)
        app, signer = await _app(stack, folder / "hub", "hub")
        machines = Machines(HubSettings(place=ServerAddress(url=server.url)), signer.fingerprint, lambda _: None)
        hub = Hub(app.dispatcher, signer, machines)
        hub.start()
        stack.push_async_callback(hub.aclose)
        app.dispatcher.routes = FleetRoutes(hub, app.catalog)
        arguments = [sys.executable, "-m", "benchmarks.fleet_copy", server.url, signer.fingerprint, str(folder / "far")]
        child = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        stack.callback(lambda: child.communicate(b"\n", timeout=60))
        assert child.stdout is not None
        assert await asyncio.to_thread(child.stdout.readline) == b"up\n"
        async with asyncio.timeout(60):
            while not machines.by_key:  # presence comes by itself
                await asyncio.sleep(0.02)
        machines.trust(next(iter(machines.by_key)))
        return await _timed(app, server.url, folder, child.pid)


async def _timed(app: App, url: str, folder: Path, far: int) -> list[Ratio]:
    source = folder / "hub" / "root" / "big"
    with source.open("wb") as file:
        for _ in range(SIZE >> 20):
            file.write(os.urandom(1 << 20))
    ours: list[float] = []
    limit: list[float] = []
    memory = 0.0
    for number in range(ROUNDS):
        began = time.perf_counter()
        await _plain(url, source)
        middle = time.perf_counter()
        before = _peak_reset(os.getpid()), _peak_reset(far)
        where = {"destination": f"copy-{number}", "destinationScope": "far/app"}
        wire = {"scope": "app", "op": "file.copy", "target": "big", "input": where}
        reply = await app.dispatcher.call_wire(wire, _OWNER)
        assert reply.ok, reply.envelope
        limit.append(middle - began)
        ours.append(time.perf_counter() - middle)
        memory = max(memory, _peak(os.getpid()) - before[0], _peak(far) - before[1])
    rate = SIZE / statistics.median(ours) / 1e6
    note = f"limit: plain messages by the same client over the same server; ours, every piece signed, {rate:.0f} MB/s"
    return [
        Ratio(
            "copy of 256 MB to a machine of a fleet", statistics.median(ours), statistics.median(limit), 3, note=note
        ),
        Ratio("memory of that copy, either side", memory, MEMORY_MB, 1, unit="MB", note="growth of the peak"),
    ]


async def _plain(url: str, source: Path) -> None:
    """The bytes as plain messages, no more of them under way than ours has."""
    client = await nats.connect(url)
    room, ended = asyncio.Semaphore(WINDOW // CHUNK), asyncio.Event()

    async def taken(message: Any) -> None:
        room.release()
        if message.data == b"end":
            ended.set()

    await client.subscribe(_TAKEN, cb=taken)
    with source.open("rb", buffering=0) as file:
        while piece := file.read(CHUNK):
            await room.acquire()
            await client.publish(_SINK, piece)
        await client.publish(_SINK, b"")
    async with asyncio.timeout(60):
        await ended.wait()
    await client.close()


async def _be_far(url: str, hub: str, folder: Path) -> None:
    async with AsyncExitStack() as stack:
        app, signer = await _app(stack, folder, "far")
        hubs = [AllowedHub(fingerprint=hub, grants=["app"])]
        joined = Joined(place=ServerAddress(url=url), seat=seat_of(signer.fingerprint), hubs=hubs)
        member = Member(app.services, app.dispatcher, signer, joined, Times(history=3600))
        member.start()
        stack.push_async_callback(member.aclose)
        assert await member.link.wait_up(60)
        client = await nats.connect(url)
        stack.push_async_callback(client.close)
        with (folder / "plain").open("wb", buffering=0) as file:

            async def take(message: Any) -> None:
                file.write(message.data)
                await client.publish(_TAKEN, b"" if message.data else b"end")

            await client.subscribe(_SINK, cb=take)
            await client.flush()
            sys.stdout.write("up\n")
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.readline)


async def _app(stack: AsyncExitStack, folder: Path, name: str) -> tuple[App, Signer]:
    home, root = folder / "home", folder / "root"
    home.mkdir(mode=0o700, parents=True)
    root.mkdir()
    scope = {"id": "app", "type": "folder", "roots": [str(root)], "capabilities": ["fs:read", "fs:write"]}
    config = Config(machine_id=name, machine_name=name, scopes=[Scope.from_wire(scope)])
    app = await stack.enter_async_context(open_app(home, lambda: config, this_computer()))
    return app, Signer(own_identity(home, name))


if __name__ == "__main__":
    event_loop.run(_be_far(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
